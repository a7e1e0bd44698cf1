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
    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Indices

    Singles = NDArray[np.float32]


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
    """Sets that are exchanged, all at once; counts are small, so that single precision will do."""

    def __init__(self, held: Floats, x: Floats, copies: Floats, pattern: JobWeights) -> None:
        self.held = np.ascontiguousarray(held.T, dtype=np.float32)  # classes x columns
        self.x, self.copies, self.pattern = x, copies, pattern
        self.single = x.astype(np.float32)
        self.weights = np.array(pattern.weights, dtype=float)
        most, part = int(held.max(initial=0)), x[:, None].astype(np.float32)
        self.shares = [np.where(held == times, part, 0) for times in range(1, most + 1)]

    def best(self) -> list[tuple[tuple[int, ...], float]]:
        """Return the sets that are violated once no exchange makes them more so."""
        sets, pattern = self._seeds(), self.pattern
        weights, divisor = pattern.weights, pattern.divisor
        single = self.weights.astype(np.float32)
        totals = np.einsum("n,bnc->bc", single, self.held[sets])
        value = np.floor(totals / np.float32(divisor)) @ self.x - self._most(sets)
        ended = []
        for _ in range(SETTINGS.rank1_rounds):
            before = value.copy()
            for n in range(len(weights)):
                self._exchange(sets, totals, value, n)
            rises = value > before + SETTINGS.rank1_gain
            ended.append(sets[~rises & (value > SETTINGS.rank1_violation)])
            sets, first = np.unique(sets[rises], axis=0, return_index=True)
            if not len(sets):
                break
            value, totals = value[rises][first], totals[rises][first]
        found = np.concatenate([*ended, sets[value[: len(sets)] > SETTINGS.rank1_violation]])
        for weight in set(weights):  # jobs of like weights may be told in any order
            like = np.flatnonzero(self.weights == weight)
            found[:, like] = np.sort(found[:, like], axis=1)
        found = np.unique(found, axis=0)
        counted = np.floor(self.weights @ self.held[found].astype(float) / divisor) @ self.x
        excess = counted - self._most(found)
        violated = excess > SETTINGS.rank1_violation
        members: list[list[int]] = found[violated].tolist()
        return list(zip(map(tuple, members), excess[violated].tolist(), strict=True))

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

    def _most(self, sets: Indices) -> Floats:
        total = self.copies[sets] @ self.weights
        return np.asarray(np.floor(total / self.pattern.divisor))

    def _exchange(self, sets: Indices, totals: Singles, value: Floats, n: int) -> None:
        """Give the n-th job of each set away for the best one, if that is better, in place.

        Parameters
        ----------
        totals
            Shape (sets, columns): weights of the sets' jobs in columns, added up.
        value
            Shape (sets,): by how much each is violated.
        """
        weight, divisor = self.pattern.weights[n], self.pattern.divisor
        rest = totals - weight * self.held[sets[:, n]]
        whole = np.floor(rest * np.float32(1 / divisor + SETTINGS.rank1_gain))
        counted = self._added(rest - divisor * whole, weight)
        others = self.copies[sets] @ self.weights - weight * self.copies[sets[:, n]]
        counted -= np.floor((others[:, None] + weight * self.copies) / divisor)
        own = np.arange(len(sets))
        counted[own[:, None], sets] = -np.inf
        which = counted.argmax(axis=1)
        best = counted[own, which] + whole @ self.single
        better = np.flatnonzero(best > value + SETTINGS.rank1_gain)
        sets[better, n] = which[better]
        value[better] = best[better]
        totals[better] = rest[better] + weight * self.held[which[better]]

    def _added(self, over: Singles, weight: int) -> Singles:
        """Return by how much each job would add to the counts of sets, less what is over."""
        divisor = self.pattern.divisor
        added = _product((over >= divisor - weight).astype(np.float32), self.shares[0])
        for times, shares in enumerate(self.shares[1:], start=2):
            more = np.floor((over + times * weight) / np.float32(divisor))
            added += _product(more, shares)
        return added


def _product(left: Singles, right: Singles) -> Singles:
    """Return the product of two matrices, in parts so small that BLAS does not start threads."""
    rows = max(1, SETTINGS.product_size // right.size)
    return np.concatenate([left[n : n + rows] @ right for n in range(0, len(left), rows)])
