"""Least sums of separable costs within every number of GPUs, by dynamic programming."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats


class Row(NamedTuple):
    """The widths of a job, 0 among them, and the cost 1/v of each."""

    gpus: tuple[int, ...]
    cost: tuple[float, ...]


class Best(NamedTuple):
    """Least sums of costs: `value[c]` within c GPUs, and which column each job then takes."""

    value: Floats
    choice: NDArray[np.int16]
    rows: Sequence[Row]

    def widths(self, gpus: int) -> list[int]:
        """Return the width of each job, if there are so many GPUs."""
        widths = []
        for n in reversed(range(len(self.rows))):
            width = self.rows[n].gpus[self.choice[n, gpus]]
            widths.append(width)
            gpus -= width
        return widths[::-1]


def best_widths(rows: Sequence[Row], gpus: int) -> Best:
    """Minimise the sum of costs within every number of GPUs, exactly: job by job, over all sums.

    Of equal costs a job takes the least width.
    """
    value = np.zeros(gpus + 1)
    choice = np.zeros((len(rows), gpus + 1), np.int16)
    for n, row in enumerate(rows):
        best = np.full(gpus + 1, np.inf)
        for column, (width, cost) in enumerate(zip(row.gpus, row.cost, strict=True)):
            if width > gpus:
                break
            reached = value[: gpus + 1 - width] + cost
            better = reached < best[width:]
            best[width:][better] = reached[better]
            choice[n, width:][better] = column
        value = best
    return Best(value, choice, rows)
