"""Times in somebody's own table: numbers in a unit, or dates in a zone, in any of the columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import ColumnType, zone_of
from optsched.traces.importers.own_table.column_names import SECONDS
from optsched.traces.importers.slurm_cells import ELAPSED

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from optsched.traces.importers.csv_table import CsvTable
    from optsched.traces.importers.own_table.column_names import FoundColumns

MOST_S = 1e11


@dataclass
class LocalClock:
    """Dates without a zone are local times of a place; `doubtful` counts those of two moments."""

    zone: ZoneInfo
    doubtful: int = 0

    @classmethod
    def of(cls, zone: str) -> LocalClock:
        """Return the clock of a zone.

        Raises
        ------
        ValueError
            If no such zone is known.
        """
        return cls(zone_of(zone))

    def seconds(self, text: str, not_before: float) -> float:
        """Return the moment of a date: of two that it may be, the first that is not before."""
        moment = datetime.fromisoformat(text.strip().replace("/", "-"))
        if moment.tzinfo is not None:
            return moment.timestamp()
        low, high = sorted(
            moment.replace(tzinfo=self.zone, fold=fold).timestamp() for fold in (0, 1)
        )
        self.doubtful += low < high
        return high if low < not_before <= high else low


def moments_of(
    table: CsvTable, where: FoundColumns, clock: LocalClock
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return submission, start, end and deadline of each job in seconds; NaN where not told.

    Submissions are taken to stand in order, starts after submissions, ends after starts.
    """
    count = len(table)
    earliest = -math.inf
    submit: list[float] = []
    for n, cells in enumerate(_cells(table, where, "submit")):
        moment = _read(table, where, "submit", n, cells, clock, earliest)
        earliest = max(earliest, moment) if moment == moment else earliest
        submit.append(moment)
    after, later = submit, []
    for field in ("start", "end", "deadline"):
        if field not in where.names:
            later.append([math.nan] * count)
            continue
        cells_of = _cells(table, where, field)
        base = submit if field == "deadline" else after
        moments = [
            _read(table, where, field, n, cells, clock, base[n]) for n, cells in enumerate(cells_of)
        ]
        after = [m if m == m else a for m, a in zip(moments, after, strict=True)]
        later.append(moments)
    return submit, later[0], later[1], later[2]


def duration(unit: str) -> ColumnType[float]:
    """Return the kind of lengths: numbers in a unit, or hours:minutes:seconds."""

    def read(text: str) -> float:
        if ":" in text:
            return ELAPSED.read(text.strip())
        seconds = _number(text) * SECONDS[unit]
        if seconds < 0:
            raise ValueError
        return seconds

    return ColumnType(f"a time of at least 0 in {unit}, or such as 1-02:30:00", read, 0.0)


def _cells(table: CsvTable, where: FoundColumns, field: str) -> list[str]:
    return table.columns[where.names[field]]


def _read(
    table: CsvTable,
    where: FoundColumns,
    field: str,
    row: int,
    text: str,
    clock: LocalClock,
    base: float,
) -> float:
    """Return a moment; faults are added, blanks are NaN where they may be."""
    if not text.strip() and field != "submit":
        return math.nan
    unit = where.units.get(field, "s")
    try:
        return _number(text) * SECONDS[unit] if _is_number(text) else clock.seconds(text, base)
    except (ValueError, OverflowError):
        from optsched.traces.importers.csv_table import shown_cell

        expected = f"expected a number in {unit}, or a date and time such as 2024-03-31 07:01:55"
        table.faults.add(
            table.lines[row], f"{expected}, found {shown_cell(text)}", where.names[field]
        )
        return math.nan if field != "submit" else 0.0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> float:
    number = float(text)
    if "_" in text or not math.isfinite(number) or abs(number) > MOST_S:
        raise ValueError
    return number
