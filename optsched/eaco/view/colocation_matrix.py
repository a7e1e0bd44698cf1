"""The co-location matrix: how fast a job of each type runs beside one of each other type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.view.figures import SHOWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance


def plot_colocation(instance: EacoInstance, ax: Axes | None = None, gpu: str | None = None) -> Axes:
    """Draw the rates of pairs of job types on the same GPUs as a heat map.

    Parameters
    ----------
    ax
        Where to draw; by default a new figure.
    gpu
        Id of the GPU type; by default the first.

    Returns
    -------
    matplotlib.axes.Axes
        The rate, 1 / slowdown, of the row's type beside one of the column's. Rates that were not
        measured, but follow from the instance's fallback, are in italics; pairs that do not fit,
        or of which nothing is known, are crossed out.

    Raises
    ------
    ValueError
        If there is no such GPU type.

    Examples
    --------
    >>> import optsched
    >>> axes = optsched.eaco.plot_colocation(optsched.read("eaco/paper-four"))
    >>> axes.get_xlabel()
    'partner on the same GPUs'
    """
    names = [kind.id for kind in instance.types]
    gpu = instance.gpu_types[0].id if gpu is None else gpu
    if gpu not in instance.rates:
        raise ValueError(f"there is no GPU type '{gpu}'; known: {', '.join(instance.rates)}")
    rates, measured = pair_rates(instance, gpu)
    ax = _axes(len(names)) if ax is None else ax
    least = np.nanmin(rates, initial=1.0)
    image = ax.imshow(rates, cmap="cividis", vmin=min(float(least), 0.5), vmax=1)
    figure = ax.get_figure(root=True)
    assert figure is not None
    colours = figure.colorbar(image, ax=ax, shrink=0.85)
    colours.set_label("rate beside the partner (1 = as fast as alone)")
    _write(ax, rates, measured)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(labelsize=8 if len(names) <= SHOWN.written_types else 6, length=0)
    ax.set_xlabel("partner on the same GPUs")
    ax.set_ylabel("job")
    ax.set_title(f"{instance.name}, pairs on {gpu}", fontsize=10)
    return ax


def pair_rates(instance: EacoInstance, gpu: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the rates of pairs, and which of them were measured.

    Returns
    -------
    tuple
        Both of shape (types, types), in the order of `instance.types`: rate of the row's type
        beside the column's, NaN where the pair does not fit or is not known.

    Examples
    --------
    >>> import optsched
    >>> rates, measured = optsched.eaco.pair_rates(optsched.read("eaco/paper-four"), "V100")
    >>> rates.round(3)
    array([[  nan,   nan, 0.966, 0.971],
           [  nan,   nan,   nan, 0.963],
           [0.966,   nan,   nan,   nan],
           [0.971, 0.963,   nan,   nan]])
    """
    names = [kind.id for kind in instance.types]
    rates = np.full((len(names), len(names)), np.nan)
    measured = np.zeros(rates.shape, bool)
    for i, name in enumerate(names):
        for j, partner in enumerate(names):
            pair = instance.rates[gpu].of([name, partner])
            measured[i, j] = pair.origin == "measured"
            if pair.fits:
                rates[i, j] = float(pair.by_type[name])
    return rates, measured


def _axes(types: int) -> Axes:
    import matplotlib.pyplot as plt

    side = min(8.0, max(3.6, 2.2 + 0.42 * types))
    return plt.subplots(figsize=(side + 1, side), layout="constrained")[1]


def _write(ax: Axes, rates: NDArray[np.float64], measured: NDArray[np.bool_]) -> None:
    """Write the rates into their cells, if there is room, and cross out what does not fit."""
    for (i, j), rate in np.ndenumerate(rates):
        if np.isnan(rate):
            ax.plot(j, i, marker="x", color="0.4", ms=6)
        elif len(rates) <= SHOWN.written_types:
            dark = rate < (1 + np.nanmin(rates, initial=0.5)) / 2
            ax.text(j, i, f"{rate:.2f}", ha="center", va="center", fontsize=7,
                    color="white" if dark else "black",
                    style="normal" if measured[i, j] else "italic")  # fmt: skip
