"""The project's own files of traces: JSON, columns as lists."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from optsched.documents.faults import InstanceError, shown
from optsched.documents.json_files import load, write_text
from optsched.documents.schemas import require
from optsched.instance import CheckedDocument, Document
from optsched.traces.importers.csv_table import fault_list
from optsched.traces.recorded_runs import RecordedRuns, backward_runs, columns_of, runs_of
from optsched.traces.trace import PASSED, Failure, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.documents.faults import Fault

_MOST_US = 10**17

Word = Annotated[str, Field(min_length=1)]
Moment = Annotated[int, Field(ge=0, le=_MOST_US)]
Length = Annotated[int, Field(ge=1, le=_MOST_US)]
Gang = Annotated[int, Field(ge=1, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Status = Literal["passed", "killed", "failed"]
_STATUSES: tuple[Status, ...] = ("passed", "killed", "failed")


class Jobs(Document):
    """Columns with an entry for each job, in the order of submission."""

    id: tuple[Word, ...] = Field(description="Unique names.")
    submit_us: tuple[Moment, ...] = Field(
        description="Submission in microseconds from the trace's start; ascending."
    )
    gpus: tuple[Gang, ...] = Field(description="Size of the gang.")
    run_us: tuple[Length, ...] = Field(
        description="Microseconds of running at that size until it ends, if nothing fails."
    )
    model: tuple[str, ...] | None = Field(default=None, description="What is trained.")
    queue: tuple[str, ...] | None = Field(
        default=None, description="Its virtual cluster, partition or tenant."
    )
    user: tuple[str, ...] | None = Field(default=None, description="Who submitted it.")
    status: tuple[Status, ...] | None = Field(
        default=None, description="How it ends; by default all pass."
    )
    utilization: tuple[Share | None, ...] | None = Field(
        default=None, description="Busy share of its GPUs; null if unknown."
    )
    deadline_us: tuple[Moment | None, ...] | None = Field(
        default=None, description="By when it should have ended; null for never."
    )


class Failures(Document):
    """Columns with an entry for each failing attempt; those of a job in their order."""

    job: tuple[Word, ...] = Field(default=(), description="Ids of jobs.")
    reason: tuple[Word, ...] = ()
    run_us: tuple[Length, ...] = Field(default=(), description="Running until it fails.")


class TraceDocument(CheckedDocument):
    """A trace as it stands in a file."""

    schema_id: Literal["optsched/trace/1"] = Field(alias="schema")
    name: str = "unnamed"
    source: str = Field(default="", description="Where the jobs come from.")
    notes: tuple[str, ...] = Field(default=(), description="What was left out or interpreted.")
    jobs: Jobs
    failures: Failures = Failures()
    record: RecordedRuns | None = Field(
        default=None, description="When and where jobs ran; `optsched compare` shows it as a row."
    )

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults of columns that do not fit together."""
        jobs, failures = _columns(document, "jobs"), _columns(document, "failures")
        record = _columns(document, "record")
        yield from _lengths("jobs", jobs, "id")
        yield from _lengths("failures", failures, "job")
        yield from _lengths("record", record, "job")
        yield from backward_runs(record)
        yield from _repeated(jobs.get("id", ()))
        yield from _disorder(jobs.get("submit_us", ()))
        if "id" in jobs:
            yield from _strangers("failures", failures.get("job", ()), jobs["id"])
            yield from _strangers("record", record.get("job", ()), jobs["id"])
            yield from _harmless(jobs, failures)


def read_trace(path: str | Path) -> Trace:
    """Read a trace from a file that `write_trace` wrote, or that has the same form.

    Raises
    ------
    InstanceError
        If anything in it is wrong: the first 20 faults, each with its path.
    OSError
        If it cannot be read.
    """
    otherwise = "; files of other programs need --input-format, or `optsched trace import`"
    document = load(Path(path), otherwise)
    require(document, "optsched/trace/1", path)
    try:
        return _trace(TraceDocument.from_document(document, str(path)))
    except InstanceError as error:
        raise fault_list(error.origin, error.faults) from None


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as JSON; `read_trace` of it gives an equal one.

    Columns in which nothing is known are left out. The file is there whole or not at all.

    Raises
    ------
    OSError
        If it cannot be written; a file that was there before is still the same then.
    """
    write_text(path, to_json(trace))


def to_json(trace: Trace) -> str:
    """Return the text of a trace's file, the same bytes for the same trace."""
    attempts = [
        (trace.ids[job], failure)
        for job in sorted(trace.failures)
        for failure in trace.failures[job]
    ]
    failures = Failures.model_construct(
        job=tuple(job for job, _ in attempts),
        reason=tuple(failure.reason for _, failure in attempts),
        run_us=tuple(failure.run_us for _, failure in attempts),
    )
    return TraceDocument.model_construct(
        schema_id="optsched/trace/1",
        name=trace.name,
        source=trace.source,
        notes=trace.notes,
        jobs=_jobs(trace),
        failures=failures,
        record=columns_of(trace),
    ).to_json()


