"""Large neighbourhood search (Shaw, CP 1998): some jobs at a time are reoptimised.

They are placed on their own GPUs and the idle ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.exact.bounding import Solver
from optsched.pal.exact.large_neighbourhood_search import Neighbourhoods, joined, only, part
from optsched.pal.plan import PalPlan
from optsched.pal.settings import SETTINGS
from optsched.search import Search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.pal.instance import Job, PalInstance


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
    inner = Search(smaller, search.seconds_left(), SETTINGS.part_gap, search.seed)
    inner.offer(only(plan, jobs))
    before = inner.objective
    Solver(smaller, inner).solve(work=0)
    assert isinstance(inner.plan, PalPlan)
    search.offer(joined(plan, inner.plan))
    return inner.objective != before
