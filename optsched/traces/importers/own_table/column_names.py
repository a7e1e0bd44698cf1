"""Which columns of somebody's own table hold which field of a trace, and in which unit."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, NamedTuple

from optsched.documents.faults import InstanceError, nearest
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FIELDS = {
    "id": ("id", "jobid", "job", "jobname", "name"),
    "submit": (
        *("submit", "submittime", "submitted", "submittedtime", "submittedat", "submission"),
        *("submissiontime", "arrival", "arrivaltime", "timestamp", "created", "createdat"),
        *("creationtime", "time"),
    ),
    "gpus": (
        *("gpus", "gpu", "numgpus", "numgpu", "ngpus", "ngpu", "gpunum", "gpucount"),
        *("requestedgpus", "reqgpus", "gpusrequested", "numreplicas", "scalefactor"),
    ),
    "run": ("run", "runtime", "duration", "elapsed", "runningtime", "walltime"),
    "start": ("start", "starttime", "started", "startedat", "begin", "scheduledtime"),
    "end": (
        *("end", "endtime", "ended", "endedat", "finish", "finishtime", "finished"),
        *("completed", "completiontime", "deletiontime"),
    ),
    "nodes": ("nodes", "nodelist", "hosts", "hostlist", "nodenames", "node", "host"),
    "model": ("model", "modelname", "jobtype", "application", "app", "workload"),
    "queue": (
        *("queue", "partition", "virtualcluster", "vc", "cluster", "tenant", "account"),
        *("project", "group", "pool"),
    ),
    "user": ("user", "username", "uid", "owner", "submittedby"),
    "status": ("status", "state", "outcome", "result", "exitstate"),
    "reason": ("reason", "failurereason", "error"),
    "utilization": ("utilization", "utilisation", "gpuutil", "gpuutilization", "util"),
    "deadline": ("deadline", "ddl", "due", "duetime"),
}
"""Names of columns that are recognised, in small letters and digits only; the first one wins."""

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
"""Units of times."""
_SUFFIXES = {
    **{"us": "us", "ms": "ms", "s": "s", "sec": "s", "secs": "s", "seconds": "s", "min": "min"},
    **{"mins": "min", "minutes": "min", "h": "h", "hours": "h", "days": "d", "d": "d"},
}
_TIMES = ("submit", "run", "start", "end", "deadline")
_UNITS = {**dict.fromkeys(_TIMES, tuple(SECONDS)), "utilization": ("share", "%")}


class FoundColumns(NamedTuple):
    """By field: the name of its column, and its unit; and the columns that no field takes."""

    names: dict[str, str]
    units: dict[str, str]
    unread: list[str]


def header_of(text: str) -> tuple[list[str], str]:
    """Return the names of the columns, and what stands between them: comma, semicolon or tab."""
    line = next((row for row in text.splitlines() if row.strip()), "")
    delimiter = max((",", ";", "\t"), key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    return [name.strip() for name in names], delimiter


def find_columns(
    header: Sequence[str],
    given: str | Mapping[str, str],
    units: str | Mapping[str, str],
    origin: str,
) -> FoundColumns:
    """Return where each field is: as given, or by its name.

    Parameters
    ----------
    given, units
        FoundColumns and units by field, as a mapping or as ``"submit=when,run=hours"``.

    Raises
    ------
    UnknownNameError
        If a field or unit is none.
    InstanceError
        If a column does not exist, or one is missing that is needed.
    """
    wanted, told = pairs(given, "map"), pairs(units, "unit")
    for field in (*wanted, *told):
        if field not in FIELDS:
            raise UnknownNameError("field of a trace", field, list(FIELDS))
    names, found_units = dict(wanted), {}
    faults = [
        f"line 1: there is no column '{name}', which {field} is to come from; "
        f"{nearest(name, list(header))}"
        for field, name in wanted.items()
        if name not in header
    ]
    free = [name for name in header if name not in wanted.values()]
    for field in FIELDS:
        name, unit = _recognised(field, free)
        if field not in names and name is not None:
            names[field] = name
            free.remove(name)
        if names.get(field) is not None:
            found_units[field] = _split(names[field], field)[1] or unit
    faults += _missing(names, header)
    if faults:
        raise InstanceError(origin, faults)
    for field, unit in told.items():
        if unit not in _UNITS.get(field, ()):
            raise UnknownNameError(f"unit of {field}", unit, list(_UNITS.get(field, ("none",))))
        found_units[field] = unit
    return FoundColumns(names, {f: u for f, u in found_units.items() if u}, free)


def pairs(given: str | Mapping[str, str], option: str) -> dict[str, str]:
    """Return fields and what is said of them, from a mapping or from ``"a=b,c=d"``."""
    if not isinstance(given, str):
        return {str(field): str(value) for field, value in given.items()}
    parts = [part.partition("=") for part in given.split(",") if part.strip()]
    if any(not sign or not field.strip() or not value.strip() for field, sign, value in parts):
        raise ValueError(f"{option}: expected FIELD=NAME,..., found {given!r}")
    return {field.strip(): value.strip() for field, _, value in parts}


def _recognised(field: str, header: Sequence[str]) -> tuple[str | None, str]:
    """Return the column that has one of the field's names, and the unit that its name ends with."""
    by_name: dict[str, tuple[str, str]] = {}
    for column in header:
        word, unit = _split(column, field)
        by_name.setdefault(word, (column, unit))
    for name in FIELDS[field]:
        if name in by_name:
            return by_name[name]
    return None, ""


def _split(column: str, field: str) -> tuple[str, str]:
    """Return the letters of a column's name, and its unit, as in ``run_min`` or ``Run (h)``."""
    parts = [part for part in re.split(r"[^a-z0-9%]+", column.lower()) if part]
    if field in _TIMES and len(parts) > 1 and parts[-1] in _SUFFIXES:
        return "".join(parts[:-1]), _SUFFIXES[parts[-1]]
    if field == "utilization" and len(parts) > 1 and parts[-1] in ("%", "pct", "percent"):
        return "".join(parts[:-1]), "%"
    return "".join(parts), ""


def _missing(names: Mapping[str, str], header: Sequence[str]) -> list[str]:
    listed = ", ".join(f"'{name}'" for name in header) or "none"
    faults = [
        f"line 1: no column is known as {field}: name it with --map {field}=COLUMN (map=); "
        f"columns: {listed}"
        for field in ("submit", "gpus")
        if field not in names
    ]
    if "run" not in names and not {"start", "end"} <= set(names):
        faults.append(
            "line 1: no column is known as run, nor two as start and end: name them with "
            f"--map run=COLUMN (map=); columns: {listed}"
        )
    return faults
