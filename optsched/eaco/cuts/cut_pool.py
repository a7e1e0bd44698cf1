"""A pool of cuts, looked through before others are sought (Padberg & Rinaldi, 1991)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats
    from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow
    from optsched.eaco.groups.columns import Columns

    Singles = NDArray[np.float32]


def cut_weights(rules: Sequence[Rank1CutRow], classes: int) -> Singles:
    """Return what each class weighs in each cut, and none (the last one) nothing.

    Returns
    -------
    Singles
        Shape (classes + 1, cuts).
    """
    sizes = [len(rule.classes) for rule in rules]
    names = itertools.chain.from_iterable(rule.classes for rule in rules)
    named = np.fromiter(names, dtype=np.intp, count=sum(sizes))
    weights = np.zeros((classes + 1, len(rules)), dtype=np.float32)
    np.add.at(weights, (named, np.repeat(np.arange(len(rules)), sizes)), np.float32(1))
    return weights


def cut_counts(weights: Singles, divisors: Singles, columns: Columns) -> Singles:
    """Return how often each cut counts each column: numbers so small that they are exact.

    Returns
    -------
    Singles
        Shape (columns, cuts).
    """
    totals = weights[columns.members[:, 0]]
    for n in range(1, columns.members.shape[1]):
        totals += weights[columns.members[:, n]]
    return np.asarray(np.floor(totals / divisors))


class CutPool:
    """All cuts that were found for an instance: they hold for every plan, at every node.

    Parameters
    ----------
    copies
        Shape (classes,): jobs.
    """

    def __init__(self, copies: Floats) -> None:
        self._copies = copies
        self._known: dict[Rank1CutRow, None] = {}
        self._weights = np.zeros((len(copies) + 1, 0), dtype=np.float32)
        self._divisors = np.zeros(0, dtype=np.float32)
        self._most = np.zeros(0)
        self._sizes = np.zeros(0)

    def add(self, rules: Iterable[Rank1CutRow]) -> None:
        """Add cuts that are not known yet, until there are as many as may be."""
        left = SETTINGS.pooled_cuts - len(self._known)
        new = [rule for rule in dict.fromkeys(rules) if rule not in self._known][:left]
        if not new:
            return
        self._known.update(dict.fromkeys(new))
        divisors = np.array([rule.divisor for rule in new], dtype=np.float32)
        added = cut_weights(new, len(self._copies))
        most = np.array([rule.most(self._copies) for rule in new])
        sizes = np.array([float(len(rule.classes)) for rule in new])
        self._weights = np.hstack([self._weights, added])
        self._divisors = np.append(self._divisors, divisors)
        self._most, self._sizes = np.append(self._most, most), np.append(self._sizes, sizes)

    def violated(self, support: Columns, x: Floats) -> dict[Rank1CutRow, float]:
        """Return the known cuts that a point violates, and how much for their size.

        Parameters
        ----------
        support
            The columns that are not zero at the point, and `x` how much of each.
        """
        if not self._known:
            return {}
        counted = x @ cut_counts(self._weights, self._divisors, support)
        excess = counted - self._most
        which = np.flatnonzero(excess > SETTINGS.rank1_violation)
        rules = list(self._known)
        depth = (excess[which] / np.sqrt(self._sizes[which])).tolist()
        return {rules[n]: each for n, each in zip(which.tolist(), depth, strict=True)}
