"""Rounding by a maximum flow (Ford & Fulkerson, Canadian J. Math. 1956), and reinsertion."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from optsched.pal.plan import PalPlan, Placement
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.cuts_and_branching import LpPoint
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance
    from optsched.results.result import Result


Placed = dict[int, "Indices"]  # GPUs by number of the job


class _ChainRow(NamedTuple):
    """The chains of a class one after the other: GPUs, and where each domain starts and stops."""

    order: Indices
    start: Indices
    stop: Indices


class GangPacking:
    """Jobs on GPUs, placed and taken away one by one.

    Attributes
    ----------
    free
        Shape (GPUs,).
    placed
        GPUs of each job that is placed.
    """

    def __init__(self, problem: PalArrays) -> None:
        self.problem = problem
        self.free = np.ones(len(problem.gpus), dtype=np.bool_)
        self.placed: Placed = {}
        self._type_of = {job: t for t, jobs in enumerate(problem.types) for job in jobs.jobs}
        self._rows: dict[int, _ChainRow] = {}
        self._keeps = {keep.job: keep for keep in problem.keeps}

    def put(self, job: int, gpus: Indices) -> None:
        """Place a job."""
        self.placed[job] = gpus
        self.free[gpus] = False

    def take(self, job: int) -> Indices | None:
        """Take a job away; return where it was."""
        gpus = self.placed.pop(job, None)
        if gpus is not None:
            self.free[gpus] = True
        return gpus

    def cheapest(self, job: int) -> tuple[float, Indices] | None:
        """Return the cost and GPUs of the cheapest place that is free; None if there is none."""
        jobs = self.problem.types[self._type_of[job]]
        best: tuple[float, Indices] | None = None
        keep = self._keeps.get(job)
        if keep is not None and self.free[keep.gpus].all():
            best = keep.cost, keep.gpus
        row = self._row(jobs.row)
        reached = np.cumsum(self.free[row.order])
        before = np.r_[0, reached][row.start]
        last = np.searchsorted(reached, before + jobs.gpus)
        domains = np.flatnonzero(last < row.stop)
        if len(domains):
            levels = self.problem.domains.level[domains]
            slowest = self.problem.slowdown[jobs.row, row.order[last[domains]]]
            costs = jobs.cost(levels, slowest)
            n = int(np.argmin(costs))
            if costs[n] < np.inf and (best is None or costs[n] < best[0] * (1 - SETTINGS.better)):
                span = row.order[row.start[domains[n]] : last[domains[n]] + 1]
                best = float(costs[n]), span[self.free[span]]
        if best is not None and best[0] > jobs.reward:
            return None
        return best

    def _row(self, number: int) -> _ChainRow:
        if number not in self._rows:
            chains = [chain.order for chain in self.problem.chains[number]]
            stop = np.cumsum([len(order) for order in chains])
            self._rows[number] = _ChainRow(np.concatenate(chains), np.r_[0, stop[:-1]], stop)
        return self._rows[number]

    def cost(self, job: int) -> float:
        """Return what a job costs where it is, or left out."""
        return self.cost_at(job, self.placed.get(job))

    def cost_at(self, job: int, gpus: Indices | None) -> float:
        """Return what a job costs on some GPUs, or left out."""
        problem, jobs = self.problem, self.problem.types[self._type_of[job]]
        if gpus is None:
            return jobs.reward
        domains = problem.domains
        first, last = gpus.min(), gpus.max()
        level = domains.level[np.flatnonzero((domains.start <= first) & (domains.stop > last))[0]]
        keep = self._keeps.get(job)
        is_kept = keep is not None and np.array_equal(np.sort(gpus), keep.gpus)
        slowest = problem.slowdown[jobs.row, gpus].max()
        return float(jobs.cost(level, slowest, is_kept=is_kept))

    def reinsert(self) -> None:
        """Take each job away and put it where it is cheapest, until no job finds better."""
        for _ in range(SETTINGS.reinsertions):
            improved = False
            for job in self._type_of:
                before = self.cost(job)
                gpus = self.take(job)
                cheapest = self.cheapest(job)
                if cheapest is not None and cheapest[0] < before * (1 - SETTINGS.better):
                    self.put(job, cheapest[1])
                    improved = True
                elif gpus is not None:
                    self.put(job, gpus)
            if not improved:
                return

    def fill(self) -> None:
        """Put the jobs that are not placed where it is cheapest, large ones first."""
        size = {job: jobs.gpus for jobs in self.problem.types for job in jobs.jobs}
        for job in sorted(size.keys() - self.placed.keys(), key=lambda job: (-size[job], job)):
            place = self.cheapest(job)
            if place is not None:
                self.put(job, place[1])

    def plan(self, instance: PalInstance) -> PalPlan:
        """Return the plan."""
        names = self.problem.gpus
        placements = []
        for n, job in enumerate(instance.jobs):
            gpus = np.sort(self.placed.get(n, np.zeros(0, dtype=np.intp)))
            placements.append(Placement(id=job.id, gpus=tuple(names[g] for g in gpus.tolist())))
        return PalPlan(jobs=tuple(placements))


def rounded(problem: PalArrays, options: GangOptions, point: LpPoint) -> GangPacking:
    """Place jobs as a fractional solution suggests, and those that do not fit where it is cheapest.

    A job gets the option at which the running sum of its type's shares, from the cheapest on,
    reaches one more: with that, thresholds hold as many jobs as they can. GPUs are given to options
    by a maximum flow, so a whole solution is decoded exactly.
    """
    packing = GangPacking(problem)
    gpus_of_keep = {keep.job: keep.gpus for keep in problem.keeps}
    for column, share in zip(point.columns.tolist(), point.share.tolist(), strict=True):
        job = int(options.job[column])
        if job >= 0 and share > 0.5:
            packing.put(job, gpus_of_keep[job])
    columns, counts = _whole_counts(problem, options, point, packing)
    for column, gpus in zip(columns, _flow(packing, options, columns, counts), strict=True):
        t = int(options.type[column])
        size = problem.types[t].gpus
        waiting = [job for job in problem.types[t].jobs if job not in packing.placed]
        for n, job in zip(range(len(gpus) // size), waiting, strict=False):
            packing.put(job, gpus[n * size : (n + 1) * size])
    packing.fill()
    return packing


def _whole_counts(
    problem: PalArrays, options: GangOptions, point: LpPoint, packing: GangPacking
) -> tuple[list[int], list[int]]:
    """Return options and how many jobs get each of them."""
    chosen: dict[int, int] = {}
    for t, jobs in enumerate(problem.types):
        waiting = sum(job not in packing.placed for job in jobs.jobs)
        mine = (options.type[point.columns] == t) & (options.job[point.columns] < 0)
        columns, share = point.columns[mine], point.share[mine]
        rests = []
        for d in np.unique(options.domain[columns]).tolist():
            inside = options.domain[columns] == d
            counts, rest = _steps(options, columns[inside], share[inside])
            chosen |= counts
            waiting -= sum(counts.values())
            rests.append(rest)
        last = np.array([column for column, _ in rests], dtype=np.intp)
        counts, _ = _steps(options, last, np.array([rest for _, rest in rests]))
        for column, count in counts.items():
            chosen[column] = chosen.get(column, 0) + min(count, max(waiting, 0))
            waiting -= count
    chosen = {column: count for column, count in chosen.items() if count > 0}
    return list(chosen), list(chosen.values())


def _steps(
    options: GangOptions, columns: Indices, share: Floats
) -> tuple[dict[int, int], tuple[int, float]]:
    """Return the options at which running sums reach whole numbers, and the last with the rest."""
    if not len(columns):
        return {}, (0, 0.0)
    order = np.argsort(options.cost[columns], kind="stable")
    sums = np.cumsum(share[order])
    reached = np.floor(sums + SETTINGS.integral).astype(int)
    counts = zip(columns[order].tolist(), np.diff(reached, prepend=0).tolist(), strict=True)
    rest = max(float(sums[-1]) - int(reached[-1]), 0.0)
    return {column: count for column, count in counts if count}, (int(columns[order[-1]]), rest)


def _flow(
    packing: GangPacking, options: GangOptions, columns: list[int], counts: list[int]
) -> Iterator[Indices]:
    """Yield the GPUs for each option, ascending by slowdown, by a maximum flow."""
    if not columns:
        return
    problem, count = packing.problem, len(columns)
    eligible = []
    for column in columns:
        row = problem.types[int(options.type[column])].row
        order = problem.chains[row][int(options.domain[column])].order[: int(options.end[column])]
        eligible.append(order[packing.free[order]])
    sizes = [problem.types[int(options.type[column])].gpus for column in columns]
    gpus = 2 + count + np.arange(len(problem.gpus))
    widths = [len(of_option) for of_option in eligible]
    tails = np.concatenate([np.zeros(count, int), np.repeat(2 + np.arange(count), widths), gpus])
    heads = np.concatenate(
        [2 + np.arange(count), 2 + count + np.concatenate(eligible), np.ones(len(gpus), int)]
    )
    limits = np.ones(len(tails), dtype=np.int32)
    limits[:count] = np.array(counts) * np.array(sizes)
    shape = 2 + count + len(gpus), 2 + count + len(gpus)
    flow = maximum_flow(csr_array((limits, (tails, heads)), shape=shape), 0, 1).flow.tocsr()
    for n, of_option in enumerate(eligible):
        used = flow.indices[flow.indptr[2 + n] : flow.indptr[3 + n]]
        given = used[flow.data[flow.indptr[2 + n] : flow.indptr[3 + n]] > 0] - 2 - count
        yield of_option[np.isin(of_option, given)]


# --- the plan of the previous epoch -----------------------------------------------------------


class RepairedPlan(NamedTuple):
    """A plan that was carried over, and the jobs that were not in it."""

    packing: GangPacking
    new: list[int]


def repaired(instance: PalInstance, problem: PalArrays, start: Result) -> RepairedPlan:
    """Return the jobs of now where they were, or else run, and new ones where it is cheapest.

    Of the plan only that is taken which still keeps the rules; the rest is as good as new.
    """
    packing, number = GangPacking(problem), {gpu: n for n, gpu in enumerate(problem.gpus)}
    reward = {n: jobs.reward for jobs in problem.types for n in jobs.jobs}
    before: dict[str, tuple[str, ...]] = {}
    if isinstance(start.plan, PalPlan):
        before = {placement.id: placement.gpus for placement in start.plan.jobs}
    for wanted in (before, {job.id: job.current for job in instance.jobs}):
        for n, job in enumerate(instance.jobs):
            names = wanted.get(job.id, ())
            if n not in packing.placed and len(set(names)) == len(names) == job.gpus:
                gpus = np.array([number.get(gpu, -1) for gpu in names], dtype=np.intp)
                _keep(packing, n, gpus, reward[n])
    new = [n for n in range(len(instance.jobs)) if n not in packing.placed]
    packing.fill()
    return RepairedPlan(packing, new)


def _keep(packing: GangPacking, job: int, gpus: Indices, reward: float) -> None:
    """Place a job, if its GPUs are still there and free and it may stand there and should."""
    if gpus.min() < 0 or not packing.free[gpus].all():
        return
    packing.put(job, gpus)
    if not packing.cost(job) < np.inf or packing.cost(job) > reward:
        packing.take(job)
