"""Logs of jobs in the columns that Helios and Acme share, with Slurm's states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT_OR_0, TEXT, moment_in, one_of
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import ENDS, UNENDED, Columns, Notes, finish, recorded

if TYPE_CHECKING:
    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import Trace

_STATE = one_of(ENDS | dict.fromkeys(UNENDED, ""), "")
_NEEDED = ("job_id", "gpu_num", "state", "submit_time", "start_time", "end_time")


def read_log(
    text: str, name: str, origin: str, source: str, words: dict[str, str], zone: str
) -> Trace:
    """Read a log of jobs; run time is from start to end, whatever its column duration says.

    Parameters
    ----------
    words
        The columns that give `queue`, `user` and `model` of a trace.
    zone
        Of times that have none.
    """
    notes = Notes()
    table = _ended(read_table(text, origin, _NEEDED, [*words.values()]), notes)
    clock = moment_in(zone)
    start, end = table.read("start_time", clock), table.read("end_time", clock)
    submit, gpus = table.read("submit_time", clock), table.read("gpu_num", COUNT_OR_0)
    columns: Columns = {
        "ids": table.ids("job_id"),
        "submit_s": submit,
        "gpus": gpus,
        "record": recorded(submit, start, end, gpus, None, notes),
        "run_s": [last - first for first, last in zip(start, end, strict=True)],
        "status": table.read("state", _STATE),
        "reasons": [state.lower() for state in table.read("state", TEXT)],
    }
    for key, column in words.items():
        if column in table:
            columns[key] = table.read(column, TEXT)
    table.faults.raise_any()
    return finish(name, source, origin, columns, notes)


def _ended(table: CsvTable, notes: Notes) -> CsvTable:
    """Return the jobs of GPUs that have ended."""
    gpus = table.read("gpu_num", COUNT_OR_0)
    notes["jobs ask for no GPU: left out"] = gpus.count(0)
    table = table.where(number > 0 for number in gpus)
    states = table.read("state", _STATE)
    notes["jobs had not ended: left out"] = states.count("")
    table = table.where(state != "" for state in states)
    spans = zip(table.columns["start_time"], table.columns["end_time"], strict=True)
    started = [bool(start and end) for start, end in spans]
    notes["jobs never started or lack an end: left out"] = started.count(False)
    return table.where(started)
