"""Fairness of a rollout, to jobs and to queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.record import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.results.record import Record


def finish_time_fairness(record: Record, alone_us: Integers) -> Floats:
    """Return by job its JCT over what it would be in a share of its own.

    With n jobs present on average while it is, a job's own share is 1/n of the cluster's GPUs; a
    gang that is larger than that has the GPUs it needs for a part of the time. So the JCT in the
    share is its run time alone x max(1, gang x n / GPUs).

    Returns
    -------
    numpy.ndarray
        Above 1: worse off than with a share of its own. NaN for jobs that have not ended or have no
        work.

    Notes
    -----
    Source: Mahajan et al., "Themis", NSDI'20 (rho).
    """
    trace, jobs = record.trace, record.jobs
    end = np.where(jobs.outcome == ACTIVE, record.end_us, jobs.end_us)
    end = np.maximum(end, trace.submit_us)  # of jobs that were never submitted
    jct = end - trace.submit_us
    present = contention(trace.submit_us, end)
    share = alone_us * np.maximum(1.0, trace.gpus * present / max(record.scenario.gpus, 1))
    told = (jobs.outcome != ACTIVE) & (share > 0)
    rho: Floats = np.divide(jct, share, out=np.full(len(jct), np.nan), where=told)
    return rho


def contention(submit_us: Integers, end_us: Integers) -> Floats:
    """Return by job how many jobs are present, itself included, on average while it is."""
    if not len(submit_us):
        return np.zeros(0)
    times = np.concatenate([submit_us, end_us])
    steps = np.repeat([1, -1], len(submit_us))
    order = np.argsort(times, kind="stable")
    times, count = times[order], np.cumsum(steps[order])
    passed = np.concatenate([[0], np.cumsum(count[:-1] * np.diff(times))])  # job-microseconds
    first, last = np.searchsorted(times, submit_us), np.searchsorted(times, end_us)
    span = end_us - submit_us
    held = passed[last] - passed[first]
    mean: Floats = np.divide(held, span, out=np.ones(len(span)), where=span > 0)
    return mean


def jain_index(queues: Sequence[str], gpu_us: Integers, chosen: Integers) -> float | None:
    """Return Jain's index of the GPU-time of queues: 1 if equal, 1 / queues if one has it all.

    Source: Jain, Chiu and Hawe, DEC TR-301, 1984. None if there is no GPU-time at all.
    """
    totals: dict[str, int] = {}
    for job in chosen.tolist():
        totals[queues[job]] = totals.get(queues[job], 0) + int(gpu_us[job])
    squares = sum(total * total for total in totals.values())
    return sum(totals.values()) ** 2 / (len(totals) * squares) if squares else None
