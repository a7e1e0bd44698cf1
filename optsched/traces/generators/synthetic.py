"""Traces like those of large clusters.

A job's size gives its chances of each reason to fail; the reason gives how many trials fail and
after how long; a job that does not fail draws its run time from its size's quantiles, and whether
its user kills it from its place among them. Figures: `philly_statistics`; what is fitted to them:
`philly_constants`.

Every draw is stratified in its group (see `random_draws.ranked`), so that a trace of 1,000 jobs is
as near to the figures as it can be; every stage has a stream of its own, so that an option of one
stage leaves the draws of the others as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from optsched.instance import CheckedDocument, Fault, NonNegative, Positive
from optsched.traces.generators import workload_models
from optsched.traces.generators.failed_attempts import (
    Trials,
    draw_failed,
    draw_reasons,
    draw_trials,
)
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, SIZE_CLASSES
from optsched.traces.generators.random_draws import (
    bursty_gaps,
    groups,
    log_quantiles,
    over_span,
    paired,
    pick,
    stratified,
    streams,
)
from optsched.traces.generators.workload_models import NO_REASON, World, class_of
from optsched.traces.trace import STATUSES, Trace, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers


STREAMS = (
    *("arrivals", "sizes", "reasons", "trials", "endings", "durations", "kills"),
    *("utilization", "queues", "models"),
)


class ClusterOptions(CheckedDocument):
    """Options of the generators that imitate a cluster."""

    days: Positive | None = Field(default=None, description="From the first arrival to the last.")
    load: Positive | None = Field(
        default=None,
        description="Instead of days, with gpus: GPU time of all jobs, failed trials included, per "
        "GPU time there is from the first arrival to the last.",
    )
    gpus: int | None = Field(default=None, ge=1, le=10**9, description="GPUs that load is for.")
    max_gpus: int | None = Field(
        default=None, ge=1, description="Larger gangs draw their size again, among the others."
    )
    cv: float = Field(
        default=PHILLY.gap_cv,
        ge=1,
        le=1000,
        description="Coefficient of variation of gaps between arrivals; 1: Poisson.",
    )
    early_failure: NonNegative = Field(
        default=1.0,
        description="Factor on the chances of reasons whose median time to failure is 20 minutes "
        "or less.",
    )
    late_failure: NonNegative = Field(
        default=1.0, description="Factor on the chances of the other reasons."
    )
    kills: NonNegative = Field(default=1.0, description="Factor on the share of killed jobs.")
    models: str = Field(
        default="", description="What is trained, drawn by weights: 'resnet50:2,bert:1'."
    )

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield what does not fit together."""
        if document.get("load") is not None and document.get("days") is not None:
            yield ("load",), "cannot stand beside days: give one of them"
        if document.get("gpus") is not None and document.get("load") is None:
            yield ("gpus",), "means nothing without load"
        if document.get("load") is not None and document.get("gpus") is None:
            yield ("gpus",), "missing: load needs it"
        text = document.get("models")
        faults = weighted_names(text)[1] if isinstance(text, str) else []
        if faults:
            yield ("models",), "; ".join(faults)


def weighted_names(text: str) -> tuple[dict[str, float], list[str]]:
    """Return names and weights of ``"resnet50:2,bert"`` (1 if not given), and faults."""
    weights: dict[str, float] = {}
    faults = []
    for part in filter(None, text.split(",")):
        name, colon, weight = part.strip().partition(":")
        try:
            weights[name] = float(weight) if colon else 1.0
        except ValueError:
            weights[name] = 0.0
        if not (name and 0 < weights[name] < float("inf")):
            faults.append(f"'{part}': expected name:weight with a positive weight")
    return weights, faults


def cluster_trace(world: World, jobs: int, seed: int, options: ClusterOptions) -> Trace:
    """Return a trace of this world."""
    rng = streams(seed, STREAMS)
    gpus = draw_sizes(rng["sizes"], world, jobs, options.max_gpus)
    size = class_of(gpus)
    reason = draw_reasons(rng["reasons"], world, gpus, options.early_failure, options.late_failure)
    trials = draw_trials(rng["trials"], world, gpus, reason)
    failed = draw_failed(rng["endings"], reason)
    place = stratified(rng["durations"], groups((reason < NO_REASON).astype(np.int64), gpus))
    killed = draw_killed(rng["kills"], world, size, place, options.kills)
    status = np.where(failed, 2, np.where(killed, 1, 0))
    own = world.stretched(log_quantiles(place, world.own_levels, world.own_minutes, size))
    work = work_minutes(own, trials, failed)
    gpu_s = 60 * gpus * (trials.per_job(jobs)[0] + np.where(failed, 0, work))
    gaps = bursty_gaps(rng["arrivals"], jobs, PHILLY.gap_median, options.cv)
    span = span_s(world, jobs, float(gpu_s.sum()), options)
    columns = {
        "submit_s": np.rint(over_span(gaps, span)),
        "gpus": gpus,
        "run_s": 60 * work,
        "model": draw_models(rng["models"], jobs, options.models),
        "queue": draw_queues(rng["queues"], world, gpus),
        "status": np.array(STATUSES)[status],
        "utilization": draw_utilization(rng["utilization"], gpus, status, gpu_s),
        "failures": trials.failures(jobs),
    }
    return trace_of(f"{world.name}, {jobs} jobs, seed {seed}", world.source, columns)


