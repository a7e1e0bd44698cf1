"""From the columns of an importer to a trace: what every format shares."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError
from optsched.traces.trace import FAILED, KILLED, PASSED, Failure, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.traces.trace import Trace

Columns = dict[str, list[Any]]
_TICK_S = 1e-6

ENDS = {
    "COMPLETED": PASSED,
    "CANCELLED": KILLED,
    "DEADLINE": KILLED,
    "PREEMPTED": KILLED,
    "FAILED": FAILED,
    "TIMEOUT": FAILED,
    "NODE_FAIL": FAILED,
    "OUT_OF_MEMORY": FAILED,
    "BOOT_FAIL": FAILED,
}
"""Slurm's states of jobs that have ended. The publishers of Helios and Acme count timeouts as
failures."""

UNENDED = (
    "RUNNING",
    "PENDING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "REQUEUED",
    "RESIZING",
    "REVOKED",
    "STOPPED",
    "SIGNALING",
    "STAGE_OUT",
    "SPECIAL_EXIT",
    "RESV_DEL_HOLD",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
)


class Notes(Counter[str]):
    """What was left out or interpreted, with how many jobs it concerns."""

    def lines(self) -> tuple[str, ...]:
        """Return a line for each, the largest first."""
        return tuple(f"{count:,} {text}" for text, count in self.most_common() if count)


def finish(
    name: str,
    source: str,
    origin: str,
    columns: Columns,
    notes: Notes,
    start_s: float | None = None,
) -> Trace:
    """Return the trace of an importer's columns.

    Parameters
    ----------
    columns
        As for `trace_of`, lists; optionally `reasons` of the jobs that failed. Jobs that ran for
        no time are left out. A failed job without `failures` fails once, after `run_s`; what it
        would take if nothing failed is not in any log, so it is one microsecond more.
    start_s
        As for `trace_of`: 0 for logs whose clock starts with the rounds of a simulator.

    Raises
    ------
    InstanceError
        If there is no job.
    """
    columns = _running(columns, notes)
    if not columns["run_s"]:
        raise InstanceError(origin, ["there is no job in it", *notes.lines()])
    _fail(columns)
    return trace_of(name, source, columns, notes.lines(), start_s)


def work_s(runs_s: Sequence[float], status: str) -> float:
    """Return the work of a job that was tried several times, in seconds.

    Logs do not say what an attempt kept of the one before. A replay in which nothing is kept (no
    checkpoints) runs as long as the log: the work is that of the last attempt, or just more than
    the longest that failed. For a failed job it is just more than all attempts together, so that
    it fails whatever is kept. With checkpoints, others may be done before their later failures.

    Parameters
    ----------
    runs_s
        Lengths of its attempts, in order; at least one.
    """
    if status == FAILED:
        return sum(runs_s) + _TICK_S
    return max([runs_s[-1], *(run + _TICK_S for run in runs_s[:-1])])


def failures(attempts: Iterable[tuple[str, float]]) -> tuple[Failure, ...]:
    """Return failing attempts of reasons and lengths in seconds; those of no time are left out."""
    return tuple(Failure(reason, round(run * 1e6)) for reason, run in attempts if run >= _TICK_S)


def _running(columns: Columns, notes: Notes) -> Columns:
    kept = [row for row, seconds in enumerate(columns["run_s"]) if seconds >= _TICK_S]
    count = len(columns["run_s"])
    if len(kept) == count:
        return dict(columns)
    notes["jobs ran for no time: left out"] += count - len(kept)
    return {name: [values[row] for row in kept] for name, values in columns.items()}


def _fail(columns: Columns) -> None:
    """Give every failed job its failing attempt."""
    reasons = columns.pop("reasons", None)
    status = columns.get("status") or ()
    attempts = list(columns.get("failures") or [()] * len(status))
    runs = columns["run_s"] = list(columns["run_s"])
    for job, word in enumerate(status):
        if word == FAILED and not attempts[job]:
            reason = reasons[job] if reasons else "unknown"
            attempts[job] = failures([(reason, runs[job])])
            runs[job] += _TICK_S
    columns["failures"] = attempts
