"""An inverted index: which columns hold jobs of a class, so that what cuts count is looked up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import GroupCountRow, NodeCountRow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.cuts.cuts_and_branching import Rule
    from optsched.eaco.groups.columns import Columns

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class ColumnIndex:
    """An index of columns by the classes of jobs that they hold.

    Parameters
    ----------
    classes
        How many classes there are.
    """

    def __init__(self, columns: Columns, classes: int) -> None:
        self._all = columns
        count, width = columns.members.shape
        held = columns.members.ravel()
        if classes < 2**16:  # numpy sorts numbers of 16 bits in linear time
            held = held.astype(np.uint16)
        order = np.argsort(held, kind="stable")
        starts = np.searchsorted(held[order], np.arange(classes + 1))
        self._columns = np.split(order[: starts[-1]] // width, starts[1:-1])
        self._count = count

    def of(self, c: int) -> tuple[Indices, Indices]:
        """Return the columns that hold jobs of a class, and how many."""
        held, times = np.unique(self._columns[c], return_counts=True)
        return held, times

    def counts(self, rule: Rule) -> tuple[Indices, Floats]:
        """Return the columns that a rule counts, and how often."""
        if isinstance(rule, NodeCountRow):
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        if isinstance(rule, GroupCountRow):
            counts = rule.counts(self._all)
            which = np.flatnonzero(counts)
            return which, counts[which]
        weights = Counter(rule.classes)
        held = [self._columns[c] for c in weights]
        sizes = [len(columns) for columns in held]
        each = np.repeat(list(weights.values()), sizes)
        totals = np.bincount(np.concatenate(held), weights=each, minlength=self._count)
        which = np.flatnonzero(totals >= rule.divisor)
        return which, np.floor(totals[which] / rule.divisor)
