"""Whether a trace is like Philly's: what is measured of it beside what was published.

Source of the list: the acceptance tests for 96,260 jobs; published figures in `philly_statistics`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.traces.generators import philly_statistics as figures
from optsched.traces.generators.workload_models import class_of
from optsched.traces.summary import seen_us as seen_us
from optsched.traces.trace import STATUSES, US, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

FAILED_CODE = 2


@dataclass(frozen=True)
class Figure:
    """A published figure, what a trace has, and by how much they may differ."""

    group: str
    name: str
    target: float
    measured: float
    tolerance: float

    @property
    def is_met(self) -> bool:
        """Whether the trace is near enough."""
        return abs(self.measured - self.target) <= self.tolerance


def philly_acceptance(trace: Trace) -> Iterator[Figure]:
    """Yield every figure that a trace like Philly's is held to."""
    gpu_time = trace.gpus * (seen_us(trace) / US)
    for measure in MEASURES:
        yield from measure(trace, gpu_time)


def _statuses(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    count, time = (np.bincount(trace.status, w, 3) for w in (np.ones(len(trace)), gpu_time))
    for code, word in enumerate(STATUSES):
        target = 100 * figures.STATUS_JOBS[word] / figures.JOBS
        yield Figure("status, % of jobs", word, target, 100 * count[code] / len(trace), 0.5)
    for code, word in enumerate(STATUSES):
        target, share = figures.STATUS_GPU_TIME[word], 100 * time[code] / time.sum()
        yield Figure("status, % of GPU time", word, target, share, 5.0)


def _run_times(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    """95 % of the gangs of 5 to 8 is known as "over 10,000 minutes" only."""
    size = class_of(trace.gpus)
    for c, name in enumerate(figures.SIZE_CLASSES):
        minutes = gpu_time[size == c] / trace.gpus[size == c] / 60
        for level, target in zip(figures.LEVELS[1:-1], figures.RUN_MINUTES[c][1:], strict=True):
            measured = float(np.quantile(minutes, level))
            label = f"{name} GPUs, p{100 * level:.0f}"
            yield Figure("run time, minutes", label, target, measured, 0.15 * target)


def _gangs(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    yield Figure("GPUs per job", "mean", 1.93, float(trace.gpus.mean()), 0.1)


def _trials(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    count, demand = Counter[str](), Counter[str]()
    for job, failures in trace.failures.items():
        for failure in failures:
            count[failure.reason] += 1
            demand[failure.reason] += int(trace.gpus[job]) * failure.run_us
    per_job = count.total() / max(1, len(trace.failures))
    yield Figure("failed trials per failing job", "mean", 2.26, per_job, 0.2)
    trials = sum(reason.trials for reason in figures.REASONS)
    for reason in figures.REASONS:
        share = 100 * count[reason.name] / max(1, count.total())
        target = 100 * reason.trials / trials
        yield Figure("reason, % of trials", reason.name, target, share, 2.0)
    for reason in figures.REASONS:
        share = 100 * demand[reason.name] / max(1, demand.total())
        yield Figure("reason, % of GPU time", reason.name, reason.gpu_time_share, share, 2.0)


def _utilization(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    """Means over GPU time, as samples of GPUs every minute give them."""
    for n, size in enumerate(figures.UTILIZATION_SIZES):
        of_size = trace.gpus == size
        parts = [("all", figures.UTILIZATION_ALL[n], of_size)]
        for code, word in enumerate(STATUSES):
            parts.append((word, figures.UTILIZATION[word][n], of_size & (trace.status == code)))
        for word, target, chosen in parts:
            weight = gpu_time[chosen].sum()
            measured = 100 * float(trace.utilization[chosen] @ gpu_time[chosen]) / max(1.0, weight)
            yield Figure("utilisation, %", f"{size} GPUs, {word}", target, measured, 2.0)


def _arrivals(trace: Trace, gpu_time: Floats) -> Iterator[Figure]:
    """Return the coefficient of variation: any above 5 is accepted."""
    gaps = np.diff(trace.submit_us)
    cv = float(gaps.std() / gaps.mean()) if len(gaps) and gaps.any() else 0.0
    yield Figure("gaps between arrivals", "CV", figures.GAP_CV, cv, figures.GAP_CV - 5)


MEASURES: tuple[Callable[[Trace, Floats], Iterator[Figure]], ...] = (
    _statuses,
    _run_times,
    _gangs,
    _trials,
    _utilization,
    _arrivals,
)
