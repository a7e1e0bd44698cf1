"""Brackets as the tables of docs/brackets.md."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.brackets.measure import HINDSIGHT, IN_ORDERS, ORDERS, PLACEMENTS, crossed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.brackets.measure import Bracket, Row


def markdown(brackets: Sequence[Bracket], head: str) -> str:
    """Return a table of the best policies, and one for each scenario."""
    titles = ["scenario", "bound, s", "best policy", "median", "worst", HINDSIGHT, "worst"]
    is_known = any(row.policy == HINDSIGHT for found in brackets for row in found.rows)
    columns = len(titles) if is_known else titles.index(HINDSIGHT)
    lines = [head, "", _line(titles[:columns])]
    lines.append("|---|---:|---|" + "---:|" * (columns - 3))
    lines += [_line(_summary(found)[:columns]) for found in brackets]
    for found in brackets:
        if found.reason is None:
            lines += ["", f"### {found.scenario}", "", "| policy | median | worst |"]
            lines.append("|---|---:|---:|")
            lines += [_line((f"`{row.policy}`", *cells(row))) for row in found.rows]
    return "\n".join(lines)


def _summary(found: Bracket) -> tuple[str, ...]:
    bound = f"{median(found.bounds_s.values()):,.0f}" if found.bounds_s else "none"
    if found.reason is not None:
        return found.scenario, bound, found.reason, "", "", "", ""
    row = best(found.rows)
    told = ("none that ends all jobs", "", "") if row is None else (f"`{row.policy}`", *cells(row))
    known = next((cells(row) for row in found.rows if row.policy == HINDSIGHT), ("", ""))
    return found.scenario, bound, *told, *known


def best(rows: Iterable[Row]) -> Row | None:
    """Return the policy of the least median, of those that end all jobs; hindsight is none."""
    able = [row for row in rows if not row.unfinished and row.policy != HINDSIGHT]
    return min(able, key=lambda row: (median(_told(row)), max(_told(row))), default=None)


def cells(row: Row) -> tuple[str, str]:
    """Return median and worst over seeds, or what forbids to tell them."""
    if row.below:
        return f"BELOW ITS BOUND on seeds {_seeds(row.below)}", f"{100 * min(_told(row)):.4f} %"
    if row.unfinished:
        jobs = f"{sum(row.unfinished.values())} jobs did not end"
        return f"{jobs} (seeds {_seeds(row.unfinished)})", "none"
    return _percent(median(_told(row))), _percent(max(_told(row)))


def orders_markdown(found: Bracket, head: str) -> str:
    """Return the table of orders and placements, each cell as median (worst)."""
    lines = [head, "", f"| {IN_ORDERS}: median (worst) | {' | '.join(PLACEMENTS)} |"]
    lines.append("|---" + "|---:" * len(PLACEMENTS) + "|")
    by_policy = {row.policy: "{} ({})".format(*cells(row)) for row in found.rows}
    for order in ORDERS:
        told = [by_policy[crossed(placement, order)] for placement in PLACEMENTS]
        lines.append(_line((order, *told)))
    return "\n".join(lines)


def told_markdown(brackets: Sequence[Bracket], head: str) -> str:
    """Return a row for each scenario and what was told, a column for each policy."""
    names = [row.policy for row in brackets[0].rows]
    lines = [head, "", f"| told of run times | {' | '.join(f'`{name}`' for name in names)} |"]
    lines.append("|---" + "|---:" * len(names) + "|")
    for found in brackets:
        lines.append(
            _line((found.scenario, *("{} ({})".format(*cells(row)) for row in found.rows)))
        )
    return "\n".join(lines)


def _told(row: Row) -> list[float]:
    return [value for value in row.above.values() if value is not None]


def _percent(value: float) -> str:
    return f"{100 * value:,.1f} %"


def _seeds(seeds: Iterable[int]) -> str:
    return ", ".join(map(str, seeds))


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"
