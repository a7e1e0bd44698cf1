"""Sia (SOSP 2023): every round a multiple-choice knapsack of configurations, proven to a gap."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision, SolveRecord
from optsched.rollout.policies.adaptive.rescaling import Rescaling
from optsched.rollout.policies.adaptive.width_history import GROWTH, Growth
from optsched.rollout.policies.epoch_solver import EpochSolver, recorded
from optsched.rollout.policies.fixed_capacity import SharedOptions
from optsched.rollout.policy_options import Gap, Positive, takes
from optsched.sia.instance import Configuration, GpuGroup, SiaInstance, SiaJob, configuration_cost
from optsched.sia.plan import SiaPlan
from optsched.sia.settings import SETTINGS
from optsched.traces.trace import US
from optsched.verification import closed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

TYPE = "gpu"


class SiaOptions(SharedOptions):
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
    `sia`, solved from what the last round left. All GPUs are of one type: scenarios know no
    others. Left out: that a job which is being restarted keeps its configuration.

    Source: Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py and simulator_config.py.
    """

    changing = (*Rescaling.changing, "solver", "is_settled", "_last", "_shares")

    def __init__(self, name: str, scenario: Scenario, options: SiaOptions) -> None:
        super().__init__(name, scenario, options, options.growth)
        self.power, self.wait, self.restart_s = options.power, options.wait, options.restart_s
        self.solver = EpochSolver(gap=options.gap, program_limit=SETTINGS.programs_in_rollouts)
        self.solves: list[SolveRecord] = []
        self.is_settled = False
        self._last = ""  # digest of the last round, if its plan is within the gap
        self._shares: dict[int, int] = {}
        self._node = max(self.held.cluster.size)
        self._known: dict[Curve, tuple[Configuration, ...]] = {}

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
            self.held.width(job) == self._best_width(view, job) for job in self.active
        )
        return replace(decision, solves=tuple(self.solves))

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        if not jobs:
            return {}
        instance = self._instance(view, jobs, gpus)
        digest = _digest(instance)
        if digest == self._last:  # all costs are those of the last round, whose plan is in force
            return self._shares
        result = self.solver.solve(instance)
        self.solves.append(recorded(instance, result))
        if not isinstance(result.plan, SiaPlan):  # there is one: all of them may wait
            return {job: self.held.width(job) for job in jobs}
        shares = {job: row.gpus for job, row in zip(jobs, result.plan.jobs, strict=True)}
        self._last = digest if closed(result.gap, result.gap_limit) else ""
        self._shares = shares
        return shares

    def _best_width(self, view: View, job: int) -> int:
        """Return the width of least cost where no restart is needed, of equal ones the least.

        It may be one that the job cannot have yet, but soon.
        """
        curve = self.history.limited(view, job, self.curve(view, job), is_soon=True)
        own = self._configurations(curve)
        ratios = [configuration.goodput / own[0].goodput for configuration in own]
        costs = [configuration_cost(ratio, self.power) for ratio in ratios]
        least = min(costs)
        return own[costs.index(least)].gpus if least <= self.wait else 0

    def _configurations(self, curve: Curve) -> tuple[Configuration, ...]:
        """Return what a job of a curve may be given; the first one is the slowest."""
        if curve not in self._known:
            widths = tuple(k for k in curve.gpus if self._is_configuration(k)) or curve.gpus
            self._known[curve] = tuple(
                Configuration(type=TYPE, gpus=k, goodput=curve.speed_at(k)) for k in widths
            )
        return self._known[curve]

    def _is_configuration(self, gpus: int) -> bool:
        return gpus % self._node == 0 if gpus >= self._node else gpus.bit_count() == 1

    def _instance(self, view: View, jobs: Sequence[int], gpus: int) -> SiaInstance:
        """Return the round; its parts fit together as they are made here, so none is validated."""
        return SiaInstance.model_construct(
            name="round",
            gpus={TYPE: gpus},
            power=self.power,
            waiting_cost=self.wait,
            jobs=tuple(self._job(view, job) for job in jobs),
        )

    def _job(self, view: View, job: int) -> SiaJob:
        own, width = self._configurations(self.allowed(view, job)), self.held.width(job)
        current = next((held for held in own if held.gpus == width), None)
        return SiaJob.model_construct(
            id=str(job),
            configurations=own,
            current=None if current is None else GpuGroup(type=TYPE, gpus=width),
            restart_factor=1.0 if current is None else self._restart(view, job),
        )

    def _restart(self, view: View, job: int) -> float:
        """Return the factor of the speedup at a configuration that a running job does not hold."""
        age = (view.now_us - view.submit_us(job)) / US
        if age < self.restart_s:
            return 1.0
        lost = self.history.restarts.get(job, 0) * self.restart_s
        return max(age - lost, 0.0) / (age + self.restart_s)


def _digest(instance: SiaInstance) -> str:
    """Return a digest of what decides a round: jobs, costs of options, GPUs."""
    names = [job.id for job in instance.jobs]
    return sha256(repr((names, instance.options, instance.gpus)).encode()).hexdigest()


@takes(SiaOptions)
def sia(scenario: Scenario, seed: int, options: SiaOptions) -> Sia:
    """Choose configurations at the best power mean of speedups, and restart few jobs."""
    return Sia("sia", scenario, options)
