"""Traces: the jobs of a rollout, as arrays in the order of submission."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from optsched.documents.arrays import Floats, Integers


US = 1_000_000
"""Microseconds in a second: all times inside traces and rollouts are whole microseconds."""

#: How a job ends: with its work done.
PASSED = "passed"
#: By its user.
KILLED = "killed"
#: By a failure.
FAILED = "failed"
#: All of them, in the order in which they are numbered.
STATUSES = (PASSED, KILLED, FAILED)
WORDS = ("model", "queue", "user")


@dataclass(frozen=True)
class Failure:
    """One failed attempt: it ends after `run_us` of running, for this reason."""

    reason: str
    run_us: int


@dataclass(frozen=True)
class RecordedRun:
    """One attempt as a log has it.

    Attributes
    ----------
    start_us, end_us
        On the trace's clock; below 0 if it began before the trace does.
    gpus
        That it held.
    nodes
        Names, each with the GPUs held there; empty if not recorded.
    """

    start_us: int
    end_us: int
    gpus: int
    nodes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Trace:
    """Jobs in the order of submission (equal times keep the order of their source).

    Jobs are numbered from 0 in this order; all arrays have one entry per job.

    Attributes
    ----------
    ids
        Unique names of the jobs.
    submit_us
        Submission, in microseconds from the trace's start; ascending.
    gpus
        GPUs asked for: the size of the gang.
    run_us
        Microseconds of running until the job ends, at the gang size asked for, on reference GPUs in
        one place and alone: work. For a killed job: until its user kills it. For a failed job: what
        it would take if nothing failed.
    model, queue
        What is trained, and whose job it is (virtual cluster, tenant); empty if unknown.
    status
        Numbers into `STATUSES`: how the job ends.
    utilization
        Busy share of its GPUs while it runs, 0 to 1; NaN if unknown.
    deadline_us
        Moment by which it should have ended, -1 for none.
    failures
        By job: its attempts that fail, in order, whatever the policy does. After the last one a
        failed job ends; others then run to their end.
    notes
        What an importer left out or had to interpret, one line each with its count.
    user
        Who submitted it; empty if unknown.
    record
        By job: its attempts when and where they really ran, in order; jobs of which no time is
        known have none. Nothing in a rollout hangs on it; `optsched compare` shows it as a row.
    """

    name: str
    source: str
    ids: tuple[str, ...]
    submit_us: Integers
    gpus: Integers
    run_us: Integers
    model: tuple[str, ...]
    queue: tuple[str, ...]
    status: Integers
    utilization: Floats
    deadline_us: Integers
    failures: dict[int, tuple[Failure, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    record: dict[int, tuple[RecordedRun, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user:
            object.__setattr__(self, "user", ("",) * len(self.ids))

    def kept(self, jobs: Sequence[int]) -> Trace:
        """Return a trace with some of its jobs, in this order; their times stay as they were."""
        chosen = list(jobs)
        words: dict[str, Any] = {
            key: tuple(getattr(self, key)[job] for job in chosen)
            for key in ("ids", "model", "queue", "user")
        }
        keys = ("submit_us", "gpus", "run_us", "status", "utilization", "deadline_us")
        arrays: dict[str, Any] = {key: getattr(self, key)[chosen] for key in keys}
        by_job: dict[str, Any] = {
            key: {n: given[job] for n, job in enumerate(chosen) if job in given}
            for key, given in (("failures", self.failures), ("record", self.record))
        }
        return replace(self, **words, **arrays, **by_job)

    def __len__(self) -> int:
        return len(self.ids)

    def frame(self) -> pd.DataFrame:
        """Return one row per job, with times in seconds."""
        import numpy as np
        import pandas as pd

        deadline = np.where(self.deadline_us < 0, np.nan, self.deadline_us / US)
        return pd.DataFrame(
            {
                "job": list(self.ids),
                "submit_s": self.submit_us / US,
                "gpus": self.gpus,
                "run_s": self.run_us / US,
                "model": list(self.model),
                "queue": list(self.queue),
                "user": list(self.user),
                "status": [STATUSES[code] for code in self.status],
                "utilization": self.utilization,
                "deadline_s": deadline,
                "failures": [len(self.failures.get(job, ())) for job in range(len(self))],
            }
        )


def trace_of(
    name: str,
    source: str,
    columns: dict[str, Any],
    notes: Sequence[str] = (),
    start_s: float | None = None,
) -> Trace:
    """Return a trace from columns, sorted by submission.

    Parameters
    ----------
    columns
        `submit_s`, `gpus` and `run_s`, each of one entry per job; optionally `ids`, `model`,
        `queue`, `user`, `status` (words), `utilization`, `deadline_s` (NaN for none; on the clock
        of `submit_s`), `failures` (per job a sequence of `Failure`) and `record` (per job a
        sequence of `RecordedRun`, on the clock of `submit_s` too).
    notes
        What was left out or interpreted, a line for each.
    start_s
        Moment, on the clock of `submit_s`, at which the trace starts: no later than the first
        submission, which it is if not given.
    """
    import numpy as np

    submit = microseconds(columns["submit_s"])
    count = len(submit)
    order = np.argsort(submit, kind="stable")
    start = int(submit.min()) if count else 0
    if start_s is not None:
        start = min(start, round(start_s * US))
    words = {key: _words(columns.get(key), count, order) for key in WORDS}
    status = columns.get("status")
    codes = np.zeros(count, np.int64)
    if status is not None:
        codes = np.array([STATUSES.index(word) for word in status], dtype=np.int64)
    utilization = np.asarray(columns.get("utilization", np.full(count, np.nan)), dtype=float)
    deadline = np.asarray(columns.get("deadline_s", np.full(count, np.nan)), dtype=float)
    late = np.where(np.isnan(deadline), -1.0, np.rint(np.nan_to_num(deadline) * US) - start)
    ids = columns.get("ids")
    names = [str(n) for n in range(count)] if ids is None else [str(ids[n]) for n in order]
    given = columns.get("failures") or [()] * count
    record = columns.get("record") or [()] * count
    return Trace(
        name=name,
        source=source,
        ids=tuple(names),
        submit_us=_fixed(submit[order] - start),
        gpus=_fixed(np.asarray(columns["gpus"], dtype=np.int64)[order]),
        run_us=_fixed(microseconds(columns["run_s"])[order]),
        **words,
        status=_fixed(codes[order]),
        utilization=_fixed(utilization[order]),
        deadline_us=_fixed(late[order].astype(np.int64)),
        failures={n: tuple(given[old]) for n, old in enumerate(order) if given[old]},
        notes=tuple(notes),
        record={n: _since(record[old], start) for n, old in enumerate(order) if record[old]},
    )


def _since(runs: Sequence[RecordedRun], start: int) -> tuple[RecordedRun, ...]:
    return tuple(
        replace(run, start_us=run.start_us - start, end_us=run.end_us - start) for run in runs
    )


def microseconds(seconds: Any) -> Integers:
    """Return seconds as whole microseconds, rounded to the nearest."""
    import numpy as np

    whole: Integers = np.rint(np.asarray(seconds, dtype=float) * US).astype(np.int64)
    return whole


def _words(words: Any, count: int, order: Any) -> tuple[str, ...]:
    return ("",) * count if words is None else tuple(str(words[n]) for n in order)


def _fixed(array: Any) -> Any:
    array.setflags(write=False)
    return array
