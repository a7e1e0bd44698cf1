"""Hindsight: the best schedule that is found when the whole trace is known.

One candidate is foresight that is told who comes (`informed`). Lists of jobs by alpha-points of a
relaxation, and the orders in which policies end the jobs, are improved by local search in a quick
simulation without places; the engine itself runs the best ones, and says how long jobs really held
GPUs for the next search. What rollouts are left move one job after the other in the best list.
"""

from __future__ import annotations

import random
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from optsched.rollout.checkpoints.restorable import Restorable, RestorablePolicy
from optsched.rollout.policies.clairvoyant.alpha_points import alpha_order, relaxed_schedule
from optsched.rollout.policies.clairvoyant.informed import Informed
from optsched.rollout.policies.clairvoyant.list_search import ListSearch
from optsched.rollout.policies.foresight.local_search import neighbour
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.repacking.wsrpt import RepackingOptions
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.policy_options import Count, takes
from optsched.rollout.results.metrics import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from optsched.rollout.engine.decision import Decision, Policy
    from optsched.rollout.engine.view import View
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

ALPHAS = (0.25, 0.5, 0.75, 1.0)
RIVALS = (
    "wsrpt",
    "wsrpt-lookahead",
    "foresight",
    "wsrpt:width_exponent=1,stay=0",
    "srtf:backfill=true",
    "las:backfill=true",
    "fifo",
)
"""Policies that take part: none of them is better than what is found."""
PLACING = ("pal-greedy:order=srtf,backfill=true", "pal:order=srtf,backfill=true")
"""Those that take part, too, where GPUs differ."""
SHARING = ("fifo-packed",)
"""Those that take part, too, where GPUs may be shared."""
INFORMED = "informed"
"""The plan to search anew at every decision."""
RENTING = ("boa-budgeted", "boa", "one-width-per-class")
"""Those that take part where nodes are rented, and no others."""

Value = tuple[int, bool, float]
WORST: Value = (1 << 62, True, inf)


class HindsightOptions(RepackingOptions):
    """How much is searched."""

    evaluations: Count = Field(
        default=30, description="Rollouts after which the search ends, those of policies included."
    )
    moves: Count = Field(
        default=1000,
        description="Lists that a quick simulation tries before each of the first rollouts of a "
        "list.",
    )


