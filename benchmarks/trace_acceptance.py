"""The generator philly-atc19 beside the published figures of Philly, for 96,260 jobs.

    python benchmarks/trace_acceptance.py              # the table for seed 0
    python benchmarks/trace_acceptance.py --seeds 20   # and how many seeds meet each figure
    python benchmarks/trace_acceptance.py --markdown   # as in docs/traces.md

Figures that the shown seed misses are marked. What seeds miss are shares of GPU time that a handful
of gangs of 64 and 128 decide, and figures of the few jobs above 8 GPUs. The last group has no
tolerance: it is told beside what the public trace has.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from benchmarks.calibration import kills
from optsched.traces import STATUSES, US, generate, seen_us
from optsched.traces.generators.arrivals import busiest
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES
from optsched.traces.generators.workload_models import class_of


@dataclass(frozen=True)
class Figure:
    """A published figure, what a trace has, and by how much they may differ."""

    group: str
    name: str
    target: float
    measured: float
    tolerance: float

    @property
    def is_met(self):
        """Whether the trace is near enough."""
        return abs(self.measured - self.target) <= self.tolerance


def philly_acceptance(trace):
    """Yield every figure that a trace like Philly's is held to."""
    gpu_time = trace.gpus * (seen_us(trace) / US)
    for measure in MEASURES:
        yield from measure(trace, gpu_time)


def _statuses(trace, gpu_time):
    count, time = (np.bincount(trace.status, w, 3) for w in (np.ones(len(trace)), gpu_time))
    for code, word in enumerate(STATUSES):
        target = 100 * PHILLY.status_jobs[code] / PHILLY.jobs
        yield Figure("status, % of jobs", word, target, 100 * count[code] / len(trace), 0.5)
    for code, word in enumerate(STATUSES):
        target, share = PHILLY.status_gpu_time[code], 100 * time[code] / time.sum()
        yield Figure("status, % of GPU time", word, target, share, 5.0)


def _gpu_hours(trace, gpu_time):
    measured = float(gpu_time.sum()) / len(trace) / 3600
    yield Figure("GPU-hours per job", "mean", PHILLY.gpu_hours, measured, 0.2 * PHILLY.gpu_hours)


def _run_times(trace, gpu_time):
    """Yield quantiles; the 95 % of the gangs of 5 to 8 is known as "over 10,000 minutes" only."""
    size = class_of(trace.gpus)
    for c, name in enumerate(SIZE_CLASSES):
        minutes = gpu_time[size == c] / trace.gpus[size == c] / 60
        for level, target in zip(PHILLY.levels[1:-1], PHILLY.run_minutes[c][1:], strict=True):
            measured = float(np.quantile(minutes, level))
            label = f"{name} GPUs, p{100 * level:.0f}"
            yield Figure("run time, minutes", label, target, measured, 0.15 * target)


def _gangs(trace, gpu_time):
    yield Figure("GPUs per job", "mean", 1.93, float(trace.gpus.mean()), 0.1)


def _trials(trace, gpu_time):
    count, demand = Counter(), Counter()
    for job, failures in trace.failures.items():
        for failure in failures:
            count[failure.reason] += 1
            demand[failure.reason] += int(trace.gpus[job]) * failure.run_us
    per_job = count.total() / max(1, len(trace.failures))
    yield Figure("failed trials per failing job", "mean", 2.26, per_job, 0.2)
    trials = sum(reason.trials for reason in REASONS)
    for reason in REASONS:
        share = 100 * count[reason.name] / max(1, count.total())
        target = 100 * reason.trials / trials
        yield Figure("reason, % of trials", reason.name, target, share, 2.0)
    for reason in REASONS:
        share = 100 * demand[reason.name] / max(1, demand.total())
        yield Figure("reason, % of GPU time", reason.name, reason.gpu_time_share, share, 2.0)


def _utilization(trace, gpu_time):
    """Means over GPU time, as samples of GPUs every minute give them.

    Cells of one size and status are held within 2 points; those over all of a row or column within
    3 points or 10 %, whichever is more: they cannot all be met (`benchmarks.calibration bounds`).
    """

    def mean(chosen):
        return 100 * float(trace.utilization[chosen] @ gpu_time[chosen]) / gpu_time[chosen].sum()

    for code, target in enumerate(kills.ALL):
        chosen = trace.status == code if code < len(STATUSES) else trace.status >= 0
        name = f"all GPUs, {(*STATUSES, 'all')[code]}"
        yield Figure("utilisation, %", name, target, mean(chosen), kills.within(target))
    for n, size in enumerate(PHILLY.utilization_sizes):
        of_size = trace.gpus == size
        parts = [("all", PHILLY.utilization_all[n], of_size)]
        for code, word in enumerate(STATUSES):
            parts.append((word, PHILLY.utilization[code][n], of_size & (trace.status == code)))
        for word, target, chosen in parts:
            tolerance = kills.within(target) if word == "all" else 2.0
            yield Figure("utilisation, %", f"{size} GPUs, {word}", target, mean(chosen), tolerance)


def _arrivals(trace, gpu_time):
    """Yield the coefficient of variation, any above 5 being accepted; and when jobs come."""
    gaps = np.diff(trace.submit_us)
    cv = float(gaps.std() / gaps.mean()) if len(gaps) and gaps.any() else 0.0
    yield Figure("gaps between arrivals", "CV", PHILLY.gap_cv, cv, PHILLY.gap_cv - 5)
    hour, weekend = busiest(trace.submit_us)
    profile = PHILLY.arrivals
    most, free = max(profile.hours), profile.days[0] + profile.days[-1]
    yield Figure("arrivals, %", "busiest hour", most, hour, 3.0)
    yield Figure("arrivals, %", "weekend", free, weekend, 3.0)


