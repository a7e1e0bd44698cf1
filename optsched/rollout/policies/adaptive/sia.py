"""Sia (SOSP 2023): every round a multiple-choice knapsack of configurations, proven to a gap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision, SolveRecord
from optsched.rollout.policies.adaptive.configurations import (
    Configurations,
    JobInRound,
    digest,
)
from optsched.rollout.policies.adaptive.rescaling import Rescaling
from optsched.rollout.policies.adaptive.width_history import GROWTH, Growth
from optsched.rollout.policies.epoch_solver import EpochSolver, recorded
from optsched.rollout.policies.fixed_capacity import SharedOfType
from optsched.rollout.policies.width_curves import Curve
from optsched.rollout.policy_options import Gap, Positive, takes
from optsched.sia.instance import Configuration, SiaInstance
from optsched.sia.plan import SiaPlan
from optsched.sia.settings import SETTINGS
from optsched.traces.trace import US
from optsched.verification import closed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.adaptive.configurations import Costs
    from optsched.rollout.scenario import Scenario


class SiaOptions(SharedOfType):
    """The costs of Sia's round."""

    power: Annotated[float, Field(lt=0, ge=-100)] = Field(
        default=-0.5, description="The further below 0, the less a job that is slow counts."
    )
    wait: Positive = Field(default=1.1, description="The cost of waiting; least speedups cost 1.")
    restart_s: Positive = Field(default=30.0, description="What a restart is taken to cost.")
    growth: Growth | None = Field(default=2.0, description=GROWTH)
    gap: Gap = Field(default=1e-4, description="Relative gap to which the choice is proven.")


