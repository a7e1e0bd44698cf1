"""Slurm's topology.yaml, which may describe several topologies.

Facts of the format: https://slurm.schedmd.com/topology.yaml.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cluster.importers.text import note
from optsched.cluster.importers.wiring import Field, Switch, Wiring
from optsched.documents.faults import InstanceError, nearest, shown
from optsched.documents.yaml_files import PlainLoader, parse

if TYPE_CHECKING:
    import yaml


class _Text(str):
    """A string of a file that knows its line and column, both from 1."""

    at: tuple[int, int]


class _Loader(PlainLoader):
    """Builds strings that know where they stand."""


def _located(loader: Any, node: yaml.ScalarNode) -> _Text:
    text = _Text(loader.construct_scalar(node))
    text.at = (node.start_mark.line + 1, node.start_mark.column + 1 + (node.style in ("'", '"')))
    return text


_Loader.add_constructor("tag:yaml.org,2002:str", _located)


def parse_yaml(text: str, origin: str, name: str | None = None) -> Wiring:
    """Parse topology.yaml: the topology of a name, or the cluster's default, or the first one.

    Without a name it is noted that there are others.

    Raises
    ------
    InstanceError
        If it does not parse or does not have the fields of a topology.
    """
    document = parse(text, origin, _Loader)
    try:
        topologies = _list(document, "document", dict)
        number = _default(topologies, origin) if name is None else _named(topologies, name)
        return _wiring(topologies[number], f"[{number}]")
    except _FieldError as error:
        raise InstanceError(origin, [str(error)]) from None


class _FieldError(ValueError):
    """A field that is not what it should be."""


def _named(topologies: list[dict[Any, Any]], name: str) -> int:
    """Return the number of the topology of a name."""
    names = [str(one.get("topology")) for one in topologies]
    if name not in names:
        raise _FieldError(f"there is no topology '{name}'; {nearest(name, names)}")
    return names.index(name)


def _default(topologies: list[dict[Any, Any]], origin: str) -> int:
    """Return the number of the default topology, or the first one; note that there are others."""
    default = [n for n, one in enumerate(topologies) if one.get("cluster_default") is True]
    number = default[0] if default else 0
    if len(topologies) > 1:
        names = [shown(one.get("topology")) for one in topologies]
        why = "the cluster's default" if default else "the first"
        others = ", ".join(other for n, other in enumerate(names) if n != number)
        text = f"{names[number]} is read, {why} of {len(topologies)} topologies; there are also "
        note(f"{text}{others} (choose one by --topology)", origin)
    return number


def _wiring(topology: dict[Any, Any], path: str) -> Wiring:
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
    if nodes is not None and children is not None:
        raise _FieldError(f"{path}: expected either children or nodes")
    return Switch(_text(switch, "switch", path), children, nodes)


def _block(block: dict[Any, Any], path: str) -> Switch:
    nodes = _text(block, "nodes", path) if "nodes" in block else None
    return Switch(_text(block, "block", path), None, nodes)


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
