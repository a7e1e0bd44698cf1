"""Streams of jobs for checks against theory: the classes of a BOA instance, and equal gangs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from optsched.instance import CheckedDocument, Fault, InstanceError, Positive, read
from optsched.traces.generators.arrivals import DAY_S
from optsched.traces.generators.random_draws import bursty_gaps, pick, streams
from optsched.traces.generators.synthetic import draw_models, weighted_names
from optsched.traces.trace import Trace, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.random import Generator

    from optsched.documents.arrays import Floats


class StreamOptions(CheckedDocument):
    """What streams have in common."""

    cv: float = Field(
        default=1.0,
        ge=1,
        le=1000,
        description="Coefficient of variation of gaps between arrivals; 1: Poisson.",
    )
    diurnal: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Amplitude of the arrival rate over the day: it is the mean rate times 1 + "
        "diurnal x sin(2 pi t / 24 h); 0: constant.",
    )
    sizes: Literal["exponential", "deterministic", "pareto"] = Field(
        default="exponential", description="Distribution of work around its mean."
    )
    pareto_shape: float = Field(
        default=2.5, gt=1, le=1000, description="Tail index; the variance is finite above 2."
    )


class BoaStreamOptions(StreamOptions):
    """Options of the generator boa."""

    instance: str = Field(default="boa/cbd-85", description="A BOA instance, by name or file.")
    rate: Positive = Field(default=1.0, description="Factor on the arrival rates.")
    gpu_type: str | None = Field(
        default=None,
        description="GPU type that run times are of, where phases have speedups by type; of "
        "speedup 1 if none.",
    )


class PoissonOptions(StreamOptions):
    """Options of the generator poisson."""

    rate_per_h: Positive = Field(default=30.0, description="Arrivals per hour.")
    mean_run_s: Positive = Field(default=600.0, description="Mean run time of a job.")
    gpus: int = Field(default=1, ge=1, le=1_000_000, description="Gang of every job.")
    models: str = Field(
        default="", description="What is trained, drawn by weights: 'resnet50:2,bert:1'."
    )

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield what is wrong with the models."""
        if isinstance(document.get("models"), str):
            yield from ((("models",), text) for text in weighted_names(document["models"])[1])


def arrivals_s(rng: Generator, jobs: int, rate_per_s: float, cv: float) -> Floats:
    """Return moments of arrival, a Poisson process if cv is 1; else gaps within bursts are short.

    Their median is a tenth of the mean gap.
    """
    moments: Floats = np.cumsum(bursty_gaps(rng, jobs, 0.1, cv)) / rate_per_s
    return moments


def by_the_hour(moments_s: Floats, diurnal: float) -> Floats:
    """Return moments of a stream whose rate follows the time of day, of those of a steady one.

    The moment t at which as many jobs are expected to have come: t + A (1 - cos(2 pi t / day))
    equals the moment in the steady stream, A = diurnal x day / (2 pi). A Poisson process becomes an
    inhomogeneous one (time change).
    """
    if not diurnal:
        return moments_s
    turn = DAY_S / (2 * np.pi)
    low, high = np.maximum(moments_s - 2 * diurnal * turn, 0.0), moments_s.copy()
    for _ in range(80):  # halves of a day, until floats are next to each other
        middle = (low + high) / 2
        is_below = middle + diurnal * turn * (1 - np.cos(middle / turn)) < moments_s
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return high


def draw_work(rng: Generator, mean_s: Floats, options: StreamOptions) -> Floats:
    """Return work with these means, independent from job to job."""
    if options.sizes == "deterministic":
        return mean_s.copy()
    if options.sizes == "exponential":
        return mean_s * rng.exponential(size=len(mean_s))
    shape = options.pareto_shape
    return mean_s * (shape - 1) / shape * (1 + rng.pareto(shape, len(mean_s)))


def boa(jobs: int, seed: int, options: BoaStreamOptions) -> Trace:
    """Return a stream of the classes of a BOA instance, each job on one GPU.

    The model of a job is the id of its class, its run time its work on one GPU: `work_gpu_s` of all
    phases, each over the speedup at width 1 where that is known.

    Raises
    ------
    InstanceError
        If it is not a BOA instance, or not valid, or a phase does not run on the GPU type.
    """
    instance: Any = read(options.instance)
    if instance.problem != "boa":
        fault = f"expected an instance of BOA, found one of {instance.problem.upper()}"
        raise InstanceError(options.instance, [fault])
    rng = streams(seed, ("arrivals", "classes", "work"))
    rates = np.array([c.arrival_rate_per_h for c in instance.classes]) * options.rate / 3600
    name = options.gpu_type
    for job_class in instance.classes:
        for e, phase in enumerate(job_class.phases):
            if name is not None and name not in getattr(phase.speedup, "of_type", ()):
                fault = f"phase {e} of class '{job_class.id}' has no speedup on GPU type '{name}'"
                raise InstanceError(options.instance, [fault])
    means = np.array([sum(_on_one_gpu(p, name) for p in c.phases) for c in instance.classes])
    kind = pick(rng["classes"].random(jobs), rates)
    columns = {
        "submit_s": _submitted(rng["arrivals"], jobs, rates.sum(), options),
        "gpus": np.ones(jobs, dtype=np.int64),
        "run_s": draw_work(rng["work"], means[kind], options),
        "model": [instance.classes[n].id for n in kind],
    }
    return trace_of(f"{instance.name}, {jobs} jobs, seed {seed}", instance.source, columns)


def _submitted(rng: Generator, jobs: int, rate_per_s: float, options: StreamOptions) -> Floats:
    return by_the_hour(arrivals_s(rng, jobs, rate_per_s, options.cv), options.diurnal)


def _on_one_gpu(phase: Any, gpu_type: str | None) -> float:
    speedup = phase.speedup if gpu_type is None else phase.on(gpu_type).speedup
    measured = getattr(speedup, "measured", {1: 1.0})
    return float(phase.work_gpu_s / measured.get(1, 1.0))


def poisson(jobs: int, seed: int, options: PoissonOptions) -> Trace:
    """Return a stream of equal gangs, as in the M/M/c and M/D/1 queues."""
    rng = streams(seed, ("arrivals", "work", "models"))
    mean_s = np.full(jobs, options.mean_run_s)
    columns = {
        "submit_s": _submitted(rng["arrivals"], jobs, options.rate_per_h / 3600, options),
        "gpus": np.full(jobs, options.gpus, dtype=np.int64),
        "run_s": draw_work(rng["work"], mean_s, options),
        "model": draw_models(rng["models"], jobs, options.models),
    }
    return trace_of(f"poisson, {jobs} jobs, seed {seed}", "queueing theory", columns)
