"""The groups of least cost at every change, by EaCO's exact method."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

from optsched.eaco.greedy.group_costs import GroupCosts
from optsched.eaco.greedy.rules import BY_NAME
from optsched.rollout.policies.eaco import GroupingPolicy
from optsched.rollout.policies.epoch_solver import EpochSolver, recorded
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.eaco.plan import EacoPlan
    from optsched.rollout.engine.decision import Decision, SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import Present
    from optsched.rollout.policies.sharing.node_pools import NodePools
    from optsched.rollout.policies.sharing.options import ExactOptions
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]

FROM_SCRATCH = "longest-first"
FLOOR = ("eaco-greedy", "best-delta-energy", FROM_SCRATCH)


class ExactGrouping(GroupingPolicy):
    """At every change the groups of least cost, by the problem's exact method.

    Running jobs may be moved, at the cost of a move. The search begins with the best of the rules
    "eaco-greedy" and "best-delta-energy" (at first "longest-first", too) and of what is left of
    the plan of the call before, whose prices and cuts may prove it without a program. Past the
    limit of seconds no further rule is begun; verification comes on top.

    Jobs that would start in a group of new jobs alone may be held back for a while: those that come
    later, or what running groups leave, may be better partners.

    Attributes
    ----------
    held_back
        Jobs that wait for partners since the last call.
    """

    changing = (*GroupingPolicy.changing, "solver", "held_back", "_pools")
    keeps_groups = False
    every_epoch = False

    def __init__(self, name: str, scenario: Scenario, seed: int, options: ExactOptions) -> None:
        super().__init__(name, scenario, seed, BY_NAME["eaco-greedy"], options)
        self.keeps_running = False
        self._pools: list[str] = []
        self._objective: dict[str, object] = {"objective": options.objective}
        if options.objective == "epoch":
            self._objective["epoch_s"] = options.horizon_s or scenario.epoch_s
        if options.objective == "eaco":
            self._objective["energy_weight"] = options.energy_weight
        self.patience_us = round(options.patience_s * US)
        self.every_epoch = self.every_epoch or self.patience_us > 0
        self.held_back: list[int] = []
        self.time_limit_s = options.time_limit_s
        self.solver = EpochSolver(
            time_limit_s=options.time_limit_s,
            program_limit=options.programs,
            gap=options.gap,
            seed=seed,
        )

    def fields(self, view: View) -> dict[str, object]:
        """Return the fields of instances that say what is minimised."""
        return self._objective

    def waiting(self, view: View, jobs: list[int]) -> dict[int, float | None]:
        """Return what waiting costs each job: running ones must not."""
        return {job: None if view.gpus_of(job) else self.waiting_kwh for job in jobs}

    def has_news(self, view: View) -> bool:
        """Tell whether there are other jobs or nodes than before, or a job waits no longer."""
        has_news = super().has_news(view)
        return has_news or any(view.waited_us(job) >= self.patience_us for job in self.held_back)

    def _of_rule(
        self, view: View, pools: NodePools, held: Mapping[int, Gpus], queue: list[int]
    ) -> Decision:
        """Return what is decided about the jobs that some pool could hold; some are held back."""
        decision = super()._of_rule(view, pools, held, queue)
        self.held_back = self._to_hold_back(view, decision) if self.patience_us else []
        starts = {j: at for j, at in decision.place.items() if j not in self.held_back}
        return replace(decision, place=starts) if self.held_back else decision

    def _to_hold_back(self, view: View, decision: Decision) -> list[int]:
        """Return the jobs of groups of new ones that have patience, as long as others run."""
        if len(decision.stop) == len(view.running):
            return []
        running, place = set(view.running.tolist()), decision.place
        begin = {tuple(place.get(job, view.gpus_of(job))) for job in running}
        for job in place.keys() - running:
            if view.deadline_us(job) >= 0 or view.waited_us(job) >= self.patience_us:
                begin.add(tuple(place[job]))
        return [job for job, gpus in place.items() if tuple(gpus) not in begin]

    def plan(self, present: Present) -> tuple[EacoPlan, list[SolveRecord]]:
        """Return the best plan that was found."""
        from optsched.eaco.plan import EacoPlan

        if self._objective["objective"] == "eaco":
            present = self._admitted(present)
            if not present.instance.jobs:
                return EacoPlan(), []
        pools, self._pools = self._pools, [nodes.id for nodes in present.instance.nodes]
        if pools != self._pools:
            self.solver.forget()  # its prices are of other pools
        floor = self._floor(present)
        first = next(floor, None)
        if first is None:  # jobs that run have no place: some may wait, by the simple rule
            return super().plan(self._waiting_allowed(present))
        result = self.solver.solve(present.instance, plans=chain([first], floor))
        if not isinstance(result.plan, EacoPlan):
            return super().plan(self._waiting_allowed(present))
        return result.plan, [recorded(present.instance, result)]

    def _floor(self, present: Present) -> Iterator[EacoPlan]:
        """Yield plans of greedy rules while there is time; anew where nothing was left before."""
        begun, has_plan = perf_counter(), False
        for name in FLOOR:
            is_enough = name == FROM_SCRATCH and self.solver.is_begun
            if has_plan and (is_enough or perf_counter() - begun > self.time_limit_s):
                return
            costs = self._costs = GroupCosts(present.instance, self._costs)
            plan = BY_NAME[name].grouping(costs, self.seed).plan()
            if plan is not None:
                has_plan = True
                yield plan

    def _waiting_allowed(self, present: Present) -> Present:
        """Let running jobs wait, too."""
        free = {"waiting_penalty_kwh": self.waiting_kwh}
        jobs = tuple(job.model_copy(update=free) for job in present.instance.jobs)
        update = {"jobs": jobs, "objective": "run-to-completion"}
        return present._replace(instance=present.instance.model_copy(update=update))

    def _admitted(self, present: Present) -> Present:
        """Leave out the jobs that EaCO's rule lets wait: equation (1) has no term for them."""
        plan = self.rule.grouping(GroupCosts(present.instance), self.seed).plan()
        waiting = set() if plan is None else set(plan.waiting)
        jobs = tuple(
            job.model_copy(update={"waiting_penalty_kwh": None})
            for job in present.instance.jobs
            if job.id not in waiting
        )
        return present._replace(instance=present.instance.model_copy(update={"jobs": jobs}))
