"""Recorded attempts in files of traces: columns with an entry for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from optsched.instance import Document
from optsched.traces.trace import RecordedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.documents.faults import Fault
    from optsched.traces.trace import Trace

_MOST_US = 10**17
Word = Annotated[str, Field(min_length=1)]
Clock = Annotated[int, Field(ge=-_MOST_US, le=_MOST_US)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Placement = Annotated[str, Field(pattern=r"^[^,]+:[1-9][0-9]{0,5}(,[^,]+:[1-9][0-9]{0,5})*$")]


class RecordedRuns(Document):
    """Columns with an entry for each attempt that was recorded; those of a job in their order."""

    job: tuple[Word, ...] = Field(description="Ids of jobs.")
    start_us: tuple[Clock, ...] = Field(
        description="In microseconds from the trace's start; below 0 if it began before."
    )
    end_us: tuple[Clock, ...]
    gpus: tuple[Count, ...] = Field(description="That it held.")
    nodes: tuple[Placement | None, ...] | None = Field(
        default=None, description="Nodes with the GPUs held there, 'n1:4,n2:4'; null if unknown."
    )


def columns_of(trace: Trace) -> RecordedRuns | None:
    """Return the columns of a trace's record, None if it has none."""
    runs = [(trace.ids[job], run) for job in sorted(trace.record) for run in trace.record[job]]
    if not runs:
        return None
    nodes = tuple(",".join(f"{node}:{n}" for node, n in run.nodes) or None for _, run in runs)
    return RecordedRuns.model_construct(
        job=tuple(job for job, _ in runs),
        start_us=tuple(run.start_us for _, run in runs),
        end_us=tuple(run.end_us for _, run in runs),
        gpus=tuple(run.gpus for _, run in runs),
        nodes=nodes if any(nodes) else None,
    )


def runs_of(columns: RecordedRuns | None, ids: Sequence[str]) -> dict[int, tuple[RecordedRun, ...]]:
    """Return the recorded attempts by the number of the job."""
    if columns is None:
        return {}
    numbers = {word: number for number, word in enumerate(ids)}
    nodes = columns.nodes or (None,) * len(columns.job)
    found: dict[int, list[RecordedRun]] = {}
    rows = zip(columns.job, columns.start_us, columns.end_us, columns.gpus, nodes, strict=True)
    for word, start, end, gpus, held in rows:
        run = RecordedRun(start, end, gpus, _placed(held))
        found.setdefault(numbers[word], []).append(run)
    return {job: tuple(runs) for job, runs in sorted(found.items())}


def _placed(text: str | None) -> tuple[tuple[str, int], ...]:
    parts = (part.rpartition(":") for part in text.split(",")) if text else ()
    return tuple((node, int(count)) for node, _, count in parts)


def backward_runs(record: Mapping[str, Sequence[Any]]) -> Iterator[Fault]:
    """Find attempts that end before they start."""
    pairs = zip(record.get("start_us", ()), record.get("end_us", ()), strict=False)
    for number, (start, end) in enumerate(pairs):
        if isinstance(start, int) and isinstance(end, int) and end < start:
            yield ("record", "end_us", number), f"is before its start: {end} after {start}"
