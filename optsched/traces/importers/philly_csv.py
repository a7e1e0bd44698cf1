"""Jobs of Philly as CSV, as ElasticFlow and Pollux passed them on: no statuses, no retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT, SECONDS, TEXT, moment_in
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = (
    "Jobs of Philly (Jeon et al., ATC'19) as CSV of pkusys/ElasticFlow; Philly data CC-BY-4.0. "
    "It has half of the public trace's GPU time and too few jobs of several GPUs"
)


def read(text: str, name: str, origin: str, *, zone: str = "America/Los_Angeles") -> Trace:
    """Read timestamp, duration (s), num_gpus and cluster.

    Parameters
    ----------
    zone
        Where the clock hangs: times have no zone, and one change of the clocks lies inside.
    """
    table = read_table(text, origin, ["timestamp", "duration", "num_gpus"], ["cluster"])
    columns: Columns = {
        "submit_s": table.read("timestamp", moment_in(zone)),
        "run_s": table.read("duration", SECONDS),
        "gpus": table.read("num_gpus", COUNT),
    }
    if "cluster" in table:
        columns["queue"] = table.read("cluster", TEXT)
    table.faults.raise_any()
    return finish(name, SOURCE, origin, columns, Notes())
