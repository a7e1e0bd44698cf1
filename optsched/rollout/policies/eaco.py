"""Policies that share GPUs to save energy: EaCO's problem at every change, by a rule.

Each call makes an instance of the problem EaCO of the jobs that wait and run, and its rules part
them into groups: those of `optsched.eaco.greedy.rules`, each under its name.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar

from optsched.eaco.greedy.group_costs import GroupCosts
from optsched.eaco.greedy.rules import BY_NAME, GroupingRule
from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.eaco_adapter import EacoInstanceParts
from optsched.rollout.policies.sharing.across_nodes import next_across
from optsched.rollout.policies.sharing.kept.rounds import KNOWN, KeptRounds
from optsched.rollout.policies.sharing.node_pools import NodePools
from optsched.rollout.policies.sharing.options import (
    THRESHOLDS,
    SharingOptions,
    ThresholdOptions,
)
from optsched.rollout.policies.sharing.priorities import by_priority
from optsched.rollout.policy_needs import refuse_quotas, refuse_unlike_nodes
from optsched.rollout.policy_options import Maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from optsched.eaco.plan import EacoPlan
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import Present
    from optsched.rollout.policies.sharing.kept.groups import Member
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]


class GroupingPolicy(RestorablePolicy):
    """At every change the jobs are parted into groups by a rule."""

    changing: ClassVar[tuple[str, ...]] = ("calls", "_ready")
    keeps_running: bool
    keeps_groups: ClassVar[bool] = True
    parts_late: ClassVar[bool] = False

    def __init__(
        self, name: str, scenario: Scenario, seed: int, rule: GroupingRule, options: SharingOptions
    ) -> None:
        if scenario.rented is not None:
            raise ValueError(f"policy '{name}': it does not rent nodes")
        refuse_quotas(name, scenario)
        refuse_unlike_nodes(name, scenario)
        self.name, self.seed, self.rule = name, seed, rule
        self.keeps_running = rule.keeps_running
        self.waiting_kwh, self.window = options.waiting_kwh, options.window
        self.thresholds = options.model_dump(include=THRESHOLDS)
        self.calls = 0
        self._ready: list[bool] = []
        self._has_deadlines: bool | None = None
        self._costs: GroupCosts | None = None
        self._frame: EacoInstanceParts | None = None
        self._kept: KeptRounds | None = None

    def decide(self, view: View) -> Decision:
        """Part the jobs again, if there are others than before."""
        if not self.has_news(view):
            return NOTHING
        self._note_deadlines(view)
        kept = self._kept_rounds(view)
        if kept is not None:
            if not (kept.waiting or kept.groups.of):
                return NOTHING
            decision = kept.decide(view, self.window, self.rank(view), self.seed + self.calls + 1)
            if decision is not None:
                self.calls += 1
                return decision
            self._kept = None
        return self._formed(view, self.queue(view))

    def _kept_rounds(self, view: View) -> KeptRounds | None:
        """Return what is kept, brought up to date; None if groups must be formed each time."""
        if self._has_deadlines or not self.keeps_groups or self.rule.name not in KNOWN:
            self._kept = None
        elif self._kept is not None:
            self._kept.note(view)
        else:
            parts, thresholds = self._parts(view), self.thresholds
            self._kept = KeptRounds(view, parts, self.rule, thresholds, self.kind)
        return self._kept

    def _parts(self, view: View) -> EacoInstanceParts:
        if self._frame is None:
            scenario, fields = view.scenario, self.fields(view)
            self._frame = EacoInstanceParts(scenario, view.cluster, self.parts_late, **fields)
        return self._frame

    def rank(self, view: View) -> Callable[[Member], float] | None:
        """Return what tells where a job stands now, the least first; None: as when it came."""
        return None

    def kind(self, view: View, job: int) -> tuple[str, ...]:
        """Return what `rank` depends on, besides a job's gang; nothing of it changes."""
        return ()

    def _formed(self, view: View, queue: list[int]) -> Decision:
        """Form groups of all jobs that are there, from an instance."""
        if not (queue or len(view.running)):
            return NOTHING
        if self._all_stay(view, queue):
            self.calls += 1
            return Decision()
        held = {job: view.gpus_of(job) for job in view.running.tolist()}
        self._parts(view)
        self.calls += 1
        across: dict[int, Gpus] = {}
        solves: list[SolveRecord] = []
        while True:
            left = [job for job in queue if job not in across]
            pools = NodePools(view.cluster, view.ready, held, across)
            decision = self._of_rule(view, pools, held, left)
            solves += decision.solves
            more = next_across(
                view, pools, left, held, decision.place, in_order=self.rule.is_in_order
            )
            if not more:
                break
            across |= more
        place = {**decision.place, **across}
        return Decision(place=place, stop=decision.stop, solves=tuple(solves))

    def has_news(self, view: View) -> bool:
        """Tell whether there are other jobs or nodes than before."""
        ready, self._ready = self._ready, list(view.ready)
        return bool(view.arrived or view.ended or view.failed) or ready != self._ready

    def _note_deadlines(self, view: View) -> None:
        """Take note whether any job has had a deadline."""
        jobs = view.arrived
        if self._has_deadlines is None:
            jobs = [*view.running.tolist(), *view.pending.tolist()]
        late = any(view.deadline_us(job) >= 0 for job in jobs)
        self._has_deadlines = self._has_deadlines or late

    def _all_stay(self, view: View, queue: list[int]) -> bool:
        """Tell whether nothing can change: nobody waits, and no group will end too late."""
        return self.keeps_running and not (queue or self._has_deadlines)

    def _of_rule(
        self, view: View, pools: NodePools, held: Mapping[int, Gpus], queue: list[int]
    ) -> Decision:
        """Return what the rule decides about the jobs that some pool could hold.

        Of the queue, where it is in order, only those before one that none can.
        """
        assert self._frame is not None
        hosted: Iterable[int] = (job for job in queue if pools.hosts(view.demand(job)))
        if self.rule.is_in_order:
            hosted = takewhile(lambda job: pools.hosts(view.demand(job)), queue)
        jobs = self.arranged(view, [*held.keys() - pools.outside, *hosted])
        if not jobs:
            return NOTHING
        present = self._frame.present(view, jobs, self.waiting(view, jobs), pools)
        plan, solves = self.plan(present)
        return replace(self._frame.decision(view, present, plan), solves=tuple(solves))

    def queue(self, view: View) -> list[int]:
        """Return the waiting jobs that are looked at, in order."""
        return by_priority(view, view.pending.tolist())[: self.window]

    def arranged(self, view: View, jobs: Iterable[int]) -> list[int]:
        """Return jobs in the order in which the rule looks at them."""
        return by_priority(view, jobs)

    def fields(self, view: View) -> dict[str, object]:
        """Return the fields of instances that are the policy's own."""
        return {}

    def waiting(self, view: View, jobs: list[int]) -> dict[int, float | None]:
        """Return what waiting costs each job."""
        return dict.fromkeys(jobs, self.waiting_kwh)

    def plan(self, present: Present) -> tuple[EacoPlan, list[SolveRecord]]:
        """Return a plan for the jobs that are there."""
        estimates = self._costs = GroupCosts(present.instance, self._costs)
        plan = self.rule.grouping(estimates, self.seed + self.calls, **self.thresholds).plan()
        if plan is None:
            fallback = BY_NAME["fifo-exclusive"]
            plan = fallback.grouping(GroupCosts(present.instance, estimates), self.seed).plan()
        assert plan is not None
        return plan, []


# --- policies ---------------------------------------------------------------------------------


def sharing(name: str) -> Maker[SharingOptions, GroupingPolicy]:
    """Return the maker of the policy that parts jobs by the rule of a name."""
    rule = BY_NAME[name]

    def build(scenario: Scenario, seed: int, options: SharingOptions) -> GroupingPolicy:
        return GroupingPolicy(name, scenario, seed, rule, options)

    options = ThresholdOptions if name == "eaco-greedy" else SharingOptions
    return Maker(build, options, rule.draws)
