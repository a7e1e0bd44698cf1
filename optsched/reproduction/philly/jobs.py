"""Tables 3, 6 and 7, and figure 2, of a rollout."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from optsched.reproduction.philly.targets import MANY, WITH_ALL
from optsched.traces import STATUSES, US, seen_us
from optsched.traces.generators.philly_statistics import PHILLY, REASONS, SIZE_CLASSES
from optsched.traces.generators.workload_models import class_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.results.record import Record

GPU_H, MINUTE = 3600 * US, 60 * US


def of_jobs(record: Record) -> dict[str, float]:
    """Return the cells by their names in `targets`."""
    return {
        **dict(busy(record)),
        **dict(statuses(record)),
        **failed_trials(record),
        **dict(run_times(record)),
        "GPU-hours per job, generated": float(
            (seen_us(record.trace) * record.trace.gpus).mean() / GPU_H
        ),
        "GPU-hours per job, held": float(record.jobs.allocated_gpu_us.mean() / GPU_H),
        "median run time, s": float(np.median(run_us(record)) / US),
    }


def busy(record: Record) -> Iterator[tuple[str, float]]:
    """Yield table 3: how much of the GPUs that jobs held computed, by size and status, in %."""
    held, used = record.jobs.allocated_gpu_us, record.jobs.effective_gpu_us
    for size in (*PHILLY.utilization_sizes, 0):
        for code, status in enumerate(WITH_ALL):
            chosen = (record.trace.gpus == size) if size else held >= 0
            if code < len(STATUSES):
                chosen = chosen & (record.jobs.outcome == code)
            if held[chosen].any():
                name = f"{size} GPUs" if size else "all sizes"
                yield f"table 3, {name}, {status}", percent(used[chosen], held[chosen])


def statuses(record: Record) -> Iterator[tuple[str, float]]:
    """Yield table 6: jobs and GPU time by how jobs ended, in %."""
    ended, held = record.jobs.outcome >= 0, record.jobs.allocated_gpu_us
    for code, status in enumerate(STATUSES):
        chosen = record.jobs.outcome == code
        yield f"table 6, % of jobs, {status}", 100 * float(chosen.sum() / ended.sum())
        yield f"table 6, % of GPU time, {status}", percent(held[chosen], held[ended])


def percent(part: Integers, whole: Integers) -> float:
    """Return the sum of the one over that of the other, in %."""
    return 100 * float(part.sum()) / float(whole.sum())


def failed_trials(record: Record) -> dict[str, float]:
    """Return table 7: the failed trials that took place, by reason.

    The time to failure is that of the program, without the start before it, as in the paper's logs:
    an attempt fails after the time that was drawn, whatever was preempted or slowed down before.
    Numbers are scaled to the paper's jobs.
    """
    rows = [
        (failure.reason, job, failure.run_us / MINUTE)
        for job, failures in record.trace.failures.items()
        for failure in failures[: int(record.jobs.failures[job])]
    ]
    by_reason: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for reason, job, minutes in rows:
        by_reason[reason].append((job, minutes))
    gpus = record.trace.gpus
    whole = sum(minutes for *_, minutes in rows)
    whole_gpus = sum(minutes * int(gpus[job]) for _, job, minutes in rows)
    found: dict[str, float] = {}
    for reason in (row.name for row in REASONS if row.jobs >= MANY):
        if trials := by_reason[reason]:
            jobs = np.array([job for job, _ in trials])
            times = np.array([minutes for _, minutes in trials])
            cells = _cells(jobs, times, gpus, PHILLY.jobs / len(record.trace))
            cells["time, %"] = 100 * float(times.sum()) / whole
            cells["time x GPUs, %"] = 100 * float(times @ gpus[jobs]) / whole_gpus
            found |= {f"table 7, {reason}, {name}": value for name, value in cells.items()}
    return found


def _cells(jobs: Integers, minutes: Floats, gpus: Integers, scale: float) -> dict[str, float]:
    """Return the cells of a row that need no other row."""
    cells = {"trials": scale * len(jobs), "jobs": scale * len(np.unique(jobs))}
    for level in (50, 90, 95):
        cells[f"p{level}, minutes"] = float(np.percentile(minutes, level))
    numbers = np.bincount(np.minimum(class_of(gpus[jobs]), 2), minlength=3)
    for name, number in zip(("1 GPU", "2 to 4 GPUs", "more than 4"), numbers, strict=True):
        cells[f"trials, {name}"] = scale * float(number)
    return cells


def run_times(record: Record) -> Iterator[tuple[str, float]]:
    """Yield figure 2: quantiles of the run time by size, in minutes."""
    size, minutes = class_of(record.trace.gpus), run_us(record) / MINUTE
    for number, name in enumerate(SIZE_CLASSES):
        if (chosen := size == number).any():
            for level in (50, 90):
                value = float(np.percentile(minutes[chosen], level))
                yield f"figure 2, {name} GPUs, p{level}, minutes", value


def run_us(record: Record) -> Integers:
    """Return the microseconds for which each job held GPUs, over all of its attempts."""
    return record.jobs.running_us
