"""Jobs of a Slurm cluster: what `sacct --parsable2` prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError, nearest
from optsched.traces.importers.column_types import TEXT, WORD, ColumnType, RowClock, one_of
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import (
    ENDS,
    UNENDED,
    Columns,
    Notes,
    failures,
    finish,
    work_s,
)
from optsched.traces.trace import FAILED

if TYPE_CHECKING:
    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import Trace

SOURCE = "sacct of a Slurm cluster"
_GPUS = ("AllocTRES", "ReqTRES")
_NEVER = ("", "None", "Unknown")
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?", re.ASCII)
_TRES = re.compile(r"gres/gpu(:[^=,]*)?=(\d{1,6})", re.ASCII)


def read(
    text: str, name: str, origin: str, *, queue: str = "Partition", zone: str = "UTC"
) -> Trace:
    """Read JobID, State, Submit, Elapsed and AllocTRES (or ReqTRES); JobName if it is there.

    Print them with ``sacct -a -X --parsable2 --duplicates -S 2024-01-01
    -o JobID,JobName,Partition,State,Submit,Start,Elapsed,AllocTRES``. With ``--duplicates`` the
    earlier runs of a job that was requeued are its failing attempts. Steps, jobs without GPUs, and
    those that have not ended or never started are left out.

    Parameters
    ----------
    queue
        The column that gives the queue, such as ``"Account"``.
    zone
        Where the clock hangs: times have no zone. In the hour that it repeats when it is put back,
        rows are taken to stand in the order of their submission.
    """
    needed = ["JobID", "State", "Submit", "Elapsed"]
    optional = ["JobName", "Start", queue, *_GPUS]
    table = read_table(text, origin, needed, optional, delimiter="|")
    _require(table, text, queue, origin)
    notes = Notes()
    table = _jobs_only(table, notes)
    last, earlier = _attempts(_ended(table, notes), notes)
    columns: Columns = {
        "ids": last.read("JobID", WORD),
        "submit_s": _first_submissions(last, earlier, zone, notes),
        "gpus": _gpus_of(last),
        "run_s": last.read("Elapsed", ELAPSED),
        "status": last.read("State", STATE),
        "reasons": [_reason(state) for state in last.read("State", TEXT)],
    }
    for key, column in (("model", "JobName"), ("queue", queue)):
        if column in last:
            columns[key] = last.read(column, TEXT)
    table.faults.raise_any()
    _add_attempts(columns, earlier)
    return finish(name, SOURCE, origin, columns, notes)


def _elapsed(text: str) -> float:
    match = _ELAPSED.fullmatch(text)
    if match is None:
        raise ValueError
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _gpus(text: str) -> int:
    """Return GPUs of trackable resources; a total stands beside the counts by type."""
    counts = _TRES.findall(text)
    totals = [int(count) for kind, count in counts if not kind]
    return totals[0] if totals else sum(int(count) for _, count in counts)


_STATES = one_of(ENDS | dict.fromkeys(UNENDED, ""), "")
ELAPSED = ColumnType("a time such as 1-02:30:00", _elapsed, 0.0)
GPUS = ColumnType("resources such as cpu=8,gres/gpu=2", _gpus, 0)
STATE = ColumnType(_STATES.expected, lambda text: _STATES.read(text.partition(" ")[0]), "")


def _require(table: CsvTable, text: str, queue: str, origin: str) -> None:
    header = text.lstrip().partition("\n")[0].strip().split("|")
    faults = []
    if not any(column in table for column in _GPUS):
        faults.append("line 1: there is no column 'AllocTRES' or 'ReqTRES', which name the GPUs")
    if queue not in table and queue != "Partition":
        faults.append(f"line 1: there is no column '{queue}'; {nearest(queue, header)}")
    if faults:
        raise InstanceError(origin, faults)


def _gpus_of(table: CsvTable) -> list[int]:
    counts = [table.read(column, GPUS) for column in _GPUS if column in table]
    return [max(row) for row in zip(*counts, strict=True)]


def _jobs_only(table: CsvTable, notes: Notes) -> CsvTable:
    ids = table.columns["JobID"]
    notes["rows are steps of jobs: left out"] = sum("." in word for word in ids)
    return table.where("." not in word for word in ids)


def _ended(table: CsvTable, notes: Notes) -> CsvTable:
    """Return all runs of the jobs whose newest run ended and had GPUs."""
    states = table.read("State", STATE)
    starts = table.columns.get("Start", ["?"] * len(table))
    rows = zip(table.columns["JobID"], states, starts, _gpus_of(table), strict=True)
    fates = {word: _fate(state, start, gpus) for word, state, start, gpus in rows}
    notes.update(fate for fate in fates.values() if fate)
    return table.where(not fates[word] for word in table.columns["JobID"])


def _fate(state: str, start: str, gpus: int) -> str:
    """Return why a job is left out, going by its newest run."""
    if state == "":
        return "jobs had not ended: left out"
    if start in _NEVER:
        return "jobs never started, or not again after a requeue: left out"
    return "" if gpus else "jobs had no GPU: left out"


def _attempts(table: CsvTable, notes: Notes) -> tuple[CsvTable, CsvTable]:
    """Return the last run of each job, and the earlier ones."""
    newest = {word: row for row, word in enumerate(table.columns["JobID"])}
    last = [newest[word] == row for row, word in enumerate(table.columns["JobID"])]
    notes["runs ended with their job requeued: its failing attempts"] = last.count(False)
    return table.where(last), table.where(not is_last for is_last in last)


def _first_submissions(last: CsvTable, earlier: CsvTable, zone: str, notes: Notes) -> list[float]:
    text = "submissions in an hour that the clock repeats or skips: taken in the order of the rows"
    first: dict[str, float] = {}
    for table in (earlier, last):
        clock = RowClock(zone)
        moments = table.read("Submit", clock.column)
        notes[text] += clock.doubtful
        for word, moment in zip(table.columns["JobID"], moments, strict=True):
            first[word] = min(moment, first.get(word, moment))
    return [first[word] for word in last.columns["JobID"]]


def _add_attempts(columns: Columns, earlier: CsvTable) -> None:
    """Put the failing attempts of each job into the columns, its last run too if that failed."""
    runs: dict[str, list[float]] = {}
    reasons: dict[str, list[str]] = {}
    states, spans = earlier.columns["State"], earlier.read("Elapsed", ELAPSED)
    for word, state, seconds in zip(earlier.columns["JobID"], states, spans, strict=True):
        if seconds > 0:
            runs.setdefault(word, []).append(seconds)
            reasons.setdefault(word, []).append(_reason(state))
    columns["failures"] = [()] * len(columns["ids"])
    for job, word in enumerate(columns["ids"]):
        if word not in runs:
            continue
        status = columns["status"][job]
        attempts = [*runs[word], columns["run_s"][job]]
        why = [*reasons[word], *([columns["reasons"][job]] if status == FAILED else [])]
        columns["run_s"][job] = work_s(attempts, status)
        columns["failures"][job] = failures(zip(why, attempts, strict=False))


def _reason(state: str) -> str:
    return state.partition(" ")[0].lower()
