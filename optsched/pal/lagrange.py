"""The Lagrangian value of prices, in floats: what the judge will find, but for rounding.

For given prices every job takes its cheapest option by itself, which is found by sorting: for a
label the cheapest GPUs are the k with the least prices among those that are fast enough (pal.md
4.6).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.pal.arrays import Arrays
    from optsched.pal.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

ROUNDING = 1e-13  # more than what rounding takes from a sum of some thousand terms, relative


class Lagrangian:
    """Values of prices for one instance; `reward` is the cost of leaving a job of a type out."""

    def __init__(self, problem: Arrays, found: Labels, reward: Floats) -> None:
        self._problem, self._labels, self._reward = problem, found, reward
        self._counts = np.array([len(jobs.jobs) for jobs in problem.types])
        self._first_stay = found.stays
        self._blocks = self._label_blocks()

    def value(self, gpu_prices: Floats, extra: Floats, constant: float) -> float:
        """Return a lower bound on the cost of all plans.

        Parameters
        ----------
        gpu_prices
            Shape (GPUs,), not negative.
        extra
            Shape (labels + stays,): what the rules that count a label add to its cost.
        constant
            What their right-hand sides add, without the prices of GPUs.
        """
        reduced = self._labels.cost + extra + self._gpu_costs(gpu_prices)
        least = self._reward.copy()
        np.minimum.at(least, self._labels.type[: self._first_stay], reduced[: self._first_stay])
        with np.errstate(invalid="ignore"):
            terms = np.where(self._counts > 0, self._counts * least, 0.0)
        stays = reduced[self._first_stay :]
        gain = np.minimum(stays - least[self._labels.type[self._first_stay :]], 0.0)
        rent = float(gpu_prices.sum())
        total = float(terms.sum()) + float(gain.sum()) + constant - rent
        size = float(np.abs(terms).sum() + np.abs(extra).max(initial=0) * self._counts.sum())
        return total - ROUNDING * (size + rent + abs(constant))

    def _label_blocks(self) -> list[tuple[int, Indices, Indices, list[slice]]]:
        """Return size, ends and GPUs of each chain, and the labels that are priced with them."""
        found, problem = self._labels, self._problem
        blocks: dict[tuple[int, int, int], list[slice]] = {}
        keys = np.stack([found.type, found.domain])[:, : self._first_stay]
        starts = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)])
        stops = np.r_[starts[1:], self._first_stay]
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            if start < stop:
                jobs = problem.types[int(found.type[start])]
                key = jobs.row, int(found.domain[start]), jobs.gpus
                blocks.setdefault(key, []).append(slice(start, stop))
        return [
            (size, found.end[slices[0]], problem.chains[row][d].order, slices)
            for (row, d, size), slices in blocks.items()
        ]

    def _gpu_costs(self, prices: Floats) -> Floats:
        costs = np.zeros(len(self._labels.type))
        for size, ends, order, slices in self._blocks:
            sums = _least_sums(prices[order[: ends[-1]]], size, ends)
            for part in slices:
                costs[part] = sums
        for n, stay in enumerate(self._problem.stays):
            costs[self._first_stay + n] = prices[stay.gpus].sum()
        return costs


def _least_sums(prices: Floats, size: int, ends: Indices) -> Floats:
    """Return the sum of the `size` least of the first `end` prices, for ascending ends."""
    if not prices.any():
        return np.zeros(len(ends))
    if size == 1:
        return np.asarray(np.minimum.accumulate(prices)[ends - 1])
    heap: list[float] = []
    total, sums, done = 0.0, [], 0
    for end in ends.tolist():
        for price in prices[done:end].tolist():
            total += price
            if len(heap) < size:
                heapq.heappush(heap, -price)
            else:
                total += heapq.heappushpop(heap, -price)
        done = end
        sums.append(total)
    return np.array(sums)
