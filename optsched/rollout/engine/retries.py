"""How attempts and jobs end, by the trace and the scenario's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.trace import FAILED, PASSED, STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.traces.trace import Trace


def ends_with(trace: Trace, job: int, failures: int) -> int:
    """Return the outcome of a job whose work is done after some failures.

    The trace's word, but a failed job that is done before its last failure has passed.
    """
    status = int(trace.status[job])
    if status == STATUSES.index(FAILED) and failures < len(trace.failures.get(job, ())):
        return STATUSES.index(PASSED)
    return status


def is_over(trace: Trace, job: int, failures: int, limits: Mapping[str, int]) -> bool:
    """Return whether a job ends with its latest failure: its last one, or one retry too many."""
    seen = trace.failures[job][:failures]
    if failures == len(trace.failures[job]) and trace.status[job] == STATUSES.index(FAILED):
        return True
    reason = seen[-1].reason
    return reason in limits and sum(f.reason == reason for f in seen) > limits[reason]
