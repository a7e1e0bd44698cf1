"""The figures of all seeds beside the published ones, as text and as a table of docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from optsched.reproduction.philly.targets import Target, targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

LEVEL = 0.95
BEGIN, END = "<!-- begin: python -m benchmarks.philly_tables --to-docs -->", "<!-- end -->"


@dataclass(frozen=True)
class Row:
    """A figure over seeds.

    Attributes
    ----------
    name, target
        What it is, and what was published of it, if anything.
    mean, low, high
        Over the seeds, with Student's interval of the mean; the mean alone of one seed.
    """

    name: str
    target: Target | None
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the mean is near enough to what was published."""
        met = None if self.target is None else self.target.is_met(self.mean)
        return "" if met is None else "within" if met else "misses"


def rows_of(seeds: Sequence[dict[str, float]]) -> list[Row]:
    """Return a row for each figure, in the order of the published ones, the others after them."""
    published = targets()
    known = [name for name in published if any(name in figures for figures in seeds)]
    others = dict.fromkeys(name for figures in seeds for name in figures if name not in published)
    return [_row(name, published.get(name), seeds) for name in (*known, *others)]


def _row(name: str, target: Target | None, seeds: Sequence[dict[str, float]]) -> Row:
    values = np.array([figures[name] for figures in seeds if name in figures], dtype=float)
    mean, half = float(values.mean()), 0.0
    if len(values) > 1:
        far = float(student.ppf((1 + LEVEL) / 2, len(values) - 1))
        half = far * float(values.std(ddof=1)) / len(values) ** 0.5
    return Row(name, target, mean, mean - half, mean + half)


def summary(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """Return by table or figure how many of its cells are met, and of how many."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.verdict:
            met = counts.setdefault(row.name.partition(",")[0], [0, 0])
            met[0] += row.verdict == "within"
            met[1] += 1
    return [(name, met, of) for name, (met, of) in counts.items()]


def text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    lines = [f"{'':56}{'paper':>14}{'ours':>11}  95 % interval of the mean"]
    for row in rows:
        span = f"  {_number(row.low)} to {_number(row.high)}" if row.low < row.high else ""
        paper = _paper(row.target)
        lines.append(f"{row.name:56}{paper:>14}{_number(row.mean):>11}{span:24}  {row.verdict}")
    lines += [f"{name}: {met} of {number} within" for name, met, number in summary(rows)]
    return "\n".join(lines)


def markdown(rows: Sequence[Row], head: str) -> str:
    """Return the tables for docs."""
    lines = [head, "", "| | within | of |", "|---|---:|---:|"]
    lines += [f"| {name} | {met} | {number} |" for name, met, number in summary(rows)]
    lines += ["", "| | paper | ours | 95 % interval | |", "|---|---:|---:|---:|---|"]
    for row in rows:
        span = f"{_number(row.low)} to {_number(row.high)}" if row.low < row.high else ""
        note = f" ({row.target.note})" if row.target is not None and row.target.note else ""
        cells = (row.name + note, _paper(row.target), _number(row.mean), span, row.verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def put(path: Path, table: str, begin_mark: str = BEGIN) -> None:
    """Put a table between the marks of a page.

    Raises
    ------
    ValueError
        If the page does not have the marks.
    """
    before, begin, rest = path.read_text().partition(begin_mark)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{path} has no lines '{begin_mark}' and '{END}'")
    path.write_text(f"{before}{begin}\n\n{table}\n\n{end}{after}")


def _paper(target: Target | None) -> str:
    if target is None:
        return ""
    if target.low != target.high:
        return f"{_number(target.low)} to {_number(target.high)}"
    return _number(target.low)


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"
