"""Enumeration of the columns of a set partitioning (Balas & Padberg, SIAM Review 18, 1976).

All groups of jobs that an instance allows, with numpy; equal jobs count as one class. All that is
not linear is in a group's figures (docs/math/eaco.md, groups).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.due_times import due_s
from optsched.eaco.group_figures import TypeFigures
from optsched.eaco.groups.type_multisets import Multisets
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance, GpuType, Job

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class TooManyGroupsError(ValueError):
    """There are more groups than are enumerated, or than there is time for."""


def never() -> bool:
    """Tell that time has not run out: there is no limit."""
    return False


class JobClass(NamedTuple):
    """Jobs that are equal but for their ids.

    Attributes
    ----------
    jobs
        Ids.
    job
        One of them.
    place
        Index in `running` of where they run now, or -1.
    due
        Seconds within which they must end, as of `due_times.due_s`; None if any time will do.
    """

    jobs: tuple[str, ...]
    job: Job
    place: int
    due: Fraction | None = None


class Groups(NamedTuple):
    """Groups of one size k, of jobs with equal gangs, on GPUs of one type at full power.

    Attributes
    ----------
    members
        Shape (count, k): indices of job classes, ascending in each row.
    sets
        Shape (count,): index of the multiset of their types, at level k.
    is_near
        Shape (count,): whether a figure is too near to a limit to be trusted.
    """

    members: Indices
    sets: Indices
    is_near: NDArray[np.bool_]


def job_classes(instance: EacoInstance) -> list[JobClass]:
    """Merge equal jobs; classes come in the order of their gangs and types."""
    places = {job: n for n, place in enumerate(instance.running) for job in place.jobs}
    sets: dict[tuple[object, ...], list[Job]] = {}
    for job in instance.jobs:
        place = places.get(job.id, -1)
        rest = job.model_dump(exclude={"id"} if place >= 0 else {"id", "migration_s"})
        sets.setdefault((place, *rest.values()), []).append(job)
    merged = [
        JobClass(
            tuple(job.id for job in jobs),
            jobs[0],
            places.get(jobs[0].id, -1),
            due_s(instance, jobs[0]),
        )
        for jobs in sets.values()
    ]
    return sorted(merged, key=lambda c: (c.job.gpus, c.job.type))


class Enumeration:
    """Groups of jobs with equal gangs on GPUs of one type, by their size.

    Parameters
    ----------
    classes
        All classes of the instance.
    among
        Indices of those that have the gang size and fit on such GPUs alone.

    Attributes
    ----------
    sizes
        Groups of 1, 2, ... jobs.
    sets
        The multisets of their types.

    Parameters
    ----------
    stops
        Tells whether time has run out; not asked before so many groups are looked at as take a
        fraction of a second.

    Raises
    ------
    TooManyGroupsError
        If there are more than `EacoSettings.most_groups`, or time has run out.
    """

    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        among: list[int],
        gpu: GpuType,
        stops: Callable[[], bool] = never,
    ) -> None:
        self._instance, self._stops, self._looked = instance, stops, 0
        by_id = {kind.id: kind for kind in instance.types}
        names = sorted({classes[c].job.type for c in among})
        types = [by_id[classes[c].job.type] for c in among]
        self._copies = np.array([len(classes[c].jobs) for c in among])
        self._memory = np.array([kind.memory_gb for kind in types])
        self._memory_limit = gpu.memory_gb * (1 - instance.memory_headroom)
        limit = Fraction(gpu.memory_gb) * (1 - Fraction(instance.memory_headroom))
        self._is_limit_exact = limit == self._memory_limit
        self._type = np.array([names.index(kind.id) for kind in types])
        self._among = np.array(among)
        figures = TypeFigures(instance)
        least = [least_rate(figures, classes[c], gpu.id) for c in among]
        self._least_rate = np.array(least)
        self.sets = Multisets(instance, gpu.id, names)
        self.sizes: list[Groups] = []
        self._enumerate()

    def _enumerate(self) -> None:
        """Enumerate by size: groups that break a limit are in no larger one."""
        count = len(self._among)
        members = np.arange(count)[:, None]
        sets, near = self._type, np.zeros(count, dtype=bool)
        self.sizes.append(Groups(self._among[members], sets, near))
        total = count
        for size in range(2, self._instance.max_jobs_per_gpu + 1):
            rows, last = self._extended(members)
            sets = self.sets.add(sets[rows], self._type[last])
            kept = sets >= 0
            rows, last, sets = rows[kept], last[kept], sets[kept]
            members = np.hstack([members[rows], last[:, None]])
            rates = self.sets.levels[size].rates[sets]
            margin = row_minima(rates / self._least_rate[members]) - 1
            may_extend = ~(margin < -SETTINGS.near) & ~(row_minima(rates) == 0)  # unknown rates may
            members, sets, margin = members[may_extend], sets[may_extend], margin[may_extend]
            near = np.abs(margin) <= SETTINGS.near
            if not self._is_limit_exact:
                memory = self._memory[members].sum(axis=1)
                near |= memory > self._memory_limit * (1 - SETTINGS.near)
            fine = self._allowed(size, sets, near) & ~np.isnan(margin)
            self.sizes.append(Groups(self._among[members[fine]], sets[fine], near[fine]))
            total += int(fine.sum())
            self._check_number(total)
            if not len(members):
                return

    def _extended(self, members: Indices) -> tuple[Indices, Indices]:
        """Return every group and job that may join it, in the order of classes, memory allowing."""
        choices = len(self._among) - members[:, -1]
        self._check_number(int(choices.sum()) // 8)
        parts = [(members[:0, 0], members[:0, 0])]
        parts += [self._block(members, choices, block) for block in _blocks(choices)]
        rows, last = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._look(len(rows))
        return rows, last

    def _block(self, members: Indices, choices: Indices, block: slice) -> tuple[Indices, Indices]:
        """Return the same of some of the groups."""
        choices, before = choices[block], members[block, -1]
        rows = np.repeat(np.arange(len(choices)), choices)
        first = np.repeat(np.cumsum(choices) - choices, choices)
        last = np.arange(len(rows)) - first + before[rows]
        copies = (members[block] == before[:, None]).sum(axis=1)
        fits = (last != before[rows]) | (copies < self._copies[before])[rows]
        memory = self._memory[members[block]].sum(axis=1)[rows] + self._memory[last]
        fits &= memory <= self._memory_limit * (1 + SETTINGS.near)
        self._look(len(rows) // 8)
        if self._is_limit_exact:
            is_near = fits & (memory >= self._memory_limit * (1 - SETTINGS.near))
            for n in np.flatnonzero(is_near).tolist():
                within = self._memory[members[block.start + rows[n]]].tolist()
                over = math.fsum([*within, self._memory[last[n]], -self._memory_limit])
                fits[n] = over <= 0  # `fsum` rounds once, so that the sign is right
        return rows[fits] + block.start, last[fits]

    def _look(self, count: int) -> None:
        """Count groups that are looked at; stop if they take too long."""
        self._looked += count
        if self._looked > SETTINGS.listed_at_once and self._stops():
            raise TooManyGroupsError(f"{self._instance.name}: no time to list all groups")

    def _allowed(self, size: int, sets: Indices, near: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which groups keep the utilisation limit, and mark those that are near to it."""
        limit = self._instance.utilisation_limit
        if limit is None:
            return np.ones(len(sets), dtype=bool)
        busy = self.sets.levels[size].utilisation[sets]
        near |= np.abs(busy / limit - 1) <= SETTINGS.near
        return np.asarray(busy <= limit * (1 + SETTINGS.near))

    def _check_number(self, count: int) -> None:
        if count > SETTINGS.most_groups:
            raise TooManyGroupsError(
                f"{self._instance.name}: more than {SETTINGS.most_groups:,} groups of up to "
                f"{self._instance.max_jobs_per_gpu} jobs are possible; "
                "a smaller max_jobs_per_gpu or max_slowdown leaves fewer"
            )


def _blocks(choices: Indices) -> Iterator[slice]:
    """Yield groups in blocks that have about as many choices as are looked at in one go."""
    ends = np.cumsum(choices)
    total = int(ends[-1]) if len(ends) else 0
    edges = np.searchsorted(ends, np.arange(0, total, SETTINGS.pairs_at_once), side="right")
    starts = sorted({*edges.tolist(), len(choices)})
    for first, last in itertools.pairwise(starts):
        yield slice(first, last)


def row_minima(rows: Floats) -> Floats:
    """Return the least of each row, nan where one is: numpy reduces short rows slowly."""
    least = rows[:, 0].copy()
    for n in range(1, rows.shape[1]):
        np.minimum(least, rows[:, n], out=least)
    return least


def least_rate(figures: TypeFigures, jobs: JobClass, gpu: str) -> float:
    """Return the least rate that jobs bear on a GPU type, if they are not moved."""
    job = jobs.job
    least = 0.0 if job.max_slowdown is None else 1 / job.max_slowdown
    if jobs.due is not None:
        speed = figures.types[job.type].speeds.get(gpu, 1.0)
        least = max(least, min(job.work_s / speed / float(jobs.due), 1e9))
    return max(least, SETTINGS.any_rate)
