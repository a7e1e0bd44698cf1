"""Sia (SOSP 2023): every round a multiple-choice knapsack of configurations, proven to a gap."""

from __future__ import annotations

from array import array
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision, SolveRecord
from optsched.rollout.policies.adaptive.rescaling import Rescaling
from optsched.rollout.policies.adaptive.width_history import GROWTH, Growth
from optsched.rollout.policies.epoch_solver import EpochSolver, recorded
from optsched.rollout.policies.fixed_capacity import SharedOfType
from optsched.rollout.policy_options import Gap, Positive, takes
from optsched.sia.instance import Configuration, GpuGroup, SiaInstance, SiaJob, configuration_cost
from optsched.sia.plan import SiaPlan
from optsched.sia.settings import SETTINGS
from optsched.traces.trace import US
from optsched.verification import closed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
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
    of one of them, with the speed there. Left out: that a job which is being restarted keeps its
    configuration.

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
        self._known: dict[tuple[tuple[str, Curve], ...], tuple[Configuration, ...]] = {}

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
        self.is_settled = all(self._holding(job) == self._best(view, job) for job in self.active)
        return replace(decision, solves=tuple(self.solves))

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        if not jobs:
            return {}
        instance = self._instance(view, jobs, self._capacities(jobs, gpus))
        digest = _digest(instance)
        if digest == self._last:  # all costs are those of the last round, whose plan is in force
            return self._shares
        result = self.solver.solve(instance)
        self.solves.append(recorded(instance, result))
        if not isinstance(result.plan, SiaPlan):  # there is one: all of them may wait
            return {job: self.held.width(job) for job in jobs}
        rows = dict(zip(jobs, result.plan.jobs, strict=True))
        known = {job: name for job, name in self._types.items() if job in self.active}
        self._types = known | {job: row.type for job, row in rows.items() if row.type is not None}
        shares = {job: row.gpus for job, row in rows.items()}
        self._last = digest if closed(result.gap, result.gap_limit) else ""
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

    def _best(self, view: View, job: int) -> tuple[str, int] | None:
        """Return what costs a job least where no restart is needed, of equal ones the first.

        It may be one that the job cannot have yet, but soon; None if waiting costs less.
        """
        told = super(Rescaling, self).curves_by_type(view, job)
        own = self._configurations(
            {
                name: self.history.limited(view, job, curve, is_soon=True)
                for name, curve in told.items()
            }
        )
        slowest = min(configuration.goodput for configuration in own)
        ratios = [configuration.goodput / slowest for configuration in own]
        costs = [configuration_cost(ratio, self.power) for ratio in ratios]
        least = min(costs)
        if least > self.wait:
            return None
        best = own[costs.index(least)]
        return best.type, best.gpus

    def _configurations(self, curves: Mapping[str, Curve]) -> tuple[Configuration, ...]:
        """Return what a job of these curves may be given."""
        key = tuple(curves.items())
        if key not in self._known:
            self._known[key] = tuple(
                Configuration(type=name, gpus=k, goodput=curve.speed_at(k))
                for name, curve in key
                for k in self._widths(name, curve)
            )
        return self._known[key]

    def _widths(self, name: str, curve: Curve) -> tuple[int, ...]:
        node = self._node[name]
        few = [k for k in curve.gpus if (k % node == 0 if k >= node else k.bit_count() == 1)]
        return tuple(few) or curve.gpus

    def _instance(self, view: View, jobs: Sequence[int], gpus: Mapping[str, int]) -> SiaInstance:
        """Return the round; its parts fit together as they are made here, so none is validated."""
        return SiaInstance.model_construct(
            name="round",
            gpus=dict(gpus),
            power=self.power,
            waiting_cost=self.wait,
            jobs=tuple(self._job(view, job) for job in jobs),
        )

    def _job(self, view: View, job: int) -> SiaJob:
        own, now = self._configurations(self.curves_by_type(view, job)), self._holding(job)
        current = next((one for one in own if (one.type, one.gpus) == now), None)
        group = None if current is None else GpuGroup(type=current.type, gpus=current.gpus)
        return SiaJob.model_construct(
            id=str(job),
            configurations=own,
            current=group,
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
    rows = [row for own in instance.options for row in own]
    names = [job.id for job in instance.jobs] + [str(row.type) for row in rows]
    sizes = [len(own) for own in instance.options] + [row.gpus for row in rows]
    costs = array("d", [row.cost for row in rows]).tobytes()
    told = "\0".join([*names, repr(instance.gpus)]).encode()
    return sha256(told + array("q", sizes).tobytes() + costs).hexdigest()


@takes(SiaOptions)
def sia(scenario: Scenario, seed: int, options: SiaOptions) -> Sia:
    """Choose configurations at the best power mean of speedups, and restart few jobs."""
    return Sia("sia", scenario, options)
