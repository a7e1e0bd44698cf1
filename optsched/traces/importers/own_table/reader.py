"""Jobs of a user's own table: comma, semicolon or tab between columns of any names."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import (
    COUNT_OR_0,
    TEXT,
    ColumnType,
    one_of,
)
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import ENDS, UNENDED, Notes, finish, recorded
from optsched.traces.importers.own_table.column_names import find_columns, header_of
from optsched.traces.importers.own_table.local_times import LocalClock, duration, moments_of
from optsched.traces.trace import FAILED, KILLED, PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.importers.own_table.column_names import FoundColumns
    from optsched.traces.trace import Trace

SOURCE = "your file"
_WORDS = {
    **{state.lower(): end for state, end in ENDS.items()},
    **{state.lower(): "" for state in UNENDED},
    **dict.fromkeys(("passed", "pass", "succeeded", "success", "finished", "done", "ok"), PASSED),
    **dict.fromkeys(("killed", "canceled", "stopped", "aborted", "terminated", "kill"), KILLED),
    **dict.fromkeys(("fail", "error", "failure", "oom", "crashed"), FAILED),
    **dict.fromkeys(("queued", "waiting", "unknown"), ""),
}
_EXPECTED = "passed, killed or failed, or a usual word for it such as completed, cancelled, timeout"
STATUS = ColumnType(_EXPECTED, lambda text: one_of(_WORDS, "").read(text.strip().lower()), "")
_GPU_COUNT = re.compile(r"(.+?)[:=x*](\d{1,6})", re.ASCII)


def read(
    text: str,
    name: str,
    origin: str,
    *,
    map: str | Mapping[str, str] = "",
    unit: str | Mapping[str, str] = "",
    zone: str = "UTC",
) -> Trace:
    """Read any table with a header: submission, GPUs and run time (or start and end) at least.

    Columns of usual names are recognised, such as submit_time, num_gpus and duration, with units
    at the end of a name, such as run_min. Times are seconds (or dates). Jobs without GPUs, or that
    have not ended, are left out and counted in the notes, as are the columns that were not read.

    Parameters
    ----------
    map
        Columns by field: ``{"submit": "when", "run": "hours"}`` or ``"submit=when,run=hours"``.
        Fields are id, submit, gpus, run, start, end, nodes, model, queue, user, status, reason,
        utilization and deadline.
    unit
        Units by field, in the same form: us, ms, s, min, h, d; of utilization share or %.
    zone
        Of dates that have none, such as ``"Europe/Berlin"``. Where the clock is put back or
        forward, the moment is taken that keeps submission, start and end in their order.
    """
    header, delimiter = header_of(text)
    where = find_columns(header, map, unit, origin)
    table = read_table(text, origin, list(where.names.values()), delimiter=delimiter)
    notes = Notes()
    table = _usable(table, where, notes)
    columns = _columns(table, where, LocalClock.of(zone), notes)
    table.faults.raise_any()
    return finish(name, SOURCE, origin, columns, notes, lines=_told(where))


def _told(where: FoundColumns) -> tuple[str, ...]:
    taken = ", ".join(f"{field} from '{name}'" for field, name in where.names.items())
    unread = ", ".join(f"'{name}'" for name in where.unread)
    return (f"columns read: {taken}", *((f"columns not read: {unread}",) if unread else ()))


def _usable(table: CsvTable, where: FoundColumns, notes: Notes) -> CsvTable:
    """Return the jobs that have GPUs and have ended."""
    gpus = table.read(where.names["gpus"], COUNT_OR_0)
    notes["jobs ask for no GPU: left out"] = gpus.count(0)
    table = table.where(number > 0 for number in gpus)
    status = where.names.get("status")
    if status is not None:
        cells = table.columns[status]
        blank = sum(not cell.strip() for cell in cells)
        notes["jobs have no status: taken as passed"] = blank
        table.columns[status] = [cell if cell.strip() else PASSED for cell in cells]
        ends = table.read(status, STATUS)
        notes["jobs had not ended: left out"] = ends.count("")
        table = table.where(word != "" for word in ends)
    if "run" not in where.names:
        spans = (table.columns[where.names[key]] for key in ("start", "end"))
        whole = [all(cell.strip() for cell in row) for row in zip(*spans, strict=True)]
        notes["jobs lack a start or an end: left out"] = whole.count(False)
        table = table.where(whole)
    return table


def _columns(
    table: CsvTable, where: FoundColumns, clock: LocalClock, notes: Notes
) -> dict[str, list[Any]]:
    names = where.names
    submit, start, end, deadline = moments_of(table, where, clock)
    notes["times in an hour that the clock repeats or skips: taken in order"] = clock.doubtful
    gpus = table.read(names["gpus"], COUNT_OR_0)
    columns: dict[str, list[Any]] = {"submit_s": list(submit), "gpus": gpus}
    if "run" in names:
        columns["run_s"] = table.read(names["run"], duration(where.units.get("run", "s")))
        spans = zip(columns["run_s"], start, end, strict=True)
        text = "jobs ran for another time than from their start to their end"
        notes[text] = sum(abs(b - a - run) > 1 for run, a, b in spans if a == a and b == b)
    else:
        columns["run_s"] = [b - a for a, b in zip(start, end, strict=True)]
    if "id" in names:
        columns["ids"] = table.ids(names["id"])
    for field in ("model", "queue", "user"):
        if field in names:
            columns[field] = table.read(names[field], TEXT)
    if "status" in names:
        columns["status"] = table.read(names["status"], STATUS)
        column = names.get("reason", names["status"])
        columns["reasons"] = [
            cell.strip().lower() or "unknown" for cell in table.read(column, TEXT)
        ]
    if "utilization" in names:
        columns["utilization"] = table.read(names["utilization"], _share(where))
    if "deadline" in names:
        columns["deadline_s"] = list(deadline)
    if "end" not in names:
        end = [first + run for first, run in zip(start, columns["run_s"], strict=True)]
    nodes = _nodes(table, where, gpus, notes)
    columns["record"] = recorded(submit, start, end, gpus, nodes, notes)
    return columns


def _share(where: FoundColumns) -> ColumnType[float]:
    most = 100.0 if where.units.get("utilization") == "%" else 1.0

    def read(text: str) -> float:
        if not text.strip():
            return math.nan
        share = float(text.removesuffix("%")) / most
        if not 0 <= share <= 1:
            raise ValueError
        return share

    return ColumnType(f"a number from 0 to {most:g}", read, 0.0)


def _nodes(
    table: CsvTable, where: FoundColumns, gpus: list[int], notes: Notes
) -> list[tuple[tuple[str, int], ...]]:
    """Return nodes with GPUs: ``n1:4;n2:4``, or names alone, which share the GPUs evenly."""
    if "nodes" not in where.names:
        return [()] * len(table)
    found = []
    for text, count in zip(table.columns[where.names["nodes"]], gpus, strict=True):
        parts = [part for part in re.split(r"[;,|+\s]+", text) if part]
        told = [_GPU_COUNT.fullmatch(part) for part in parts]
        if parts and all(told):
            held = [(match[1], int(match[2])) for match in told if match]
        else:
            names = Counter(parts)
            each, more = divmod(count, max(1, len(names)))
            held = [(node, each + (n < more)) for n, node in enumerate(names)]
            text = "jobs name their nodes without GPUs: taken as shared evenly"
            notes[text] += len(names) > 1
        found.append(tuple((node, number) for node, number in held if number))
    return found
