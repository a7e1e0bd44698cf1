"""Workloads of PAL: jobs as iterations of a model, one or several workloads in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError
from optsched.traces.importers.column_types import COUNT, POSITIVE, SECONDS, WORD, one_of
from optsched.traces.importers.csv_table import CsvTable, read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = "PAL (Jain et al., SC'24): Sia-Philly workloads of hal-uw/blox-pal, MIT"

ITERATION_S = {
    "resnet50": 0.17540,
    "BERT": 0.179,
    "DCGAN": 0.04693,
    "GPT2": 3.5714,
    "vgg19": 0.30061,
    "PointNet": 0.28125,
}
"""Seconds of an iteration by model, as the released simulator has them (hal-uw/blox-pal,
workload/workload.py): for files that do not have a column `iter_time_s`."""


def read(text: str, name: str, origin: str, *, workload: str | None = None) -> Trace:
    """Read job_id, num_gpus, submit_time (s), iterations and model.

    Run time is iterations times the seconds of one: those of column iter_time_s, or else the
    released simulator's. In the files of PAL itself iterations stand in the column duration.

    Parameters
    ----------
    workload
        Which to read, where column workload names several.
    """
    iterations = _iterations_column(text)
    needed = ["job_id", "num_gpus", "submit_time", iterations, "model"]
    table = read_table(text, origin, needed, ["workload", "iter_time_s"])
    table, name = _workload(table, name, origin, workload)
    notes = Notes()
    columns: Columns = {
        "ids": table.ids("job_id"),
        "gpus": table.read("num_gpus", COUNT),
        "submit_s": table.read("submit_time", SECONDS),
        "model": table.read("model", WORD),
    }
    counts = table.read(iterations, SECONDS)
    seconds = _iteration_seconds(table, notes)
    columns["run_s"] = [count * one for count, one in zip(counts, seconds, strict=True)]
    table.faults.raise_any()
    return finish(name, SOURCE, origin, columns, notes, start_s=0.0)


def _iterations_column(text: str) -> str:
    header = text.lstrip().partition("\n")[0]
    return "duration" if "duration" in header and "iterations" not in header else "iterations"


def _iteration_seconds(table: CsvTable, notes: Notes) -> list[float]:
    if "iter_time_s" in table:
        return table.read("iter_time_s", POSITIVE)
    notes["jobs: seconds of an iteration are those of PAL's simulator"] = len(table)
    return table.read("model", one_of(ITERATION_S, 1.0))


def _workload(table: CsvTable, name: str, origin: str, wanted: str | None) -> tuple[CsvTable, str]:
    """Return the rows of a workload, and the name of the trace."""
    known = list(dict.fromkeys(table.columns.get("workload", ())))
    if wanted is None:
        if len(known) > 1:
            fault = f"holds {len(known)} workloads: name one of them: {', '.join(known)}"
            raise InstanceError(origin, [fault])
        return table, name
    if not known:
        fault = f"line 1: there is no column 'workload': it holds no workload '{wanted}' to choose"
        raise InstanceError(origin, [fault])
    if wanted not in known:
        raise UnknownNameError(f"workload in {origin} named", wanted, known)
    rows = (word == wanted for word in table.columns["workload"])
    return table.where(rows), f"{name}-{wanted}"
