"""Workloads of Pollux and Sia: models with GPUs and batch sizes, without run times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT, SECONDS, one_of
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish
from optsched.traces.importers.pollux_steps import APPLICATIONS, Application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import Trace

SOURCE = "Pollux (Qiao et al., OSDI'21), petuum/adaptdl, Apache-2.0"


def read(text: str, name: str, origin: str) -> Trace:
    """Read name, time (s), application, num_replicas and batch_size.

    The files say what is trained, not how long: run time is the iterations at that batch size
    times the step time of Pollux's model on that many T4 of as few nodes as possible (root mean
    square error of the fit 10 to 13 %).
    """
    needed = ["name", "time", "application", "num_replicas", "batch_size"]
    table = read_table(text, origin, needed)
    gpus = table.read("num_replicas", COUNT)
    columns: Columns = {
        "ids": table.ids("name"),
        "submit_s": table.read("time", SECONDS),
        "gpus": gpus,
        "run_s": list(_runs(table, gpus)),
        "model": table.columns["application"],
    }
    table.faults.raise_any()
    notes = Notes({"jobs: run times are of Pollux's model of steps, fitted on T4": len(table)})
    return finish(name, SOURCE, origin, columns, notes, start_s=0.0)


def _runs(table: CsvTable, gpus: list[int]) -> Iterator[float]:
    known: dict[str, Application | None] = {**APPLICATIONS}
    models = table.read("application", one_of(known, None))
    batches = table.read("batch_size", COUNT)
    for line, model, size, batch in zip(table.lines, models, gpus, batches, strict=True):
        try:
            yield model.run_s(size, batch) if model else 1.0
        except ValueError as error:
            table.faults.add(line, f"expected {error}, found '{batch}'", "batch_size")
            yield 1.0
