"""Jobs of Philly virtual clusters with models, as Muri made them: times in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT, MILLISECONDS, TEXT
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = (
    "Muri (Zhao et al., SIGCOMM'22): jobs of Philly virtual clusters, with models that its "
    "authors added"
)

_RESOURCES = ("resource_time_0", "resource_time_1", "resource_time_2")


def read(text: str, name: str, origin: str) -> Trace:
    """Read job_id, num_gpu, submit_time (ms), duration (ms) and model_name."""
    needed = ["job_id", "num_gpu", "submit_time", "duration"]
    table = read_table(text, origin, needed, ["model_name", "priority", *_RESOURCES])
    columns: Columns = {
        "ids": table.ids("job_id"),
        "gpus": table.read("num_gpu", COUNT),
        "submit_s": table.read("submit_time", MILLISECONDS),
        "run_s": table.read("duration", MILLISECONDS),
    }
    if "model_name" in table:
        columns["model"] = table.read("model_name", TEXT)
    table.faults.raise_any()
    notes = Notes({"jobs have times in milliseconds: read as such": len(table)})
    if "priority" in table:
        given = sum(cell.strip() not in ("", "0") for cell in table.columns["priority"])
        notes["jobs have a priority other than 0: not read"] = given
    if any(column in table for column in _RESOURCES):
        notes["jobs have times by resource (resource_time_0 to 2): not read"] = len(table)
    return finish(name, SOURCE, origin, columns, notes)
