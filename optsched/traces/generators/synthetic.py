"""Traces like those of large clusters.

A job's size gives its chances of each reason to fail; the reason gives how many trials fail, after
how long, and whether the job gets over it, perhaps to meet another; a job that does not fail draws
its run time from its size's quantiles, and whether its user kills it from its place among them; its
GPU time gives its virtual cluster. Figures: `philly_statistics`; what is fitted to them:
`philly_constants`.

Every draw is stratified in its group (see `random_draws.ranked`), so that a trace of 1,000 jobs is
as near to the figures as it can be; every stage has a stream of its own, so that an option of one
stage leaves the draws of the others as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from optsched.instance import CheckedDocument, Fault, NonNegative, Positive
from optsched.traces.generators import workload_models
from optsched.traces.generators.arrivals import arrival_moments
from optsched.traces.generators.failed_attempts import Trials, draw_reasons, draw_trials
from optsched.traces.generators.kills import draw_killed
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.philly_statistics import PHILLY, SIZE_CLASSES
from optsched.traces.generators.random_draws import (
    gap_mixture,
    groups,
    log_quantiles,
    paired,
    pick,
    ranked,
    stratified,
    streams,
)
from optsched.traces.generators.virtual_clusters import draw_queues
from optsched.traces.generators.workload_models import NO_REASON, World, class_of
from optsched.traces.trace import STATUSES, Trace, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers


STREAMS = (
    *("arrivals", "sizes", "reasons", "trials", "durations", "kills"),
    *("utilization", "queues", "models"),
)


VERSION = 2
"""Of what is drawn: the same seed gives other jobs than before."""
MANY = 50
"""Jobs of a size and status from which on their mean utilisation is made right."""
GOLDEN = (5**0.5 - 1) / 2


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
    seasonal: bool = Field(
        default=True,
        description="Arrivals follow Philly's hours and days of the week, from a Sunday on; no "
        "other cluster's are known.",
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
    queues_by: Literal["hours", "size"] = Field(
        default="hours",
        description="What the virtual cluster of a job of philly-atc19 hangs on: its GPU-hours "
        "alone; or `size`: its GPUs as well, as in the public trace.",
    )
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
    failing = draw_reasons(rng["reasons"], world, gpus, options.early_failure, options.late_failure)
    trials, failed = draw_trials(rng["trials"], world, gpus, failing), failing.failed
    is_failing = (failing.first < NO_REASON).astype(np.int64)
    place = stratified(rng["durations"], groups(is_failing, gpus))
    own = world.stretched(log_quantiles(place, world.own_levels, world.own_minutes, size))
    own *= gpus**world.gang_stretch
    killed = draw_killed(rng["kills"], world, size, place, own * gpus, options.kills)
    status = np.where(failed, 2, np.where(killed, 1, 0))
    work = work_minutes(own, trials, failed)
    gpu_s = 60 * gpus * (trials.per_job(jobs)[0] + np.where(failed, 0, work))
    span = span_s(world, jobs, float(gpu_s.sum()), options)
    gaps = gap_mixture(PHILLY.gap_median, options.cv)
    profile = world.profile if options.seasonal else None
    columns = {
        "submit_s": np.rint(arrival_moments(rng["arrivals"], jobs, span, gaps, profile)),
        "gpus": gpus,
        "run_s": 60 * work,
        "model": draw_models(rng["models"], jobs, options.models, failing.first),
        "queue": draw_queues(rng["queues"], world, gpus, gpu_s, options.queues_by),
        "status": np.array(STATUSES)[status],
        "utilization": draw_utilization(rng["utilization"], gpus, status, gpu_s),
        "failures": trials.failures(jobs),
    }
    name = f"{world.name}, {jobs} jobs, seed {seed}, version {VERSION}"
    return trace_of(name, world.source, columns)


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


def work_minutes(minutes: Floats, trials: Trials, failed: Any) -> Floats:
    """Return the work of each job, from the run time that its size has.

    A job that fails to its end would take what its trials ran and that run time on top, so it fails
    before its work is done, even where checkpoints keep all of it. One that recovers takes that run
    time, but more than its longest trial: each trial fails before the work is done, but with
    checkpoints a job of several may be done before the last.
    """
    lost, longest = trials.per_job(len(minutes))
    work: Floats = np.where(failed, minutes + lost, work_of(minutes, longest))
    return work


def work_of(minutes: Floats, longest: Floats) -> Floats:
    """Return the work of jobs that get over trials: their run time, above the longest trial."""
    work: Floats = np.maximum(minutes, 1.05 * longest)
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
    cell = status * len(SIZE_CLASSES) + class_of(gpus)
    group = groups(status, gpus)
    place = paired(rng, gpu_s, group)
    means = np.array(PHILLY.utilization).ravel() / 100
    busy = (means - FITTED.idle_share * FITTED.idle_most / 2) / (1 - FITTED.idle_share)
    a, b = busy * FITTED.busy_concentration, (1 - busy) * FITTED.busy_concentration
    drawn: Floats = np.empty(len(gpus))
    for n in np.unique(group):
        chosen = group == n
        kind = cell[chosen][0]
        drawn[chosen] = _busy(place[chosen], gpu_s[chosen], a[kind], b[kind], means[kind])
    return drawn


def _busy(place: Floats, weight: Floats, a: float, b: float, mean: float) -> Floats:
    """Return busy shares at the quantiles, moved so that their mean over GPU time is right.

    A few long jobs may have most of a group's GPU time; where there are many jobs, u ** g takes the
    place of each quantile u, with the g near 1 that gives the mean.
    """
    from scipy.optimize import brentq
    from scipy.special import betaincinv

    ranks = np.linspace(0, 1, 1001)
    at = np.concatenate(([0.0], FITTED.idle_share + (1 - FITTED.idle_share) * ranks))
    busy = np.concatenate(([0.0], np.maximum(betaincinv(a, b, ranks), FITTED.idle_most)))

    def shares(power: float) -> Floats:
        return np.interp(place**power, at, busy)

    def excess(power: float) -> float:
        return float(shares(power) @ weight / weight.sum()) - mean

    if len(place) < MANY or not excess(2.0) < 0 < excess(0.5):
        return shares(1.0)
    return shares(brentq(excess, 0.5, 2.0, xtol=1e-3))


def draw_models(
    rng: Generator, jobs: int, text: str, reason: Integers | None = None
) -> list[str] | None:
    """Return what each job trains; reasons to fail, if given, lean towards some of the models."""
    weights, _ = weighted_names(text)
    if not weights:
        return None
    names, keys = list(weights), rng.random(jobs)
    if reason is not None:
        keys += np.append((np.arange(NO_REASON) * GOLDEN) % 1.0 - 0.5, 0.0)[reason]
    place = ranked(rng, keys, np.zeros(jobs, dtype=np.int64))
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