def draw_sizes(rng: Generator, world: World, jobs: int, largest: int | None) -> Integers:
    """Return the gang of each job; those above the largest are drawn again among the others."""
    one = np.zeros(jobs, dtype=np.int64)
    sizes, shares = np.array(world.sizes), np.array(world.size_shares)
    gpus: Integers = sizes[pick(stratified(rng, one), shares)]
    again = rng.random(jobs)
    if largest is None:
        return gpus
    fit_in = sizes <= largest
    return np.where(gpus > largest, sizes[fit_in][pick(again, shares[fit_in])], gpus)


def draw_killed(
    rng: Generator, world: World, size_class: Integers, place: Floats, factor: float
) -> Any:
    """Return whether a job's user would kill it: odds c (v / (1 - v)) ** slope at quantile v.

    c gives the size class its share of killed jobs.
    """
    with np.errstate(divide="ignore"):
        logit = FITTED.kill_slope * np.log(place / (1 - place))
    shares = np.clip(np.array(world.killed) * factor, 0, 1)
    offsets = np.array([kill_offset(share) for share in shares])
    with np.errstate(over="ignore"):
        chance = 1 / (1 + np.exp(-logit - offsets[size_class]))
    return rng.random(len(place)) < chance


def kill_offset(share: float, slope: float = FITTED.kill_slope) -> float:
    """Return the log of c with which this share of all jobs is killed."""
    if share in (0, 1):
        return -np.inf if share == 0 else np.inf
    from scipy.optimize import brentq

    place = (np.arange(2000) + 0.5) / 2000
    logit = slope * np.log(place / (1 - place))
    return float(brentq(lambda c: np.mean(1 / (1 + np.exp(-logit - c))) - share, -50, 50))


def work_minutes(minutes: Floats, trials: Trials, failed: Any) -> Floats:
    """Return the work of each job, from the run time that its size has.

    A job that fails to its end would take what its trials ran and that run time on top, so it fails
    before its work is done, even where checkpoints keep all of it. One that recovers takes its
    longest trial and that run time: each trial fails before the work is done, but with checkpoints
    a job of several may be done before the last.
    """
    lost, longest = trials.per_job(len(minutes))
    work: Floats = minutes + np.where(failed, lost, longest)
    return work


def span_s(world: World, jobs: int, gpu_s: float, options: ClusterOptions) -> float:
    """Return the seconds from the first arrival to the last."""
    days = options.days
    if options.load is not None and options.gpus is not None:
        return gpu_s / (options.load * options.gpus)
    if days is None and world.jobs_per_day:
        days = jobs / world.jobs_per_day
    return gpu_s / (world.load * world.gpus) if days is None else days * 86_400


def draw_utilization(rng: Generator, gpus: Integers, status: Integers, gpu_s: Floats) -> Floats:
    """Return how busy the GPUs of each job are, 0 to 1.

    A quarter of the jobs idles (0 to 2 %); the others follow a beta distribution of concentration
    `FITTED.busy_concentration`, whose mean gives the mean of table 3 for the size and status.
    """
    from scipy.special import betaincinv

    cell = status * len(SIZE_CLASSES) + class_of(gpus)
    group = groups(status, gpus)
    place = paired(rng, gpu_s, group)
    means = np.array(PHILLY.utilization).ravel() / 100
    busy = (means - FITTED.idle_share * FITTED.idle_most / 2) / (1 - FITTED.idle_share)
    a, b = busy * FITTED.busy_concentration, (1 - busy) * FITTED.busy_concentration
    rank = np.clip((place - FITTED.idle_share) / (1 - FITTED.idle_share), 0, 1)
    idle = place / FITTED.idle_share * FITTED.idle_most
    drawn: Floats = np.where(place < FITTED.idle_share, idle, betaincinv(a[cell], b[cell], rank))
    return drawn


def draw_queues(rng: Generator, world: World, gpus: Integers) -> list[str] | None:
    """Return the virtual cluster of each job.

    Gangs go where GPU-hours are, as far as jobs allow: their share in a virtual cluster is its
    share of GPU-hours, cut at its jobs; single GPUs make up its share of jobs.
    """
    if not world.queues:
        return None
    jobs = np.array([row[1] for row in world.queues]) / 100
    hours = np.array([row[2] for row in world.queues])
    ganged = 1 - world.size_shares[0] / sum(world.size_shares)
    gang_shares = hours
    for _ in range(50):  # what one cannot take goes to the others
        gang_shares = np.minimum(gang_shares * (ganged / gang_shares.sum()), 0.95 * jobs)
    single_shares = jobs - gang_shares
    is_gang = (gpus > 1).astype(np.int64)
    place = stratified(rng, is_gang)
    queues = np.where(is_gang == 1, pick(place, gang_shares), pick(place, single_shares))
    return [world.queues[n][0] for n in queues]


def draw_models(rng: Generator, jobs: int, text: str) -> list[str] | None:
    """Return what each job trains."""
    weights, _ = weighted_names(text)
    if not weights:
        return None
    names = list(weights)
    place = stratified(rng, np.zeros(jobs, dtype=np.int64))
    return [names[n] for n in pick(place, list(weights.values()))]


def philly(jobs: int, seed: int, options: ClusterOptions) -> Trace:
    """Return jobs like those of Philly in the ATC'19 paper."""
    return cluster_trace(workload_models.philly(), jobs, seed, options)


def helios(jobs: int, seed: int, options: ClusterOptions) -> Trace:
    """Return jobs with the main figures of Helios."""
    return cluster_trace(workload_models.helios(), jobs, seed, options)


def acme(jobs: int, seed: int, options: ClusterOptions) -> Trace:
    """Return jobs with the main figures of Acme's cluster Seren."""
    return cluster_trace(workload_models.acme(), jobs, seed, options)
