"""Mod-k cuts (Caprara, Fischetti & Letchford, Mathematical Programming 87, 2000).

Jobs get weights below k so that the weight of every group that a point uses much of is a multiple
of k, but that of all jobs is not: then floor(weight / k) of the groups, added up, is above that of
all jobs. Such weights are found by elimination modulo a prime k, one group after another, for cuts
over more jobs than exchange looks at: a point that is whole but for an odd cycle of halves needs
one over the whole cycle. Halves alone are the zero-half cuts of Koster, Zymolka and Kutschka
(Algorithmica 55, 2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.eaco.cuts.fractional import fractional_part
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Indices


def mod_k_sets(held: Floats, x: Floats, copies: Floats) -> dict[tuple[tuple[int, ...], int], float]:
    """Return sets with weights, each class repeated by its weight, and how much they violate.

    Parameters
    ----------
    held
        Shape (columns, classes): jobs of each class in the columns that are not zero.
    x
        Shape (columns,): how much of each.
    copies
        Shape (classes,): jobs.
    """
    _, touched, inside, part = fractional_part(held, x)
    draw = np.random.default_rng(len(x))
    violations: dict[tuple[tuple[int, ...], int], float] = {}
    for k in SETTINGS.mod_k:
        for _ in range(SETTINGS.mod_k_orders):
            noise = 1 + SETTINGS.mod_k_noise * draw.standard_normal(len(part))
            order = np.argsort(-part * noise, kind="stable")
            search = _Elimination(inside, part, copies[touched], k)
            weights = search.candidates(order[part[order] > SETTINGS.mod_k_share])
            excess = np.floor(weights @ inside.T / k) @ part
            excess -= np.floor(weights @ copies[touched] / k)
            for n in np.flatnonzero(excess > SETTINGS.mod_k_violation).tolist():
                repeated = np.repeat(touched, weights[n])
                violations[tuple(repeated.tolist()), k] = float(excess[n])
    return violations


def _summed(weights: NDArray[Any], x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return weights @ x, all of which are finite.

    BLAS pads its blocks with what memory holds, and numpy now and then warns of that.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(weights @ x)


class _Elimination:
    """Gaussian elimination modulo k: a row for each sum of jobs' rows with weights.

    Attributes
    ----------
    rows
        Shape (classes, columns + 1 + classes): weight in each column, weight of all jobs, weights.
    """

    def __init__(self, held: Floats, x: Floats, copies: Floats, k: int) -> None:
        self.x, self.k = x.astype(np.float32), k
        whole = np.column_stack([held.T, copies, np.eye(len(copies))])
        self.rows = (whole % k).astype(np.uint8)
        self._is_left = np.ones(len(copies), dtype=bool)
        self._times = [np.arange(k, dtype=np.uint8) * n % k for n in range(k)]

    def candidates(self, order: Indices) -> Indices:
        """Return weights that are violated, after each column is eliminated in turn.

        Returns
        -------
        Shape (candidates, classes).
        """
        changed = [self.rows[self._eliminate(column)] for column in order.tolist()]
        return self._violated(np.concatenate(changed or [self.rows[:0]]))

    def _eliminate(self, column: int) -> Indices:
        """Clear a column in all rows that are left but one, which is given up for it."""
        k, rows, count = self.k, self.rows, len(self.x)
        having = np.flatnonzero(self._is_left & (rows[:, column] > 0))
        if not len(having):
            return having
        pivot = having[_summed(rows[having, :count] > 0, self.x).argmin()]
        others = having[having != pivot]
        inverse = pow(int(rows[pivot, column]), -1, k)
        times = self._times[k - inverse][rows[others, column]]
        rows[others] = (rows[others] + times[:, None] * rows[pivot]) % k
        self._is_left[pivot] = False
        return having

    def _violated(self, rows: NDArray[np.uint8]) -> Indices:
        """Return the weights of rows, or of multiples of them, whose groups leave too little over.

        A group's weight modulo k is what rounding down takes away of it: if that is less, over all
        groups, than of all jobs, the cut is violated.
        """
        k, count = self.k, len(self.x)
        found = []
        for times in range(1, k):
            multiple = self._times[times][rows]
            excess = multiple[:, count] - _summed(multiple[:, :count], self.x)
            found.append(multiple[excess > k * SETTINGS.mod_k_violation, count + 1 :])
        return np.concatenate(found).astype(np.intp)
