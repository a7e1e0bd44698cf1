"""How often the rows of cuts and branching count the columns of a pool, many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.cut_pool import cut_counts, cut_weights
from optsched.eaco.cuts.cuts_and_branching import ColumnIndex, NodeCountRow, Rank1CutRow, Rule
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.groups.columns import Columns


def count_matrix(rules: Sequence[Rule], columns: Columns, classes: int) -> Floats:
    """Return how often each rule counts each column, rows of nodes none.

    Returns
    -------
    Floats
        Shape (columns, rules).
    """
    counts = np.zeros((len(columns.cost), len(rules)))
    cuts = {n: rule for n, rule in enumerate(rules) if isinstance(rule, Rank1CutRow)}
    if cuts:
        weights = cut_weights(list(cuts.values()), classes)
        divisors = np.array([rule.divisor for rule in cuts.values()], dtype=np.float32)
        counts[:, list(cuts)] = cut_counts(weights, divisors, columns)
    for n, rule in enumerate(rules):
        if not isinstance(rule, Rank1CutRow | NodeCountRow):
            counts[:, n] = rule.counts(columns)
    return counts


class RuleCounts:
    """How often rules count the columns of a pool; each is counted once.

    Parameters
    ----------
    classes
        How many classes of jobs there are.
    """

    def __init__(self, pool: Columns, classes: int) -> None:
        self._index = ColumnIndex(pool, classes)
        self._many = len(pool.cost)
        self._counts: dict[Rule, tuple[Indices, Floats]] = {}
        self._entries = 0

    def of(self, rule: Rule) -> tuple[Indices, Floats]:
        """Return the columns that a rule counts, and how often."""
        if rule not in self._counts:
            self._counts[rule] = self._index.counts(rule)
            self._entries += len(self._counts[rule][0])
        return self._counts[rule]

    def summed(self, charges: Mapping[Rule, float]) -> Floats:
        """Return for each column what the rules that count it charge in all."""
        parts = [self.of(rule) for rule in charges]
        if sum(len(which) for which, _ in parts) > SETTINGS.counts_at_once:
            total = np.zeros(self._many)
            for (which, counts), charge in zip(parts, charges.values(), strict=True):
                total[which] += charge * counts
            return total
        if not parts:
            return np.zeros(self._many)
        sizes = [len(which) for which, _ in parts]
        weights = np.concatenate([counts for _, counts in parts])
        weights *= np.repeat(list(charges.values()), sizes)
        which = np.concatenate([which for which, _ in parts])
        return np.bincount(which, weights=weights, minlength=self._many).astype(float)

    def forget(self, rules: Iterable[Rule]) -> None:
        """Forget the counts of rules, if those of all rules take much memory."""
        if self._entries > SETTINGS.counts_at_once:
            for rule in rules:
                which, _ = self._counts.pop(rule, (np.zeros(0), None))
                self._entries -= len(which)

    def columns_of(self, c: int) -> tuple[Indices, Indices]:
        """Return the columns of the pool that hold jobs of a class, and how many."""
        return self._index.of(c)
