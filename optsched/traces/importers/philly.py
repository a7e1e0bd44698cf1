"""Microsoft Philly's public trace: cluster_job_log, JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, NotRequired

from pydantic import RootModel, ValidationError
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from optsched.documents.faults import InstanceError, lines, shown, validation_faults
from optsched.traces.importers.column_types import MOMENT, zone_of
from optsched.traces.importers.csv_table import fault_list
from optsched.traces.importers.import_jobs import (
    Columns,
    Notes,
    finish,
    recorded_run,
    work_and_failures,
)
from optsched.traces.trace import FAILED, KILLED, PASSED, US

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from optsched.traces.trace import Failure, RecordedRun, Trace

SOURCE = "Microsoft Philly (Jeon et al., ATC'19), msr-fiddle/philly-traces, CC-BY-4.0"
_STATUS = {"Pass": PASSED, "Killed": KILLED, "Failed": FAILED}
_NO_MOMENT = (None, "", "None")


class _Server(TypedDict):
    gpus: list[str]
    ip: NotRequired[str]


class _Attempt(TypedDict):
    start_time: NotRequired[str | None]
    end_time: NotRequired[str | None]
    detail: NotRequired[list[_Server]]


class _Job(TypedDict):
    jobid: str
    status: Literal["Pass", "Killed", "Failed"]
    submitted_time: str
    attempts: list[_Attempt]
    vc: NotRequired[str]
    user: NotRequired[str]


class _Log(RootModel[list[_Job]]):
    pass


class _JobRow(NamedTuple):
    ids: str
    queue: str
    user: str
    submit_s: float
    gpus: int
    run_s: float
    status: str
    failures: tuple[Failure, ...]
    record: tuple[RecordedRun, ...]


def read(text: str, name: str, origin: str, *, zone: str = "America/Los_Angeles") -> Trace:
    """Read jobid, vc, user, status, submitted_time and attempts, with servers and GPUs.

    Every attempt but the last, and the last of a failed job, is a failing attempt of unknown
    reason. Waits between attempts are no run time, so run times are shorter than the official
    notebook's, which are from the first start to the last end. GPUs are those of the last attempt
    (cluster_machine_list is known to be wrong).

    Left out, and counted in the notes: jobs without attempts, still running, or without GPUs;
    attempts that lack a start or an end, or end before they start.

    Parameters
    ----------
    zone
        Where the clock hangs: times have no zone, and one change of the clocks lies inside.
    """
    log = _validated(text, origin)
    reader = _Reader(_Clock(zone_of(zone)), Notes(), {})
    rows = [row for number, job in enumerate(log) if (row := reader.row(job, (number,)))]
    reader.check_ids(log)
    if reader.faults:
        raise fault_list(origin, lines(reader.faults.items()))
    columns: Columns = {key: [getattr(row, key) for row in rows] for key in _JobRow._fields}
    return finish(name, SOURCE, origin, columns, reader.notes)


def _validated(text: str, origin: str) -> list[_Job]:
    try:
        return _Log.model_validate_json(text, strict=True).root
    except ValidationError as error:
        invalid = error
    try:
        json.loads(text)  # which, unlike pydantic, knows where it ceases to be JSON
    except json.JSONDecodeError as error:
        fault = f"line {error.lineno}, column {error.colno}: {error.msg}; expected JSON"
        raise InstanceError(origin, [fault]) from None
    except (RecursionError, ValueError) as error:
        raise InstanceError(origin, [f"cannot be read: {error}"]) from None
    raise fault_list(origin, lines(validation_faults(invalid, _Log)))


@dataclass(frozen=True)
class _Clock:
    zone: ZoneInfo

    def seconds(self, text: str, fold: int = 0) -> float:
        """Return the moment of a local time; `fold` 1 is the second of two equal hours."""
        moment = datetime.fromisoformat(text)
        return (
            moment if moment.tzinfo else moment.replace(tzinfo=self.zone, fold=fold)
        ).timestamp()


@dataclass(frozen=True)
class _Reader:
    clock: _Clock
    notes: Notes
    faults: dict[tuple[str | int, ...], str]

    def row(self, job: _Job, path: tuple[str | int, ...]) -> _JobRow | None:
        """Return what a trace needs of a job; None if it is left out."""
        submit_s = self._moment(job["submitted_time"], (*path, "submitted_time"))
        record = () if _unended(job) else tuple(self._runs(job, path))
        runs = [((run.end_us - run.start_us) / US, run.gpus) for run in record]
        why = _unended(job) or _unusable(runs)
        if why:
            self.notes[why] += 1
            return None
        lengths, sizes = zip(*runs, strict=True)
        status = _STATUS[job["status"]]
        if len(set(sizes)) > 1:
            self.notes["jobs had attempts of several sizes: taken as the last"] += 1
        if status != FAILED and max(lengths) > lengths[-1]:
            text = "jobs failed after a longer run than their last: these two change places"
            self.notes[text] += 1
        self.notes["jobs start before their submission: recorded so"] += record[0].start_us < round(
            submit_s * US
        )
        count = len(lengths) - (status != FAILED)
        work, causes = work_and_failures(lengths, ["unknown"] * count, status)
        who = job["jobid"], job.get("vc", ""), job.get("user", "")
        held = tuple(run for run in record if run.gpus)
        return _JobRow(*who, submit_s, sizes[-1], work, status, causes, held)

    def check_ids(self, log: list[_Job]) -> None:
        """Find ids that stand more than once."""
        first: dict[str, int] = {}
        for number, job in enumerate(log):
            if first.setdefault(job["jobid"], number) != number:
                text = (
                    f"{shown(job['jobid'])} stands more than once, first in [{first[job['jobid']]}]"
                )
                self.faults[number, "jobid"] = text

    def _runs(self, job: _Job, path: tuple[str | int, ...]) -> Iterator[RecordedRun]:
        """Yield each attempt that has a start and an end."""
        for number, attempt in enumerate(job["attempts"]):
            start, end = attempt.get("start_time"), attempt.get("end_time")
            if start is None or end is None or start in _NO_MOMENT or end in _NO_MOMENT:
                self.notes["attempts lack a start or an end: left out"] += 1
                continue
            here = (*path, "attempts", number)
            first = self._moment(start, (*here, "start_time"))
            last = self._moment(end, (*here, "end_time"))
            if last < first and (*here, "end_time") not in self.faults:
                last = self.clock.seconds(end, fold=1)
            if last < first:
                self.notes["attempts end before they start: left out"] += 1
            else:
                yield recorded_run(first, last, *_held(attempt))

    def _moment(self, text: str, path: tuple[str | int, ...]) -> float:
        try:
            return self.clock.seconds(text)
        except (ValueError, OverflowError):
            self.faults[path] = f"expected {MOMENT.expected}, found {shown(text)}"
            return 0.0


def _held(attempt: _Attempt) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Return the GPUs of an attempt, and how many of them each server has, if these are named."""
    servers = [(server.get("ip", ""), len(server["gpus"])) for server in attempt.get("detail", ())]
    named = all(ip for ip, _ in servers)
    total = sum(count for _, count in servers)
    return total, tuple((ip, count) for ip, count in servers if count) if named else ()


def _unended(job: _Job) -> str:
    """Return why a job is left out, if it never began or had not ended."""
    if not job["attempts"]:
        return "jobs have no attempt: left out"
    last = job["attempts"][-1]
    if last.get("end_time") in _NO_MOMENT and last.get("start_time") not in _NO_MOMENT:
        return "jobs were still running: left out"
    return ""


def _unusable(runs: list[tuple[float, int]]) -> str:
    """Return why a job is left out, if its attempts do not say what a trace needs."""
    if not runs:
        return "jobs have no attempt with a start and an end: left out"
    return "" if runs[-1][1] else "jobs hold no GPU: left out"
