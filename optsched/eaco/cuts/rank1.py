"""Rank-one cuts with weights on a few jobs (Pecin et al., Operations Research Letters 45, 2017).

What counts is floor(weight in a group / divisor): all groups together at most as all jobs do.
Weights and divisors are those that alone matter for up to five jobs. Sets are found by exchange:
from a set that hangs together, one job after another gives way to the one that violates most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Indices


class JobWeights(NamedTuple):
    """Weights of the jobs of a set, the greatest first, and what they are divided by."""

    weights: tuple[int, ...]
    divisor: int


PATTERNS = (
    JobWeights((1, 1, 1), 2),
    JobWeights((2, 1, 1, 1), 3),
    JobWeights((1, 1, 1, 1, 1), 2),
    JobWeights((2, 2, 1, 1, 1), 4),
    JobWeights((3, 1, 1, 1, 1), 4),
    JobWeights((1, 1, 1, 1, 1), 3),
    JobWeights((2, 2, 1, 1, 1), 3),
    JobWeights((3, 2, 2, 1, 1), 5),
    JobWeights((3, 3, 2, 2, 1), 4),
)


def weighted_sets(
    held: Floats, x: Floats, copies: Floats
) -> dict[tuple[tuple[int, ...], int], float]:
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
    loose = np.abs(x - np.rint(x)) > 1e-6
    touched = np.flatnonzero(held[loose].any(axis=0))
    violations: dict[tuple[tuple[int, ...], int], float] = {}
    near = held[:, touched].any(axis=1)
    inside, part = held[near][:, touched], x[near]
    for pattern in PATTERNS:
        if len(touched) <= len(pattern.weights) or len(violations) > SETTINGS.rank1_enough:
            continue
        search = _Exchange(inside, part, copies[touched], pattern)
        for members, excess in search.best():
            repeated = np.repeat(touched[list(members)], pattern.weights)
            violations[tuple(sorted(repeated.tolist())), pattern.divisor] = excess
    return violations


class _Exchange:
    def __init__(self, held: Floats, x: Floats, copies: Floats, pattern: JobWeights) -> None:
        self.held = np.ascontiguousarray(held.T)  # classes x columns
        self.x, self.copies, self.pattern = x, copies, pattern
        self.weights = np.array(pattern.weights, dtype=float)
        most = int(held.max(initial=0))
        self.shares = [np.where(held >= times, x[:, None], 0.0) for times in range(1, most + 1)]

    def best(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the sets that are violated once no exchange makes them more so."""
        sets = self._seeds()
        weights = self.pattern.weights
        value = self._excess(sets)
        for _ in range(SETTINGS.rank1_rounds):
            before = value.copy()
            for n in range(len(weights)):
                sets, value = self._exchanged(sets, n, value)
            if (value <= before + 1e-9).all():
                break
            first = np.unique(np.sort(sets, axis=1), axis=0, return_index=True)[1]
            sets, value = sets[first], value[first]
        violated = {}
        for members, excess in zip(sets.tolist(), value.tolist(), strict=True):
            if excess > SETTINGS.rank1_violation:
                violated[tuple(members)] = excess
        return list(violated.items())

    def _seeds(self) -> Indices:
        """Return sets of jobs that share groups: each job and those nearest to it, in all ways."""
        size, count = len(self.pattern.weights), len(self.copies)
        near = (self.held * self.x) @ self.held.T
        np.fill_diagonal(near, np.inf)
        draw = np.random.default_rng(len(self.x))
        each = -(-SETTINGS.rank1_seeds // count)
        first = np.repeat(np.arange(count), each)
        noise = draw.random((len(first), count)) * 0.5
        score = near[first] + noise
        return np.argsort(-score, axis=1, kind="stable")[:, :size]

    def _totals(self, sets: Indices) -> Floats:
        totals = np.zeros((len(sets), len(self.x)))
        for n, weight in enumerate(self.pattern.weights):
            totals += weight * self.held[sets[:, n]]
        return totals

    def _most(self, sets: Indices) -> Floats:
        total = self.copies[sets] @ self.weights
        return np.asarray(np.floor(total / self.pattern.divisor))

    def _excess(self, sets: Indices) -> Floats:
        counted = _product(np.floor(self._totals(sets) / self.pattern.divisor), self.x[:, None])
        return counted[:, 0] - self._most(sets)

    def _exchanged(self, sets: Indices, n: int, value: Floats) -> tuple[Indices, Floats]:
        """Give the n-th job of each set away for the best one, if that is better."""
        weight, divisor = self.pattern.weights[n], self.pattern.divisor
        totals = self._totals(sets) - weight * self.held[sets[:, n]]
        rest = self.copies[sets] @ self.weights - weight * self.copies[sets[:, n]]
        whole = np.floor(totals / divisor)
        counted = _product(whole, self.x[:, None])
        counted = counted - np.floor((rest[:, None] + weight * self.copies) / divisor)
        for times, shares in enumerate(self.shares, start=1):
            more = np.floor((totals + times * weight) / divisor)
            counted += _product(more - whole, shares)
            whole = more
        np.put_along_axis(counted, sets, -np.inf, axis=1)
        which = counted.argmax(axis=1)
        best = counted[np.arange(len(sets)), which]
        better = best > value + 1e-9
        sets = sets.copy()
        sets[better, n] = which[better]
        return sets, np.where(better, best, value)


def _product(left: Floats, right: Floats) -> Floats:
    """Return the product of two matrices, in parts so small that BLAS does not start threads."""
    most = SETTINGS.product_size
    if right.shape[1] == 1:
        most //= 25  # of a vector, threads start sooner
    rows = max(1, most // right.size)
    parts = [left[n : n + rows] @ right for n in range(0, len(left), rows)]
    return np.concatenate(parts)
