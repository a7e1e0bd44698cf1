"""Plans from solutions of the type-chain relaxation: decoding, rounding and reinsertion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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

    def within(self, t: int, domain: int, end: int) -> Indices | None:
        """Return the slowest free GPUs of a label: fast ones are left to jobs that need them."""
        jobs = self.problem.types[t]
        order = self.problem.chains[jobs.row][domain].order[:end]
        eligible = order[self.free[order]]
        return None if len(eligible) < jobs.gpus else eligible[-jobs.gpus :]

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

    def plan(self, instance: PalInstance) -> PalPlan:
        """Return the plan."""
        names = self.problem.gpus
        placements = []
        for n, job in enumerate(instance.jobs):
            gpus = np.sort(self.placed.get(n, np.zeros(0, dtype=np.intp)))
            placements.append(Placement(id=job.id, gpus=tuple(names[g] for g in gpus.tolist())))
        return PalPlan(jobs=tuple(placements))


def rounded(problem: Arrays, found: Labels, point: Point) -> Packing:
    """Place jobs as near to a fractional solution as they fit, and the rest where it is cheapest.

    Labels get whole counts by rounding their running sums, from the cheapest on; then narrow
    domains and fast GPUs come first, and every job takes the slowest GPUs that its label allows.
    """
    packing = Packing(problem)
    waiting = []
    for job, column in sorted(_labelled(problem, found, point), key=_narrow_first(problem, found)):
        if found.job[column] >= 0:
            gpus: Indices | None = next(s.gpus for s in problem.stays if s.job == job)
            gpus = gpus if packing.free[gpus].all() else None
        else:
            t, domain, end = (int(part[column]) for part in (found.type, found.domain, found.end))
            gpus = packing.within(t, domain, end)
        if gpus is None:
            waiting.append(job)
        else:
            packing.put(job, gpus)
    left = [job for jobs in problem.types for job in jobs.jobs if job not in packing.placed]
    size = {job: jobs.gpus for jobs in problem.types for job in jobs.jobs}
    for job in sorted(left, key=lambda job: (job not in waiting, -size[job], job)):
        place = packing.cheapest(job)
        if place is not None:
            packing.put(job, place[1])
    packing.reinsert()
    return packing


def _labelled(problem: Arrays, found: Labels, point: Point) -> Iterator[tuple[int, int]]:
    """Yield jobs and the columns that they get."""
    staying = set()
    for column, share in zip(point.columns.tolist(), point.share.tolist(), strict=True):
        if found.job[column] >= 0 and share > 0.5:
            staying.add(int(found.job[column]))
            yield int(found.job[column]), column
    for t, jobs in enumerate(problem.types):
        mine = (found.type[point.columns] == t) & (found.job[point.columns] < 0)
        columns, share = point.columns[mine], point.share[mine]
        order = np.argsort(found.cost[columns], kind="stable")
        counts = np.diff(np.rint(np.cumsum(share[order])).astype(int), prepend=0)
        members = iter([job for job in jobs.jobs if job not in staying])
        for column, count in zip(columns[order].tolist(), counts.tolist(), strict=True):
            for _, job in zip(range(count), members, strict=False):
                yield job, column


def _narrow_first(problem: Arrays, found: Labels):  # type: ignore[no-untyped-def]
    width = problem.domains.stop - problem.domains.start

    def key(labelled: tuple[int, int]) -> tuple[bool, int, int, int]:
        job, column = labelled
        stays = bool(found.job[column] >= 0)
        return not stays, int(width[found.domain[column]]), int(found.end[column]), job

    return key
