"""Sia's round: ours, warm and cold, and the integer program that Sia's artifact gives to cvxpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.proving.rounds import Choice, verify_round
from benchmarks.suite.measure import Clock, Outcome, measured, peak_mib
from benchmarks.suite.sia_rounds import WAITING, SiaRound, sia_rounds
from optsched.sia.verify.certificate import violations
from optsched.verification import relative_gap

ROUNDS = 6


def case_of(instance: SiaRound) -> str:
    """Return a round in words."""
    jobs, configurations = instance.cost.shape
    return (
        f"{instance.capacity.sum():,} GPUs of 3 types, {jobs:,} jobs, {configurations} options each"
    )


def ours(gpus: int, gap: float, *, warm: bool) -> Outcome:
    """Decide the last round, after those before it or from nothing.

    Warm, the seconds are the median of the later rounds.
    """
    rounds = sia_rounds(gpus, ROUNDS)
    outcome = Outcome(case_of(rounds[-1]), gap_asked=gap)
    Choice(gap).decide(sia_rounds(64, 1)[0].choice())  # imports everything
    problems = [instance.choice() for instance in rounds]
    if warm:
        chosen, outcome.note = _round_after_round(outcome, problems, gap)
    else:
        chosen = measured(outcome, lambda: Choice(gap).decide(problems[-1]))
    outcome.status = str(chosen.status)
    outcome.objective, outcome.bound, outcome.gap = chosen.objective, chosen.bound, chosen.gap
    clock = Clock()
    verify_round(problems[-1], chosen)
    outcome.verify_s = clock.cpu_s
    clock = Clock()
    violations(problems[-1], chosen.plan.tolist())
    outcome.check_s = clock.cpu_s
    return outcome


def _round_after_round(outcome: Outcome, problems: list[Any], gap: float) -> tuple[Any, str]:
    choice, cpu, wall, gaps = Choice(gap), [], [], []
    for problem in problems:
        clock = Clock()
        chosen = choice.decide(problem)
        cpu.append(clock.cpu_s)
        wall.append(clock.wall_s)
        gaps.append(chosen.gap)
    outcome.cpu_s, outcome.wall_s = float(np.median(cpu[1:])), float(np.median(wall[1:]))
    outcome.memory_mib = peak_mib()
    return chosen, f"median of {len(cpu) - 1} rounds, the largest gap {max(gaps):.0e}"


def peer(gpus: int, solver: str, gap: float, limit_s: float) -> Outcome:
    """Solve the last round as Sia's artifact does, by cvxpy and a solver of integer programs."""
    instance = sia_rounds(gpus, ROUNDS)[-1]
    outcome = Outcome(case_of(instance), gap_asked=gap)
    call = _scipy if solver == "scipy" else _cvxpy
    call(sia_rounds(64, 1)[0], solver, gap, limit_s)  # imports everything
    values, bound, is_done = measured(outcome, call, instance, solver, gap, limit_s)
    outcome.status = "optimal" if is_done else "feasible"
    if values is None:
        outcome.note = "no plan within the limit"
        return outcome
    return _checked(outcome, instance, values, bound)


def _checked(outcome: Outcome, instance: SiaRound, values: Any, bound: float | None) -> Outcome:
    whole = np.asarray(values).reshape(instance.cost.shape) > 0.5
    plan = np.where(whole.any(axis=1), whole.argmax(axis=1), instance.cost.shape[1])
    problem = instance.choice()
    clock = Clock()
    broken = violations(problem, plan.tolist())
    outcome.check_s = clock.cpu_s
    if broken:
        raise ValueError(f"the plan breaks a rule: {broken[0].text}")
    outcome.objective = problem.objective(plan.tolist())
    if bound is not None and math.isfinite(bound):
        outcome.bound = min(bound, outcome.objective)
        outcome.gap = relative_gap(outcome.objective, outcome.bound)
    return outcome


def _cvxpy(instance: SiaRound, solver: str, gap: float, limit_s: float) -> Any:
    import cvxpy as cp

    x = cp.Variable(instance.cost.shape, integer=True)
    jobs, configurations = instance.cost.shape
    objective = cp.sum(cp.multiply(x, instance.cost)) + WAITING * (jobs - cp.sum(x))
    used = cp.sum(x @ instance.use, axis=0)
    limits = [
        x >= 0,
        x <= 1,
        used <= instance.capacity,
        x @ np.ones(configurations) <= np.ones(jobs),
    ]
    problem = cp.Problem(cp.Minimize(objective), limits)
    try:
        problem.solve(solver=solver, **_options(solver, gap, limit_s))
    except cp.error.SolverError:
        return None, None, False
    extra = getattr(problem.solver_stats, "extra_stats", None)
    return x.value, _claimed(problem, extra), problem.status == "optimal"


def _claimed(problem: Any, extra: Any) -> float | None:
    """Return the bound that HiGHS claims, with the constant of the objective; others tell none."""
    bound = getattr(extra, "mip_dual_bound", None)
    if bound is None:
        return None
    return bound + problem.value - extra.objective_function_value


def _options(solver: str, gap: float, limit_s: float) -> dict[str, Any]:
    if solver == "CBC":
        return {
            "numberThreads": 1,
            "allowablePercentageGap": 100 * gap,
            "maximumSeconds": limit_s,
        }
    if solver == "GLPK_MI":
        limit_ms = round(1000 * limit_s)
        return {"glpk": {"msg_lev": "GLP_MSG_OFF", "mip_gap": gap, "tm_lim": limit_ms}}
    return {"highs_options": {"mip_rel_gap": gap, "time_limit": limit_s, "threads": 1}}


def _scipy(instance: SiaRound, solver: str, gap: float, limit_s: float) -> Any:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, kron, vstack

    jobs, configurations = instance.cost.shape
    one = kron(eye_array(jobs), np.ones((1, configurations)))
    used = kron(np.ones((1, jobs)), instance.use.T)
    answer = milp(
        (instance.cost - WAITING).ravel(),
        integrality=np.ones(instance.cost.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(
            csr_array(vstack([one, used])), -np.inf, np.r_[np.ones(jobs), instance.capacity]
        ),
        options={"mip_rel_gap": gap, "time_limit": limit_s},
    )
    bound = None if answer.mip_dual_bound is None else answer.mip_dual_bound + WAITING * jobs
    return answer.x, bound, answer.status == 0
