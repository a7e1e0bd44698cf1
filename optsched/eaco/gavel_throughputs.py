"""Reader of Gavel's throughput tables: rates of pairs of one-GPU jobs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import Fault, InstanceError, lines, shown
from optsched.eaco.interference import SMALLEST_RATE, Interference, MeasuredGroup
from optsched.instance import load
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ALONE = "null"
_SCALED = re.compile(r"\('(?P<type>.*)', (?P<gpus>[0-9]+)\)")
_TWO = "expected the steps/s of both jobs"


def read_gavel(path: str | Path, gpu: str, source: str = "") -> Interference:
    """Read the pairs of one-GPU jobs from a throughput table of the Gavel simulator.

    Such a file maps GPU type -> job -> "null" to the steps/s alone, and -> other job to the steps/s
    of both side by side. Jobs are named "('ResNet-18 (batch size 16)', 1)", type and GPUs, or by
    the type alone. Jobs of more GPUs are left out: all their pairs are 0, never measured.

    Parameters
    ----------
    path
        The file, such as `simulation_throughputs.json` of stanford-futuredata/gavel.
    gpu
        One of its GPU types, such as "v100".
    source
        Field of the table that is returned.

    Returns
    -------
    Interference
        One group per unordered pair, with the rates relative to running alone; 0 if the pair does
        not fit. Nothing is clipped.

    Raises
    ------
    InstanceError
        If the file is not such a table; all faults at once, each with its path. A rate above 1,
        or so small that it must be an error, is a fault too.
    UnknownNameError
        If the file does not have the GPU type.
    FileNotFoundError, OSError
        If it cannot be read.
    """
    document = load(Path(path))
    if not isinstance(document, dict):
        text = f"document: expected GPU types with their jobs, found {shown(document)}"
        raise InstanceError(str(path), [text])
    if gpu not in document:
        raise UnknownNameError("GPU type", gpu, list(document))
    rows = document[gpu]
    if not isinstance(rows, dict):
        raise InstanceError(str(path), lines([((gpu,), f"expected jobs, found {shown(rows)}")]))
    jobs = {key: name for key in rows if (name := _one_gpu_type(key)) is not None}
    faults = [((gpu, *at), text) for at, text in _faults(rows, jobs)]
    if faults or not jobs:
        raise InstanceError(str(path), lines(faults or [((gpu,), "holds no one-GPU job")]))
    return Interference(groups=tuple(_groups(rows, jobs)), source=source)


def _one_gpu_type(key: str) -> str | None:
    """Return the type that a key names, or None if it stands for a job of more GPUs."""
    scaled = _SCALED.fullmatch(key)
    if scaled is None:
        return key
    return scaled["type"] if scaled["gpus"] == "1" else None


def _pairs(rows: Mapping[str, Any], jobs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for a in jobs:
        yield from ((a, b) for b in rows[a] if b in jobs)


def _groups(rows: Mapping[str, Any], jobs: Mapping[str, str]) -> Iterator[MeasuredGroup]:
    seen = set()
    for a, b in _pairs(rows, jobs):
        if frozenset((a, b)) not in seen:
            seen.add(frozenset((a, b)))
            rates = (rows[a][b][0] / rows[a][_ALONE], rows[a][b][1] / rows[b][_ALONE])
            yield MeasuredGroup(types=(jobs[a], jobs[b]), rates=rates)


def _faults(rows: Mapping[str, Any], jobs: Mapping[str, str]) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for a, name in jobs.items():
        if not name:
            yield (a,), "the type must not be empty"
        elif first.setdefault(name, a) != a:
            yield (a,), f"is the same type as {shown(first[name])}"
        if not isinstance(rows[a], dict):
            yield (a,), f"expected an object, found {shown(rows[a])}"
        elif not _is_speed(rows[a].get(_ALONE)) or rows[a][_ALONE] == 0:
            alone = shown(rows[a].get(_ALONE))
            yield (a, _ALONE), f"expected positive steps/s of the job alone, found {alone}"
    if all(isinstance(rows[a], dict) for a in jobs):
        for a, b in _pairs(rows, jobs):
            yield from (((a, b), text) for text in _pair_faults(rows, a, b))
        for a in jobs:
            yield from (((a, b), f"the table has no job {shown(b)}") for b in _strangers(rows, a))


def _strangers(rows: Mapping[str, Any], a: str) -> list[str]:
    return [b for b in rows[a] if b != _ALONE and b not in rows and _one_gpu_type(b) is not None]


def _pair_faults(rows: Mapping[str, Any], a: str, b: str) -> Iterator[str]:
    pair = rows[a][b]
    if not isinstance(pair, list) or len(pair) != 2 or not all(_is_speed(v) for v in pair):
        yield f"{_TWO}, found {shown(pair)}"
        return
    for job, speed in zip((a, b), pair, strict=True):
        alone = rows[job].get(_ALONE)
        if not _is_speed(alone) or alone == 0:
            continue
        rate = speed / alone
        if rate != 0 and not SMALLEST_RATE <= rate <= 1:
            yield (
                f"{shown(speed)} steps/s of {shown(job)} are {rate!r} of those alone; expected "
                f"0 (does not fit) or from {SMALLEST_RATE} to 1"
            )
    if (pair[0] == 0) != (pair[1] == 0):
        yield "0 means that the pair does not fit; then both are 0"
    mirrored = rows[b].get(a)
    if isinstance(mirrored, list) and mirrored != pair[::-1]:
        yield f"contradicts {shown(b)} beside {shown(a)}: {pair} and {mirrored}"


def _is_speed(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1e12
