"""Slurm's topology.yaml, which may describe several topologies.

Facts of the format: https://slurm.schedmd.com/topology.yaml.html.
"""

from __future__ import annotations

from typing import Any

import yaml

from optsched.cluster.importers.wiring import Field, Switch, Wiring
from optsched.faults import InstanceError, shown


class _Text(str):
    """A string of a file that knows its line and column, both from 1."""

    at: tuple[int, int]


class _Loader(yaml.SafeLoader):
    """Builds nothing but plain data."""


def _located(loader: _Loader, node: yaml.ScalarNode) -> _Text:
    text = _Text(loader.construct_scalar(node))
    text.at = (node.start_mark.line + 1, node.start_mark.column + 1 + (node.style in ("'", '"')))
    return text


_Loader.add_constructor("tag:yaml.org,2002:str", _located)


def parse_yaml(text: str, origin: str) -> Wiring:
    """Parse topology.yaml: the topology that is the cluster's default, else the first one.

    Raises
    ------
    InstanceError
        If it does not parse or does not have the fields of a topology.
    """
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InstanceError(origin, [f"{place}{error.problem}; expected YAML"]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InstanceError(origin, [f"expected YAML: {str(error).splitlines()[0]}"]) from None
    try:
        return _wiring(document)
    except _FieldError as error:
        raise InstanceError(origin, [str(error)]) from None


class _FieldError(ValueError):
    """A field that is not what it should be."""


def _wiring(document: Any) -> Wiring:
    topologies = _list(document, "document", dict)
    default = [n for n, one in enumerate(topologies) if one.get("cluster_default") is True]
    number = default[0] if default else 0
    topology, path = topologies[number], f"[{number}]"
    if "tree" in topology:
        tree = _object(topology["tree"], f"{path}.tree")
        switches = _list(tree.get("switches"), f"{path}.tree.switches", dict)
        return Wiring(
            [_switch(s, f"{path}.tree.switches[{n}]") for n, s in enumerate(switches)], [], None
        )
    if "block" in topology:
        block = _object(topology["block"], f"{path}.block")
        blocks = _list(block.get("blocks"), f"{path}.block.blocks", dict)
        sizes = [str(size) for size in block.get("block_sizes") or ()]
        return Wiring(
            [],
            [_block(b, f"{path}.block.blocks[{n}]") for n, b in enumerate(blocks)],
            Field(",".join(sizes), (1, 1)) if sizes else None,
        )
    raise _FieldError(f"{path}: expected 'tree' or 'block'; a flat topology names no nodes")


def _switch(switch: dict[Any, Any], path: str) -> Switch:
    children = _text(switch, "children", path) if "children" in switch else None
    nodes = _text(switch, "nodes", path) if "nodes" in switch else None
    if (nodes is None) == (children is None):
        raise _FieldError(f"{path}: expected either children or nodes")
    return Switch(_text(switch, "switch", path), children, nodes)


def _block(block: dict[Any, Any], path: str) -> Switch:
    return Switch(_text(block, "block", path), None, _text(block, "nodes", path))


def _text(entry: dict[Any, Any], key: str, path: str) -> Field:
    value = entry.get(key)
    if not isinstance(value, _Text) or not value:
        raise _FieldError(f"{path}.{key}: expected text, found {shown(value)}")
    return Field(str(value), value.at)


def _object(value: Any, path: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _FieldError(f"{path}: expected an object, found {shown(value)}")
    return value


def _list(value: Any, path: str, kind: type) -> list[Any]:
    if not isinstance(value, list) or not value or not all(isinstance(v, kind) for v in value):
        raise _FieldError(f"{path}: expected a list of objects, found {shown(value)}")
    return value
