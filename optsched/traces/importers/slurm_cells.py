"""Cells of what `sacct` prints: lengths of time, and GPUs among resources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from optsched.traces.importers.column_types import ColumnType

if TYPE_CHECKING:
    from optsched.traces.importers.csv_table import CsvTable

GPU_COLUMNS = ("AllocTRES", "ReqTRES")
_ELAPSED = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)(?:\.\d+)?", re.ASCII)
_TRES = re.compile(r"gres/gpu(:[^=,]*)?=(\d{1,6})", re.ASCII)


def gpus_of(table: CsvTable) -> list[int]:
    """Return the GPUs of each row."""
    counts = [table.read(column, GPUS) for column in GPU_COLUMNS if column in table]
    return [max(row) for row in zip(*counts, strict=True)]


def _elapsed(text: str) -> float:
    match = _ELAPSED.fullmatch(text)
    if match is None:
        raise ValueError
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _gpus(text: str) -> int:
    """Return GPUs of trackable resources; a total stands beside the counts by type."""
    counts = _TRES.findall(text)
    totals = [int(count) for kind, count in counts if not kind]
    return totals[0] if totals else sum(int(count) for _, count in counts)


ELAPSED = ColumnType("a time such as 1-02:30:00", _elapsed, 0.0)
GPUS = ColumnType("resources such as cpu=8,gres/gpu=2", _gpus, 0)