def _virtual_clusters(trace, gpu_time):
    total = sum(row[2] for row in PHILLY.virtual_clusters)
    queues = np.array(trace.queue)
    for name, jobs, hours in PHILLY.virtual_clusters:
        chosen = queues == name
        count, share = 100 * chosen.mean(), 100 * gpu_time[chosen].sum() / gpu_time.sum()
        yield Figure("virtual cluster, % of jobs", name, jobs, float(count), 3.0)
        yield Figure("virtual cluster, % of GPU-h", name, 100 * hours / total, float(share), 3.0)


def rising(trace):
    """Return failed jobs in % and retries per job, on 1, 2 to 4 and more GPUs (figure 8)."""
    kind = np.minimum(class_of(trace.gpus), 2)
    failed = trace.status == STATUSES.index("failed")
    retries = np.array([len(trace.failures.get(n, ())) for n in range(len(trace))]) - failed
    groups = [kind == n for n in range(3)]
    return [100 * float(failed[g].mean()) for g in groups], [
        float(retries[g].mean()) for g in groups
    ]


def table_7(trace):
    """Yield every cell of table 7 of the reasons that 100 jobs and more meet, but users.

    Within 3 points, where it is a share, or 10 %; of demand columns with fewer than 100 trials
    chance alone is more.
    """
    rows = [
        (failure.reason, job, int(trace.gpus[job]), failure.run_us / 6e7)
        for job, failures in trace.failures.items()
        for failure in failures
    ]
    names, jobs, gpus, minutes = (np.array(column) for column in zip(*rows, strict=True))
    scale, column = PHILLY.jobs / len(trace), np.minimum(class_of(gpus), 2)
    for row in (reason for reason in REASONS if reason.jobs >= 100):
        chosen = names == row.name
        counts = scale * np.bincount(column[chosen], minlength=3)
        cells = {
            "trials": (row.trials, scale * chosen.sum()),
            "jobs": (row.jobs, scale * len(np.unique(jobs[chosen]))),
            **dict(zip(("1 GPU", "2-4 GPUs", "> 4 GPUs"), zip(row.demand, counts, strict=True),
                       strict=True)),
        }  # fmt: skip
        levels = np.quantile(minutes[chosen], (0.5, 0.9, 0.95))
        cells |= dict(zip(("p50", "p90", "p95"), zip(row[3:6], levels, strict=True), strict=True))
        for name, (target, value) in cells.items():
            yield Figure("table 7", f"{row.name}, {name}", target, float(value), 0.1 * target)
        share = 100 * minutes[chosen].sum() / minutes.sum()
        tolerance = max(3.0, 0.1 * row.time_share)
        yield Figure("table 7", f"{row.name}, time %", row.time_share, float(share), tolerance)


def told(trace):
    """Yield figures of the public trace that the generator is not held to: name, public, ours."""
    seconds = seen_us(trace) / US
    yield "median run time, s", PHILLY.median_run_s, float(np.median(seconds))
    yield "mean run time, s", PHILLY.mean_run_s, float(seconds.mean())
    for label, values in zip(("failed jobs, %", "retries per job"), rising(trace), strict=True):
        for size, value in zip(("1 GPU", "2 to 4", "more"), values, strict=True):
            yield f"{label}, {size}", None, value


MEASURES = (
    _statuses,
    _gpu_hours,
    _run_times,
    _gangs,
    _trials,
    _utilization,
    _arrivals,
    _virtual_clusters,
)


def measured(seed):
    """Return the figures of a trace of this seed."""
    return list(philly_acceptance(generate("philly-atc19", PHILLY.jobs, seed)))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.markdown:
        print("\n".join(markdown(generate("philly-atc19", PHILLY.jobs, 0))))
        return
    started = time.process_time()
    generate("philly-atc19", PHILLY.jobs, 0)
    print(f"{PHILLY.jobs:,} jobs in {time.process_time() - started:.2f} CPU seconds\n")
    met, whole, seeds = Counter(), 0, options.seeds
    for seed in reversed(range(seeds)):
        figures = measured(seed)
        whole += all(f.is_met for f in figures)
        met.update((f.group, f.name) for f in figures if f.is_met)
    print(f"{'':30}{'':24}{'target':>10}{'measured':>10}{'within':>8}  seeds")
    for f in figures:
        count = f"{met[f.group, f.name]}/{seeds}{'' if f.is_met else ' missed'}"
        print(
            f"{f.group:30}{f.name:24}{f.target:10.2f}{f.measured:10.2f}{f.tolerance:8.2f}  {count}"
        )
    for name, public, value in told(generate("philly-atc19", PHILLY.jobs, 0)):
        print(f"{name:54}{'' if public is None else f'{public:10.2f}':>10}{value:10.2f}")
    print(f"\n{whole} of {seeds} seeds meet all {len(figures)} figures")


def markdown(trace):
    """Yield the lines of the table in docs."""
    yield "| | published | generated | within | |"
    yield "|---|---:|---:|---:|---|"
    for f in (*philly_acceptance(trace), *table_7(trace)):
        cells = f"{f.target:.2f} | {f.measured:.2f} | {f.tolerance:.2f}"
        yield f"| {f.group}: {f.name} | {cells} | {'' if f.is_met else 'missed'} |"
    for name, public, value in told(trace):
        yield f"| {name} | {'' if public is None else f'{public:,.2f}'} | {value:,.2f} | told | |"


if __name__ == "__main__":
    main()
