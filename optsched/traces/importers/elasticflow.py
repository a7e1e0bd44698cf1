"""Jobs of a Philly virtual cluster with models and deadlines, as ElasticFlow made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT, SECONDS, TEXT
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = (
    "ElasticFlow (Gu et al., ASPLOS'23): jobs of a Philly virtual cluster, with models and "
    "deadlines that its authors added"
)


def read(text: str, name: str, origin: str) -> Trace:
    """Read job_id, submit_time (s), num_gpu, duration (s), model_name and ddl.

    A deadline (ddl, s) is on the clock of submissions: 0.5 to 1.5 durations after them.
    """
    needed = ["job_id", "submit_time", "num_gpu", "duration"]
    table = read_table(text, origin, needed, ["model_name", "ddl"])
    columns: Columns = {
        "ids": table.ids("job_id"),
        "submit_s": table.read("submit_time", SECONDS),
        "gpus": table.read("num_gpu", COUNT),
        "run_s": table.read("duration", SECONDS),
    }
    if "model_name" in table:
        columns["model"] = table.read("model_name", TEXT)
    if "ddl" in table:
        columns["deadline_s"] = table.read("ddl", SECONDS)
    table.faults.raise_any()
    return finish(name, SOURCE, origin, columns, Notes())
