"""Graphs of networkx, as node-link JSON or GraphML.

A directed graph is a tree of domains, with edges from each domain to what is inside; a vertex has
the attributes that `optsched.cluster.Topology.graph` gives it, and a domain may say with `capacity`
how many GPUs it has instead of listing them as vertices. An undirected graph is a network: edges
have a `bandwidth`, and vertices of the kind "gpu", or with a `capacity`, hold GPUs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from optsched.cluster.bottleneck import bottleneck_bandwidths, bottleneck_topology
from optsched.cluster.importers.text import gpu_ids, read_text, refuse_many
from optsched.cluster.topology import Topology
from optsched.documents.faults import InstanceError
from optsched.documents.json_files import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read_node_link(path: Path, gpus_per_node: int | None) -> Topology:
    """Read what `networkx.node_link_data` gives."""
    document, origin = load(path), str(path)
    if not isinstance(document, dict):
        raise InstanceError(origin, ["expected an object with nodes and edges"])
    edges = "links" if "links" in document else "edges"
    try:
        graph = nx.node_link_graph(document | {"graph": {}}, edges=edges)  # its own are not read
    except (KeyError, TypeError, AttributeError, ValueError, nx.NetworkXError) as error:
        text = f"expected node-link data of networkx with nodes and edges; no good: {error}"
        raise InstanceError(origin, [text]) from None
    return graph_topology(graph, gpus_per_node, origin)


def read_graphml(path: Path, gpus_per_node: int | None) -> Topology:
    """Read what `networkx.write_graphml` writes."""
    text, origin = read_text(path), str(path)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities may grow without limit
        raise InstanceError(origin, ["a document type or entities: expected plain GraphML"])
    try:
        graph = nx.parse_graphml(text)
    except ParseError as error:
        line, column = error.position
        place, problem = f"line {line}, column {column + 1}", str(error).split(":")[0]
        raise InstanceError(origin, [f"{place}: {problem}; expected XML"]) from None
    except (KeyError, TypeError, ValueError, nx.NetworkXError) as error:
        raise InstanceError(origin, [f"expected GraphML; {error}"]) from None
    return graph_topology(graph, gpus_per_node, origin)


def graph_topology(graph: nx.Graph[Any], gpus_per_node: int | None, origin: str) -> Topology:
    """Return the topology of a tree of domains, or of a network with bandwidths.

    Raises
    ------
    InstanceError
        If an attribute is missing, or the outcome is no valid topology.
    """
    graph = nx.relabel_nodes(graph, {vertex: str(vertex) for vertex in graph})
    return (_tree if graph.is_directed() else _network)(graph, gpus_per_node, origin)


def _tree(graph: Any, gpus_per_node: int | None, origin: str) -> Topology:
    gpus = [vertex for vertex, kind in graph.nodes(data="kind") if kind == "gpu"]
    is_gpu = set(gpus)
    inner = [vertex for vertex in graph if vertex not in is_gpu]
    faults = [f"domain '{v}' has no level" for v in inner if not graph.nodes[v].get("level")]
    faults += [
        f"'{vertex}' is inside of several, {', '.join(graph.pred[vertex])}: not a tree"
        for vertex in graph
        if len(set(graph.pred[vertex])) > 1
    ]
    if faults:
        raise InstanceError(origin, faults)
    levels = _levels(graph, inner)
    domains: list[dict[str, Any]] = []
    refuse_many(len(graph), None, origin)
    _refuse_capacities(graph, gpus_per_node, origin)
    for vertex in inner:
        data = graph.nodes[vertex]
        parent = next(iter(graph.pred[vertex]), None)
        domain = {"id": vertex, "level": str(data["level"]), "parent": parent}
        domain["drained"] = data.get("drained", False)
        if domain["level"] == levels[0]:
            domain["gpus"] = [child for child in graph[vertex] if child in is_gpu]
            if not gpus:
                domain["gpus"] = _held(data, vertex, gpus_per_node, origin)
        domains.append(domain)
    return Topology.from_document({"levels": levels, "domains": domains}, origin)


def _levels(graph: Any, domains: Sequence[str]) -> list[str]:
    """Return the names of levels from the lowest up: by `height`, else as the edges say."""
    data = graph.nodes
    heights = {str(data[v]["level"]): data[v].get("height") for v in domains}
    if all(isinstance(height, int) for height in heights.values()):
        return sorted(heights, key=lambda level: (heights[level], level))
    order: nx.DiGraph[str] = nx.DiGraph()
    order.add_nodes_from(heights)
    inside = [(child, v) for v in domains for child in graph[v] if "level" in data[child]]
    order.add_edges_from(
        (str(data[child]["level"]), str(data[v]["level"]))
        for child, v in inside
        if data[child].get("kind") != "gpu" and data[child]["level"] != data[v]["level"]
    )
    if not nx.is_directed_acyclic_graph(order):
        return list(heights)  # the faults of the topology say what is above what
    return list(nx.topological_sort(order))


def _held(data: dict[str, Any], vertex: str, gpus_per_node: int | None, origin: str) -> list[str]:
    capacity = data.get("capacity", gpus_per_node)
    if capacity is not None and (not isinstance(capacity, int) or not 0 <= capacity <= 100_000):
        raise InstanceError(origin, [f"'{vertex}' needs a whole capacity, found {capacity!r}"])
    return gpu_ids(vertex, capacity, origin)


def _refuse_capacities(graph: Any, gpus_per_node: int | None, origin: str) -> None:
    """Refuse more GPUs than a topology may have."""
    each = [data.get("capacity", gpus_per_node) for _, data in graph.nodes(data=True)]
    refuse_many(sum(count for count in each if isinstance(count, int) and count > 0), None, origin)


def _network(graph: Any, gpus_per_node: int | None, origin: str) -> Topology:
    _refuse_capacities(graph, None, origin)
    for vertex, data in graph.nodes(data=True):
        kind = data.get("kind")
        if kind == "gpu":
            data["gpus"] = [vertex]
        elif "capacity" in data or kind == "node":
            data["gpus"] = _held(data, vertex, gpus_per_node, origin)
    try:
        widths = bottleneck_bandwidths(graph)
        if len(widths) > 16:
            raise ValueError(f"{len(widths)} distinct bandwidths, more than 16: round them")
        levels = ["node", *(f"bandwidth-{width:g}" for width in widths)]
        thresholds = [math.inf, *widths[:-1]] if widths else []
        return bottleneck_topology(graph, levels, thresholds)
    except InstanceError:
        raise
    except ValueError as error:
        raise InstanceError(origin, [str(error)]) from None
