"""EaCO: which jobs share GPUs."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

import optsched
from benchmarks.generators import (
    sharing,
    sharing_in_types,
    sharing_live,
    sharing_minutes_later,
    sharing_next_epoch,
)
from benchmarks.suite.measure import Outcome, examined, measured, measured_once

TOLERANCE = 0.25


def solve(
    gap: float,
    limit_s: float,
    *,
    jobs: int,
    most: int,
    types: int | None = None,
    method: str | None = None,
) -> Outcome:
    """Solve with jobs of types of their own, or of so many types."""
    optsched.solve(sharing(4, 2, TOLERANCE), method)  # imports everything
    if types is None:
        instance: Any = sharing(jobs, most, TOLERANCE)
    else:
        instance = sharing_in_types(jobs, types, most, TOLERANCE)
    outcome = Outcome(instance.name)
    options = {"gap": gap, "time_limit_s": limit_s}
    return examined(
        outcome, instance, measured(outcome, optsched.solve, instance, method, **options)
    )


def live(gap: float, limit_s: float, *, jobs: int, most: int, besides: str) -> Outcome:
    """Solve with a measured pair, a cap, or a job that runs, besides."""
    optsched.solve(sharing(4, 2, TOLERANCE))
    instance: Any = sharing_live(jobs, most, TOLERANCE, besides)
    outcome, options = Outcome(instance.name), {"gap": gap, "time_limit_s": limit_s}
    return examined(outcome, instance, measured(outcome, optsched.solve, instance, **options))


def solve_seeds(gap: float, limit_s: float, *, jobs: int, most: int, seeds: int) -> Outcome:
    """Solve for each of so many seeds: the median time, the largest gap, and the worst time told.

    Bounds and objectives are those of the last seed; all of them are examined.
    """
    optsched.solve(sharing(4, 2, TOLERANCE))  # imports everything
    outcomes = []
    for seed in range(seeds):
        instance: Any = sharing(jobs, most, TOLERANCE, seed)
        outcome = Outcome(f"{instance.name}, {seeds} seeds")
        options = {"gap": gap, "time_limit_s": limit_s / seeds}
        solved = measured_once(outcome, optsched.solve, instance, **options)
        outcomes.append(examined(outcome, instance, solved))
    return _of_seeds(outcomes)


def minutes_later(
    gap: float, limit_s: float, *, jobs: int, most: int, seeds: int, warm: bool
) -> Outcome:
    """Solve ten minutes later, from the last result or from nothing, for each of so many seeds."""
    optsched.solve(sharing(4, 2, TOLERANCE))
    outcomes = []
    for seed in range(seeds):
        before: Any = sharing(jobs, most, TOLERANCE, seed)
        after: Any = sharing_minutes_later(before, seed=seed)
        outcome = Outcome(f"{after.name}, {seeds} seeds")
        options: dict[str, Any] = {"gap": gap, "time_limit_s": limit_s / seeds}
        if warm:
            options["start"] = optsched.solve(before, **options)
        solved = measured_once(outcome, optsched.solve, after, **options)
        outcomes.append(examined(outcome, after, solved))
    return _of_seeds(outcomes)


def _of_seeds(outcomes: list[Outcome]) -> Outcome:
    """Return the last outcome, with the median of all times, the largest gap and the worst time."""
    seeds = len(outcomes)
    whole, cpu = outcomes[-1], [float(outcome.cpu_s or 0) for outcome in outcomes]
    whole.cpu_s = statistics.median(cpu)
    whole.wall_s = statistics.median(float(outcome.wall_s or 0) for outcome in outcomes)
    whole.gap = max(np.nan if outcome.gap is None else outcome.gap for outcome in outcomes)
    if any(outcome.status != "optimal" for outcome in outcomes):
        whole.status = "feasible"
    whole.note = f"median of {seeds} seeds, the worst takes {max(cpu):.1f} s"
    return whole


def epoch_later(gap: float, limit_s: float, *, jobs: int, most: int, warm: bool) -> Outcome:
    """Solve the next epoch, from the result of the one before or from nothing."""
    optsched.solve(sharing(4, 2, TOLERANCE))
    before: Any = sharing(jobs, most, TOLERANCE)
    after = sharing_next_epoch(before)
    outcome = Outcome(after.name)
    options: dict[str, Any] = {"gap": gap, "time_limit_s": limit_s}
    if warm:
        options["start"] = optsched.solve(before, **options)
    return examined(outcome, after, measured_once(outcome, optsched.solve, after, **options))
