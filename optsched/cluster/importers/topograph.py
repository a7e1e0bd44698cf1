"""JSON of Topograph's graph engine: for each instance the switches above it.

Facts of the format: https://github.com/NVIDIA/topograph, docs/engines/graph.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from optsched.cluster.importers.switches import switch_topology
from optsched.cluster.importers.text import gpu_ids
from optsched.faults import InstanceError, lines, validation_faults
from optsched.jsonfile import encoded, load

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.cluster.topology import Topology

Name = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Attributes(_Part):
    nvlink: str | None = None


class _Instance(_Part):
    id: Name
    network_layers: list[Name] = Field(default=[], description="Closest first.")
    attributes: _Attributes = _Attributes()


class _Output(_Part):
    instances: list[_Instance] = Field(min_length=1)


def read_topograph(path: Path, gpus_per_node: int | None) -> Topology:
    """Read what Topograph's graph engine returns.

    NVLink domains become a level between nodes and switches, and must lie below one switch each.
    """
    origin = str(path)
    instances = _instances(load(path), origin)
    fabric: nx.DiGraph[str] = nx.DiGraph()
    accelerated = any(instance.attributes.nvlink for instance in instances)
    lowest = ["node", "nvlink"] if accelerated else ["node"]
    tops: dict[str, None] = {}
    for instance in instances:
        layers = instance.network_layers
        for height, switch in enumerate(layers, start=len(lowest)):
            known = fabric.nodes[switch]["height"] if switch in fabric else 0
            fabric.add_node(switch, height=max(height, known))
        inner = [instance.attributes.nvlink] if instance.attributes.nvlink else []
        way = [instance.id, *inner, *layers]
        fabric.add_nodes_from(way)
        fabric.add_edges_from(zip(way[1:], way[:-1], strict=True))
        tops[way[-1]] = None
    _refuse_stray_nvlink(instances, origin)
    if not nx.is_weakly_connected(fabric):
        fabric.add_edges_from([("cluster", top) for top in tops if not fabric.pred[top]])
    gpus = {one.id: gpu_ids(one.id, gpus_per_node, origin) for one in instances}
    return switch_topology(fabric, gpus, lowest, origin)


def _instances(document: Any, origin: str) -> list[_Instance]:
    try:
        output = _Output.model_validate_json(encoded(document, origin))
    except ValidationError as error:
        raise InstanceError(origin, lines(validation_faults(error, _Output))) from None
    first: dict[str, int] = {}
    for n, instance in enumerate(output.instances):
        if first.setdefault(instance.id, n) != n:
            text = f"'{instance.id}' is already the id of instances[{first[instance.id]}]"
            raise InstanceError(origin, [f"instances[{n}].id: {text}"])
    outer = {layer for one in output.instances for layer in one.network_layers}
    outer |= {one.attributes.nvlink for one in output.instances if one.attributes.nvlink}
    faults = [f"'{name}' is both an instance and what it is in" for name in first if name in outer]
    if faults:
        raise InstanceError(origin, faults)
    return output.instances


def _refuse_stray_nvlink(instances: list[_Instance], origin: str) -> None:
    closest: dict[str, set[str]] = {}
    for instance in instances:
        if instance.attributes.nvlink and instance.network_layers:
            switches = closest.setdefault(instance.attributes.nvlink, set())
            switches.add(instance.network_layers[0])
    faults = [
        f"NVLink domain '{name}' lies below several switches, {', '.join(sorted(switches))}: "
        "no tree holds both"
        for name, switches in closest.items()
        if len(switches) > 1
    ]
    if faults:
        raise InstanceError(origin, faults)
