"""Sia (SOSP 2023): every round a multiple-choice knapsack of configurations, proven to a gap."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from optsched.rollout.engine.decision import NOT_STATED, NOTHING, Decision, SolveRecord
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policy_options import Gap, Positive, takes
from optsched.sia import Choice, Round, sia_cost, verify_round
from optsched.traces.trace import US
from optsched.verification import LIMIT, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario
    from optsched.sia import Chosen


class SiaOptions(SharedOptions):
    """The costs of Sia's round."""

    power: Annotated[float, Field(lt=0, ge=-100)] = Field(
        default=-0.5, description="The further below 0, the less a job that is slow counts."
    )
    wait: Positive = Field(default=1.1, description="The cost of waiting; least speedups cost 1.")
    restart_s: Positive = Field(default=30.0, description="What a restart is taken to cost.")
    gap: Gap = Field(default=1e-4, description="Relative gap to which the choice is proven.")


class Sia(SharedOut):
    """Choose a configuration for every job, or to wait, at least total cost, once in an epoch.

    Configurations are 1, 2, 4, ... GPUs in a node, and whole nodes, as far as the job's curve has
    them; if it has none of these, all that it has. Each costs a power of the speedup over the job's
    least; of one that is not held, the speedup counts less, times max(age - restarts x restart_s,
    0) / (age + restart_s), from an age of restart_s on. The choice is an integer program, solved
    from what the last round left (`optsched.sia`). All GPUs are of one type: scenarios know no
    others. Left out: that a job which is being restarted keeps its configuration.

    Source: Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py and simulator_config.py.
    """

    every_epoch = True

    def __init__(self, name: str, scenario: Scenario, options: SiaOptions) -> None:
        super().__init__(name, scenario, options)
        self.power, self.wait, self.restart_s = options.power, options.wait, options.restart_s
        self.choice = Choice(gap=options.gap)
        self.restarts: dict[int, int] = {}
        self.solves: list[SolveRecord] = []
        self._node = max(self.held.cluster.size)

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs; between them nothing changes."""
        self.take_note(view)
        if not view.is_epoch:
            return NOTHING
        self.solves = []
        rent = self.held.rent(view, self.gpus)
        decision = self.share_out(view, min(self.gpus, self.available), rent)
        return replace(decision, solves=tuple(self.solves))

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        self.restarts = {job: self.restarts.get(job, 0) for job in jobs}
        if not jobs:
            return {}
        started = time.perf_counter()
        widths = [self._widths(view, job) for job in jobs]
        instance = self._round(view, jobs, widths, gpus)
        chosen = self.choice.decide(instance)
        self.solves.append(_record(instance, chosen, started))
        if chosen.plan is None:  # HiGHS failed
            return {job: self.held.width(job) for job in jobs}
        shares = {
            job: own[place] if place < len(own) else 0
            for job, own, place in zip(jobs, widths, chosen.plan.tolist(), strict=True)
        }
        for job, width in shares.items():
            self.restarts[job] += self.held.width(job) not in (0, width)
        return shares

    def _widths(self, view: View, job: int) -> tuple[int, ...]:
        """Return the widths that a job may be given."""
        widths = self.curve(view, job).gpus
        return tuple(k for k in widths if self._is_configuration(k)) or widths

    def _is_configuration(self, gpus: int) -> bool:
        return gpus % self._node == 0 if gpus >= self._node else gpus.bit_count() == 1

    def _round(
        self, view: View, jobs: Sequence[int], widths: Sequence[tuple[int, ...]], gpus: int
    ) -> Round:
        """Return the choice problem: the last option of every job is to wait."""
        speed = [
            self.curve(view, job).speed_at(width)
            for job, own in zip(jobs, widths, strict=True)
            for width in own
        ]
        counts = np.array([len(own) for own in widths], dtype=np.intp)
        now = [self.held.width(job) for job in jobs]
        held = [own.index(k) if k in own else -1 for own, k in zip(widths, now, strict=True)]
        cost = sia_cost(
            np.array(speed),
            counts,
            restart=np.array([self._restart(view, job) for job in jobs]),
            held=np.array(held, dtype=np.intp),
            power=self.power,
        )
        upto = np.cumsum(counts)
        return Round(
            jobs=jobs,
            counts=counts + 1,
            cost=np.insert(cost, upto, self.wait),
            use=np.insert(np.concatenate(widths), upto, 0)[:, None],
            capacity=np.array([float(gpus)]),
        )

    def _restart(self, view: View, job: int) -> float:
        """Return the factor of the speedup at a configuration that a running job does not hold."""
        age = (view.now_us - view.submit_us(job)) / US
        if age < self.restart_s:
            return 1.0
        lost = self.restarts[job] * self.restart_s
        return max(age - lost, 0.0) / (age + self.restart_s)


def _record(instance: Round, chosen: Chosen, started: float) -> SolveRecord:
    begun = time.perf_counter()
    verified = _confirmed(instance, chosen)
    status = str(chosen.status)
    if status == "optimal" and not verified:
        status = "unverified" if verified is None else "feasible"
    is_stated = verified is not False and chosen.bound is not None
    now = time.perf_counter()
    return SolveRecord(
        status=status,
        objective=NOT_STATED if chosen.objective is None else chosen.objective,
        bound=chosen.bound if is_stated and chosen.bound is not None else NOT_STATED,
        seconds=now - started,
        fallback=chosen.plan is None,
        verified=verified,
        verification_s=now - begun,
        scale=0.0 if chosen.plan is None else instance.gap_scale(chosen.plan.tolist()),
    )


def _confirmed(instance: Round, chosen: Chosen) -> bool | None:
    """Tell whether the verifier proves a choice; None if that takes too many terms."""
    if instance.use.size * len(chosen.certificate.nodes) > LIMIT:
        return None
    try:
        verify_round(instance, chosen)
    except Violation:
        return False
    return True


@takes(SiaOptions)
def sia(scenario: Scenario, seed: int, options: SiaOptions) -> Sia:
    """Choose configurations at the best power mean of speedups, and restart few jobs."""
    return Sia("sia", scenario, options)
