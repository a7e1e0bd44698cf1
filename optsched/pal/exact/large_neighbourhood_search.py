"""Large neighbourhood search (Shaw, CP 1998): some jobs at a time are placed again.

The jobs of a neighbourhood, their GPUs and the idle ones make an instance of their own, which is
small enough for the exact method.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from optsched.pal.exact.solver import PlacementSolver
from optsched.pal.exact.subinstance import joined, only, part
from optsched.pal.plan import PalPlan
from optsched.pal.settings import SETTINGS
from optsched.search import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def run_lns(
    instance: PalInstance,
    search: Search,
    is_done: Callable[[], bool],
    patience: int | None = None,
    around: Sequence[str] = (),
) -> None:
    """Reoptimise some jobs at a time, until it is done, or no longer pays, or time runs out.

    Nothing for few jobs.

    Parameters
    ----------
    patience
        Parts in a row that bring nothing; by default `SETTINGS.patience`.
    around
        Ids of jobs whose neighbours come first.
    """
    if len(instance.jobs) < SETTINGS.many_jobs:
        return
    search.enter("large neighbourhood search")
    drawn = Neighbourhoods(instance, search.seed)
    failures, centres = 0, iter(around)
    patience = SETTINGS.patience if patience is None else patience
    while failures < patience and not is_done():
        plan = search.plan
        if search.seconds_left() == 0:
            return
        assert isinstance(plan, PalPlan)
        is_better = reoptimised(instance, search, drawn.draw(plan, next(centres, None)))
        failures = 0 if is_better else failures + 1


def reoptimised(instance: PalInstance, search: Search, jobs: list[Job]) -> bool:
    """Reoptimise some jobs of the plan; return whether that brings anything."""
    plan = search.plan
    assert isinstance(plan, PalPlan)
    smaller = part(instance, plan, jobs)
    inner = Search(
        smaller,
        search.seconds_left(),
        SETTINGS.part_gap,
        search.seed,
        program_limit=SETTINGS.least_nodes,
    )
    inner.offer(only(plan, jobs))
    before = inner.objective
    PlacementSolver(smaller, inner).solve()
    assert isinstance(inner.plan, PalPlan)
    search.offer(joined(plan, inner.plan))
    return inner.objective != before
