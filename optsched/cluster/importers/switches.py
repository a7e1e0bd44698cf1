"""Switches above nodes, as they are wired, turned into a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
from networkx.utils import UnionFind

from optsched.cluster.topology import Topology
from optsched.documents.faults import InstanceError
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Fabric = nx.DiGraph[str]


def switch_topology(
    fabric: Fabric, gpus: Mapping[str, list[str]], lowest: Sequence[str], origin: str
) -> Topology:
    """Turn switches and nodes into a topology.

    Parents that share a child, such as the spines above the same leaf switches, become one domain
    ``"spine1+spine2"``: traffic between their children need not rise any further. A link that only
    shortens a way through other switches is left out.

    Parameters
    ----------
    fabric
        Edges from switch to child. Vertices may have an attribute `height`, the least number of
        their level; it is 0 for the nodes.
    gpus
        Ids of the GPUs of each node.
    lowest
        Names of the lowest levels; the ones above them are called switch-1, switch-2, ...

    Raises
    ------
    InstanceError
        If the switches form a cycle, or the outcome is no valid topology.
    """
    _refuse_cycles(fabric, "the switches form a cycle", origin)
    _refuse_depth(fabric, origin)
    tree = _one_parent_each(_without_detours(fabric))
    _refuse_cycles(tree, "switches that share children form a cycle", origin)
    heights: dict[str, int] = {}
    for name in reversed(list(nx.topological_sort(tree))):
        least = max(fabric.nodes[member].get("height", 0) for member in tree.nodes[name]["members"])
        heights[name] = max([least, *(heights[child] + 1 for child in tree[name])])
    count = max(heights.values()) + 1 - len(lowest)
    if count > LIMITS.levels:
        raise InstanceError(origin, [f"{count:,} levels of switches, more than {LIMITS.levels}"])
    levels = [*lowest, *(f"switch-{n}" for n in range(1, count + 1))]
    roots = [name for name in tree if not tree.pred[name]]
    domains: list[dict[str, Any]] = []
    for name in (name for root in roots for name in nx.dfs_preorder_nodes(tree, root)):
        parent = next(iter(tree.pred[name]), None)
        domain = {"id": name, "level": levels[heights[name]], "parent": parent}
        domains.append(domain | {"gpus": gpus.get(name, [])})
    return Topology.from_document({"levels": levels, "domains": domains}, origin)


def _refuse_cycles(fabric: Fabric, text: str, origin: str) -> None:
    if nx.is_directed_acyclic_graph(fabric):
        return
    parts = nx.strongly_connected_components(fabric)
    inside = next(p for p in parts if len(p) > 1 or any(fabric.has_edge(v, v) for v in p))
    cycle = nx.find_cycle(fabric.subgraph(inside))
    ring = " above ".join(f"'{name}'" for name in [*(edge[0] for edge in cycle), cycle[0][0]])
    raise InstanceError(origin, [f"{text}: {ring}"])


def _refuse_depth(fabric: Fabric, origin: str) -> None:
    """Refuse switches too far above one another, before what takes time with the depth."""
    depth = dict.fromkeys(fabric, 0)
    for name in nx.topological_sort(fabric):
        for child in fabric[name]:
            depth[child] = max(depth[child], depth[name] + 1)
    deepest = max(depth.values(), default=0)
    if deepest > LIMITS.levels:
        text = f"{deepest:,} switches above one another, more than {LIMITS.levels}"
        raise InstanceError(origin, [text])


def _without_detours(fabric: Fabric) -> Fabric:
    """Return the transitive reduction, in the order of the fabric (networkx's has none)."""
    if all(len(fabric.pred[vertex]) < 2 for vertex in fabric):
        return fabric
    kept = nx.transitive_reduction(fabric)
    reduced: Fabric = nx.DiGraph()
    reduced.add_nodes_from(fabric)
    reduced.add_edges_from(edge for edge in fabric.edges if kept.has_edge(*edge))
    return reduced


def _one_parent_each(fabric: Fabric) -> Fabric:
    """Merge vertices that share a child until each vertex has one parent at most."""
    same = UnionFind(fabric)
    merged = True
    while merged:
        merged = False
        above: dict[str, str] = {}
        for parent, child in fabric.edges:
            first = above.setdefault(same[child], parent)
            if same[first] != same[parent]:
                same.union(first, parent)
                merged = True
    members: dict[str, list[str]] = {}
    for vertex in fabric:
        members.setdefault(same[vertex], []).append(vertex)
    named = {top: _joined(group) for top, group in members.items()}
    name = {vertex: named[same[vertex]] for vertex in fabric}
    tree: Fabric = nx.DiGraph()
    for group in members.values():
        tree.add_node(name[group[0]], members=group)
    tree.add_edges_from((name[parent], name[child]) for parent, child in fabric.edges)
    return tree


def _joined(names: Sequence[str]) -> str:
    """Return the name of switches that are taken as one; of very many, by the first."""
    name = "+".join(names)
    return name if len(name) <= LIMITS.name_chars else f"{names[0]}+{len(names) - 1}"
