"""Pictures of BOA: the widths of a plan, phase by phase; and speedup curves with their hulls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.boa.exact.hull import hull_vertices
from optsched.boa.speedup_curves import curve
from optsched.boa.speedups import ByType
from optsched.boa.verify import feasibility
from optsched.boa.view.tables import objective_name, objective_unit
from optsched.results.drawing import COLOURS, DASHES, axes, plain
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from optsched.boa.instance import BoaInstance, JobClass, Phase
    from optsched.boa.plan import BoaPlan, WidthSequence
    from optsched.boa.speedups import Speedup
    from optsched.documents.arrays import Floats

MARKS = ("o", "s", "^")  # of a class's first, middle and last phase
NAMED = 22  # lines in the legend
FEW_WIDTHS = 8  # GPUs up to which the axis is linear
APART_PT = 2.5  # points between lines that would hide each other
CLOSE = 1.2  # ratio of widths whose labels would touch


def plot(instance: BoaInstance, plan: BoaPlan, ax: Axes | None = None) -> Axes:
    """Draw how many GPUs each class rents as its work gets on.

    Parameters
    ----------
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each class, over its work done; it steps at the ends of phases. Where the jobs of
        a class are mixed, a line for each share of them, the thicker the more. Lines are moved a
        little, so that none hides another.
    """
    from matplotlib.transforms import offset_copy

    ax = axes(ax)
    classes = {c.id: c for c in instance.classes}
    lines = [(n, row.id, s) for n, row in enumerate(plan.classes) for s in row.sequences]
    mixed = len(lines) > len(classes)
    widest = max(max(sequence.gpus) for _, _, sequence in lines)
    for line, (n, name, sequence) in enumerate(lines):
        share = f", {100 * sequence.share:.3g} % of jobs" if mixed else ""
        apart = APART_PT * (line - (len(lines) - 1) / 2) / max(1.0, len(lines) / 6)
        moved = offset_copy(ax.transData, ax.get_figure(root=True), y=apart, units="points")
        widths = [*sequence.gpus, sequence.gpus[-1]]
        ax.step(_work_done(classes[name]), widths, where="post", color=COLOURS[n % len(COLOURS)],
                ls=DASHES[line % len(DASHES)], lw=1.0 + 1.4 * sequence.share, transform=moved,
                label=f"{name}{_rented(sequence)}{share}")  # fmt: skip
    _width_scale(ax, widest)
    ax.set_xlim(0, 100)
    ax.set_xlabel("work done (% of the job)")
    ax.set_ylabel("width (GPUs of each job)")
    value = f"{figure(feasibility.objective(instance, plan))} {objective_unit(instance)}"
    ax.set_title(f"{instance.name}, {objective_name(instance)} {value}", fontsize=10)
    return _finished(ax)


def plot_speedups(instance: BoaInstance, ax: Axes | None = None) -> Axes:
    """Draw the speedup curves of an instance, the vertices of their hulls marked.

    Parameters
    ----------
    ax
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Lines with marks are the curves of a class's first, middle and last phase, in the colour of
        the class. Rings are vertices of the upper concave hull, which the dashed line shows: no
        other widths are worth renting where widths are mixed and rescaling is free. The dotted line
        is a perfect speedup.

    Examples
    --------
    >>> import optsched
    >>> axes = optsched.boa.plot_speedups(optsched.read("boa/hand"))
    >>> axes.get_xlabel()
    'width (GPUs)'
    """
    ax = axes(ax)
    widest = most = 1.0
    for n, mark, name, speedup in _curves(instance):
        colour = COLOURS[n % len(COLOURS)]
        widths, values = curve(speedup)
        ax.plot(widths, values, color=colour, marker=mark, ms=3, lw=1.3, label=name)
        corners = hull_vertices(widths, values[:, None])[:, 0]
        ring = 8 if corners.sum() <= 20 else 5
        ax.plot(widths[corners], values[corners], color=colour, lw=0.8, ls="--",
                marker="o", ms=ring, mfc="none", mew=0.9)  # fmt: skip
        widest, most = max(widest, widths[-1]), max(most, values.max())
    end = min(widest, 1.08 * most)
    ax.plot([1, end], [1, end], color="0.5", lw=1, ls=":", label="perfect speedup")
    style: dict[str, Any] = {"ls": "--", "lw": 0.8, "marker": "o", "ms": 8, "mfc": "none"}
    ax.plot([], [], color="0.3", label="hull and its vertices", **style)
    ax.set_xlim(0, 1.03 * widest)
    ax.set_ylim(0, 1.08 * most)
    ax.set_xlabel("width (GPUs)")
    ax.set_ylabel("speedup (GPUs of speedup 1)")
    ax.set_title(instance.name, fontsize=10)
    return _finished(ax)


def _rented(sequence: WidthSequence) -> str:
    """Return the offers of a sequence, each once, for a label."""
    return f" on {', '.join(dict.fromkeys(sequence.offers))}" if sequence.offers else ""


def _work_done(job_class: JobClass) -> Floats:
    """Return the per cent of a job's work that is done before each phase, and at the end."""
    done = np.cumsum([0.0, *(phase.work_gpu_s for phase in job_class.phases)])
    return np.asarray(100 * done / done[-1])


def _curves(instance: BoaInstance) -> Iterator[tuple[int, str, str, Speedup]]:
    """Yield class, mark, name and curve of what is drawn: some of each class, equal ones once."""
    for i, job_class in enumerate(instance.classes):
        last = len(job_class.phases) - 1
        numbers = sorted({0, last // 2, last})
        distinct = {job_class.phases[n].speedup.model_dump_json(): n for n in reversed(numbers)}
        for mark, n in zip(MARKS, sorted(distinct.values()), strict=False):
            phase = f", phase {n + 1} of {last + 1}" if len(distinct) > 1 else ""
            for gpu_type, speedup in _of_types(job_class.phases[n]):
                yield i, mark, f"{job_class.id}{gpu_type}{phase}", speedup


def _of_types(phase: Phase) -> Iterator[tuple[str, Speedup]]:
    if not isinstance(phase.speedup, ByType):
        yield "", phase.speedup
        return
    for of_type in phase.speedup.curves:
        yield f" on {of_type.gpu_type}", of_type.speedup


def _width_scale(ax: Axes, widest: float) -> None:
    """Make the axis of widths logarithmic, with powers of two as ticks, if they spread."""
    if widest <= FEW_WIDTHS:
        ax.set_ylim(0, widest + 1)
        return
    powers = [2**n for n in range(int(np.log2(widest)) + 1)]
    ticks = [tick for tick in powers if widest / tick >= CLOSE] + [round(widest)]
    ax.set_yscale("log")
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0.85, 1.2 * widest)


def _finished(ax: Axes) -> Axes:
    plain(ax)
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) > NAMED:
        handles, labels = handles[:NAMED], [*labels[: NAMED - 1], "and more"]
    outside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    style: dict[str, Any] = {"fontsize": 7.5, "frameon": False}
    ax.legend(handles, labels, **style, **(outside if len(labels) > 4 else {}))
    return ax
