"""Failed trials of jobs: reasons, how many, and after how long, as in table 7 of ATC'19."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.instance import InstanceError
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES
from optsched.traces.generators.random_draws import groups, log_quantiles, ranked, stratified
from optsched.traces.generators.workload_models import INFRASTRUCTURE, NO_REASON, World, class_of
from optsched.traces.trace import US, Failure

if TYPE_CHECKING:
    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers


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


def draw_reasons(
    rng: Generator, world: World, gpus: Integers, early: float, late: float
) -> Integers:
    """Return for each job why its trials fail, `NO_REASON` if none does.

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
    is_early = np.array([reason.p50 <= FITTED.early_minutes for reason in REASONS])
    edges = np.cumsum(world.chances * np.where(is_early, early, late), axis=1)
    worst = int(edges[:, -1].argmax())
    if edges[worst, -1] > 1:
        key = "early_failure" if early >= late else "late_failure"
        share, name = f"{edges[worst, -1]:.0%}", SIZE_CLASSES[worst]
        text = f"{key}: {share} of the jobs on {name} GPUs would fail; lower this factor"
        raise InstanceError(f"options of {world.name}", [text])
    place = stratified(rng, groups(np.zeros_like(gpus), gpus))
    reason: Integers = (place[:, None] >= edges[class_of(gpus)]).sum(axis=1)
    return reason


def draw_trials(rng: Generator, world: World, gpus: Integers, reason: Integers) -> Trials:
    """Return the failed trials, in the order of their jobs.

    Their number is geometric with the reason's mean of trials per job. Minutes to failure are the
    reason's quantiles; a tilt of their order by the size of the gang gives the share of GPU time.
    """
    from scipy.special import ndtri

    job = np.flatnonzero(reason < NO_REASON)
    more = np.array([1 - row.jobs / row.trials for row in REASONS])[reason[job]]
    place = stratified(rng, groups(reason[job], gpus[job]))
    with np.errstate(divide="ignore"):
        count = 1 + np.floor(np.log1p(-place) / np.log(more)).astype(np.int64)
    job = np.repeat(job, count)
    why = reason[job]
    score = ndtri(stratified(rng, groups(why, gpus[job])))
    score += np.array(FITTED.tilt)[why] * np.log2(np.minimum(gpus[job], FITTED.largest_tilted))
    table = [
        (row.p50 / 10, row.p50, row.p90, row.p95, longest)
        for row, longest in zip(REASONS, FITTED.longest_trial, strict=True)
    ]
    minutes = log_quantiles(ranked(rng, score, why), PHILLY.trial_levels, table, why)
    return Trials(job, why, world.stretched(minutes))


def draw_failed(rng: Generator, reason: Integers) -> Any:
    """Return whether each job ends as failed: infrastructure's failures let a share recover."""
    recovered = stratified(rng, reason) < FITTED.recovered
    infrastructure = np.append(INFRASTRUCTURE, False)
    return (reason < NO_REASON) & ~(infrastructure[reason] & recovered)
