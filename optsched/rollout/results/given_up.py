"""Jobs that were not tried again, and those of them that would have passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.traces.trace import FAILED, PASSED, STATUSES

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Integers
    from optsched.rollout.results.record import Record


def is_given_up(record: Record) -> Bools:
    """Return by job whether it ended by a failure that the trace does not have as its last word.

    A policy, or `retries.limits`, did not try it again.
    """
    trace, jobs = record.trace, record.jobs
    failed = STATUSES.index(FAILED)
    due = np.array([len(trace.failures.get(job, ())) for job in range(len(trace))], dtype=np.int64)
    given: Bools = (jobs.outcome == failed) & ((trace.status != failed) | (jobs.failures < due))
    return given


def given_up(record: Record, chosen: Integers) -> dict[str, int]:
    """Return how many of some jobs were given up, and how many of these would have passed."""
    given = is_given_up(record)[chosen]
    passes = record.trace.status[chosen] == STATUSES.index(PASSED)
    return {"given_up": int(given.sum()), "false_stops": int((given & passes).sum())}
