"""What pictures share: colours for every reader, axes, and a plain frame."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes

T = TypeVar("T")

# Okabe and Ito's palette: distinct for colour-blind readers too. Dashes tell lines apart that
# share a colour, and any two in print.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def axes(ax: Axes | None, size: tuple[float, float] = (7, 4.4)) -> Axes:
    """Return axes to draw on; those of a new figure, of a size in inches, if none are given."""
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def styled(drawn: Iterable[T]) -> Iterator[tuple[T, dict[str, Any]]]:
    """Yield each of what is drawn with the colour and dashes of its line."""
    for each, colour, dashes in zip(drawn, cycle(COLOURS), cycle(DASHES), strict=False):
        yield each, {"color": colour, "linestyle": dashes}


def plain(ax: Axes) -> None:
    """Leave out the frame above and on the right, and put a light grid below what is drawn."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", lw=0.6)
    ax.set_axisbelow(True)
