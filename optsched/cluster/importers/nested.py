"""Nodes that each name the domains around them, turned into a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.cluster.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Sequence


class NodeRow(NamedTuple):
    """A node, its GPUs, and the domain around it at each level from the closest up, or None."""

    node: str
    gpus: list[str]
    around: Sequence[str | None]


def nested_topology(levels: Sequence[str], rows: Sequence[NodeRow], origin: str) -> Topology:
    """Return the topology of nodes in domains; a root is put above them if there are several tops.

    Parameters
    ----------
    levels
        Names of the levels above the nodes, from the closest up.

    Raises
    ------
    InstanceError
        If the outcome is no valid topology.
    """
    names = ["node", *levels]
    tops = {next((d for d in reversed(row.around) if d), None) for row in rows}
    root: str | None = None
    if len(tops) > 1 or None in tops:
        root = "cluster" if "cluster" not in names else "all clusters"
        names.append(root)
    domains: dict[tuple[str, str], dict[str, Any]] = {}
    if root is not None:
        domains[root, root] = {"id": root, "level": root}
    nodes: list[dict[str, Any]] = []
    for row in rows:
        parent = root
        for level, name in zip(reversed(levels), reversed(row.around), strict=True):
            if name is not None:
                domains.setdefault((level, name), _domain(name, level, parent))
                parent = name
        nodes.append(_domain(row.node, "node", parent) | {"gpus": row.gpus})
    return Topology.from_document({"levels": names, "domains": [*domains.values(), *nodes]}, origin)


def _domain(name: str, level: str, parent: str | None) -> dict[str, Any]:
    return {"id": name, "level": level} | ({} if parent is None else {"parent": parent})
