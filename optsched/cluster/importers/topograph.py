"""JSON of Topograph's graph engine: for each instance the switches above it.

Facts of the format: https://github.com/NVIDIA/topograph, docs/engines/graph.md and
docs/reference/node-labels.md. From version 1.0 on NVLink domains are labels, of which the key of
the domain can be configured; before that an instance had an attribute "nvlink".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from optsched.cluster.importers.switches import switch_topology
from optsched.cluster.importers.text import gpu_ids, note, refuse_many
from optsched.documents.faults import InstanceError, lines, validation_faults
from optsched.documents.json_files import encoded, load

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.cluster.topology import Topology

Name = Annotated[str, Field(min_length=1)]
DOMAIN_LABEL = "accelerator.topograph.run/domain"
SUB_DOMAIN_LABEL = "accelerator.topograph.run/sub-domain"
FABRIC_LABEL = "fabric.topograph.run/"  # the same as network_layers


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class _Attributes(_Part):
    nvlink: str | None = None


class _Instance(_Part):
    id: Name
    network_layers: list[Name] = Field(default=[], description="Closest first.")
    attributes: _Attributes = _Attributes()
    labels: dict[str, str] = Field(default={})

    def accelerators(self, domain_label: str) -> list[str]:
        """Return the NVLink sub-domain and domain, as far as it is in some."""
        domain = self.labels.get(domain_label) or self.attributes.nvlink
        if not domain:
            return []
        part = self.labels.get(SUB_DOMAIN_LABEL)
        return [f"{domain}/{part}", domain] if part else [domain]


class _Output(_Part):
    instances: list[_Instance] = Field(min_length=1)


def read_topograph(
    path: Path, gpus_per_node: int | None, domain_label: str = DOMAIN_LABEL
) -> Topology:
    """Read what Topograph's graph engine returns.

    NVLink domains become a level between nodes and switches, their sub-domains one below; a domain
    must lie below one switch. Other labels are noted.
    """
    origin = str(path)
    instances = _instances(load(path), origin)
    inner = {one.id: one.accelerators(domain_label) for one in instances}
    refuse_many(len(instances), gpus_per_node, origin)
    _note_labels(instances, domain_label, origin)
    _refuse_clashes(instances, inner, origin)
    deepest = max(len(domains) for domains in inner.values())
    lowest = (
        ["node", "nvlink-part", "nvlink"] if deepest == 2 else ["node", "nvlink"][: deepest + 1]
    )
    fabric: nx.DiGraph[str] = nx.DiGraph()
    tops: dict[str, None] = {}
    for instance in instances:
        layers, domains = instance.network_layers, inner[instance.id]
        first = len(lowest) - len(domains)
        for height, name in enumerate([*domains, *layers], start=first):
            known = fabric.nodes[name]["height"] if name in fabric else 0
            fabric.add_node(name, height=max(height, known))
        way = [instance.id, *domains, *layers]
        fabric.add_nodes_from(way)
        fabric.add_edges_from(zip(way[1:], way[:-1], strict=True))
        tops[way[-1]] = None
    _refuse_stray_nvlink(instances, inner, origin)
    if not nx.is_weakly_connected(fabric):
        fabric.add_edges_from([("cluster", top) for top in tops if not fabric.pred[top]])
    gpus = {one.id: gpu_ids(one.id, gpus_per_node, origin) for one in instances}
    return switch_topology(fabric, gpus, lowest, origin)


def _note_labels(instances: list[_Instance], domain_label: str, origin: str) -> None:
    """Note labels of which none says what the NVLink domain is."""
    keys = dict.fromkeys(key for one in instances for key in one.labels)
    if domain_label in keys:
        return
    others = [key for key in keys if not key.startswith(FABRIC_LABEL)]
    if others or domain_label != DOMAIN_LABEL:
        listed = ", ".join(f"'{key}'" for key in others[:5]) or "none"
        text = f"no instance has the label '{domain_label}' of NVLink domains; other labels: "
        note(f"{text}{listed} (choose one by --domain-label)", origin)


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
    return output.instances


def _refuse_clashes(instances: list[_Instance], inner: dict[str, list[str]], origin: str) -> None:
    outer = {layer for one in instances for layer in one.network_layers}
    outer |= {domain for domains in inner.values() for domain in domains}
    faults = [f"'{name}' is both an instance and what it is in" for name in inner if name in outer]
    if faults:
        raise InstanceError(origin, faults)


def _refuse_stray_nvlink(
    instances: list[_Instance], inner: dict[str, list[str]], origin: str
) -> None:
    closest: dict[str, set[str]] = {}
    for instance in instances:
        if inner[instance.id] and instance.network_layers:
            switches = closest.setdefault(inner[instance.id][-1], set())
            switches.add(instance.network_layers[0])
    faults = [
        f"NVLink domain '{name}' lies below several switches, {', '.join(sorted(switches))}: "
        "no tree holds both"
        for name, switches in closest.items()
        if len(switches) > 1
    ]
    if faults:
        raise InstanceError(origin, faults)
