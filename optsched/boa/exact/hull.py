"""Upper concave hulls of speedup curves, many at once: docs/math/boa.md, Hulls and mixed widths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats


def hull_vertices(widths: Floats, speedup: Floats) -> Bools:
    """Mark the vertices of the upper concave hull between argmax s/k and argmax s.

    A point is one where every slope from the left, the origin included, exceeds every slope to the
    right, the horizontal included. All pairs of columns are compared: for the few widths of a curve
    that beats any stack, since all rows go at once.

    Parameters
    ----------
    widths
        Shape (widths,), ascending.
    speedup
        Shape (widths, phases).

    Returns
    -------
    numpy.ndarray
        Shape (widths, phases).
    """
    left = speedup / widths[:, None]
    right = np.zeros_like(speedup)
    slope = np.empty_like(speedup[0])
    for j in range(1, len(widths)):
        for i in range(j):
            np.subtract(speedup[j], speedup[i], out=slope)
            slope *= 1 / (widths[j] - widths[i])
            np.minimum(left[j], slope, out=left[j])
            np.maximum(right[i], slope, out=right[i])
    return left > right


def by_rent(rents: Floats, speedup: Floats) -> tuple[Floats, Floats]:
    """Order options by rent, and keep of those at one rent the greatest speedup of each phase."""
    if (rents[1:] > rents[:-1]).all():
        return rents, speedup
    distinct, first = np.unique(np.sort(rents), return_index=True)
    order = np.argsort(rents, kind="stable")
    return distinct, np.maximum.reduceat(speedup[:, order], first, axis=1)
