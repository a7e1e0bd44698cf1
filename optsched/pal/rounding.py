"""Plans from solutions of the type-chain relaxation: decoding, rounding and reinsertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from optsched.pal.plan import PalPlan, Placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.pal.arrays import Arrays
    from optsched.pal.instance import PalInstance
    from optsched.pal.relaxation import Labels
    from optsched.pal.rules import Point

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

ROUNDS = 20  # of reinsertion; far more than it takes to find no better place
WHOLE = 1e-6  # what HiGHS calls whole
BETTER = 1e-9  # by how much a place must be better, relative

Placed = dict[int, "Indices"]  # GPUs by number of the job


class Packing:
    """Jobs on GPUs, placed and taken away one by one.

    Attributes
    ----------
    free
        Shape (GPUs,).
    placed
        GPUs of each job that is placed.
    """

    def __init__(self, problem: Arrays) -> None:
        self.problem = problem
        self.free = np.ones(len(problem.gpus), dtype=np.bool_)
        self.placed: Placed = {}
        self._type_of = {job: t for t, jobs in enumerate(problem.types) for job in jobs.jobs}
        self._stays = {stay.job: stay for stay in problem.stays}

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
        problem, t = self.problem, self._type_of[job]
        jobs = problem.types[t]
        best: tuple[float, Indices] | None = None
        stay = self._stays.get(job)
        if stay is not None and self.free[stay.gpus].all():
            best = stay.cost, stay.gpus
        values = problem.slowdown[jobs.row]
        for d, chain in enumerate(problem.chains[jobs.row]):
            factor = jobs.factor[problem.domains.level[d]]
            if len(chain.order) < jobs.gpus or factor == np.inf:
                continue
            order = chain.order[self.free[chain.order]]
            if len(order) < jobs.gpus:
                continue
            cost = float(factor * values[order[jobs.gpus - 1]]) + jobs.moving
            if best is None or cost < best[0] * (1 - BETTER):
                best = cost, order[: jobs.gpus]
        if best is not None and best[0] > jobs.reward:
            return None
        return best

    def cost(self, job: int) -> float:
        """Return what a job costs where it is, or left out."""
        problem, jobs = self.problem, self.problem.types[self._type_of[job]]
        gpus = self.placed.get(job)
        if gpus is None:
            return jobs.reward
        domains = problem.domains
        first, last = gpus.min(), gpus.max()
        level = domains.level[np.flatnonzero((domains.start <= first) & (domains.stop > last))[0]]
        cost = float(jobs.factor[level] * problem.slowdown[jobs.row, gpus].max())
        stay = self._stays.get(job)
        stays = stay is not None and np.array_equal(np.sort(gpus), stay.gpus)
        return cost if stays else cost + jobs.moving

    def reinsert(self) -> None:
        """Take each job away and put it where it is cheapest, until no job finds better."""
        for _ in range(ROUNDS):
            improved = False
            for job in self._type_of:
                before = self.cost(job)
                gpus = self.take(job)
                found = self.cheapest(job)
                if found is not None and found[0] < before * (1 - BETTER):
                    self.put(job, found[1])
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


def rounded(problem: Arrays, found: Labels, point: Point) -> Packing:
    """Place jobs as a fractional solution suggests, and where they do not fit, where it is cheapest.

    A job gets the label at which the running sum of its type's shares, from the cheapest on,
    reaches one more: with that, thresholds hold as many jobs as they can. GPUs are given to labels
    by a maximum flow, so a whole solution is decoded exactly.
    """
    packing = Packing(problem)
    gpus_of_stay = {stay.job: stay.gpus for stay in problem.stays}
    for column, share in zip(point.columns.tolist(), point.share.tolist(), strict=True):
        job = int(found.job[column])
        if job >= 0 and share > 0.5:
            packing.put(job, gpus_of_stay[job])
    columns, counts = _whole_counts(problem, found, point, packing)
    for column, gpus in zip(columns, _flow(packing, found, columns, counts), strict=True):
        t = int(found.type[column])
        size = problem.types[t].gpus
        waiting = [job for job in problem.types[t].jobs if job not in packing.placed]
        for n, job in zip(range(len(gpus) // size), waiting, strict=False):
            packing.put(job, gpus[n * size : (n + 1) * size])
    packing.fill()
    packing.reinsert()
    return packing


def _whole_counts(
    problem: Arrays, found: Labels, point: Point, packing: Packing
) -> tuple[list[int], list[int]]:
    """Return labels and how many jobs get each of them."""
    chosen: dict[int, int] = {}
    for t, jobs in enumerate(problem.types):
        mine = (found.type[point.columns] == t) & (found.job[point.columns] < 0)
        columns, share = point.columns[mine], point.share[mine]
        order = np.argsort(found.cost[columns], kind="stable")
        reached = np.floor(np.cumsum(share[order]) + WHOLE).astype(int)
        waiting = sum(job not in packing.placed for job in jobs.jobs)
        counts = np.diff(np.minimum(reached, waiting), prepend=0)
        pairs = zip(columns[order].tolist(), counts.tolist(), strict=True)
        chosen |= {column: count for column, count in pairs if count}
    return list(chosen), list(chosen.values())


def _flow(
    packing: Packing, found: Labels, columns: list[int], counts: list[int]
) -> Iterator[Indices]:
    """Yield the GPUs for each label, ascending by slowdown: a maximum flow from labels to GPUs."""
    if not columns:
        return
    problem, count = packing.problem, len(columns)
    eligible = []
    for column in columns:
        row = problem.types[int(found.type[column])].row
        order = problem.chains[row][int(found.domain[column])].order[: int(found.end[column])]
        eligible.append(order[packing.free[order]])
    sizes = [problem.types[int(found.type[column])].gpus for column in columns]
    gpus = 2 + count + np.arange(len(problem.gpus))
    widths = [len(of_label) for of_label in eligible]
    tails = np.concatenate(
        [np.zeros(count, int), np.repeat(2 + np.arange(count), widths), gpus]
    )
    heads = np.concatenate(
        [2 + np.arange(count), 2 + count + np.concatenate(eligible), np.ones(len(gpus), int)]
    )
    limits = np.ones(len(tails), dtype=np.int32)
    limits[:count] = np.array(counts) * np.array(sizes)
    shape = 2 + count + len(gpus), 2 + count + len(gpus)
    flow = maximum_flow(csr_array((limits, (tails, heads)), shape=shape), 0, 1).flow.tocsr()
    for n, of_label in enumerate(eligible):
        used = flow.indices[flow.indptr[2 + n] : flow.indptr[3 + n]]
        given = used[flow.data[flow.indptr[2 + n] : flow.indptr[3 + n]] > 0] - 2 - count
        yield of_label[np.isin(of_label, given)]
