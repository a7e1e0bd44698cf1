"""Slowdown profiles from CSV files; every fault is named with its line."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import TypeAdapter, ValidationError

from optsched.cluster.profile import Kind, Profile
from optsched.documents.faults import InstanceError, nearest, shown
from optsched.documents.files import read_text
from optsched.documents.limits import LIMITS
from optsched.instance import Positive

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "V_"
_EXPECTED = "expected a header such as gpu,node,V_A,V_B"
_SLOWDOWN: TypeAdapter[float] = TypeAdapter(Positive)


class _Line(NamedTuple):
    number: int
    cells: list[str]


def read_profile_csv(path: str | Path, kind: Kind, source: str = "") -> Profile:
    """Read a profile from a CSV file with one line per GPU.

    Parameters
    ----------
    path
        The file: columns `gpu` (the id) and `V_<class>` (slowdown relative to the median GPU) for
        each application class. Columns `node` and `bin_<class>` may stand there and are not read:
        nodes belong to the topology, and bins are computed. Empty lines are skipped.
    kind, source
        Fields of the profile.

    Raises
    ------
    InstanceError
        If the file is not such a table; all faults at once, with their lines.
    FileNotFoundError, OSError
        If it cannot be read.
    """
    table = list(_lines(Path(path)))
    if not table:
        raise InstanceError(str(path), [f"the file is empty; {_EXPECTED}"])
    header, *body = table
    faults = list(_header_faults(header))  # at most one for each column
    if not body:
        faults.append("there is no GPU below the header")
    if not faults:
        faults = list(islice(_body_faults(header, body), LIMITS.faults + 1))
    if faults:
        raise InstanceError(str(path), faults)
    columns = dict(zip(header.cells, zip(*(line.cells for line in body), strict=True), strict=True))
    slowdown = {
        name.removeprefix(_PREFIX): tuple(float(cell) for cell in cells)
        for name, cells in columns.items()
        if name.startswith(_PREFIX)
    }
    return Profile(gpus=columns["gpu"], slowdown=slowdown, kind=kind, source=source)


def _lines(path: Path) -> Iterator[_Line]:
    """Yield the lines that are not empty, with their numbers from 1."""
    text = read_text(path, "a CSV file")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield _Line(reader.line_num, cells)
    except csv.Error as error:
        raise InstanceError(str(path), [f"line {reader.line_num}: {error}"]) from None


def _header_faults(header: _Line) -> Iterator[str]:
    where = f"line {header.number}"
    classes = [name for name in header.cells if name.startswith(_PREFIX)]
    counts = Counter(header.cells)
    if len(header.cells) > LIMITS.columns:
        yield f"{where}: {len(header.cells):,} columns, more than {LIMITS.columns:,}"
        return
    for name, count in counts.items():
        if count > 1:
            yield f"{where}: column {shown(name)} stands more than once"
        if name == _PREFIX:
            yield f"{where}: column {shown(name)} names no application class"
        elif name not in ("gpu", "node") and not name.startswith((_PREFIX, "bin_")):
            hint = nearest(name, ["gpu", "node", "V_A", "bin_A"])
            yield f"{where}: column {shown(name)} is unknown; {hint}"
    if "gpu" not in header.cells:
        yield f"{where}: column 'gpu' is missing; {_EXPECTED}"
    if not classes:
        yield f"{where}: there is no column of slowdowns; {_EXPECTED}"


def _body_faults(header: _Line, body: list[_Line]) -> Iterator[str]:
    first: dict[str, int] = {}
    for number, cells in body:
        if len(cells) != len(header.cells):
            count, expected = len(cells), len(header.cells)
            yield f"line {number}: has {count} fields, but the header has {expected}"
            continue
        row = dict(zip(header.cells, cells, strict=True))
        gpu = row["gpu"]
        if not gpu:
            yield f"line {number}: gpu is empty"
        elif first.setdefault(gpu, number) != number:
            yield f"line {number}: GPU {shown(gpu)} stands already in line {first[gpu]}"
        for name, cell in row.items():
            fault = _value_fault(cell) if name.startswith(_PREFIX) else None
            if fault:
                yield f"line {number}: {name} of GPU {shown(gpu)} {fault}"


def _value_fault(cell: str) -> str | None:
    try:
        value = float(cell)
    except ValueError:
        return f"is {shown(cell)}, expected a number"
    if not 0 < value < math.inf:
        return f"must be positive and finite, found {cell}"
    try:
        _SLOWDOWN.validate_python(value)
    except ValidationError:
        return f"must be between 1e-9 and 1e12, found {cell}"
    return None
