"""Rank-one cuts with weights on a few jobs (Pecin et al., Operations Research Letters 45, 2017).

What counts is floor(weight in a group / divisor): all groups together at most as all jobs do.
Weights and divisors are those that alone matter for up to five jobs. Sets are found by exchange:
from a set that hangs together, one job after another gives way to the one that violates most.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.cuts.fractional import fractional_part
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.documents.arrays import Bools, Floats, Indices

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
    violations: dict[tuple[tuple[int, ...], int], float] = {}
    _, touched, inside, part = fractional_part(held, x)
    for size, patterns in itertools.groupby(PATTERNS, key=lambda pattern: len(pattern.weights)):
        if len(touched) <= size or len(violations) > SETTINGS.rank1_enough:
            continue
        search = _Exchange(inside, part, copies[touched], list(patterns))
        for members, pattern, excess in search.best():
            repeated = np.repeat(touched[members], pattern.weights)
            violations[tuple(sorted(repeated.tolist())), pattern.divisor] = excess
    return violations


class _Sets(NamedTuple):
    """Sets of jobs that are exchanged.

    Attributes
    ----------
    jobs
        Shape (sets, size).
    patterns
        Shape (sets,): which weights these have.
    totals
        Shape (sets, columns): weights of the sets' jobs in columns, added up.
    value
        Shape (sets,): by how much each is violated.
    """

    jobs: Indices
    patterns: Indices
    totals: Singles
    value: Floats

    def only(self, which: Bools | Indices) -> _Sets:
        """Return some of the sets."""
        jobs, patterns, totals, value = self
        return _Sets(jobs[which], patterns[which], totals[which], value[which])


class _Exchange:
    """Sets that are exchanged, all at once; counts are small, so that single precision will do.

    Parameters
    ----------
    patterns
        With as many weights each.
    """

    def __init__(self, held: Floats, x: Floats, copies: Floats, patterns: list[JobWeights]) -> None:
        self.held = np.ascontiguousarray(held.T, dtype=np.float32)  # classes x columns
        self.x, self.copies, self.patterns = x, copies, patterns
        self.single, self.few = x.astype(np.float32), copies.astype(np.float32)
        self.weights = np.array([pattern.weights for pattern in patterns], dtype=np.float32)
        self.divisors = np.array([[pattern.divisor] for pattern in patterns], dtype=np.float32)
        most, part = int(held.max(initial=0)), x[:, None].astype(np.float32)
        self.shares = [np.where(held == times, part, 0) for times in range(1, most + 1)]

    def best(self) -> Iterator[tuple[list[int], JobWeights, float]]:
        """Yield the sets that are violated once no exchange makes them more so."""
        sets, ended = self._seeds(), []
        for _ in range(SETTINGS.rank1_rounds):
            before = sets.value.copy()
            for n in range(sets.jobs.shape[1]):
                self._exchange(sets, n)
            rises = sets.value > before + SETTINGS.rank1_gain
            ended.append(sets.only(~rises & (sets.value > SETTINGS.rank1_violation)))
            sets = self._unlike(sets.only(rises))
            if not len(sets.value):
                break
        ended.append(sets.only(sets.value > SETTINGS.rank1_violation))
        jobs, patterns, totals, value = zip(*ended, strict=True)
        joined = map(np.concatenate, (jobs, patterns, totals, value))
        found = self._unlike(_Sets(*joined))
        found = self._valued(found.jobs, found.patterns)
        found = found.only(found.value > SETTINGS.rank1_violation)
        entries = found.jobs.tolist(), found.patterns.tolist(), found.value.tolist()
        for jobs, pattern, excess in zip(*entries, strict=True):
            yield jobs, self.patterns[pattern], excess

    def _unlike(self, sets: _Sets) -> _Sets:
        """Return sets without those that are others again: jobs of like weights in any order."""
        count, weights = len(self.copies), self.weights[sets.patterns].astype(np.intp)
        jobs = np.sort(sets.jobs - count * weights, axis=1) + count * weights  # greatest first
        key = sets.patterns.copy()
        for n in range(jobs.shape[1]):
            key = key * count + jobs[:, n]
        return sets._replace(jobs=jobs).only(np.unique(key, return_index=True)[1])

    def _valued(self, jobs: Indices, patterns: Indices) -> _Sets:
        """Return sets with what they count, in double precision."""
        weights, divisors = self.weights[patterns], self.divisors[patterns]
        totals = np.zeros((len(jobs), len(self.x)), dtype=np.float32)
        for n in range(jobs.shape[1]):
            totals += weights[:, n, None] * self.held[jobs[:, n]]
        most = np.floor((self.copies[jobs] * weights).sum(axis=1) / divisors[:, 0])
        value = np.floor(totals / divisors).astype(float) @ self.x - most
        return _Sets(jobs, patterns, totals, value)

    def _seeds(self) -> _Sets:
        """Return sets of jobs that share groups: each job and those nearest to it, in all ways."""
        size, count = self.weights.shape[1], len(self.copies)
        near = (self.held * self.x) @ self.held.T
        np.fill_diagonal(near, np.inf)
        draw = np.random.default_rng(len(self.x))
        each = -(-SETTINGS.rank1_seeds // count)
        first = np.repeat(np.arange(count), each)
        noise = draw.random((len(first), count)) * 0.5
        jobs = np.argsort(-(near[first] + noise), axis=1, kind="stable")[:, :size]
        patterns = np.repeat(np.arange(len(self.patterns)), len(jobs))
        return self._valued(np.tile(jobs, (len(self.patterns), 1)), patterns)

    def _exchange(self, sets: _Sets, n: int) -> None:
        """Give the n-th job of each set away for the best one, if that is better, in place."""
        jobs, patterns, totals, value = sets
        weight, divisor = self.weights[patterns][:, n, None], self.divisors[patterns]
        rest = totals - weight * self.held[jobs[:, n]]
        whole = np.floor(rest * (1 / divisor + np.float32(SETTINGS.rank1_gain)))
        counted = self._added(rest - divisor * whole, weight, divisor)
        copies = self.few[jobs]
        others = (copies * self.weights[patterns]).sum(axis=1) - weight[:, 0] * copies[:, n]
        counted -= np.floor((others[:, None] + weight * self.few) / divisor)
        own = np.arange(len(jobs))
        counted[own[:, None], jobs] = -np.inf
        which = counted.argmax(axis=1)
        best = counted[own, which] + whole @ self.single
        better = np.flatnonzero(best > value + SETTINGS.rank1_gain)
        jobs[better, n] = which[better]
        value[better] = best[better]
        totals[better] = rest[better] + weight[better] * self.held[which[better]]

    def _added(self, over: Singles, weight: Singles, divisor: Singles) -> Singles:
        """Return by how much each job would add to the counts of sets, less what is over."""
        added = _product((over >= divisor - weight).astype(np.float32), self.shares[0])
        for times, shares in enumerate(self.shares[1:], start=2):
            added += _product(np.floor((over + times * weight) / divisor), shares)
        return added


def _product(left: Singles, right: Singles) -> Singles:
    """Return the product of two matrices, in parts so small that BLAS does not start threads."""
    rows = max(1, SETTINGS.product_size // right.size)
    return np.concatenate([left[n : n + rows] @ right for n in range(0, len(left), rows)])
