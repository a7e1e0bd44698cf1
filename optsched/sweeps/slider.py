"""A slider over the values of a frontier, for notebooks (extra `notebook`)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from optsched.instance import html_rows
from optsched.results.result import figure
from optsched.sweeps.parameters import split_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from optsched.sweeps.points import Frontier


def slider(frontier: Frontier) -> Any:
    """Return a widget: a slider over the values, the picture with a mark, and the figures there.

    Returns
    -------
    ipywidgets.VBox
        Children: the slider, the picture and the table.

    Raises
    ------
    ImportError
        If ipywidgets are not installed.
    """
    try:
        import ipywidgets
    except ImportError:
        text = "the slider needs ipywidgets: pip install 'optsched[notebook]'"
        raise ImportError(text) from None
    name, unit = split_unit(frontier.parameter)
    choices = [(f"{value:,.6g} {unit}".strip(), n) for n, value in enumerate(frontier.values)]
    knob = ipywidgets.SelectionSlider(
        options=choices, value=_start(frontier), description=name,
        layout=ipywidgets.Layout(width="620px"), style={"description_width": "initial"},
    )  # fmt: skip
    picture, table = ipywidgets.Image(format="png"), ipywidgets.HTML()
    ax, mark = _drawn(frontier)

    def show(change: Any) -> None:
        value = frontier.values[knob.value]
        mark.set_xdata([value, value])
        picture.value, table.value = _png(ax), html_rows(rows(frontier, value))

    knob.observe(show, "value")
    show(None)
    return ipywidgets.VBox([knob, picture, table])


def rows(frontier: Frontier, value: float) -> dict[str, str]:
    """Return what every method reached at a value, as text, and the bound there."""
    unit = frontier.objective_unit
    here = [point for point in frontier.told if point.value == value]
    texts = {}
    for point in here:
        reached = point.reason or str(point.status)
        if point.objective is not None:
            reached = f"{figure(point.objective)} {unit} ({point.status})"
        texts[point.method] = reached
    bounds = [point.bound for point in here if point.bound is not None]
    return texts | ({"bound": f"{figure(max(bounds))} {unit}"} if bounds else {})


def _start(frontier: Frontier) -> int:
    """Return the number of the value at the knee, else the first."""
    knee = frontier.knee()
    return 0 if knee is None else frontier.values.index(knee.value)


def _drawn(frontier: Frontier) -> tuple[Axes, Line2D]:
    """Draw the frontier once, on a figure that notebooks do not show by themselves."""
    from matplotlib.figure import Figure

    ax = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    frontier.plot(ax)
    return ax, ax.axvline(frontier.values[0], color="black", lw=1)


def _png(ax: Axes) -> bytes:
    from matplotlib.figure import Figure

    drawn = ax.get_figure(root=True)
    assert isinstance(drawn, Figure)
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=90)
    return stream.getvalue()
