"""A plan drawn over time: a row for each group, and in it a bar for each of its jobs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.verify import feasibility
from optsched.eaco.view.figures import SHOWN, performance
from optsched.eaco.view.summary import objective_name, objective_unit
from optsched.results.result import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoPlan, Group
    from optsched.eaco.view.figures import GroupFigures

# Okabe and Ito's palette: distinct for colour-blind readers too. Hatches tell types apart that
# share a colour.
COLOURS = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "----", "||||", "oooo")
EDGE = "0.3"


class _TypeStyle(NamedTuple):
    colour: str
    hatch: str


def plot(instance: EacoInstance, plan: EacoPlan, ax: Axes | None = None) -> Axes:
    """Draw the groups over time.

    Parameters
    ----------
    plan
        Keeps every rule of the instance.
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each group, the longest at the top, named by its nodes and power level. Its bars
        are the jobs from now until they end, in the colour and hatch of their type; with few groups
        they bear names and slowdowns. A black mark is a job's deadline. Names of nodes in italics:
        the group's rates were not measured, but follow from the instance's fallback.
    """
    figures = performance(instance, plan)
    pairs = sorted(zip(plan.groups, figures.groups, strict=True), key=lambda pair: -pair[1].run_s)
    shown = pairs[: SHOWN.groups]
    ax = _axes(len(shown)) if ax is None else ax
    styles = _styles(instance)
    for row, (_, runs) in enumerate(shown):
        _draw(ax, instance, runs, row, styles, len(shown) <= SHOWN.labelled_groups)
    ax.set_yticks(range(len(shown)), [_place(group) for group, _ in shown], fontsize=8)
    guessed = [runs.origin not in ("alone", "measured") for _, runs in shown]
    for label, is_guessed in zip(ax.get_yticklabels(), guessed, strict=True):
        label.set_fontstyle("italic" if is_guessed else "normal")
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("hours from now")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(_title(instance, plan, len(shown)), fontsize=10)
    used = {job.type for job in instance.jobs if job.id not in plan.waiting}
    entries = _entries(instance, styles, used, has_guesses=any(guessed))
    if entries:
        ax.legend(
            handles=entries,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            fontsize=7,
            frameon=False,
        )
    return ax


def _axes(groups: int) -> Axes:
    """Return the axes of a new figure with room for so many groups."""
    import matplotlib.pyplot as plt

    height = 1.4 + (0.55 if groups <= SHOWN.labelled_groups else 0.22) * max(groups, 2)
    return plt.subplots(figsize=(8, height), layout="constrained")[1]


def _styles(instance: EacoInstance) -> dict[str, _TypeStyle]:
    """Return a style for each type, plain ones for the first."""
    styles = [_TypeStyle(colour, hatch) for hatch, colour in product(HATCHES, COLOURS)]
    used = {job.type for job in instance.jobs}
    names = [kind.id for kind in instance.types if kind.id in used]
    return {name: styles[n % len(styles)] for n, name in enumerate(names)}


def _draw(
    ax: Axes,
    instance: EacoInstance,
    runs: GroupFigures,
    row: int,
    styles: dict[str, _TypeStyle],
    labelled: bool,
) -> None:
    """Draw a group's jobs in its row, one above the other."""
    jobs = {job.id: job for job in instance.jobs}
    height = 0.8 / len(runs.jobs)
    for n, job in enumerate(runs.jobs):
        colour, hatch = styles[jobs[job.id].type]
        y, hours = row - 0.4 + (n + 0.5) * height, job.run_s / 3600
        ax.barh(y, hours, height, color=colour, hatch=hatch, edgecolor=EDGE, lw=0.5)
        deadline = jobs[job.id].deadline_s
        if deadline is not None and deadline >= 0:
            span = [y - height / 2, y + height / 2]
            ax.plot([deadline / 3600] * 2, span, color="black", lw=2, solid_capstyle="butt")
        if labelled:
            text = f" {job.id}  x {job.slowdown:.3f}"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
            ax.text(0, y, text, va="center", fontsize=6.5, bbox=box)


def _place(group: Group) -> str:
    level = f", {group.level}" if group.level else ""
    return f"{group.nodes} {group.node}{level}"


def _title(instance: EacoInstance, plan: EacoPlan, shown: int) -> str:
    value = f"{figure(feasibility.objective(instance, plan))} {objective_unit(instance)}"
    parts = [instance.name, f"{objective_name(instance)} {value}"]
    if plan.waiting:
        parts.append(f"{len(plan.waiting)} jobs wait")
    if shown < len(plan.groups):
        parts.append(f"the longest {shown} of {len(plan.groups)} groups")
    return ", ".join(part for part in parts if part)


def _entries(
    instance: EacoInstance, styles: dict[str, _TypeStyle], used: set[str], *, has_guesses: bool
) -> list[Patch | Line2D]:
    """Return the entries of the legend: the types that are placed, and deadlines."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = [name for name in styles if name in used]
    entries: list[Patch | Line2D] = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=EDGE, lw=0.5, label=name)
        for name, (colour, hatch) in ((name, styles[name]) for name in names[: SHOWN.legend_types])
    ]
    if len(names) > SHOWN.legend_types:
        more = len(names) - SHOWN.legend_types
        entries.append(Line2D([], [], ls="", label=f"+{more} more types"))
    if any(job.deadline_s is not None for job in instance.jobs):
        entries.append(Line2D([], [], color="black", lw=2, label="deadline"))
    if has_guesses:
        entries.append(Line2D([], [], ls="", label=r"$\it{italics}$: not measured"))
    return entries