class Listed(Restorable):
    """The order of a list."""

    def __init__(self, jobs: Sequence[int]) -> None:
        self.rank = {job: n for n, job in enumerate(jobs)}

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs as the list has them."""
        return sorted(jobs, key=self.rank.__getitem__)

    def steady(self, scenario: Scenario) -> None:
        """Return None: there are no keys but those of the list."""


class Hindsight(RestorablePolicy):
    """Runs what a search over the whole trace has found to have the least mean JCT.

    The search is made at the first decision, and by numbers of rollouts, not by a clock. What it
    found is kept as text or as a list of jobs, so a rollout that goes on need not search again.

    Attributes
    ----------
    plan
        A policy's name, or jobs in order; None before the first decision.
    """

    name = "hindsight"

    def __init__(self, scenario: Scenario, seed: int, options: HindsightOptions) -> None:
        self.scenario, self.seed, self.options = scenario, seed, options
        self.plan: Any = None
        self._trace: Trace | None = None
        self._inner: Policy | None = None

    def prepare(self, trace: Trace) -> None:
        """Take the whole trace."""
        self._trace = trace

    def decide(self, view: View) -> Decision:
        """Do what the schedule found does."""
        if self._inner is None:
            assert self._trace is not None, "the engine prepares its policy"
            self.plan = Search(self, self._trace).best()
            self._inner = self.made(self.plan)
        decision = self._inner.decide(view)
        self.every_epoch = bool(getattr(self._inner, "every_epoch", False))
        return decision

    def state(self) -> dict[str, Any]:
        """Return what was found, and the state of the policy that runs it."""
        inner: Any = self._inner
        return {"plan": self.plan, "inner": None if inner is None else inner.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.plan, self._inner = state["plan"], None
        if self.plan is not None:
            inner: Any = self.made(self.plan)
            inner.restore(state["inner"])
            self._inner, self.every_epoch = inner, bool(getattr(inner, "every_epoch", False))

    def made(self, plan: str | list[int]) -> Policy:
        """Return a new policy that runs a plan."""
        from optsched.rollout.registry import make

        if plan == INFORMED:
            assert self._trace is not None, "the engine prepares its policy"
            order = Informed(self._trace)
            return Rounds(INFORMED, order, Repacking(self.options.horizon_s), backfill=True)
        if not isinstance(plan, str):
            return Rounds("listed", Listed(plan), Repacking(self.options.horizon_s), backfill=True)
        policy = make(plan, self.scenario, self.seed)
        prepare = getattr(policy, "prepare", None)
        if prepare is not None:
            prepare(self._trace)
        return policy


class Search:
    """Rollouts of candidates: the best plan so far, and how many may follow."""

    def __init__(self, policy: Hindsight, trace: Trace) -> None:
        self.policy, self.trace = policy, trace
        self.left = policy.options.evaluations
        self.draws = random.Random(policy.seed)
        self.least: Value = WORST
        self.plan: str | list[int] = "fifo"

    def best(self) -> str | list[int]:
        """Return the best plan that was found."""
        scenario = self.policy.scenario
        if scenario.rented is not None:
            for name in RENTING:
                self.tried(name)
            return self.plan
        names = [*RIVALS, INFORMED, *(SHARING if scenario.sharing.max_jobs_per_gpu > 1 else ())]
        names += PLACING if scenario.profile is not None else ()
        runs = [run for name in names if (run := self.tried(name)) is not None]
        pieces = relaxed_schedule(self.trace, scenario.gpus)
        lists = [alpha_order(pieces, alpha) for alpha in ALPHAS]
        lists += [_order(run) for run in runs]
        firsts = [*lists[: len(ALPHAS)], *([_order(runs[0])] if runs else [])]
        listed = [(run, jobs) for jobs in firsts if (run := self.tried(jobs)) is not None]
        ended = [(_value(run), n) for n, (run, _) in enumerate(listed)]
        if ended and min(ended)[0][0] == 0:  # all jobs end by some list
            run, jobs = self._searched(*listed[min(ended)[1]], lists)
            self._improve(jobs, _value(run))
        return self.plan

    def tried(self, plan: str | list[int]) -> Record | None:
        """Return the rollout of a plan, and take note of the plan if it is the best.

        There is none of a policy that does not know such a scenario, or when none are left.
        """
        if self.left <= 0:
            return None
        self.left -= 1
        try:
            record = self._rollout(plan)
        except ValueError:
            return None
        value = _value(record)
        if value < self.least:
            self.least, self.plan = value, plan
        return record

    def _rollout(self, plan: str | list[int]) -> Record:
        from optsched.rollout.engine.engine import Engine

        made = self.policy.made(plan)
        return Engine(self.policy.scenario, self.trace, made, self.policy.seed).run()

    def _searched(
        self, run: Record, jobs: list[int], lists: list[list[int]]
    ) -> tuple[Record, list[int]]:
        """Return the best list after quick searches, each from what the best rollout has shown."""
        latest = run
        while self.left > 0:
            search = ListSearch(latest, self.policy.options.moves)
            found = search.improved([jobs, *lists], self.draws)
            record = self.tried(found)
            if record is None or _value(record)[0] or found == jobs:
                break
            is_better = _value(record) < _value(run)
            if is_better:
                run, jobs = record, found
            elif latest is not run:  # twice in vain
                break
            latest, lists = record, [found]
        return run, jobs

    def _improve(self, jobs: list[int], value: Value) -> None:
        """Move one job after the other to another place of a list, while that makes it better."""
        while self.left > 0 and len(jobs) > 1:
            moved = neighbour(jobs, self.draws)
            record = self.tried(moved)
            if record is not None and _value(record) <= value:
                jobs, value = moved, _value(record)


def _order(record: Record) -> list[int]:
    """Return the jobs as a rollout has ended them, those that it has not last."""
    ends = np.where(record.jobs.end_us < 0, np.iinfo(np.int64).max, record.jobs.end_us)
    return [int(job) for job in np.argsort(ends, kind="stable")]


def _value(record: Record) -> Value:
    """Return how many jobs did not end, whether the budget is exceeded, and the mean JCT."""
    found = metrics(record)
    budget, rented = record.scenario.budget_gpus, found["rented_gpus_mean"]
    is_over = budget is not None and rented is not None and rented > budget
    jct_s = found["jct_mean_s"]
    return int(found["unfinished"] or 0), is_over, inf if jct_s is None else float(jct_s)


@takes(HindsightOptions, draws=True)
def hindsight(scenario: Scenario, seed: int, options: HindsightOptions) -> Hindsight:
    """Return the policy that knows the whole trace."""
    return Hindsight(scenario, seed, options)
