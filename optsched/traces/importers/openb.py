"""Pods of Alibaba's GPU-sharing cluster: openb_pod_list_*.csv."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import COUNT_OR_0, SECONDS, TEXT, one_of
from optsched.traces.importers.csv_table import read_table
from optsched.traces.importers.import_jobs import Columns, Notes, finish, recorded
from optsched.traces.trace import FAILED, KILLED, PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.trace import Trace

SOURCE = "Alibaba openb (Weng et al., ATC'23), hkust-adsl/kubernetes-scheduler-simulator"
_PHASE = one_of(
    {"Running": KILLED, "Succeeded": PASSED, "Failed": FAILED, "Pending": "", "Unknown": ""}, ""
)
_NEEDED = ("name", "num_gpu", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
FRACTIONS = ("whole", "drop")
RUNNING = ("keep", "drop")


def read(
    text: str, name: str, origin: str, *, fractions: str = "whole", running: str = "keep"
) -> Trace:
    """Read pods as jobs; the queue is their quality of service.

    Run time is from scheduling to deletion. Pods that ask for no GPU, or were never scheduled, are
    left out.

    Parameters
    ----------
    fractions
        What becomes of pods that ask for part of a GPU: ``"whole"`` gives them one, ``"drop"``
        leaves them out.
    running
        What becomes of pods in phase Running, although each has a time of deletion (up to the end
        of the trace: how they would have ended is not known): ``"keep"`` takes them as killed
        then, ``"drop"`` leaves them out.
    """
    _known("fractions", fractions, FRACTIONS)
    _known("running", running, RUNNING)
    notes = Notes()
    table = read_table(text, origin, _NEEDED, ["gpu_milli", "qos", "gpu_spec"])
    table = _fractions(_scheduled(table, notes), fractions, notes)
    table = _running(table, running, notes)
    if "gpu_spec" in table:
        asked = sum(bool(cell.strip()) for cell in table.columns["gpu_spec"])
        notes["pods ask for types of GPU (gpu_spec): not read"] = asked
    start, end = table.read("scheduled_time", SECONDS), table.read("deletion_time", SECONDS)
    submit, gpus = table.read("creation_time", SECONDS), table.read("num_gpu", COUNT_OR_0)
    columns: Columns = {
        "ids": table.ids("name"),
        "submit_s": submit,
        "gpus": gpus,
        "record": recorded(submit, start, end, gpus, None, notes),
        "run_s": [last - first for first, last in zip(start, end, strict=True)],
        "status": table.read("pod_phase", _PHASE),
    }
    if "qos" in table:
        columns["queue"] = table.read("qos", TEXT)
    table.faults.raise_any()
    return finish(name, SOURCE, origin, columns, notes)


def _scheduled(table: CsvTable, notes: Notes) -> CsvTable:
    """Return the pods of GPUs that were scheduled."""
    gpus = table.read("num_gpu", COUNT_OR_0)
    notes["pods ask for no GPU: left out"] = gpus.count(0)
    table = table.where(number > 0 for number in gpus)
    pairs = zip(table.read("pod_phase", _PHASE), table.columns["scheduled_time"], strict=True)
    scheduled = [bool(phase and time) for phase, time in pairs]
    notes["pods were never scheduled (Pending): left out"] = scheduled.count(False)
    return table.where(scheduled)


def _fractions(table: CsvTable, fractions: str, notes: Notes) -> CsvTable:
    if "gpu_milli" not in table:
        return table
    milli = table.read("gpu_milli", COUNT_OR_0)
    part = [0 < share < 1000 for share in milli]
    if fractions == "whole":
        notes["pods ask for part of a GPU: given a whole one"] = part.count(True)
        return table
    notes["pods ask for part of a GPU: left out"] = part.count(True)
    return table.where(not share for share in part)


def _running(table: CsvTable, running: str, notes: Notes) -> CsvTable:
    still = [phase == "Running" for phase in table.columns["pod_phase"]]
    if running == "keep":
        notes["pods are Running, though deleted: taken as killed then"] = still.count(True)
        return table
    notes["pods are Running, though deleted: left out"] = still.count(True)
    return table.where(not runs for runs in still)


def _known(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{option} must be one of {', '.join(known)}, found {value!r}")
