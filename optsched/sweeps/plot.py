"""A frontier drawn: the curve with its bound and knee, other methods as points, gaps marked."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from optsched.results.drawing import axes, plain
from optsched.sweeps.intervals import interval
from optsched.sweeps.parameters import ROLLOUT, split_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from optsched.sweeps.points import Frontier, Point

# Okabe and Ito's palette: distinct for colour-blind readers too. Marks tell methods apart that
# share a colour, and any two in print.
CURVE, BOUND, KNEE = "#0072B2", "black", "#D55E00"
COLOURS = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
DASHES = ("-", "--", "-.", ":")
FEW = 40  # values whose points are marked on the curve
LEAST_SPAN = 0.01  # of the figures: a curve that is flatter looks flat


def plot(frontier: Frontier, ax: Axes | None = None, against: str = "") -> Axes:
    """Draw a frontier.

    Parameters
    ----------
    ax
        Where to draw; by default a new figure.
    against
        Of rollouts: the metric that is drawn from left to right, such as ``"cost_usd"``, in place
        of the parameter. There is no bound, knee or gap then.

    Returns
    -------
    matplotlib.axes.Axes
        The first method's points are a line, broken where there is no plan; the dashed line is the
        bound, and the star the knee. Other methods are points; of rollouts, every policy is a line,
        with the 95 % interval over seeds as a band, and the bound is of every schedule.
        Crosses at the foot are values at which the first method has no result.
    """
    ax = axes(ax)
    if against:
        return _plot_against(ax, frontier, against)
    first, *others = frontier.methods
    if frontier.problem == ROLLOUT:
        _draw_policies(ax, frontier)
    else:
        _draw_curve(ax, frontier.of_method(first), first)
    _draw_knee(ax, frontier)
    if frontier.problem != ROLLOUT:
        _draw_points(ax, frontier, others)
    _label(ax, frontier)
    _draw_gaps(ax, frontier.of_method(first))
    entries = len(ax.get_legend_handles_labels()[0])
    outside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    if entries > 1:
        ax.legend(fontsize=8, frameon=False, **(outside if entries > 8 else {}))
    return ax


def _plot_against(ax: Axes, frontier: Frontier, metric: str) -> Axes:
    """Draw the objective of policies over another metric; what stands at a line is the value."""
    base = frontier.of(metric)  # an error for an unknown metric, or where there are none
    colours, marks = cycle((CURVE, *COLOURS)), cycle(MARKS)
    for name, colour, mark in zip(frontier.methods, colours, marks, strict=False):
        own = zip(frontier.of_method(name), base.of_method(name), strict=True)
        rows = [(p, q.objective, p.objective) for p, q in own if q.objective is not None]
        if not rows:
            continue
        points, across, up = zip(*rows, strict=True)
        ax.plot(across, up, color=colour, marker=mark, ms=4, lw=1.5, label=name)
        ends = [interval(frontier, point) or (y, y) for point, y in zip(points, up, strict=True)]
        spread = [[y - low for y, (low, _) in zip(up, ends, strict=True)],
                  [high - y for y, (_, high) in zip(up, ends, strict=True)]]  # fmt: skip
        ax.errorbar(across, up, yerr=spread, color=colour, ls="", capsize=2, lw=0.8)
        offset: dict[str, Any] = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 6}
        for point, x, y in zip(points, across, up, strict=True):
            ax.annotate(f"{point.value:.6g}", (x, y), **offset)
    ax.set_xlabel(_with_unit(base.objective_name, base.objective_unit))
    ax.set_ylabel(_with_unit(frontier.objective_name, frontier.objective_unit))
    ax.set_title(f"{frontier.instance}, by {frontier.parameter}", fontsize=10)
    ax.legend(fontsize=8, frameon=False)
    plain(ax)
    return ax


def _line(points: tuple[Point, ...], key: str = "objective") -> tuple[list[float], list[float]]:
    """Return values and figures; NaN, at which a line breaks, where there is none."""
    figures = [getattr(point, key) for point in points]
    nan = float("nan")
    return [p.value for p in points], [nan if f is None else f for f in figures]


def _draw_curve(ax: Axes, points: tuple[Point, ...], name: str) -> None:
    mark = "o" if len(points) <= FEW else ""
    ax.plot(*_line(points), color=CURVE, lw=2.6, marker=mark, ms=4.5, label=name, zorder=3)
    if any(point.bound is not None for point in points):
        bound = _line(points, "bound")
        ax.plot(*bound, color=BOUND, lw=1, ls=(0, (3, 3)), label="bound", zorder=3.5)


def _draw_points(ax: Axes, frontier: Frontier, others: list[str]) -> None:
    """Draw the points of other methods, at most `FEW` of each."""
    for name, colour, mark in zip(others, cycle(COLOURS), cycle(MARKS), strict=False):
        points = frontier.of_method(name)
        some = points[:: -(-len(points) // FEW)]
        style: dict[str, Any] = {"ls": "", "marker": mark, "ms": 7, "mfc": "none", "mew": 1.1}
        ax.plot(*_line(some), color=colour, label=name, zorder=2.5, **style)


def _draw_policies(ax: Axes, frontier: Frontier) -> None:
    colours = cycle((CURVE, *COLOURS))
    marks, dashes = cycle(MARKS), cycle(DASHES)
    for name, colour, mark, dash in zip(frontier.methods, colours, marks, dashes, strict=False):
        points = frontier.of_method(name)
        ax.plot(*_line(points), color=colour, marker=mark, ms=4, ls=dash, lw=1.5, label=name)
        _draw_intervals(ax, frontier, points, colour)
    least: dict[float, float] = {}
    for point in frontier.told:  # of another class of schedules another policy may have another one
        if point.bound is not None:
            least[point.value] = min(point.bound, least.get(point.value, point.bound))
    if least:
        bounds = [least.get(value, float("nan")) for value in frontier.values]
        ax.plot(frontier.values, bounds, color=BOUND, lw=1, ls=(0, (3, 3)), label="bound")


def _draw_intervals(ax: Axes, frontier: Frontier, points: tuple[Point, ...], colour: str) -> None:
    """Shade the 95 % intervals over seeds, where there are any."""
    ends = [(point.value, interval(frontier, point)) for point in points]
    known = [(value, *pair) for value, pair in ends if pair is not None]
    if known:
        values, low, high = zip(*known, strict=True)
        ax.fill_between(values, low, high, color=colour, alpha=0.15, lw=0)


def _draw_knee(ax: Axes, frontier: Frontier) -> None:
    knee = frontier.knee()
    if knee is None or knee.objective is None:
        return
    label = f"knee, {frontier.point_text(knee)}".replace(": ", "\n", 1)
    style: dict[str, Any] = {"ls": "", "marker": "*", "ms": 13, "mec": "white", "mew": 0.8}
    ax.plot([knee.value], [knee.objective], color=KNEE, label=label, zorder=4, **style)


def _draw_gaps(ax: Axes, points: tuple[Point, ...]) -> None:
    """Mark values without a plan at the foot of the axes."""
    gaps = [point.value for point in points if point.objective is None]
    if not gaps:
        return
    label = f"{len(gaps)} {'value' if len(gaps) == 1 else 'values'} without a result"
    ax.plot(gaps, [0.02] * len(gaps), transform=ax.get_xaxis_transform(), ls="", marker="x", ms=5,
            color="0.25", label=label, clip_on=False)  # fmt: skip


def _label(ax: Axes, frontier: Frontier) -> None:
    from matplotlib.ticker import MaxNLocator

    figures = [p.objective for p in frontier.points if p.objective is not None]
    if figures and min(figures) > 0 and max(figures) > 12 * min(figures):
        ax.set_yscale("log")
    else:
        _widen(ax, figures + [p.bound for p in frontier.points if p.bound is not None])
    if ax.get_xscale() == "linear" and all(value.is_integer() for value in frontier.values):
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel(_with_unit(*split_unit(frontier.parameter)))
    ax.set_ylabel(_with_unit(frontier.objective_name, frontier.objective_unit))
    ax.set_title(frontier.instance, fontsize=10)
    plain(ax)


def _widen(ax: Axes, figures: list[float]) -> None:
    """Let figures that hardly differ look equal, and write them out in full."""
    ax.ticklabel_format(axis="y", useOffset=False)
    if not figures:
        return
    low, high = min(figures), max(figures)
    least = LEAST_SPAN * max(abs(low), abs(high))
    if high - low < least:
        middle = (low + high) / 2
        ax.set_ylim(middle - least, middle + least)


def _with_unit(name: str, unit: str) -> str:
    if name.endswith(")"):
        return f"{name}, {unit}".removesuffix(", ")
    return f"{name} ({unit})" if unit else name
