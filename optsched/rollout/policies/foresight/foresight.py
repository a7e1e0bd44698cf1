"""Foresight: the list by which the jobs at hand, and some to come, would end soonest.

At each decision lists of jobs are searched in a quick simulation, and the first of the best list
hold GPUs until the next decision. The simulation knows the jobs at hand, and takes those that came
in the last half hour to come once more in the next one: without them, jobs would be given GPUs as
if nobody were to come. The best list is where the search goes on at the next decision.

Source: Bertsekas, Tsitsiklis and Wu, "Rollout algorithms for combinatorial optimization", Journal
of Heuristics 1997; Chang, Givan and Chong, "On-line scheduling via sampling", AIPS 2000: arrivals
to come are simulated. Here they are those of the past.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.foresight.gang_needs import GangNeeds
from optsched.rollout.policies.foresight.local_search import improved
from optsched.rollout.policies.repacking.lookahead import EXPONENTS, LookaheadOptions
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.repacking.wsrpt import Wsrpt
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.policy_options import NonNegative, Tries, takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.foresight.quick_schedule import QuickSchedule
    from optsched.rollout.scenario import Scenario


MOST_MOVES = 4
"""Of each job to each place in a list: of short lists no more need be tried."""


class ForesightOptions(LookaheadOptions):
    """What is simulated, and how jobs are placed."""

    simulated: Tries = Field(
        default=3000,
        description="At a decision so many jobs are simulated, in lists beside those that it "
        "begins with: the fewer jobs there are, the more lists.",
    )
    expects_s: NonNegative = Field(
        default=1800.0,
        description="Jobs that came within so many seconds are taken to come once more in as "
        "many; 0: nobody comes.",
    )


class Coming(NamedTuple):
    """A job that is taken to come.

    Attributes
    ----------
    name
        Its number, or -1 - that of the job that comes once more.
    work_us
        What it needs at reference speed.
    release_us
        When it comes, from now on.
    """

    name: int
    width: int
    model: str
    work_us: float
    release_us: float


class Foresight(Restorable):
    """Orders jobs by the best list of a local search."""

    changing = ("_list", "_first_us", "_draws")

    def __init__(self, options: ForesightOptions) -> None:
        self.options = options
        self._list: list[int] = []  # names of jobs at hand and to come
        self._first_us: dict[int, float] = {}  # of jobs that came lately: what was told of each
        self._draws = random.Random(0)
        self._needs: GangNeeds | None = None

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the most urgent first."""
        numbers = sorted(jobs)
        left = self._left_us(view, numbers)
        self._note(view, dict(zip(numbers, left.tolist(), strict=True)))
        schedule = None
        if numbers and len(numbers) <= self.options.most_jobs and not np.isnan(left).any():
            coming = self._coming(view, len(numbers))
            schedule = self._schedule(view, numbers, left.tolist(), coming)
        if schedule is None:
            self._list = []
            return Wsrpt(EXPONENTS[0], self.options.stay).sort(view, numbers)
        runs = [bool(view.gpus_of(job)) for job in numbers]
        names = [*numbers, *(job.name for job in coming)]
        starts = self._starts(schedule, names, runs)
        count = len(names)
        moves = min(self.options.simulated // count, MOST_MOVES * count**2)
        order = improved(schedule, starts, moves, self._draws)
        self._list = [names[n] for n in order]
        return [names[n] for n in order if n < len(numbers)]

    def steady(self, scenario: Scenario) -> None:
        """Return None: where a job stands depends on all others."""

    def _note(self, view: View, left_us: dict[int, float]) -> None:
        """Take note of jobs that have come, and forget those that came too long ago."""
        since = view.now_us - self.options.expects_s * 1e6
        for job in [job for job in self._first_us if view.submit_us(job) <= since]:
            del self._first_us[job]
        for job in view.arrived:
            told = left_us.get(job, np.nan)
            if job not in self._first_us and view.submit_us(job) > since and not np.isnan(told):
                self._first_us[job] = told

    def _left_us(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return what jobs still need, as far as is known."""
        return view.remaining_us(jobs)

    def _coming(self, view: View, at_hand: int) -> list[Coming]:
        """Return the jobs that are taken to come."""
        later = self.options.expects_s * 1e6 - view.now_us
        return [
            Coming(-1 - job, view.demand(job), view.model(job), left, view.submit_us(job) + later)
            for job, left in self._first_us.items()
        ]

    def _schedule(
        self, view: View, jobs: list[int], left: list[float], coming: list[Coming]
    ) -> QuickSchedule | None:
        """Return the simulation of jobs at hand and to come; None if no node is ready."""
        if self._needs is None:
            self._needs = GangNeeds(view)
        sizes = view.cluster.size
        gpus = sum(n for n, ready in zip(sizes, view.ready, strict=True) if ready)
        if not gpus:
            return None
        gangs = [(view.demand(job), view.model(job)) for job in jobs]
        gangs += [(job.width, job.model) for job in coming]
        works = [*left, *(job.work_us for job in coming)]
        release = [0.0] * len(jobs) + [job.release_us for job in coming]
        return self._needs.schedule(gpus, gangs, works, release)

    def _starts(
        self, schedule: QuickSchedule, names: list[int], runs: list[bool]
    ) -> list[list[int]]:
        """Return lists of gangs to begin with: the last one with those that came, and Smith's."""
        times = np.array(schedule.alone)
        widths = np.array(schedule.gangs.width, dtype=float)
        on = np.array([*runs, *[False] * (len(names) - len(runs))], dtype=float)
        powers = EXPONENTS if schedule.known_total is None else EXPONENTS[:1]
        keys = [times * widths**power * (1 - self.options.stay * on) for power in powers]
        lists: list[list[int]] = [np.lexsort((-on, key)).tolist() for key in keys]
        if self._list:
            lists.insert(0, self._continued(names, lists[0], keys[0].tolist()))
        return lists

    def _continued(self, names: list[int], order: list[int], keys: list[float]) -> list[int]:
        """Return the last list without those that are gone, others before the first behind them."""
        number = {name: n for n, name in enumerate(names)}
        jobs = [number[name] for name in self._list if name in number]
        known = set(jobs)
        for n in order:
            if n not in known:
                at = next((k for k, other in enumerate(jobs) if keys[other] > keys[n]), len(jobs))
                jobs.insert(at, n)
        return jobs


@takes(ForesightOptions)
def foresight(scenario: Scenario, seed: int, options: ForesightOptions) -> Rounds:
    """Search lists of the jobs at hand, and of some to come, at every decision."""
    placement = Repacking(options.horizon_s)
    return Rounds("foresight", Foresight(options), placement, backfill=True)
