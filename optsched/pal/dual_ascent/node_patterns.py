"""Patterns of the jobs within a node (Gilmore & Gomory, Operations Research 1961).

Gangs of a node in number, size and class are its pattern. What a pattern costs in a node at best
follows from dynamic programming over sets of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.rounding import GangPacking
    from optsched.pal.job_types import GangType


@dataclass(frozen=True)
class GangKind:
    """Jobs that cost the same on the same GPUs of a node."""

    row: int
    gpus: int
    factor: float
    moving: float

    @classmethod
    def of(cls, jobs: GangType) -> GangKind:
        """Return the kind of jobs of a type."""
        return cls(jobs.row, jobs.gpus, float(jobs.factor[0]), jobs.moving)


@dataclass(frozen=True)
class NodeJobs:
    """Nodes, the GPUs that may be given out there, and the jobs on them.

    Attributes
    ----------
    start
        Shape (nodes,): the first GPU of each.
    width
        GPUs of the widest.
    open
        Shape (nodes,): sets of the GPUs that may be given out, a bit for each.
    kinds, jobs
        Kinds of jobs, and the jobs of each.
    """

    start: Indices
    width: int
    open: Indices
    kinds: list[GangKind]
    jobs: list[list[int]]


def node_jobs(packing: GangPacking, nodes: Indices) -> NodeJobs:
    """Return what may be given out anew in some nodes: numbers of domains."""
    problem = packing.problem
    domains, width = (
        problem.domains,
        int((problem.domains.stop - problem.domains.start)[nodes].max()),
    )
    node = np.full(len(problem.gpus), -1, dtype=np.intp)
    for n, d in enumerate(nodes.tolist()):
        node[domains.start[d] : domains.stop[d]] = n
    kept = {keep.job for keep in problem.keeps}
    may = packing.free & (node >= 0)
    jobs: dict[GangKind, list[int]] = {}
    for of_type in problem.types:
        kind = GangKind.of(of_type)
        for job in of_type.jobs:
            gpus = packing.placed.get(job)
            if gpus is None or job in kept or node[gpus[0]] < 0 or np.ptp(node[gpus]):
                continue
            may[gpus] = True
            jobs.setdefault(kind, []).append(job)
    places = np.arange(width)
    start = domains.start[nodes]
    gpu = np.minimum(start[:, np.newaxis] + places, len(may) - 1)
    inside = start[:, np.newaxis] + places < domains.stop[nodes][:, np.newaxis]
    open_ = ((may[gpu] & inside) << places).sum(axis=1)
    kinds = sorted(jobs, key=lambda kind: (kind.gpus, kind.row, kind.factor, kind.moving))
    return NodeJobs(start, width, open_, kinds, [jobs[kind] for kind in kinds])


class NodePatterns:
    """The least cost of each pattern on each set of GPUs of each node, and its gangs there.

    Attributes
    ----------
    counts
        Shape (patterns, kinds): of the gangs.
    sets
        By size, sets of GPUs of a node.
    """

    def __init__(self, problem: PalArrays, inside: NodeJobs, counts: Indices) -> None:
        self.inside, self.counts = inside, counts
        every = np.arange(1 << inside.width)
        size = (every[:, np.newaxis] >> np.arange(inside.width) & 1).sum(axis=1)
        self.sets = [every[size == number] for number in range(inside.width + 1)]
        self._place = np.zeros(len(every), dtype=np.intp)
        for some in self.sets:
            self._place[some] = np.arange(len(some))
        self._gang_cost = [self._kind_cost(problem, kind) for kind in inside.kinds]
        self._subsets: dict[tuple[int, int], Indices] = {}
        self._total = counts @ np.array([kind.gpus for kind in inside.kinds], dtype=np.intp)
        self._last = [(-1, -1)]
        self._best = [np.zeros((len(inside.start), 1))]
        number = {tuple(row): n for n, row in enumerate(counts.tolist())}
        for row in counts[1:].tolist():
            kind = max(k for k, count in enumerate(row) if count)
            row[kind] -= 1
            self._last.append((number[tuple(row)], kind))
            self._best.append(self._split(*self._last[-1]).min(axis=2))
        self._of_total = [np.flatnonzero(self._total == n) for n in range(inside.width + 1)]
        self._costs = [
            np.stack([self._best[n] for n in some.tolist()], axis=1) if len(some) else None
            for some in self._of_total
        ]

    def cost(self, opened: Indices) -> Floats:
        """Return the least cost (nodes, patterns) on sets of GPUs; infinite where none fits."""
        cost = np.full((len(opened), len(self.counts)), np.inf)
        for sets, some, costs in zip(self.sets, self._of_total, self._costs, strict=True):
            if costs is not None:
                fits = (sets & ~opened[:, np.newaxis]) == 0
                cost[:, some] = np.where(fits[:, np.newaxis, :], costs, np.inf).min(axis=2)
        return cost

    def value(self, duals: Floats) -> Floats:
        """Return the least reduced cost (nodes, sets) that jobs of given duals have on a set."""
        worth = self.counts @ duals
        value = np.zeros((len(self.inside.start), 1 << self.inside.width))
        for sets, some, costs in zip(self.sets, self._of_total, self._costs, strict=True):
            if costs is not None:
                value[:, sets] = (costs - worth[some, np.newaxis]).min(axis=1)
        every = np.arange(value.shape[1])
        for place in range(self.inside.width):
            has = every[every >> place & 1 == 1]
            value[:, has] = np.minimum(value[:, has], value[:, has ^ (1 << place)])
        return value

    def _kind_cost(self, problem: PalArrays, kind: GangKind) -> Floats:
        """Return the cost of a gang on each set of its size."""
        inside, sets = self.inside, self.sets[kind.gpus]
        gpu = np.minimum(
            inside.start[:, np.newaxis] + np.arange(inside.width), len(problem.gpus) - 1
        )
        slowdown = problem.slowdown[kind.row][gpu]
        slowest = np.zeros((len(gpu), len(sets)))
        for place in range(inside.width):
            has = np.flatnonzero(sets >> place & 1)
            slowest[:, has] = np.maximum(slowest[:, has], slowdown[:, place : place + 1])
        return kind.factor * slowest + kind.moving

    def _split(self, before: int, kind: int) -> Floats:
        """Return costs (nodes, sets, gangs of a kind inside) of a pattern and one gang more."""
        gpus, rest = self.inside.kinds[kind].gpus, int(self._total[before])
        subsets = self._gangs(gpus + rest, gpus)
        others = self.sets[gpus + rest][:, np.newaxis] ^ subsets
        gang = self._gang_cost[kind][:, self._place[subsets]]
        return np.asarray(gang + self._best[before][:, self._place[others]])

    def _gangs(self, total: int, size: int) -> Indices:
        """Return the subsets of one size of each set of another: shape (sets, subsets)."""
        if (total, size) not in self._subsets:
            places = np.array(list(combinations(range(total), size)), dtype=np.intp)
            sets = self.sets[total]
            inside = np.nonzero(sets[:, np.newaxis] >> np.arange(self.inside.width) & 1)[1]
            bits: Indices = 1 << inside.reshape(len(sets), total)
            self._subsets[total, size] = bits[:, places].sum(axis=2)
        return self._subsets[total, size]

    def gangs(self, node: int, pattern: int, opened: int) -> Iterator[tuple[int, Indices]]:
        """Yield kind and GPUs of each gang of a pattern on a set of a node, at least cost."""
        sets = self.sets[int(self._total[pattern])]
        best = np.where((sets & ~opened) == 0, self._best[pattern][node], np.inf)
        here = int(sets[best.argmin()])
        while pattern > 0:
            before, kind = self._last[pattern]
            total, gpus = int(self._total[pattern]), self.inside.kinds[kind].gpus
            gangs = self._gangs(total, gpus)[self._place[here]]
            costs = self._gang_cost[kind][node, self._place[gangs]]
            costs = costs + self._best[before][node, self._place[here ^ gangs]]
            gang = int(gangs[costs.argmin()])
            places = np.flatnonzero(gang >> np.arange(self.inside.width) & 1)
            yield kind, self.inside.start[node] + places
            here, pattern = here ^ gang, before


def patterns_of(inside: NodeJobs, most: int) -> Indices | None:
    """Return all patterns (patterns, kinds) that fit, the empty one first; None for too many."""
    found: list[tuple[tuple[int, ...], int]] = [((), 0)]
    for kind, jobs in zip(inside.kinds, inside.jobs, strict=True):
        found = [
            ((*row, count), total + count * kind.gpus)
            for row, total in found
            for count in range(min(len(jobs), (inside.width - total) // kind.gpus) + 1)
        ]
        if len(found) > most:
            return None
    return np.array([row for row, _ in sorted(found)], dtype=np.intp)
