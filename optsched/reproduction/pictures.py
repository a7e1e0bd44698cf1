"""Pictures of claims: published beside ours, and curves and bars over what was measured."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

from optsched.reproduction.texts import number
from optsched.results.drawing import COLOURS, plain, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from matplotlib.figure import Figure

    from optsched.reproduction.claim import Row
    from optsched.reproduction.estimates import Estimate
    from optsched.reproduction.verdicts import Published


class Drawing(NamedTuple):
    """A picture, what it shows in words, and its numbers.

    Attributes
    ----------
    head, rows
        The numbers as a table; empty where they stand elsewhere.
    """

    figure: Figure
    text: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


MINUTES = "min"
"""A unit of figures that differ by orders of magnitude."""
CHARACTERS = 130
"""How many characters of the size of ticks are side by side in a picture."""


def overview(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Yield a picture for each unit, of the rows that have a published figure and ours."""
    by_unit: dict[str, list[tuple[Row, Estimate, Published]]] = {}
    for row in rows:
        if row.claim.published and row.ours and not row.claim.is_detail:
            told = (row, row.ours, row.claim.published)
            by_unit.setdefault(row.claim.unit, []).append(told)
    for unit, shown in by_unit.items():
        text = f"Published figures beside ours with their intervals, {unit}"
        yield Drawing(_forest(shown, unit), text)


def _forest(shown: Sequence[tuple[Row, Estimate, Published]], unit: str) -> Figure:
    """Draw a line for each row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 0.32 * len(shown)), layout="constrained")
    ax = figure.subplots()
    for y, (row, ours, published) in enumerate(shown):
        ax.plot([ours.low, ours.high], [y, y], color=COLOURS[0], lw=2)
        ax.plot(ours.value, y, "o", color=COLOURS[0], label="ours, 95 % interval" if not y else "")
        ax.plot([published.low, published.high], [y, y], "D-", color=COLOURS[3], ms=6, lw=0.8,
                label="published" if not y else "")  # fmt: skip
        if row.exact is not None:
            ax.plot(row.exact.value, y, "|", color="black", ms=11)
    if any(row.exact for row, *_ in shown):
        ax.plot([], [], "|", color="black", ms=11, label="exact method, on its seeds")
    if unit == MINUTES:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    else:
        ax.axvline(0, color="0.7", lw=0.8)
    ax.set_yticks(range(len(shown)), [row.claim.what for row, *_ in shown], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel(unit)
    plain(ax)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def bars(
    values: Mapping[str, Mapping[str, Estimate | None]], label: str, text: str
) -> Iterator[Drawing]:
    """Yield bars by group, one colour for each name, with intervals.

    Parameters
    ----------
    values
        By name the estimate of each group.
    """
    from matplotlib.figure import Figure

    groups = list(dict.fromkeys(group for told in values.values() for group in told))
    if not any(each for told in values.values() for each in told.values()):
        return
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax, width = figure.subplots(), 0.8 / len(values)
    for n, (name, told) in enumerate(values.items()):
        chosen = [(k, each) for k, group in enumerate(groups) if (each := told.get(group))]
        xs = [k + (n - (len(values) - 1) / 2) * width for k, _ in chosen]
        heights = [each.value for _, each in chosen]
        off = [[e.value - e.low for _, e in chosen], [e.high - e.value for _, e in chosen]]
        ax.bar(xs, heights, width, color=COLOURS[n % len(COLOURS)], label=name,
               yerr=off, error_kw={"lw": 0.8, "ecolor": "0.3"})  # fmt: skip
    ax.set_xticks(range(len(groups)), _wrapped(groups), fontsize=8)
    ax.axhline(0, color="0.5", lw=0.8)
    ax.set_ylabel(label)
    plain(ax)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    rows = tuple(
        (name, *(_cell(told.get(group)) for group in groups)) for name, told in values.items()
    )
    yield Drawing(figure, text, ("", *groups), rows)


def _wrapped(groups: Sequence[str]) -> list[str]:
    """Return names of groups in lines that leave room for those beside them."""
    return [textwrap.fill(group, CHARACTERS // len(groups)) for group in groups]


def curves(
    lines: Mapping[str, Sequence[tuple[float, Estimate | None]]],
    labels: tuple[str, str],
    text: str,
    marks: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    is_log: bool = False,
    is_log_x: bool = False,
) -> Iterator[Drawing]:
    """Yield lines with intervals, and published points in the colour of their line.

    Parameters
    ----------
    lines
        By name the points: where, and the estimate there.
    labels
        Of the two axes.
    is_log, is_log_x
        Whether y is logarithmic, and x.
    """
    from matplotlib.figure import Figure

    if not any(each for points in lines.values() for _, each in points):
        return
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    ax = figure.subplots()
    shown = {
        name: [(x, each) for x, each in points if each is not None]
        for name, points in lines.items()
    }
    for (name, told), style in styled((name, told) for name, told in shown.items() if told):
        xs = [x for x, _ in told]
        ax.plot(xs, [each.value for _, each in told], marker="o", ms=4, label=name, **style)
        ax.fill_between(xs, [each.low for _, each in told], [each.high for _, each in told],
                        color=style["color"], alpha=0.12, lw=0)  # fmt: skip
        for x, y in (marks or {}).get(name, ()):
            ax.plot(x, y, "D", color=style["color"], ms=8, mfc="none", mew=1.6)
    if is_log:
        ax.set_yscale("log")
    if is_log_x:
        ax.set_xscale("log")
        ax.set_xticks(xs, [f"{x:g}" for x in xs], minor=False)
        ax.minorticks_off()
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    plain(ax)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    by_x = {name: dict(points) for name, points in lines.items() if any(e for _, e in points)}
    xs = sorted({x for points in by_x.values() for x in points})
    rows = tuple((f"{x:g}", *(_cell(told.get(x)) for told in by_x.values())) for x in xs)
    yield Drawing(figure, text, (labels[0], *by_x), rows)


def _cell(value: Estimate | None) -> str:
    return "" if value is None else number(value.value)