class Sia(Rescaling):
    """Choose a configuration for every job, or to wait, at least total cost, once in an epoch.

    Configurations are 1, 2, 4, ... GPUs in a node, and whole nodes, as far as the job's curve has
    them; if it has none of these, all that it has. A job begins at the least of them, and gets at
    most twice the GPUs that it has run on so far. Each costs a power of the speedup over the job's
    least; of one that is not held, the speedup counts less, times max(age - restarts x restart_s,
    0) / (age + restart_s), from an age of restart_s on. The choice is an instance of the problem
    `sia`, solved from what the last round left. Where GPUs are of several types, a configuration is
    of one of them, with the speed there. Of jobs that wait and may be given the same, the instance
    has as many as the GPUs could hold, the oldest: the others wait, and do not count in its
    objective. Left out: that a job which is being restarted keeps its configuration.

    Source: Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py and simulator_config.py.
    """

    changing = (*Rescaling.changing, "solver", "is_settled", "_last", "_shares", "_types")

    def __init__(self, name: str, scenario: Scenario, options: SiaOptions) -> None:
        super().__init__(name, scenario, options, options.growth)
        self.power, self.wait, self.restart_s = options.power, options.wait, options.restart_s
        self.solver = EpochSolver(gap=options.gap, program_limit=SETTINGS.programs_in_rollouts)
        self.solves: list[SolveRecord] = []
        self.is_settled = False
        self._last = ""  # digest of the last round, if its plan is within the gap
        self._shares: dict[int, int] = {}
        self._types: dict[int, str] = {}  # of the configurations that jobs were given last
        sizes, types = self.held.cluster.size, self.held.cluster.types
        self._node = {
            name: max(size for size, own in zip(sizes, types.of_node, strict=True) if own == name)
            for name in types.names
        }
        self._known: dict[tuple[object, ...], Configurations] = {}
        self._kinds: dict[tuple[str, Costs], int] = {}
        self._waiting: dict[int, JobInRound] = {}  # of jobs that have held nothing since

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs; between them nothing changes.

        Where every job holds what costs it least whatever a restart takes, nothing can change
        until something happens.
        """
        if self.take_note(view):
            self.is_settled = False
        if not view.is_epoch:
            return NOTHING
        rent = self.held.rent(view, self.gpus)
        if self.is_settled:
            return NOTHING if rent is None else Decision(rent=rent)
        self.solves = []
        decision = self.share_out(view, min(self.gpus, self.available), rent)
        self.is_settled = all(
            self._holding(job) == self._configurations(view, job, is_soon=True).best
            for job in self.active
        )
        return replace(decision, solves=tuple(self.solves))

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        for job in (*view.ended, *view.failed):
            self._waiting.pop(job, None)
        return super().take_note(view)

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        if not jobs:
            return {}
        capacities = self._capacities(jobs, gpus)
        rows = self._without_spares(self._rows(view, jobs), capacities)
        if not rows:  # there is no GPU
            return dict.fromkeys(jobs, 0)
        told = digest(rows, capacities)
        if told == self._last:  # all costs are those of the last round, whose plan is in force
            return self._shares
        instance = self._instance(rows, capacities)
        result = self.solver.solve(instance)
        self.solves.append(recorded(instance, result))
        if not isinstance(result.plan, SiaPlan):  # there is one: all of them may wait
            return {job: self.held.width(job) for job in jobs}
        given = dict(zip([row.job for row in rows], result.plan.jobs, strict=True))
        known = {job: name for job, name in self._types.items() if job in self.active}
        self._types = known | {job: own.type for job, own in given.items() if own.type is not None}
        shares = dict.fromkeys(jobs, 0) | {job: own.gpus for job, own in given.items()}
        self._last = told if closed(result.gap, result.gap_limit) else ""
        self._shares = shares
        return shares

    def changed(self, shares: Mapping[int, int]) -> dict[int, int]:
        """Return the shares of jobs that do not hold so many GPUs of the type that they get."""
        return {job: n for job, n in shares.items() if n and not self._is_held(job, n)}

    def _is_held(self, job: int, width: int) -> bool:
        now = self._holding(job)
        return now is not None and now == (self._types.get(job, now[0]), width)

    def offers(self, view: View, job: int, width: int) -> list[tuple[str, int]]:
        """Return the configuration that a job is to have."""
        return [(self._types[job], width)]

    def _holding(self, job: int) -> tuple[str, int] | None:
        """Return the type of the GPUs that a job holds, and how many; None if it waits."""
        gpus = self.held.of.get(job, ())
        name = self.held.cluster.type_of(gpus) if gpus else None
        return None if name is None else (name, len(gpus))

    def _capacities(self, jobs: Sequence[int], gpus: int) -> dict[str, int]:
        """Return how many GPUs of each type there are for jobs: so many, if all are of one."""
        held = self.held
        if len(held.nodes_of) == 1:
            return dict.fromkeys(held.nodes_of, gpus)
        free = {name: held.free_on(nodes & held.usable) for name, nodes in held.nodes_of.items()}
        for name, count in filter(None, map(self._holding, jobs)):
            free[name] += count
        return free

    def _configurations(self, view: View, job: int, *, is_soon: bool = False) -> Configurations:
        """Return what a job may be given now; or soon, if it goes on as it is."""
        told = super(Rescaling, self).curves_by_type(view, job)
        counts = [self.history.count(view, job, curve, is_soon=is_soon) for curve in told.values()]
        key = (view.model(job), view.demand(job), view.phase(job), *counts)
        if key not in self._known:
            pairs = zip(told.items(), counts, strict=True)
            curves = {
                name: Curve(curve.gpus[:count], curve.speed[:count])
                for (name, curve), count in pairs
            }
            made = self._known[key] = self._of_curves(curves)
            made.kind = self._kinds.setdefault((made.told, made.fresh), len(self._kinds))
        return self._known[key]

    def _of_curves(self, curves: Mapping[str, Curve]) -> Configurations:
        """Return what a job of these curves may be given."""
        every = [
            Configuration(type=name, gpus=k, goodput=curve.speed_at(k))
            for name, curve in curves.items()
            for k in self._widths(name, curve)
        ]
        return Configurations(every, self.power, self.wait)

    def _widths(self, name: str, curve: Curve) -> tuple[int, ...]:
        node = self._node[name]
        few = [k for k in curve.gpus if (k % node == 0 if k >= node else k.bit_count() == 1)]
        return tuple(few) or curve.gpus

    def _rows(self, view: View, jobs: Sequence[int]) -> list[JobInRound]:
        """Return the jobs of a round with what they may be given; those that wait stay as is."""
        rows, known, held = [], self._waiting, self.held.of
        for job in jobs:
            if job in held:
                known.pop(job, None)
                rows.append(self._running(view, job))
                continue
            row = known.get(job)
            if row is None:
                row = known[job] = JobInRound(job, self._configurations(view, job), None, 1.0)
            rows.append(row)
        return rows

    def _without_spares(
        self, rows: Sequence[JobInRound], gpus: Mapping[str, int]
    ) -> list[JobInRound]:
        """Return the jobs without those that need not run in a best plan.

        Of jobs that wait and may be given the same at the same costs, no more run than the GPUs can
        hold. In any plan the first of them may run in place of others.
        """
        kept, room, held = [], dict[int, int](), self.held.of
        for row in rows:
            if row.job not in held:
                own = row.configurations
                left = room.get(own.kind)
                if left is None:
                    left = sum(gpus.get(name, 0) // least for name, least in own.least.items())
                room[own.kind] = left - 1
                if left <= 0:
                    continue
            kept.append(row)
        return kept

    def _running(self, view: View, job: int) -> JobInRound:
        own, holds = self._configurations(view, job), self._holding(job)
        if holds not in own.place:
            return JobInRound(job, own, None, 1.0)
        return JobInRound(job, own, holds, self._restart(view, job))

    def _instance(self, rows: Sequence[JobInRound], gpus: Mapping[str, int]) -> SiaInstance:
        """Return the round; its parts fit together as they are made here, so none is validated."""
        return SiaInstance.model_construct(
            name="round",
            gpus=dict(gpus),
            power=self.power,
            waiting_cost=self.wait,
            jobs=tuple([row.document for row in rows]),
        )

    def _restart(self, view: View, job: int) -> float:
        """Return the factor of the speedup at a configuration that a running job does not hold."""
        age = (view.now_us - view.submit_us(job)) / US
        if age < self.restart_s:
            return 1.0
        lost = self.history.restarts.get(job, 0) * self.restart_s
        return max(age - lost, 0.0) / (age + self.restart_s)


@takes(SiaOptions)
def sia(scenario: Scenario, seed: int, options: SiaOptions) -> Sia:
    """Choose configurations at the best power mean of speedups, and restart few jobs."""
    return Sia("sia", scenario, options)
