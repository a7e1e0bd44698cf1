"""Folders of rollouts, read with every fault."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError, is_number, mapping, shown
from optsched.documents.files import read_text
from optsched.documents.json_files import load

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

ROLLOUT = "optsched/rollout/1"
COLUMNS = {
    "jobs.csv": ("job", "submit_s", "gpus", "outcome", "first_start_s", "end_s", "jct_s"),
    "epochs.csv": (
        "now_s", "pending", "running", "busy_gpus", "power_w", "busy_gpu_s", "available_gpu_s",
    ),
    "intervals.csv": ("job", "from_s", "to_s", "gpus"),
}  # fmt: skip
MAY_LACK = ("first_start_s", "end_s", "jct_s", "power_w")  # of a job that never began, say
SUMMARY_KEYS = ("policy", "seed", "metrics", "end_s", "trace", "versions", "scenario")


@dataclass(frozen=True)
class SimulatedTrace:
    """A folder of a rollout: its summary, and its tables by name; `intervals` may be missing."""

    label: str
    summary: dict[str, Any]
    jobs: pd.DataFrame
    epochs: pd.DataFrame
    intervals: pd.DataFrame | None

    @property
    def versions(self) -> dict[str, str]:
        """What it was made with."""
        versions: dict[str, str] = self.summary["versions"]
        return versions

    @property
    def name(self) -> str:
        """Policy, scenario and seed."""
        scenario = self.summary["scenario"].get("name", "a scenario")
        became = self.summary.get("policy_became")
        policy = self.summary["policy"] + (f" ({became})" if became else "")
        return f"{policy} on {scenario}, seed {self.summary['seed']}"


def read_folder(folder: Path) -> SimulatedTrace:
    """Read the folder of a rollout.

    Raises
    ------
    InstanceError
        If it is none, or something in it is not as it should be.
    """
    if not (folder / "summary.json").is_file():
        raise InstanceError(str(folder), [_no_summary(folder)])
    summary = load(folder / "summary.json")
    _check_summary(folder, summary)
    missing = [name for name in ("jobs.csv", "epochs.csv") if not (folder / name).is_file()]
    if missing:
        raise InstanceError(str(folder), [f"{name} is missing" for name in missing])
    jobs = _table(folder, "jobs.csv")
    return SimulatedTrace(
        label=folder.name or str(folder),
        summary=summary,
        jobs=jobs,
        epochs=_table(folder, "epochs.csv"),
        intervals=_intervals(folder, set(jobs["job"])),
    )


def _intervals(folder: Path, jobs: set[str]) -> pd.DataFrame | None:
    if not (folder / "intervals.csv").is_file():
        return None
    table = _table(folder, "intervals.csv")
    unknown = [name for name in table["job"] if name not in jobs]
    faults = [f"intervals.csv: jobs.csv has no job {shown(name)}" for name in unknown[:1]]
    odd = table["gpus"][~table["gpus"].astype(str).str.fullmatch(r"\d+( \d+)*")].tolist()
    faults += [f"intervals.csv: gpus: expected numbers, found {shown(text)}" for text in odd[:1]]
    if faults:
        raise InstanceError(str(folder), faults)
    return table


def _no_summary(folder: Path) -> str:
    if (folder / "checkpoint.json").is_file():
        return "the rollout has not ended: go on with `optsched rollout --resume`"
    inner = sorted(path.parent.name for path in folder.glob("*/summary.json"))
    if inner:
        return f"no folder of a rollout, but it holds some: name {', '.join(inner)} in it"
    return "no folder of a rollout: summary.json is missing"


def _check_summary(folder: Path, summary: Any) -> None:
    """Raise if a summary is not one of a rollout."""
    if not isinstance(summary, dict) or summary.get("schema") != ROLLOUT:
        raise InstanceError(str(folder), [f'summary.json: schema: expected "{ROLLOUT}"'])
    faults = [f"summary.json: {key}: missing" for key in SUMMARY_KEYS if key not in summary]
    for key in ("metrics", "versions", "scenario", "trace"):
        if key in summary and not isinstance(summary[key], dict):
            faults.append(f"summary.json: {key}: expected an object, found {shown(summary[key])}")
    for name, version in mapping(summary.get("versions")).items():
        if not isinstance(version, str):
            faults.append(f"summary.json: versions.{name}: expected text, found {shown(version)}")
    for key in ("policy", "policy_origin", "policy_became"):
        if not isinstance(summary.get(key, ""), str):
            faults.append(f"summary.json: {key}: expected text, found {shown(summary[key])}")
    figures = {f"metrics.{key}": value for key, value in mapping(summary.get("metrics")).items()}
    for key, value in (figures | {"end_s": summary.get("end_s", 0)}).items():
        if not (_is_finite(value) or (value is None and key in figures)):
            faults.append(f"summary.json: {key}: expected a number, found {shown(value)}")
    if faults:
        raise InstanceError(str(folder), faults)


def _is_finite(value: object) -> bool:
    """Tell whether a value is a number that a float holds."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number beyond floats
        return False


def _table(folder: Path, name: str) -> pd.DataFrame:
    import pandas as pd

    words = {"job": str, "model": str, "queue": str, "outcome": str, "status": str}
    if name == "intervals.csv":
        words |= {"gpus": str}
    try:
        cells = io.StringIO(read_text(folder / name, "a table of a rollout"))
        table = pd.read_csv(cells, dtype=words, keep_default_na=False, na_values=[""])
    except InstanceError:
        raise
    except ValueError as error:
        text = str(error).strip().splitlines()[0]
        raise InstanceError(str(folder), [f"{name}: no table of a rollout: {text}"]) from None
    faults = [f"{name}: column {c} is missing" for c in COLUMNS[name] if c not in table]
    if not faults and not len(table) and name == "epochs.csv":
        faults = [f"{name}: has no rows"]
    for column in COLUMNS[name] if not faults and len(table) else ():
        fault = _column_fault(table[column], is_text=column in words)
        faults += [f"{name}: column {column}: {fault}"] if fault else []
    if faults:
        raise InstanceError(str(folder), faults)
    return table


def _column_fault(column: pd.Series, is_text: bool) -> str:
    """Return what is wrong with a column of a table, if anything is."""
    from pandas.api.types import is_numeric_dtype

    if not is_text and not is_numeric_dtype(column):
        return "expected numbers"
    if column.name not in MAY_LACK and column.isna().any():
        return "a row has no value"
    is_infinite = not is_text and any(map(math.isinf, column.to_numpy(float)))
    return "expected finite numbers" if is_infinite else ""
