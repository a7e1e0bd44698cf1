"""A plan drawn on the topology: the tree of domains, and the GPUs in the colours of their jobs."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.cluster.plot import plot_topology
from optsched.pal.verify import feasibility
from optsched.pal.view.tables import objective_name, objective_unit
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalPlan, Placement

# Okabe and Ito's palette: distinct for colour-blind readers too. Hatches tell jobs apart that
# share a colour.
COLOURS = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "----", "||||", "oooo")
EDGE = "0.3"
SLOW = 1.5  # above the spread between healthy GPUs; see Profile.outliers
NAMED = 20  # jobs in the legend, the largest ones first
ENTRY = 1.45  # inches of an entry of the legend

DOT: dict[str, Any] = {"marker": "o", "ms": 4.5, "color": "black", "mec": "white", "ls": ""}


class _Style(NamedTuple):
    colour: str
    hatch: str


def plot(instance: PalInstance, plan: PalPlan, ax: Axes | None = None) -> Axes:
    """Draw the topology with the jobs on it.

    Parameters
    ----------
    plan
        Keeps every rule of the instance.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        GPUs have the colour and hatch of their job; free ones are light grey, and unavailable
        ones white. Below the GPUs a mark in a job's colour shows those that it held before it was
        moved. Black dots are slow GPUs: above `SLOW` times the median for a job's class.
        Largest jobs come first in the legend.
    """
    is_own = ax is None
    styles = _styles(plan)
    holder = {gpu: job.id for job in plan.jobs for gpu in job.gpus}
    colours = {gpu: styles[name].colour for gpu, name in holder.items()}
    colours |= dict.fromkeys(instance.unavailable, "white")
    ax = plot_topology(instance.topology, ax, colours)
    number = {gpu: n for n, gpu in enumerate(instance.topology.gpus)}
    squares = _squares(ax)
    for gpu, name in holder.items():
        squares[number[gpu]].set(hatch=styles[name].hatch, edgecolor=EDGE)
    for name, gpu in _left(instance, plan):
        if gpu in number:
            ax.plot(number[gpu], -0.53, marker="^", ms=4, color=styles[name].colour)
    for gpu in _slow(instance):
        ax.plot(number[gpu], -0.31, **DOT)
    ax.set_ylim(-0.6, len(instance.topology.levels) - 0.75)
    ax.margins(x=0.01)
    ax.set_title(_title(instance, plan), fontsize=10)
    entries = _entries(instance, plan, styles)
    _legend(ax, entries)
    if is_own:
        _fit_legend(ax, len(entries))
    return ax


def _slow(instance: PalInstance) -> list[str]:
    """Return the available GPUs that are slow for the class of any job."""
    classes = {job.application_class for job in instance.jobs}
    slow = {gpu for name in classes for gpu in instance.profile.outliers(name, SLOW)}
    return [gpu for gpu in instance.free_gpus if gpu in slow]


def _largest(plan: PalPlan) -> list[Placement]:
    """Return the jobs that are placed, the largest first."""
    return sorted((job for job in plan.jobs if job.gpus), key=lambda job: -len(job.gpus))


def _styles(plan: PalPlan) -> dict[str, _Style]:
    """Return a style for each job that is placed, plain ones for the largest."""
    styles = [_Style(colour, hatch) for hatch, colour in product(HATCHES, COLOURS)]
    return {job.id: styles[n % len(styles)] for n, job in enumerate(_largest(plan))}


def _squares(ax: Axes) -> list[Patch]:
    """Return the squares that `plot_topology` drew, in the order of `topology.gpus`."""
    squares: list[Patch] = list(ax.containers[-1])
    return squares


def _left(instance: PalInstance, plan: PalPlan) -> Iterator[tuple[str, str]]:
    """Yield the jobs that are moved, with each GPU that they held before."""
    jobs = {job.id: job for job in instance.jobs}
    for placement in plan.jobs:
        job = jobs[placement.id]
        if placement.gpus and feasibility.performance(instance, job, placement.gpus).moved:
            yield from ((job.id, gpu) for gpu in job.current)


def _title(instance: PalInstance, plan: PalPlan) -> str:
    value = f"{figure(feasibility.objective(instance, plan))} {objective_unit(instance)}"
    placed = sum(bool(job.gpus) for job in plan.jobs)
    count = f"{placed} of {len(instance.jobs)} jobs" if placed < len(instance.jobs) else ""
    parts = [instance.name, f"{objective_name(instance)} {value}", count]
    return ", ".join(part for part in parts if part)


def _entries(
    instance: PalInstance, plan: PalPlan, styles: dict[str, _Style]
) -> list[Patch | Line2D]:
    """Return the entries of the legend: the largest jobs, and what else the colours mean."""
    from matplotlib.lines import Line2D

    placed = _largest(plan)
    shown = placed if len(placed) <= NAMED else placed[: NAMED - 1]
    entries: list[Patch | Line2D] = [
        _square(f"{job.id}: {len(job.gpus)}", *styles[job.id]) for job in shown
    ]
    if len(shown) < len(placed):
        entries.append(Line2D([], [], ls="", label=f"+{len(placed) - len(shown)} more jobs"))
    free = len(instance.free_gpus) - sum(len(job.gpus) for job in placed)
    if free:
        entries.append(_square(f"free: {free}", "0.85"))
    if instance.unavailable:
        entries.append(_square(f"unavailable: {len(instance.unavailable)}", "white"))
    if _slow(instance):
        entries.append(
            Line2D([], [], label=f"slow (above {SLOW:g} x): {len(_slow(instance))}", **DOT)
        )
    if any(_left(instance, plan)):
        mark = Line2D([], [], marker="^", ms=4, color="0.4", ls="", label="held before the move")
        entries.append(mark)
    return entries


def _square(label: str, colour: str, hatch: str = "") -> Patch:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, hatch=hatch, edgecolor=EDGE, lw=0.5, label=label)


def _legend(ax: Axes, entries: list[Patch | Line2D]) -> None:
    """Write the legend below the GPUs, in as many columns as fit."""
    ax.legend(
        handles=entries,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02),
        ncols=max(2, int(_width(ax) / ENTRY)),
        fontsize=7,
        frameon=False,
        title="GPUs of each job",
        title_fontsize=7,
    )


def _fit_legend(ax: Axes, entries: int) -> None:
    """Make a figure of its own high enough for title and legend."""
    rows = ceil(entries / max(2, int(_width(ax) / ENTRY)))
    figure_of = ax.get_figure(root=True)
    assert figure_of is not None
    width, height = figure_of.get_size_inches()
    figure_of.set_size_inches(width, height + 0.3 + 0.16 * rows)
    figure_of.set_layout_engine("constrained")


def _width(ax: Axes) -> float:
    """Return the width of the axes in inches."""
    return float(ax.get_window_extent().width / ax.figure.get_dpi())
