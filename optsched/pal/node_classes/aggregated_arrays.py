"""Aggregated nodes as arrays: one node for each class, whose GPUs are there several times.

A *unit* is a position of a node class: as many equal GPUs as there are nodes. In the arrays units
stand for GPUs, and node classes for domains of the lowest level.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.exact.arrays import Domains, KeepOption, PalArrays, SlowdownChain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.node_classes.aggregation import NodeClasses


class Above(NamedTuple):
    """A domain around nodes of several classes, or around several of one.

    Attributes
    ----------
    classes
        Numbers of the classes of its nodes.
    inside
        For each of them the next domain of this sort around the nodes; -1 if there is none between.
    """

    level: int
    classes: list[int]
    inside: list[int]


@dataclass(frozen=True)
class Units:
    """The units of aggregated nodes, and the arrays of these.

    Attributes
    ----------
    arrays
        Chains of domains above the nodes have a unit as often as a gang can take it; the numbers of
        GPUs of their thresholds are such counts too.
    spans
        Of each class the first unit, and the first one after it.
    copies
        Shape (units,): how many GPUs each stands for.
    keep_nodes
        Shape (keeps,): in how many nodes each of `arrays.keeps` is.
    """

    arrays: PalArrays
    spans: list[tuple[int, int]]
    copies: Floats
    keep_nodes: Floats


def units(nodes: NodeClasses) -> Units:
    """Return the units of aggregated nodes."""
    sizes = [len(each.gpus[0]) for each in nodes.classes]
    spans = list(pairwise(np.cumsum([0, *sizes]).tolist()))
    slowdown = np.concatenate([each.slowdown for each in nodes.classes], axis=1)
    above = list(_above(nodes))
    copied = [_copied(nodes, spans, domain) for domain in above]
    keeps, times = _keeps(nodes, spans)
    chains = (
        (
            *(_chain(values, np.arange(*span), None) for span in spans),
            *(_chain(values, *domain) for domain in copied),
        )
        for values in slowdown
    )
    return Units(
        arrays=PalArrays(
            gpus=tuple(f"unit {n}" for n in range(slowdown.shape[1])),
            slowdown=slowdown,
            domains=_domains(nodes, above),
            types=nodes.types,
            keeps=tuple(keeps),
            chains=tuple(chains),
        ),
        spans=spans,
        copies=np.repeat([each.count for each in nodes.classes], sizes).astype(np.float64),
        keep_nodes=np.array(times, dtype=np.float64),
    )


def _above(nodes: NodeClasses) -> Iterator[Above]:
    """Yield the domains above the nodes in which a gang may spread, children before parents."""
    inside = [-1] * len(nodes.classes)
    size = [1] * len(nodes.classes)  # nodes of the topmost domain so far
    number = len(nodes.classes)
    for level in range(1, 1 + len(nodes.classes[0].around)):
        groups: dict[int, list[int]] = {}
        for k, node_class in enumerate(nodes.classes):
            groups.setdefault(node_class.around[level - 1], []).append(k)
        for members in groups.values():
            count = sum(nodes.classes[k].count for k in members)
            if count == size[members[0]]:
                continue
            yield Above(level, members, [inside[k] for k in members])
            for k in members:
                inside[k], size[k] = number, count
            number += 1


def _domains(nodes: NodeClasses, above: list[Above]) -> Domains:
    """Return the classes and the domains above them; they have no GPUs in a row."""
    number = len(nodes.classes) + len(above)
    parent = np.full(number, -1, dtype=np.intp)
    for n, domain in enumerate(above, start=len(nodes.classes)):
        for node_class, inside in zip(domain.classes, domain.inside, strict=True):
            parent[node_class if inside < 0 else inside] = n
    level = [0] * len(nodes.classes) + [domain.level for domain in above]
    return Domains(
        start=np.zeros(number, dtype=np.intp),
        stop=np.zeros(number, dtype=np.intp),
        level=np.array(level, dtype=np.intp),
        parent=parent,
        names=tuple(f"domain {n}" for n in range(number)),
    )


def _copied(
    nodes: NodeClasses, spans: list[tuple[int, int]], domain: Above
) -> tuple[Indices, Indices]:
    """Return the units of a domain, and the domain or node inside that each of them stands in.

    A unit comes as often as there are nodes, but no more often than a gang can take it.
    """
    most = max(jobs.gpus for jobs in nodes.types if np.isfinite(jobs.factor[domain.level]))
    repeated, inside = [], []
    for node_class, child in zip(domain.classes, domain.inside, strict=True):
        copies = min(nodes.classes[node_class].count, most)
        mine = np.arange(*spans[node_class])
        repeated.append(np.tile(mine, copies))
        node = -1 - node_class * most - np.arange(copies)
        inside.append(np.repeat(node if child < 0 else np.full(copies, child), len(mine)))
    return np.concatenate(repeated), np.concatenate(inside)


def _chain(values: Floats, mine: Indices, inside: Indices | None) -> SlowdownChain:
    """Return the chain of some units; thresholds whose units are inside one domain are left out."""
    order = np.argsort(values[mine], kind="stable")
    ascending = values[mine[order]]
    ends = np.flatnonzero(np.r_[np.diff(ascending) > 0, True]) + 1
    if inside is not None:
        others = np.flatnonzero(inside[order] != inside[order[0]])
        ends = ends[ends > others[0]]
    return SlowdownChain(mine[order], ends, ascending[ends - 1])


def _keeps(nodes: NodeClasses, spans: list[tuple[int, int]]) -> tuple[list[KeepOption], list[int]]:
    """Return one kept placement for all nodes of a class, and in how many nodes it is."""
    keeps, times = [], []
    for k, (node_class, (start, _)) in enumerate(zip(nodes.classes, spans, strict=True)):
        for n, held in enumerate(node_class.keeps):
            jobs, positions = nodes.types[held.type], list(held.positions)
            slowest = float(node_class.slowdown[jobs.row, positions].max())
            mine, cost = start + np.array(positions), float(jobs.cost(0, slowest, is_kept=True))
            keeps.append(KeepOption(node_class.jobs[0][n], held.type, mine, k, slowest, cost))
            times.append(node_class.count)
    unit_of = np.zeros(nodes.slowdown.shape[1], dtype=np.intp)
    for node_class, span in zip(nodes.classes, spans, strict=True):
        unit_of[node_class.gpus] = np.arange(*span)
    for job, t, gpus, level in nodes.wide_keeps:
        slowest = float(nodes.slowdown[nodes.types[t].row, gpus].max())
        cost = float(nodes.types[t].cost(level, slowest, is_kept=True))
        keeps.append(KeepOption(job, t, unit_of[gpus], int(unit_of[gpus[0]]), slowest, cost))
        times.append(1)
    return keeps, times