def _jobs(trace: Trace) -> Jobs:
    status = tuple(_STATUSES[code] for code in trace.status.tolist())
    busy = tuple(None if share != share else share for share in trace.utilization.tolist())
    deadline = tuple(None if us < 0 else us for us in trace.deadline_us.tolist())
    return Jobs.model_construct(
        id=trace.ids,
        submit_us=tuple(trace.submit_us.tolist()),
        gpus=tuple(trace.gpus.tolist()),
        run_us=tuple(trace.run_us.tolist()),
        model=trace.model if any(trace.model) else None,
        queue=trace.queue if any(trace.queue) else None,
        user=trace.user if any(trace.user) else None,
        status=status if set(status) - {PASSED} else None,
        utilization=busy if any(share is not None for share in busy) else None,
        deadline_us=deadline if any(us is not None for us in deadline) else None,
    )


def _trace(document: TraceDocument) -> Trace:
    import numpy as np

    def fixed(values: Sequence[float | None], kind: type) -> Any:
        array: Any = np.array(values, dtype=kind)
        array.setflags(write=False)
        return array

    jobs, count = document.jobs, len(document.jobs.id)
    status = [_STATUSES.index(word) for word in jobs.status or _STATUSES[:1] * count]
    deadline = [-1 if us is None else us for us in jobs.deadline_us or (None,) * count]
    return Trace(
        name=document.name,
        source=document.source,
        ids=jobs.id,
        submit_us=fixed(jobs.submit_us, np.int64),
        gpus=fixed(jobs.gpus, np.int64),
        run_us=fixed(jobs.run_us, np.int64),
        model=jobs.model or ("",) * count,
        queue=jobs.queue or ("",) * count,
        status=fixed(status, np.int64),
        utilization=fixed(jobs.utilization or (None,) * count, float),
        deadline_us=fixed(deadline, np.int64),
        failures=_attempts(document),
        notes=document.notes,
        user=jobs.user or ("",) * count,
        record=runs_of(document.record, jobs.id),
    )


def _attempts(document: TraceDocument) -> dict[int, tuple[Failure, ...]]:
    numbers = {word: number for number, word in enumerate(document.jobs.id)}
    attempts: dict[int, tuple[Failure, ...]] = {}
    columns = document.failures
    for word, reason, run_us in zip(columns.job, columns.reason, columns.run_us, strict=True):
        job = numbers[word]
        attempts[job] = (*attempts.get(job, ()), Failure(reason, run_us))
    return dict(sorted(attempts.items()))


def _columns(document: Mapping[str, Any], key: str) -> dict[str, Sequence[Any]]:
    """Return the columns of a part, whatever stands there."""
    part = document.get(key)
    entries = part.items() if isinstance(part, dict) else ()
    return {name: column for name, column in entries if isinstance(column, list | tuple)}


def _lengths(part: str, columns: dict[str, Sequence[Any]], first: str) -> Iterator[Fault]:
    if first not in columns:  # said already, by its type
        return
    count = len(columns[first])
    for name, column in columns.items():
        if len(column) != count:
            yield (part, name), f"has {len(column):,} entries, but {part}.{first} has {count:,}"


def _repeated(ids: Sequence[Any]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for number, word in enumerate(ids):
        if isinstance(word, str) and first.setdefault(word, number) != number:
            text = f"{shown(word)} stands more than once, first as id[{first[word]}]"
            yield ("jobs", "id", number), text


def _disorder(moments: Sequence[Any]) -> Iterator[Fault]:
    for number, (before, after) in enumerate(pairwise(moments), start=1):
        if isinstance(before, int) and isinstance(after, int) and after < before:
            text = f"must not be before the job above it: {after} after {before}"
            yield ("jobs", "submit_us", number), text


def _strangers(part: str, words: Sequence[Any], ids: Sequence[Any]) -> Iterator[Fault]:
    known = {word for word in ids if isinstance(word, str)}
    for number, word in enumerate(words):
        if isinstance(word, str) and word not in known:
            yield (part, "job", number), f"there is no job {shown(word)}"


def _harmless(
    jobs: dict[str, Sequence[Any]], failures: dict[str, Sequence[Any]]
) -> Iterator[Fault]:
    """Find jobs that end as failed although no attempt of theirs fails."""
    failing = {word for word in failures.get("job", ()) if isinstance(word, str)}
    pairs = zip(jobs.get("status", ()), jobs.get("id", ()), strict=False)
    for number, (status, word) in enumerate(pairs):
        if status == "failed" and isinstance(word, str) and word not in failing:
            yield (
                ("jobs", "status", number),
                f"job {shown(word)} fails, but has no entry in failures",
            )
