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

    from optsched.pal.exact.arrays import Arrays
    from optsched.pal.exact.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

BATCHED = 32  # GPUs of chains that are priced many at once
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
        self._labels, self._reward = found, reward
        self._stay_types = found.type[found.first_stay :]
        counts = np.array([len(jobs.jobs) for jobs in problem.types])
        self._others = counts - np.bincount(self._stay_types, minlength=len(counts))
        self._jobs = int(counts.sum())
        self._groups = _groups(problem, found)
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
        terms = np.where(self._others > 0, least, 0.0) * self._others
        staying = np.minimum(priced[first:], least[self._stay_types])
        rent = float(gpu_prices.sum())
        total = float(terms.sum()) + float(staying.sum()) + constant - rent
        if not np.isfinite(total):
            return Options(priced, least, np.inf)
        spread = float(np.abs(extra).max(initial=0.0)) * self._jobs
        size = float(np.abs(terms).sum() + np.abs(staying).sum()) + rent + abs(constant) + spread
        return Options(priced, least, total - ROUNDING * size)

    def too_dear(self, options: Options, limit: float) -> NDArray[np.bool_]:
        """Tell which labels and stays are only in plans that cost at least a limit."""
        first = self._labels.first_stay
        kept = np.minimum(options.priced[first:], options.least[self._stay_types])
        most = np.where(self._others > 0, options.least, -np.inf)  # of what jobs of a type pay
        np.maximum.at(most, self._stay_types, kept)
        added = options.priced - np.r_[most[self._labels.type[:first]], kept]
        is_dear: NDArray[np.bool_] = options.value + added * (1 - ROUNDING) >= limit * (
            1 + ROUNDING
        )
        return is_dear

    def _gpu_costs(self, prices: Floats) -> Floats:
        costs = np.zeros(len(self._labels.type))
        for group in self._groups:
            sums = group.sums(prices[group.order])
            costs[group.labels] = sums[group.chain, group.end - 1]
        for n, gpus in enumerate(self._stay_gpus):
            costs[self._labels.first_stay + n] = prices[gpus].sum()
        return costs


class Group(NamedTuple):
    """Chains of equally many GPUs, and the labels of gangs of one size that stand in them.

    Attributes
    ----------
    size
        Of the gangs.
    order
        Shape (chains, GPUs): each chain's GPUs, as far as some label reaches.
    labels, chain, end
        Shape (labels,): number of each label, its chain, and how many of its GPUs it may take.
    """

    size: int
    order: Indices
    labels: Indices
    chain: Indices
    end: Indices

    def sums(self, prices: Floats) -> Floats:
        """Return the sum of the least `size` of the first n prices, n = 1, 2, ..., by chain."""
        if not prices.any():
            return np.zeros_like(prices)
        if self.size == 1:
            return np.minimum.accumulate(prices, axis=1)
        if len(prices) == 1:
            return np.array([_least_sums(prices[0].tolist(), self.size)])
        sums = np.cumsum(prices, axis=1)
        for n in range(self.size, prices.shape[1]):
            sums[:, n] = np.sort(prices[:, : n + 1], axis=1)[:, : self.size].sum(axis=1)
        return sums


def _groups(problem: Arrays, found: Labels) -> list[Group]:
    chains: dict[tuple[int, int, int], list[slice]] = {}
    for t, d, columns in found.blocks:
        jobs = problem.types[t]
        chains.setdefault((jobs.row, d, jobs.gpus), []).append(columns)
    alike: dict[tuple[int, int], list[tuple[Indices, list[slice]]]] = {}
    for (row, d, size), blocks in chains.items():
        reach = max(int(found.end[columns].max()) for columns in blocks)
        order = problem.chains[row][d].order
        reach = len(order) if len(order) <= BATCHED else reach
        alike.setdefault((size, reach), []).append((order[:reach], blocks))
    groups = []
    for (size, reach), members in alike.items():
        batches = [members] if reach <= BATCHED else [[member] for member in members]
        groups += [_group(found, size, batch) for batch in batches]
    return groups


def _group(found: Labels, size: int, members: list[tuple[Indices, list[slice]]]) -> Group:
    blocks = [(n, columns) for n, (_, blocks) in enumerate(members) for columns in blocks]
    labels = np.concatenate([np.arange(columns.start, columns.stop) for _, columns in blocks])
    chain = np.concatenate([np.full(c.stop - c.start, n) for n, c in blocks])
    order = np.stack([gpus for gpus, _ in members])
    return Group(size, order, labels, chain, found.end[labels])


def _least_sums(prices: list[float], size: int) -> list[float]:
    """Return the sum of the least `size` of the first n prices, n = 1, 2, ..."""
    heap: list[float] = []
    total, sums = 0.0, []
    for price in prices:
        total += price
        if len(heap) < size:
            heapq.heappush(heap, -price)
        else:
            total += heapq.heappushpop(heap, -price)
        sums.append(total)
    return sums
