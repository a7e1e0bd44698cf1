"""Tight rounds of unlike jobs, beside scipy's HiGHS; and what the policy `sia` takes per call."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import optsched
from benchmarks.proving.rounds import Choice, verify_round
from benchmarks.proving.sia import unlike
from benchmarks.suite.measure import Clock, Outcome, measured_once, peak_mib
from optsched.rollout.policies.adaptive.sia import Sia

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.proving.rounds import Round

SEEDS = range(5)


def ours(jobs: int, capacity: float, gap: float) -> Outcome:
    """Decide rounds of unlike jobs with three capacities, one of each seed."""
    outcome = Outcome(_case(jobs, capacity), gap_asked=gap)

    def decide(instance: Round) -> tuple[str, float | None]:
        chosen = Choice(gap=gap).decide(instance)
        return str(chosen.status), chosen.objective

    rounds = _all(outcome, decide, jobs, capacity)
    clock = Clock()
    verify_round(rounds[-1], Choice(gap=gap).decide(rounds[-1]))
    outcome.verify_s = clock.cpu_s
    return outcome


def peer(jobs: int, capacity: float, gap: float, limit_s: float) -> Outcome:
    """Solve the same by scipy's HiGHS, all options at once."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    outcome = Outcome(_case(jobs, capacity), gap_asked=gap)

    def solve(instance: Round) -> tuple[str, float | None]:
        one = (instance.job == np.arange(len(instance.jobs))[:, None]).astype(float)
        rows = [
            LinearConstraint(one, 1, 1),
            LinearConstraint(instance.use.T, -np.inf, instance.capacity),
        ]
        options = {"mip_rel_gap": gap, "time_limit": limit_s}
        whole = np.ones(len(instance.cost))
        answer = milp(instance.cost, integrality=whole, bounds=Bounds(0, 1), constraints=rows,
                      options=options)  # fmt: skip
        status = {0: "optimal", 2: "infeasible"}.get(answer.status, "feasible")
        return status, None if answer.x is None else float(answer.fun)

    _all(outcome, solve, jobs, capacity)
    return outcome


def _case(jobs: int, capacity: float) -> str:
    share = f"{capacity:.0%} of the way from the least to the most that they use"
    return f"{jobs} jobs, 5 options each, 3 capacities, {share}; {len(SEEDS)} seeds"


def _all(outcome: Outcome, solve: Callable[[Any], Any], jobs: int, capacity: float) -> list[Round]:
    """Solve the round of each seed; the seconds are their median."""
    rounds, cpu, wall, said = [], [], [], []
    solve(unlike(0, 10))  # imports everything
    for seed in SEEDS:
        rounds.append(unlike(seed, jobs, capacity=capacity))
        clock = Clock()
        said.append(solve(rounds[-1]))
        cpu.append(clock.cpu_s)
        wall.append(clock.wall_s)
    outcome.cpu_s, outcome.wall_s, outcome.memory_mib = median(cpu), median(wall), peak_mib()
    is_done = all(status in ("optimal", "infeasible") for status, _ in said)
    outcome.status = "optimal" if is_done else "feasible"
    outcome.objective = sum(value or 0.0 for _, value in said)
    outcome.note = f"median of {len(cpu)} seeds, worst {max(cpu):.2f} s, sum {sum(cpu):.2f} s"
    return rounds


def calls(name: str, jobs: int) -> Outcome:
    """Run the policy `sia` over a trace; the note has what a call at an epoch takes."""
    scenario = optsched.read_scenario(name).changed({"trace.jobs": jobs})
    outcome, seconds = Outcome(f"{name}, {jobs} jobs, policy sia"), list[float]()
    decide = Sia.decide

    def timed(policy: Sia, view: Any) -> Any:
        clock = Clock()
        decision = decide(policy, view)
        if view.is_epoch:
            seconds.append(clock.cpu_s)
        return decision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sia, "decide", timed)
        done = measured_once(outcome, optsched.simulate, scenario, "sia")
    outcome.objective = done.metrics["jct_mean_s"]
    mean, middle, worst = (1e3 * f(seconds[1:]) for f in (fmean, median, max))
    outcome.note = (
        f"{len(seconds):,} calls at epochs, {done.metrics['solver_calls']:,} of them solved: "
        f"{mean:.2f} ms on average, median {middle:.2f}, most {worst:.2f}"
    )
    return outcome
