"""Failed trials of jobs: reasons, how many, and after how long, as in table 7 of ATC'19."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.instance import InstanceError
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES, Reason
from optsched.traces.generators.random_draws import groups, log_quantiles, ranked, stratified
from optsched.traces.generators.workload_models import (
    NO_REASON,
    RECOVERS,
    World,
    class_of,
    trials_per_pair,
)
from optsched.traces.trace import US, Failure

if TYPE_CHECKING:
    from numpy.random import Generator

    from optsched.documents.arrays import Bools, Floats, Integers


LEAST = 4.0
"""The shortest time to failure of a reason is its median over this, for want of a figure."""


@dataclass(frozen=True, eq=False)
class Trials:
    """Failed trials: the job, number into `REASONS`, and minutes to failure of each."""

    job: Integers
    reason: Integers
    minutes: Floats

    def per_job(self, jobs: int) -> tuple[Floats, Floats]:
        """Return by job the sum of the minutes of its trials, and the longest."""
        total: Floats = np.bincount(self.job, self.minutes, jobs).astype(float)
        longest = np.zeros(jobs)
        np.maximum.at(longest, self.job, self.minutes)
        return total, longest

    def failures(self, jobs: int) -> list[tuple[Failure, ...]]:
        """Return the failures of each job, in order."""
        names = [REASONS[reason].name for reason in self.reason]
        run_us = np.maximum(1, np.rint(self.minutes * 60 * US)).astype(np.int64).tolist()
        each = [Failure(name, length) for name, length in zip(names, run_us, strict=True)]
        ends = np.cumsum(np.bincount(self.job, minlength=jobs)).tolist()
        return [tuple(each[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@dataclass(frozen=True, eq=False)
class FailingJobs:
    """By job: numbers into `REASONS` of what it meets first and second, `NO_REASON` for nothing.

    `failed` tells the jobs that do not get over the last of them.
    """

    first: Integers
    second: Integers
    failed: Bools


def draw_reasons(
    rng: Generator, world: World, gpus: Integers, early: float, late: float
) -> FailingJobs:
    """Return which jobs fail why, and which of them for good.

    A job that gets over its first reason, by luck or because its user mends it and submits it
    again, may meet a second one, which its size draws among the others.

    Parameters
    ----------
    early, late
        Factors on the chances of reasons with a median time to failure of at most 20 minutes, and
        of the others.

    Raises
    ------
    InstanceError
        If more than all jobs of some size would fail.
    """
    factors = np.where([is_early(row) for row in REASONS], early, late)
    chances = world.chances * factors
    edges = np.cumsum(chances, axis=1)
    worst = int(edges[:, -1].argmax())
    if edges[worst, -1] > 1:
        key = "early_failure" if early >= late else "late_failure"
        share, name = f"{edges[worst, -1]:.0%}", SIZE_CLASSES[worst]
        text = f"{key}: {share} of the jobs on {name} GPUs would fail; lower this factor"
        raise InstanceError(f"options of {world.name}", [text])
    size = class_of(gpus)
    place = stratified(rng, groups(np.zeros_like(gpus), gpus))
    first: Integers = (place[:, None] >= edges[size]).sum(axis=1)
    recovered = stratified(rng, first) < np.append(RECOVERS, 1.0)[first]
    again = (first < NO_REASON) & recovered
    again[again] = stratified(rng, size[again]) < FITTED.meets_second
    second = np.full(len(gpus), NO_REASON)
    others = chances[size[again]]
    others[np.arange(len(others)), first[again]] = 0
    among = np.cumsum(others, axis=1)
    draw = rng.random(len(others)) * among[:, -1] if len(others) else np.empty(0)
    second[again] = np.minimum((draw[:, None] >= among).sum(axis=1), NO_REASON - 1)
    again &= second != first  # where no other reason is left
    lost = stratified(rng, again.astype(np.int64)) >= FITTED.recovers_second
    return FailingJobs(first, np.where(again, second, NO_REASON), ~recovered | (again & lost))


def draw_trials(rng: Generator, world: World, gpus: Integers, failing: FailingJobs) -> Trials:
    """Return the failed trials, in the order of their jobs; those of its second reason come last.

    The number for a reason is geometric with its size's mean of trials. Minutes to failure are the
    reason's quantiles; a tilt of their order by the size of the gang gives the share of GPU time.
    """
    from scipy.special import ndtri

    job = np.concatenate([np.flatnonzero(r < NO_REASON) for r in (failing.first, failing.second)])
    reason = np.concatenate([r[r < NO_REASON] for r in (failing.first, failing.second)])
    order = np.argsort(job, kind="stable")
    job, reason = job[order], reason[order]
    more = 1 - 1 / trials_per_pair()[reason, class_of(gpus[job])]
    place = stratified(rng, groups(reason, gpus[job]))
    with np.errstate(divide="ignore"):
        count = 1 + np.floor(np.log1p(-place) / np.log(more)).astype(np.int64)
    job, why = np.repeat(job, count), np.repeat(reason, count)
    score = ndtri(stratified(rng, groups(why, gpus[job])))
    score += np.array(FITTED.tilt)[why] * np.log2(np.minimum(gpus[job], FITTED.largest_tilted))
    forms = zip(REASONS, FITTED.longest_trial, FITTED.trial_bend, strict=True)
    rows = [(quantiles(row, longest), bends(row, bend)) for row, longest, bend in forms]
    table, bent = zip(*rows, strict=True)
    minutes = log_quantiles(ranked(rng, score, why), PHILLY.trial_levels, table, why, bent)
    return Trials(job, why, world.trial_factor * world.stretched(minutes))


def quantiles(row: Reason, longest: float) -> tuple[float, ...]:
    """Return minutes to failure at `PHILLY.trial_levels`."""
    return (row.p50 / LEAST, row.p50, row.p90, row.p95, longest)


def bends(row: Reason, bend: float) -> tuple[float, ...]:
    """Return how minutes lie between the levels: bent everywhere, or above the 90 % if early.

    Hardly below the 95 %, which a few trials more or less must not move.
    """
    before = 1.0 if is_early(row) else bend
    return (before, before, min(bend, 2.0), bend)


def is_early(row: Reason) -> bool:
    """Tell whether a reason shows soon, in the median."""
    return row.p50 <= FITTED.early_minutes
