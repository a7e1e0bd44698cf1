"""When and where Slurm ran the jobs that `sacct` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cluster.importers.hostlist import HostlistError, expand
from optsched.traces.importers.column_types import ColumnType, RowClock
from optsched.traces.importers.import_jobs import recorded_run
from optsched.traces.importers.slurm_cells import ELAPSED, gpus_of

if TYPE_CHECKING:
    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import RecordedRun

_NOWHERE = ("", "None", "None assigned", "Unknown")


def recorded_runs(
    last: CsvTable, earlier: CsvTable, zone: str
) -> dict[str, tuple[RecordedRun, ...]]:
    """Return the runs of each job that have a start, the last one being the job's own.

    In an hour that the clock repeats, starts are taken to stand in the order of the rows.
    """
    found: dict[str, tuple[RecordedRun, ...]] = {}
    for table in (earlier, last):
        if "Start" not in table:
            return {}
        clock = RowClock(zone)
        told = table.where(cell not in _NOWHERE for cell in table.columns["Start"])
        starts = told.read("Start", clock.column)
        nodes = told.read("NodeList", NODES) if "NodeList" in told else [()] * len(told)
        rows = zip(
            told.columns["JobID"], starts, told.read("Elapsed", ELAPSED), gpus_of(told), nodes,
            strict=True,
        )  # fmt: skip
        for word, start, seconds, gpus, names in rows:
            if gpus:
                run = recorded_run(start, start + seconds, gpus, _shared(gpus, names))
                found[word] = (*found.get(word, ()), run)
    table.faults.raise_any()
    return found


def _names(text: str) -> tuple[str, ...]:
    if text in _NOWHERE:
        return ()
    try:
        return tuple(expand(text))
    except HostlistError as error:
        raise ValueError from error


def _shared(gpus: int, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return nodes with GPUs, which they share as evenly as they can."""
    each, more = divmod(gpus, max(1, len(names)))
    shares = ((name, each + (n < more)) for n, name in enumerate(names))
    return tuple((name, count) for name, count in shares if count)


NODES: ColumnType[tuple[str, ...]] = ColumnType("nodes such as tux[1-3,7]", _names, ())
