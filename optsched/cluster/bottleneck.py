"""Any network as a tree: domains of GPUs that reach one another at a bandwidth."""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from optsched.cluster.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import networkx as nx

    Members = frozenset[Any]


def bottleneck_topology(
    graph: nx.Graph[Any],
    levels: Sequence[str],
    thresholds: Sequence[float],
    bandwidth: str = "bandwidth",
) -> Topology:
    """Turn a network into the tree of its bottleneck bandwidths.

    The lowest common level of two GPUs is the lowest level whose threshold their widest path
    reaches, and the last level if it reaches none. This is exact: the bandwidth of a widest path
    is the smallest one on the path in a maximum spanning tree, so the domains of a level are the
    components that the edges of that tree with at least the threshold leave (Kruskal's merge tree,
    cut at the thresholds).

    Parameters
    ----------
    graph
        Connected and undirected. Each edge has a positive bandwidth, in any unit; each vertex that
        holds GPUs has their ids in the attribute `gpus`. Other vertices, such as switches, carry
        traffic only.
    levels
        Names of the levels, from the lowest up: one more than thresholds.
    thresholds
        Least bandwidths of the levels below the last one, descending. With `math.inf` as the first
        one, GPUs of one vertex, and no others, share a domain of the lowest level.
    bandwidth
        Name of the attribute of edges.

    Returns
    -------
    Topology
        A domain that would only repeat the one inside it is left out, and its level skipped. A
        domain of one vertex is called as that vertex; others by level and first vertex.

    Raises
    ------
    ValueError
        If the graph is not connected or not undirected, if an edge has no bandwidth, or if
        thresholds do not descend or do not fit the levels.

    Notes
    -----
    Hu, "The Maximum Capacity Route Problem", Operations Research 9(6), 1961.
    """
    if len(levels) != len(thresholds) + 1:
        count = f"{len(levels)} levels and {len(thresholds)} thresholds"
        raise ValueError(f"{count}: expected one threshold for each level but the last")
    if not all(wide > narrow for wide, narrow in pairwise(thresholds)):
        raise ValueError(f"thresholds must descend, found {list(thresholds)}")
    tree = _spanning_tree(graph, bandwidth)
    position = {vertex: n for n, vertex in enumerate(graph)}
    height_of: dict[Members, int] = {}
    for height, threshold in enumerate([*thresholds, -math.inf]):
        for part in _components(tree, threshold, bandwidth):
            height_of.setdefault(part, height)
    domains: list[dict[str, Any]] = []
    around: dict[Any, str] = {}
    for part, height in sorted(height_of.items(), key=lambda item: -item[1]):
        vertices = sorted(part, key=position.__getitem__)
        name, parent = _name(graph, vertices, levels[height]), around.get(vertices[0])
        gpus = [gpu for vertex in vertices for gpu in _gpus(graph, vertex)] if height == 0 else []
        domains.append({"id": name, "level": levels[height], "parent": parent, "gpus": gpus})
        around.update(dict.fromkeys(vertices, name))
    return Topology.from_document({"levels": list(levels), "domains": domains}, "the graph")


def bottleneck_bandwidths(graph: nx.Graph[Any], bandwidth: str = "bandwidth") -> list[float]:
    """Return the distinct bandwidths of widest paths between vertices that hold GPUs, descending.

    With `math.inf` before them they are the finest `thresholds` that `bottleneck_topology` can
    use; its last level is that of the smallest bandwidth, which needs no threshold.
    """
    from networkx.utils import UnionFind

    tree = _spanning_tree(graph, bandwidth)
    parts = UnionFind(tree)
    holds = {vertex: bool(_gpus(tree, vertex)) for vertex in tree}  # by each part's first vertex
    widths: dict[float, None] = {}
    for one, other, width in sorted(_links(tree, bandwidth), key=itemgetter(2), reverse=True):
        both = holds[parts[one]], holds[parts[other]]
        if all(both):
            widths[width] = None
        parts.union(one, other)
        holds[parts[one]] = any(both)
    return list(widths)


def _spanning_tree(graph: nx.Graph[Any], bandwidth: str) -> nx.Graph[Any]:
    import networkx as nx

    if graph.is_directed():
        raise ValueError("the graph is directed; links carry traffic both ways")
    if len(graph) == 0 or not nx.is_connected(graph):
        raise ValueError(f"the graph is in {nx.number_connected_components(graph)} parts, not one")
    for one, other, width in _links(graph, bandwidth):
        if not isinstance(width, Real) or not float(width) > 0:
            link = f"the link between {one!r} and {other!r}"
            raise ValueError(f"{link} needs a positive {bandwidth}, found {width!r}")
    return nx.maximum_spanning_tree(graph, weight=bandwidth)


def _components(tree: nx.Graph[Any], threshold: float, bandwidth: str) -> list[Members]:
    """Return the vertices with GPUs of each part that links of the threshold or more connect."""
    import networkx as nx

    links: nx.Graph[Any] = nx.Graph()
    links.add_nodes_from(tree)
    links.add_edges_from((u, v) for u, v, w in _links(tree, bandwidth) if w >= threshold)
    parts = (
        frozenset(vertex for vertex in part if _gpus(tree, vertex))
        for part in nx.connected_components(links)
    )
    return [part for part in parts if part]


def _links(graph: nx.Graph[Any], bandwidth: str) -> Iterator[tuple[Any, Any, Any]]:
    return ((one, other, data.get(bandwidth)) for one, other, data in graph.edges(data=True))


def _gpus(graph: nx.Graph[Any], vertex: Any) -> list[str]:
    return list(graph.nodes[vertex].get("gpus", ()))


def _name(graph: nx.Graph[Any], vertices: list[Any], level: str) -> str:
    alone = len(vertices) == 1 and str(vertices[0]) not in _gpus(graph, vertices[0])
    return str(vertices[0]) if alone else f"{level}:{vertices[0]}"
