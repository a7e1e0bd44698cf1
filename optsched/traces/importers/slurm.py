"""Jobs of a Slurm cluster: what `sacct --parsable2` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError, nearest
from optsched.traces.importers.column_types import TEXT, WORD, ColumnType, RowClock, one_of
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import (
    ENDS,
    UNENDED,
    Columns,
    Notes,
    finish,
    work_and_failures,
)
from optsched.traces.importers.slurm_cells import ELAPSED, GPU_COLUMNS, gpus_of
from optsched.traces.importers.slurm_record import recorded_runs
from optsched.traces.trace import FAILED, US

if TYPE_CHECKING:
    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import Trace

SOURCE = "sacct of a Slurm cluster"
_NEVER = ("", "None", "Unknown")


def read(
    text: str, name: str, origin: str, *, queue: str = "Partition", zone: str = "UTC"
) -> Trace:
    """Read JobID, State, Submit, Elapsed and AllocTRES (or ReqTRES); others if they are there.

    Print them with ``sacct -a -X --parsable2 --duplicates -S 2024-01-01 -o
    JobID,JobName,User,Partition,State,Submit,Start,Elapsed,AllocTRES,NodeList``. Start and NodeList
    give the recorded schedule, the GPUs of a job being shared evenly by its nodes. With
    ``--duplicates`` the earlier runs of a job that was requeued are its failing attempts. Steps,
    jobs without GPUs, and those that have not ended or never started are left out.

    Parameters
    ----------
    queue
        The column that gives the queue, such as ``"Account"``.
    zone
        Where the clock hangs: times have no zone. In the hour that it repeats when it is put back,
        rows are taken to stand in the order of their submission.
    """
    needed = ["JobID", "State", "Submit", "Elapsed"]
    optional = ["JobName", "User", "Start", "NodeList", queue, *GPU_COLUMNS]
    table = read_table(text, origin, needed, optional, delimiter="|")
    _require(table, text, queue, origin)
    notes = Notes()
    table = _jobs_only(table, notes)
    last, earlier = _attempts(_ended(table, notes), notes)
    columns: Columns = {
        "ids": last.read("JobID", WORD),
        "submit_s": _first_submissions(last, earlier, zone, notes),
        "gpus": gpus_of(last),
        "run_s": last.read("Elapsed", ELAPSED),
        "status": last.read("State", STATE),
        "reasons": [_reason(state) for state in last.read("State", TEXT)],
    }
    for key, column in (("model", "JobName"), ("queue", queue), ("user", "User")):
        if column in last:
            columns[key] = last.read(column, TEXT)
    table.faults.raise_any()
    record = recorded_runs(last, earlier, zone)
    starts = zip(
        columns["submit_s"], (record.get(word, ()) for word in columns["ids"]), strict=True
    )
    notes["jobs start before their submission: recorded so"] = sum(
        bool(runs) and runs[0].start_us < round(sent * US) for sent, runs in starts
    )
    columns["record"] = [record.get(word, ()) for word in columns["ids"]]
    _add_attempts(columns, earlier)
    return finish(name, SOURCE, origin, columns, notes)


_STATES = one_of(ENDS | dict.fromkeys(UNENDED, ""), "")
STATE = ColumnType(_STATES.expected, lambda text: _STATES.read(text.partition(" ")[0]), "")


def _require(table: CsvTable, text: str, queue: str, origin: str) -> None:
    header = text.lstrip().partition("\n")[0].strip().split("|")
    faults = []
    if not any(column in table for column in GPU_COLUMNS):
        faults.append("line 1: there is no column 'AllocTRES' or 'ReqTRES', which name the GPUs")
    if queue not in table and queue != "Partition":
        faults.append(f"line 1: there is no column '{queue}'; {nearest(queue, header)}")
    if faults:
        raise InstanceError(origin, faults)


def _jobs_only(table: CsvTable, notes: Notes) -> CsvTable:
    ids = table.columns["JobID"]
    notes["rows are steps of jobs: left out"] = sum("." in word for word in ids)
    return table.where("." not in word for word in ids)


def _ended(table: CsvTable, notes: Notes) -> CsvTable:
    """Return all runs of the jobs whose newest run ended and had GPUs."""
    states = table.read("State", STATE)
    starts = table.columns.get("Start", ["?"] * len(table))
    rows = zip(table.columns["JobID"], states, starts, gpus_of(table), strict=True)
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
        work, failed = work_and_failures(attempts, why, status)
        columns["run_s"][job], columns["failures"][job] = work, failed


def _reason(state: str) -> str:
    return state.partition(" ")[0].lower()
