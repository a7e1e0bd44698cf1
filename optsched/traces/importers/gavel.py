"""Jobs of Gavel's physical cluster: *.trace, tab-separated, with steps instead of run times."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError, nearest
from optsched.registry import UnknownNameError
from optsched.traces.files import open_trace
from optsched.traces.importers.column_types import COUNT, NUMBER, POSITIVE, SECONDS, WORD
from optsched.traces.importers.csv_table import CsvTable, read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish

if TYPE_CHECKING:
    from optsched.traces.trace import Trace

SOURCE = "Gavel (Narayanan et al., OSDI'20), stanford-futuredata/gavel, MIT"
_HEADINGS = (
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "priority_weight",
    "SLO",
    "arrival_time",
)
Speeds = dict[tuple[str, int], float]


def read(
    text: str, name: str, origin: str, *, throughputs: str = "", gpu_type: str = "v100"
) -> Trace:
    """Read job_type, total_steps, scale_factor (GPUs) and arrival_time (s).

    Run time is steps over steps per second, alone and consolidated. Jobs that do not run on this
    type of GPU (0 steps/s) or are not in the throughputs are left out.

    Parameters
    ----------
    throughputs
        Gavel's simulation_throughputs.json, plain or compressed: needed.
    gpu_type
        A key of it: ``"v100"``, ``"p100"`` or ``"k80"``.
    """
    if not throughputs:
        fault = "has no run times: give the option throughputs, Gavel's simulation_throughputs.json"
        raise InstanceError(origin, [fault])
    speeds = read_speeds(throughputs, gpu_type)
    needed = ["job_type", "total_steps", "scale_factor", "arrival_time"]
    optional = ["priority_weight", "SLO"]
    table = read_table(text, origin, needed, optional, delimiter="\t", headings=_HEADINGS)
    notes = Notes()
    table = _runnable(table, speeds, gpu_type, notes)
    models, gpus = table.read("job_type", WORD), table.read("scale_factor", COUNT)
    steps = table.read("total_steps", POSITIVE)
    weights, targets = (table.read(column, NUMBER) for column in optional)
    notes["jobs have a priority weight other than 1: not read"] = sum(w != 1 for w in weights)
    notes["jobs have an SLO: not read, and no deadline"] = sum(slo >= 0 for slo in targets)
    columns: Columns = {
        "submit_s": table.read("arrival_time", SECONDS),
        "gpus": gpus,
        "model": models,
    }
    table.faults.raise_any()
    jobs = zip(steps, models, gpus, strict=True)
    columns["run_s"] = [count / speeds[model, size] for count, model, size in jobs]
    notes[f"jobs: run times are steps over the steps/s on {gpu_type}, alone"] = len(table)
    return finish(name, SOURCE, origin, columns, notes)


def read_speeds(path: str, gpu_type: str) -> Speeds:
    """Return steps per second by (job type, GPUs); 0 where a job does not run."""
    _, text, _ = open_trace(Path(path), None, "*.json")
    try:
        document = json.loads(text)
        speeds: dict[str, Any] = document[gpu_type]
        return {ast.literal_eval(key): float(row["null"]) for key, row in speeds.items()}
    except KeyError:
        if isinstance(document, dict) and gpu_type not in document:
            raise UnknownNameError("type of GPU", gpu_type, list(document)) from None
        fault = f"{gpu_type}: a job type lacks its speed alone, key 'null'"
    except (ValueError, TypeError, SyntaxError) as error:
        fault = f"is no throughputs of Gavel: {error}"
    raise InstanceError(path, [fault])


def _runnable(table: CsvTable, speeds: Speeds, gpu_type: str, notes: Notes) -> CsvTable:
    """Return the jobs that have a speed; job types that nobody knows are faults."""
    types = {model for model, _ in speeds}
    sizes = table.read("scale_factor", COUNT)
    able = []
    for line, model, size in zip(table.lines, table.read("job_type", WORD), sizes, strict=True):
        if model not in types:
            text = f"'{model}' is not in the throughputs; {nearest(model, sorted(types))}"
            table.faults.add(line, text, "job_type")
        able.append(speeds.get((model, size), 0) > 0 or model not in types)
    notes[f"jobs have no speed on as many {gpu_type}: left out"] = able.count(False)
    return table.where(able)
