"""A topology drawn as a tree, with its GPUs in a row below."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from optsched.cluster.topology import Topology


def plot_topology(
    topology: Topology, ax: Axes | None = None, colours: Mapping[str, str] | None = None
) -> Axes:
    """Draw the tree of domains, the root on top, and the available GPUs as squares below.

    Parameters
    ----------
    topology
        Readable up to some hundred GPUs.
    ax
        Where to draw; by default a new figure.
    colours
        Colour of a GPU by its id, for example by job; others are light grey.

    Returns
    -------
    matplotlib.axes.Axes
        One unit of x is a GPU, in the order of `topology.gpus`; y is the number of the level.
    """
    import matplotlib.pyplot as plt

    if ax is None:
        width = min(12.0, max(5.0, 2.5 + 0.125 * len(topology.gpus)))
        _, ax = plt.subplots(figsize=(width, 1.6 + 0.8 * len(topology.levels)))
    heights = {level: height for height, level in enumerate(topology.levels)}
    spans = {d.id: topology.gpus_in(d.id) for d in topology.domains}
    shown = {d.id: d for d in topology.domains if len(spans[d.id])}
    middle = {name: float(spans[name].mean()) for name in shown}
    counts = {level: sum(d.level == level for d in shown.values()) for level in topology.levels}
    for name, domain in shown.items():
        x, y = middle[name], heights[domain.level]
        if domain.parent is not None:
            above = heights[topology.domain(domain.parent).level]
            ax.plot([x, x, middle[domain.parent]], [y, above - 0.45, above], color="0.6", lw=0.8)
        ends = [spans[name][0] - 0.35, spans[name][-1] + 0.35]
        ax.plot(ends, [y, y], color="0.25", lw=3, solid_capstyle="butt")
        if counts[domain.level] <= 40:  # names of more would overlap
            turned = 90 if counts[domain.level] > 12 and y == 0 else 0
            ax.annotate(
                name, (x, y), (0, 4), textcoords="offset points", fontsize=7, rotation=turned,
                ha="center", va="bottom", bbox={"fc": "white", "ec": "none", "pad": 0.5},
            )  # fmt: skip
    of_gpu = [(colours or {}).get(gpu, "0.85") for gpu in topology.gpus]
    places = range(len(topology.gpus))
    ax.bar(places, 0.28, 0.8, bottom=-0.45, color=of_gpu, edgecolor="0.4", linewidth=0.5)
    ax.set_yticks([-0.31, *heights.values()], ["GPUs", *topology.levels])
    ax.set_xticks([])
    ax.set_ylim(-0.6, len(topology.levels) - 0.4)
    ax.spines[["top", "right", "bottom", "left"]].set_visible(False)
    ax.tick_params(length=0)
    return ax
