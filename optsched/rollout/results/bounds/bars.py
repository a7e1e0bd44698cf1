"""Policies as bars, with what no schedule can be below as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.results.drawing import COLOURS, axes, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from optsched.rollout.results.policy_comparison import Comparison

MANY_TIMES = 12
"""So much longer than the shortest bar, a bar needs a logarithmic axis."""


def drawn(compared: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the mean JCTs of a comparison that has bounds."""
    if not compared.bounds:
        raise ValueError("there are no bounds: draw compared.bounded()")
    values, above = {}, {}
    for name, row in compared.frame().iterrows():
        policy = compared.label(str(name))
        values[policy], share = float(row["jct_mean_s"]), float(row["jct_mean_s_above"])
        above[policy] = share if share == share else None  # NaN where jobs did not end
    bounds = [row.jct_mean_s_bound for row in compared.bounds]
    return bars(values, above, min(each for each in bounds if each is not None), ax=ax)


def bars(
    values: Mapping[str, float],
    above: Mapping[str, float | None],
    bound: float,
    label: str = "mean JCT (s)",
    ax: Axes | None = None,
) -> Axes:
    """Draw a bar for each policy, how far it is above the bound, and the bound as a line.

    Parameters
    ----------
    values
        By policy, in the unit of the bound.
    above
        By policy its share above the bound; None if that cannot be told.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = axes(ax, (7, 1.2 + 0.42 * len(values)))
    names = list(values)[::-1]
    drawn = ax.barh(names, [values[name] for name in names], color=COLOURS[0], height=0.6)
    shares = [above.get(name) for name in names]
    ax.bar_label(drawn, ["" if s is None else f"{s:+.1%}" for s in shares], padding=4, fontsize=8)
    ax.axvline(bound, color="black", lw=1.2, ls=(0, (3, 3)), label=f"bound: {bound:,.0f}")
    longest = max([*values.values(), bound])
    if bound > 0 and longest > MANY_TIMES * bound:
        ax.set_xscale("log")
        ax.set_xlim(0.5 * bound, 3 * longest)
    else:
        ax.set_xlim(0, 1.18 * longest)
    ax.set_xlabel(label)
    plain(ax)
    ax.grid(visible=False, axis="y")
    ax.figure.legend(loc="outside upper right", fontsize=8, frameon=False)
    return ax
