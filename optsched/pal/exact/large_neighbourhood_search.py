"""Large neighbourhood search (Shaw, CP 1998): neighbourhoods and their sub-instances.

The jobs of a neighbourhood, their GPUs and the idle ones make an instance of their own, which is
small enough for the exact method.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from optsched.pal.exact.subinstance import restricted
from optsched.pal.plan import PalPlan, Placement
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.pal.instance import Job, PalInstance


class Neighbourhoods:
    """Draws jobs that can well change places: about equally slow, or near in the topology."""

    def __init__(self, instance: PalInstance, seed: int) -> None:
        self._instance = instance
        self._random = random.Random(seed)
        self._number = {gpu: n for n, gpu in enumerate(instance.free_gpus)}

    def draw(self, plan: PalPlan, centre: str | None = None) -> list[Job]:
        """Return the jobs of a neighbourhood of a plan, around that of an id or anywhere."""
        gpus = {placement.id: placement.gpus for placement in plan.jobs}
        key = self._random.choice([self._slowness, self._position])
        keys = {job.id: key(job, gpus[job.id]) for job in self._instance.jobs}
        ordered = sorted(self._instance.jobs, key=lambda job: keys[job.id])
        size = min(self._random.choice(SETTINGS.neighbourhood_sizes), len(ordered) // 2)
        last = max(0, len(ordered) - size)
        first = self._random.randrange(last + 1)
        if centre is not None:
            middle = next(n for n, job in enumerate(ordered) if job.id == centre)
            first = min(max(0, middle - size // 2), last)
        return ordered[first : first + size]

    def _slowness(self, job: Job, gpus: tuple[str, ...]) -> float:
        slowdown = self._instance.slowdowns[job.application_class]
        worst = max((slowdown[gpu] for gpu in gpus), default=1.0)
        return worst + SETTINGS.neighbourhood_spread * self._random.random()

    def _position(self, job: Job, gpus: tuple[str, ...]) -> float:
        anywhere = self._random.random() * len(self._number)
        return self._number[self._random.choice(gpus)] if gpus else anywhere


def part(instance: PalInstance, plan: PalPlan, jobs: list[Job]) -> PalInstance:
    """Return the instance of some jobs on the GPUs that they have and that no job has."""
    names = {job.id for job in jobs}
    others = {gpu for placement in plan.jobs if placement.id not in names for gpu in placement.gpus}
    return restricted(instance, jobs, {gpu for gpu in instance.free_gpus if gpu not in others})


def joined(plan: PalPlan, new: PalPlan) -> PalPlan:
    """Return a plan with the placements of some jobs replaced."""
    placements = {placement.id: placement for placement in new.jobs}
    return PalPlan(jobs=tuple(placements.get(old.id, old) for old in plan.jobs))


def only(plan: PalPlan, jobs: list[Job]) -> PalPlan:
    """Return the part of a plan that concerns some jobs."""
    placements: dict[str, Placement] = {placement.id: placement for placement in plan.jobs}
    return PalPlan(jobs=tuple(placements[job.id] for job in jobs))
