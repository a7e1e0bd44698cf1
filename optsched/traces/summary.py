"""What there is to say of a trace at a glance: sizes, statuses and run times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.trace import FAILED, STATUSES, US

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Integers
    from optsched.traces.trace import Trace

SIZES = (("1 GPU", 1, 1), ("2 to 4 GPUs", 2, 4), ("5 to 8 GPUs", 5, 8), ("above 8", 9, 10**9))
"""Classes of gangs, as in the figures of the Philly paper: name, least and most GPUs."""


def seen_us(trace: Trace) -> Integers:
    """Return the run time of each job that a log would show, in microseconds.

    All its attempts: those that fail, and for others than failed jobs the work itself. Shape
    (jobs,).
    """
    import numpy as np

    work: Integers = np.where(trace.status == STATUSES.index(FAILED), 0, trace.run_us)
    return work + failing_us(trace)


def failing_us(trace: Trace) -> Integers:
    """Return the run time of each job's attempts that fail, in microseconds. Shape (jobs,)."""
    import numpy as np

    failing = np.zeros(len(trace), np.int64)
    for job, attempts in trace.failures.items():
        failing[job] = sum(attempt.run_us for attempt in attempts)
    return failing


def headline(trace: Trace) -> dict[str, str]:
    """Return names and texts that describe a trace."""
    texts = {"trace": trace.name, "source": trace.source, "jobs": f"{len(trace):,}"}
    if not len(trace):
        return texts
    gpu_hours = float((seen_us(trace) / US * trace.gpus).sum() / 3600)
    attempts = sum(map(len, trace.failures.values()))
    return texts | {
        "submitted within": duration(int(trace.submit_us[-1]) / US),
        "GPU-hours": f"{gpu_hours:,.0f}",
        "GPUs of a job": f"{trace.gpus.mean():.2f} on average, {trace.gpus.max():,} at most",
        "failing attempts": f"{attempts:,} of {len(trace.failures):,} jobs",
    }


def groups(trace: Trace) -> list[dict[str, str]]:
    """Return a row for each class of gangs and each status: shares and run-time quantiles."""
    gpus, status = trace.gpus, trace.status
    masks = {name: (gpus >= least) & (gpus <= most) for name, least, most in SIZES}
    masks |= {word: status == code for code, word in enumerate(STATUSES)}
    masks["all"] = gpus > 0
    seen = seen_us(trace)
    return [_row(name, mask, seen, gpus) for name, mask in masks.items()]


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it, such as ``3.2 h``."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"


def _row(name: str, mask: Bools, seen: Integers, gpus: Integers) -> dict[str, str]:
    import numpy as np

    time = seen.astype(float) * gpus
    count, total = int(mask.sum()), float(time.sum())
    row = {
        "jobs of": name,
        "jobs": f"{count:,}",
        "%": f"{100 * count / max(len(mask), 1):.1f}",
        "GPU-time %": f"{100 * float(time[mask].sum()) / total:.1f}" if total else "",
    }
    for quantile in (10, 50, 90, 99):
        run = duration(float(np.percentile(seen[mask], quantile)) / US) if count else ""
        row[f"run p{quantile}"] = run
    return row
