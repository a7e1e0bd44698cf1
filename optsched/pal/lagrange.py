"""The Lagrangian value of prices, in floats: what the judge will find, but for rounding.

For given prices every job takes its cheapest option by itself, which is found by sorting: for a
label the cheapest GPUs are the k with the least prices among those that are fast enough (pal.md
4.6).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.pal.arrays import Arrays
    from optsched.pal.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

ROUNDING = 1e-13  # more than what rounding takes from a sum of some thousand terms, relative


class Options(NamedTuple):
    """What every job may take at given prices.

    Attributes
    ----------
    priced
        Shape (labels + stays,): cost and prices of each.
    least
        Shape (types,): the least of a type's labels, or its reward.
    value
        The Lagrangian value; less than the exact one.
    """

    priced: Floats
    least: Floats
    value: float


class Lagrangian:
    """Values of prices for one instance; `reward` is the cost of leaving a job of a type out."""

    def __init__(self, problem: Arrays, found: Labels, reward: Floats) -> None:
        self._problem, self._labels, self._reward = problem, found, reward
        self._counts = np.array([len(jobs.jobs) for jobs in problem.types])
        self._stay_types = found.type[found.first_stay :]
        self._chains: dict[tuple[int, int, int], list[slice]] = {}
        for t, d, columns in found.blocks:
            key = problem.types[t].row, d, problem.types[t].gpus
            self._chains.setdefault(key, []).append(columns)
        gpus = {stay.job: stay.gpus for stay in problem.stays}
        self._stay_gpus = [gpus[job] for job in found.job[found.first_stay :].tolist()]

    def options(self, gpu_prices: Floats, extra: Floats, constant: float) -> Options:
        """Return what jobs may take, and the lower bound on the cost of all plans.

        Parameters
        ----------
        gpu_prices
            Shape (GPUs,), not negative.
        extra
            Shape (labels + stays,): what the rules that count a label add to its cost.
        constant
            What their right-hand sides add.
        """
        first = self._labels.first_stay
        priced = self._labels.cost + extra + self._gpu_costs(gpu_prices)
        least = self._reward.copy()
        np.minimum.at(least, self._labels.type[:first], priced[:first])
        terms = self._counts * least
        gain = np.minimum(priced[first:] - least[self._stay_types], 0.0)
        rent = float(gpu_prices.sum())
        total = float(terms.sum()) + float(gain.sum()) + constant - rent
        if not np.isfinite(total):
            return Options(priced, least, np.inf)
        spread = float(np.abs(extra).max(initial=0.0)) * int(self._counts.sum())
        size = float(np.abs(terms).sum()) + rent + abs(constant) + spread
        return Options(priced, least, total - ROUNDING * size)

    def too_dear(self, options: Options, limit: float) -> NDArray[np.bool_]:
        """Tell which labels and stays are only in plans that cost at least a limit."""
        first = self._labels.first_stay
        paid = options.least.copy()  # by the job of each type that pays most
        staying = np.bincount(self._stay_types, minlength=len(paid))
        kept = np.minimum(options.priced[first:], options.least[self._stay_types])
        most = np.full(len(paid), -np.inf)
        np.maximum.at(most, self._stay_types, kept)
        all_stay = staying == self._counts
        paid[all_stay] = most[all_stay]
        paid = np.r_[paid[self._labels.type[:first]], kept]
        added = options.priced - paid
        return options.value + added * (1 - ROUNDING) >= limit * (1 + ROUNDING)

    def _gpu_costs(self, prices: Floats) -> Floats:
        costs = np.zeros(len(self._labels.type))
        for (row, d, size), blocks in self._chains.items():
            order = self._problem.chains[row][d].order
            ends = np.unique(np.concatenate([self._labels.end[columns] for columns in blocks]))
            sums = least_sums(prices[order[: ends[-1]]], size, ends)
            for columns in blocks:
                costs[columns] = sums[np.searchsorted(ends, self._labels.end[columns])]
        for n, gpus in enumerate(self._stay_gpus):
            costs[self._labels.first_stay + n] = prices[gpus].sum()
        return costs


def least_sums(prices: Floats, size: int, ends: Indices) -> Floats:
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
