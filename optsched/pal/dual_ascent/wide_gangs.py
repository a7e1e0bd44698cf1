"""Gangs on more than one node placed anew, by what their GPUs are worth to jobs within nodes.

Large neighbourhood search (Shaw, CP 1998) in which the jobs within nodes are placed by an integer
program that is nearly exact (`node_patterns`). Its duals say what each set of GPUs of a node is
worth to them, so the best place of a wide gang follows from a knapsack over nodes (Bellman 1957).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.dual_ascent.node_assignment import assigned, priced_assignment
from optsched.pal.dual_ascent.node_patterns import (
    GangKind,
    NodePatterns,
    node_jobs,
    patterns_of,
)
from optsched.pal.dual_ascent.node_shares import NodeShares
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.rounding import GangPacking


class WideGangs:
    """Some nodes and the jobs on them: those within nodes, and gangs on more than one of these."""

    def __init__(self, packing: GangPacking, nodes: Indices) -> None:
        self.packing, self.problem = packing, packing.problem
        self._inside = inside = node_jobs(packing, nodes)
        domains = self.problem.domains
        self._node = np.full(len(packing.free), -1, dtype=np.intp)
        for n, d in enumerate(nodes.tolist()):
            self._node[domains.start[d] : domains.stop[d]] = n
        self._place = np.arange(len(packing.free)) - inside.start[self._node]
        self._kind = {kind: n for n, kind in enumerate(inside.kinds)}
        self._type = dict(self._movable())
        counts = patterns_of(inside, SETTINGS.most_patterns) if inside.kinds else None
        self._patterns = None
        if counts is not None:
            self._patterns = NodePatterns(self.problem, inside, counts)
            jobs = [job for of_kind in inside.jobs for job in of_kind]
            duals = np.full(len(inside.kinds), sum(map(packing.cost, jobs)) / len(jobs))
            asked = _lengths(inside.jobs)
            stages = SETTINGS.smoothing
            priced = priced_assignment(self._patterns, inside.open, asked, duals, stages)
            self._duals = priced.duals

    def _movable(self) -> Iterator[tuple[int, int]]:
        """Yield jobs that may be placed anew, and their types."""
        kept = {keep.job for keep in self.problem.keeps}
        for t, jobs in enumerate(self.problem.types):
            if jobs.gpus > 1:
                for job in jobs.jobs:
                    gpus = self.packing.placed.get(job)
                    if gpus is not None and job not in kept and self._node[gpus].min() >= 0:
                        yield job, t

    @property
    def is_worthwhile(self) -> bool:
        """Whether there is something to move."""
        return self._patterns is not None and bool(self._type)

    def improve(self, excess: Floats, draw: np.random.Generator) -> bool:
        """Place some gangs anew, and all jobs within nodes; return whether it is better.

        Parameters
        ----------
        excess
            Shape (jobs,): what each pays above its least.
        """
        patterns, packing = self._patterns, self.packing
        assert patterns is not None
        jobs = [list(of_kind) for of_kind in self._inside.jobs]
        moved = self._drawn(excess, draw)
        now = sum(packing.cost(job) for job in {*moved, *(job for some in jobs for job in some)})
        opened = self._inside.open.copy()
        for job in moved:
            kind = self._kind_of(job)
            if kind is not None and job in jobs[kind]:
                jobs[kind].remove(job)
            else:
                np.bitwise_or.at(opened, *self._bits(packing.placed[job]))
        places = self._places(moved, jobs, opened)
        if places is None:
            return False
        for gpus in places.values():
            np.subtract.at(opened, *self._bits(gpus))
        cost = sum(packing.cost_at(job, gpus) for job, gpus in places.items())
        asked, limit = _lengths(jobs), now * (1 - SETTINGS.better) - cost
        stages = SETTINGS.smoothing[1:]
        priced = priced_assignment(patterns, opened, asked, self._duals, stages)
        if priced.bound >= limit:
            return False
        chosen = assigned(patterns, priced, asked, limit)
        if chosen is None:
            return False
        self._duals, self._inside = priced.duals, replace(self._inside, open=opened, jobs=jobs)
        self._put(places, chosen)
        return True

    def _places(
        self, moved: list[int], jobs: list[list[int]], opened: Indices
    ) -> dict[int, Indices] | None:
        """Return the GPUs of moved jobs on more than one node; None if one has no place.

        Those that had better stand within a node are put to the others of their kind.
        """
        patterns = self._patterns
        assert patterns is not None
        stages, left = SETTINGS.smoothing[1:2], opened.copy()
        priced = priced_assignment(patterns, opened, _lengths(jobs), self._duals, stages)
        value = patterns.value(priced.duals)
        places: dict[int, Indices] = {}
        for job in moved:
            gpus, kind = self._cheapest(self._type[job], value, left), self._kind_of(job)
            if gpus is None:
                return None
            if kind is not None and not np.ptp(self._node[gpus]):
                jobs[kind].append(job)
            else:
                places[job] = gpus
            np.subtract.at(left, *self._bits(gpus))
        return places

    def _drawn(self, excess: Floats, draw: np.random.Generator) -> list[int]:
        """Return some jobs, those that pay much above their least sooner, large ones first."""
        jobs = np.array(list(self._type))
        count = int(draw.integers(1, SETTINGS.wide_gangs + 1))
        weight = np.maximum(excess[jobs], 0.0)
        weight = np.log(weight + weight.mean() * 0.2 + 1e-300) + draw.gumbel(size=len(jobs))
        moved: list[int] = jobs[np.argsort(-weight)[:count]].tolist()
        return sorted(moved, key=lambda job: -len(self.packing.placed[job]))

    def _kind_of(self, job: int) -> int | None:
        return self._kind.get(GangKind.of(self.problem.types[self._type[job]]))

    def _bits(self, gpus: Indices) -> tuple[Indices, Indices]:
        return self._node[gpus], 1 << self._place[gpus]

    def _cheapest(self, t: int, value: Floats, opened: Indices) -> Indices | None:
        """Return the GPUs of the cheapest place of a gang of a type; None without any."""
        problem, jobs, inside = self.problem, self.problem.types[t], self._inside
        domains, places = problem.domains, np.arange(inside.width)
        gpu = np.minimum(inside.start[:, np.newaxis] + places, len(problem.gpus) - 1)
        slowdown = problem.slowdown[jobs.row, gpu]
        is_open = (opened[:, np.newaxis] >> places & 1).astype(bool)
        slowdown = np.where(is_open, slowdown, np.inf)
        order = slowdown.argsort(axis=1)
        assert self._patterns is not None
        shares = NodeShares(self._patterns.sets, value, opened, order)
        best, found = self._within(t, shares, np.take_along_axis(slowdown, order, axis=1))
        for d in np.flatnonzero(domains.has_children).tolist():
            inner = (inside.start >= domains.start[d]) & (inside.start < domains.stop[d])
            level = int(domains.level[d])
            fast = np.sort(slowdown[inner][is_open[inner]])[jobs.gpus - 1 :]
            if not len(fast) or not jobs.factor[level] < np.inf:
                continue
            step = np.unique(np.linspace(0, len(fast) - 1, SETTINGS.wide_thresholds).astype(int))
            slowest = fast[step]
            ends = (slowdown[inner][:, :, np.newaxis] <= slowest).sum(axis=1)
            own = jobs.cost(np.full(len(slowest), level), slowest)
            part = shares.only(inner)
            cost, sets = part.cheapest(ends, jobs.gpus, own)
            if cost < best:
                best = cost
                bits = (sets[:, np.newaxis] >> places & 1).astype(bool)
                found = (inside.start[inner][:, np.newaxis] + places)[bits]
        return found

    def _within(self, t: int, shares: NodeShares, slowdown: Floats) -> tuple[float, Indices | None]:
        """Return the least cost and GPUs of a gang within one node; infinite where none fits."""
        jobs, width = self.problem.types[t], self._inside.width
        if jobs.gpus > width or not jobs.factor[0] < np.inf:
            return np.inf, None
        own = jobs.cost(np.zeros(slowdown.shape, dtype=np.intp), slowdown)
        costs = shares.cost[:, 1:, jobs.gpus] + own
        n, end = divmod(int(costs.argmin()), width)
        if not costs[n, end] < np.inf:
            return np.inf, None
        taken = shares.taken(n, end + 1, jobs.gpus)
        return float(costs[n, end]), self._inside.start[n] + np.flatnonzero(
            taken >> np.arange(width) & 1
        )

    def _put(self, places: dict[int, Indices], chosen: Indices) -> None:
        """Place wide gangs, and jobs within nodes by the patterns of these."""
        packing, inside, patterns = self.packing, self._inside, self._patterns
        assert patterns is not None
        waiting = [list(of_kind) for of_kind in inside.jobs]
        for job in [*places, *(job for jobs in waiting for job in jobs)]:
            packing.take(job)
        for job, gpus in places.items():
            packing.put(job, gpus)
        for n, pattern in enumerate(chosen.tolist()):
            for kind, gpus in patterns.gangs(n, pattern, int(inside.open[n])):
                packing.put(waiting[kind].pop(), gpus)


def is_small(packing: GangPacking) -> bool:
    """Tell whether nodes, and sets of the GPUs of each, are few enough to look at all of them."""
    domains = packing.problem.domains
    lowest = np.flatnonzero(~domains.has_children)
    widest = int((domains.stop - domains.start)[lowest].max())
    return len(lowest) <= SETTINGS.wide_nodes and widest <= SETTINGS.most_node_gpus


def place_wide_gangs(
    packing: GangPacking,
    excess_of: Callable[[GangPacking], Floats],
    is_done: Callable[[GangPacking], bool],
    draw: np.random.Generator,
    seconds_left: Callable[[], float | None],
) -> bool:
    """Place gangs anew, on one node or more, for as long as it pays; return whether it did.

    Nothing on clusters that are not small.

    Parameters
    ----------
    excess_of
        Returns what each job pays above its least.
    is_done
        Told of each better packing.
    seconds_left
        Until the deadline; None without one.
    """
    if not is_small(packing):
        return False
    lowest = np.flatnonzero(~packing.problem.domains.has_children)
    failures, is_better = 0, False
    while failures < SETTINGS.wide_patience:
        gangs = WideGangs(packing, lowest)
        left = SETTINGS.wide_tries
        if not gangs.is_worthwhile:
            break
        excess = excess_of(packing)
        while left > 0 and failures < SETTINGS.wide_patience:
            if seconds_left() == 0:
                return is_better
            if gangs.improve(excess, draw):
                failures, left, is_better = 0, SETTINGS.wide_tries, True
                if is_done(packing):
                    return True
                excess = excess_of(packing)
            else:
                failures, left = failures + 1, left - 1
    return is_better


def _lengths(jobs: list[list[int]]) -> Floats:
    return np.array([len(of_kind) for of_kind in jobs], dtype=float)
