"""From the columns of an importer to a trace: what every format shares."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError
from optsched.traces.trace import FAILED, KILLED, PASSED, Failure, RecordedRun, trace_of

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
    lines: Sequence[str] = (),
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
    lines
        What else is to be said, after the notes.

    Raises
    ------
    InstanceError
        If there is no job.
    """
    columns = _running(columns, notes)
    if not columns["run_s"]:
        raise InstanceError(origin, ["there is no job in it", *notes.lines()])
    rows = zip(columns["submit_s"], columns["run_s"], columns.get("deadline_s", ()), strict=False)
    text = "deadlines are before submission + run time: only on more GPUs could they be met"
    notes[text] = sum(due < sent + run for sent, run, due in rows)
    _fail(columns)
    return trace_of(name, source, columns, (*notes.lines(), *lines), start_s)


def work_and_failures(
    runs_s: Sequence[float], reasons: Sequence[str], status: str
) -> tuple[float, tuple[Failure, ...]]:
    """Return the work of a job that was tried several times, in seconds, and what failed.

    Logs do not say what an attempt kept of the one before. A replay in which nothing is kept (no
    checkpoints) runs as long as the log. The work is that of the last attempt; where an earlier one
    was longer, these two change places, since an attempt cannot fail after its work is done. For a
    failed job it is just more than all attempts together, so that it fails whatever is kept. With
    checkpoints, others may be done before their later failures.

    Parameters
    ----------
    runs_s
        Lengths of its attempts, in order; at least one.
    reasons
        Why each but the last failed; of a failed job, the last too.
    """
    if status == FAILED:
        return sum(runs_s) + _TICK_S, failures(zip(reasons, runs_s, strict=True))
    runs = list(runs_s)
    longest = max(range(len(runs)), key=lambda n: (runs[n], n))
    runs[longest], runs[-1] = runs[-1], runs[longest]
    is_tied = any(run > runs[-1] - _TICK_S for run in runs[:-1])
    work = runs[-1] + _TICK_S if is_tied else runs[-1]
    return work, failures(zip(reasons, runs[:-1], strict=True))


def failures(attempts: Iterable[tuple[str, float]]) -> tuple[Failure, ...]:
    """Return failing attempts of reasons and lengths in seconds; those of no time are left out."""
    return tuple(Failure(reason, round(run * 1e6)) for reason, run in attempts if run >= _TICK_S)


def recorded(
    submit: Sequence[float],
    start: Sequence[float],
    end: Sequence[float],
    gpus: Sequence[int],
    nodes: Sequence[tuple[tuple[str, int], ...]] | None,
    notes: Notes,
) -> list[tuple[RecordedRun, ...]]:
    """Return the one attempt of each job as it was recorded; none where its times are not known.

    Parameters
    ----------
    submit, start, end
        In seconds, on one clock; NaN where not known.
    nodes
        Names with GPUs, if they are known.
    """
    found: list[tuple[RecordedRun, ...]] = []
    placed = nodes or [()] * len(start)
    for sent, first, last, count, where in zip(submit, start, end, gpus, placed, strict=True):
        known = first == first and last == last  # not NaN
        notes["jobs end before they start: when they ran is left out"] += known and last < first
        notes["jobs start before their submission: recorded so"] += known and first < sent
        run = recorded_run(first, last, count, where) if known and last >= first else None
        found.append((run,) if run else ())
    return found


def recorded_run(
    start_s: float, end_s: float, gpus: int, nodes: tuple[tuple[str, int], ...] = ()
) -> RecordedRun:
    """Return an attempt as it was recorded, on the clock of the log."""
    named = tuple((node.replace(",", "_"), count) for node, count in nodes)
    return RecordedRun(round(start_s * 1e6), round(end_s * 1e6), gpus, named)


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
