"""Tables of text: columns with the line of every row; all faults are collected."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from optsched.documents.faults import InstanceError, nearest, shown
from optsched.documents.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.traces.importers.column_types import ColumnType

T = TypeVar("T")


@dataclass
class Faults:
    """The faults of a file, one for each cell or line."""

    origin: str
    by_place: dict[tuple[int, str], str] = field(default_factory=dict)

    def add(self, line: int, text: str, column: str = "") -> None:
        """Add what is wrong in a line, or in one of its columns."""
        place = f"line {line}, column {column}" if column else f"line {line}"
        self.by_place.setdefault((line, column), f"{place}: {text}")

    def raise_any(self) -> None:
        """Raise an `InstanceError` if there are faults."""
        if self.by_place:
            raise fault_list(self.origin, [self.by_place[place] for place in sorted(self.by_place)])


def fault_list(origin: str, faults: Sequence[str], most: int = 20) -> InstanceError:
    """Return an error with the first faults, and how many more there are."""
    return InstanceError(origin, list(faults[:most]), max(len(faults) - most, 0))


@dataclass
class CsvTable:
    """Columns of text; `lines` has the line of the file for each row."""

    faults: Faults
    lines: list[int]
    columns: dict[str, list[str]]

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def read(self, name: str, kind: ColumnType[T]) -> list[T]:
        """Return a column as values; what cannot be read becomes a fault."""
        try:
            return list(map(kind.read, self.columns[name]))
        except (ValueError, OverflowError):
            return list(self._read_each(name, kind))

    def ids(self, name: str) -> list[str]:
        """Return a column of unique names."""
        from optsched.traces.importers.column_types import WORD

        ids = self.read(name, WORD)
        if len(set(ids)) < len(ids):
            first: dict[str, int] = {}
            for word, line in zip(ids, self.lines, strict=True):
                if first.setdefault(word, line) != line and word:
                    text = f"{shown(word)} stands more than once, first in line {first[word]}"
                    self.faults.add(line, text, name)
        return ids

    def where(self, wanted: Iterable[bool]) -> CsvTable:
        """Return the rows for which `wanted` holds."""
        rows = [row for row, keep in enumerate(wanted) if keep]
        if len(rows) == len(self):
            return self
        columns = {name: [cells[row] for row in rows] for name, cells in self.columns.items()}
        return CsvTable(self.faults, [self.lines[row] for row in rows], columns)

    def _read_each(self, name: str, kind: ColumnType[T]) -> Iterator[T]:
        for line, cell in zip(self.lines, self.columns[name], strict=True):
            try:
                yield kind.read(cell)
            except (ValueError, OverflowError):
                given = shown_cell(cell)
                self.faults.add(line, f"expected {kind.expected}, found {given}", name)
                yield kind.stand_in


def shown_cell(cell: str) -> str:
    """Write what was found in a cell, in a few words."""
    text = cell if len(cell) <= 40 else cell[:37] + "..."
    return f"'{text}'" if cell else "nothing"


def read_table(
    text: str,
    origin: str,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    *,
    delimiter: str = ",",
    headings: Sequence[str] | None = None,
) -> CsvTable:
    """Read columns of a file of comma-separated values, or the like.

    Parameters
    ----------
    needed, optional
        Names of the columns to read; others are skipped.
    delimiter
        Where it is no comma, quotation marks mean nothing.
    headings
        Names of the columns, where the file does not begin with them.

    Raises
    ------
    InstanceError
        If the file is empty or lacks columns. Faulty lines are added to `CsvTable.faults`.
    """
    lines = io.StringIO(text, newline="")
    reader = (
        csv.reader(lines)
        if delimiter == ","
        else csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    )
    faults = Faults(origin)
    rows = _rows(reader, faults)
    _, header = (0, list(headings)) if headings else next(rows, (0, []))
    example = delimiter.join(needed)
    if not header:
        raise InstanceError(origin, [f"the file is empty; expected the header {example}"])
    header = [name.strip() for name in header]
    if len(header) > LIMITS.columns:
        text = f"line 1: {len(header):,} columns, more than {LIMITS.columns:,}"
        raise InstanceError(origin, [text])
    if len(header) == 1 and (found := _separator(header[0], delimiter)):
        expected = _SEPARATORS.get(delimiter, f"'{delimiter}'")
        text = f"line 1: {found} stand between the columns; expected {expected}"
        raise InstanceError(origin, [text])
    _require(header, needed, origin)
    names = [name for name in (*needed, *optional) if name in header]
    return _columns(rows, header, names, faults)


_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def _separator(header: str, delimiter: str) -> str:
    """Return what stands between columns instead of what is expected; nothing if nothing does."""
    return next((name for sign, name in _SEPARATORS.items()
                 if sign in header and sign != delimiter), "")  # fmt: skip


def _columns(
    rows: Iterator[tuple[int, list[str]]], header: list[str], names: list[str], faults: Faults
) -> CsvTable:
    pick = itemgetter(*(header.index(name) for name in names))
    picked, lines = [], []
    width = len(header)
    for line, row in rows:
        if len(row) == width:
            picked.append(pick(row))
            lines.append(line)
        else:
            faults.add(line, f"expected {width} cells as in the header, found {len(row)}")
    cells = zip(*picked, strict=True) if picked else ([] for _ in names)
    return CsvTable(faults, lines, dict(zip(names, map(list, cells), strict=True)))


def _rows(reader: Iterator[list[str]], faults: Faults) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row that is not blank."""
    try:
        for row in reader:
            if row and (row[0] or any(row)):
                yield reader.line_num, row  # type: ignore[attr-defined]
    except csv.Error as error:
        faults.add(reader.line_num, str(error))  # type: ignore[attr-defined]


def _require(header: list[str], needed: Sequence[str], origin: str) -> None:
    faults = [
        f"line 1: there is no column '{name}'; {nearest(name, header)}"
        for name in needed
        if name not in header
    ]
    twice = sorted({name for name in header if name in needed and header.count(name) > 1})
    faults += [f"line 1: column '{name}' stands more than once" for name in twice]
    if faults:
        raise InstanceError(origin, faults)
