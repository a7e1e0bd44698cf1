"""The Lagrangian bound (Geoffrion, Math. Programming Study 1974), in floats.

It is what the verifier will reckon, but for rounding. For given duals every job takes its cheapest
option by itself, which sorting gives: the cheapest GPUs of an option are the k of least duals among
those that are fast enough (docs/math/pal.md, Lagrangian bound).
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.exact.cuts_and_branching import capacity
from optsched.pal.plan import Cut, Leaf, PalCertificate
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.cuts_and_branching import CountRule
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance


class PricedOptions(NamedTuple):
    """The options of every job, priced at some duals: reduced costs but for the jobs' own duals.

    Attributes
    ----------
    costs
        Shape (options,): cost of each, with the duals of what it takes.
    least
        Shape (types,): the least of a type's options, or its reward.
    value
        The Lagrangian value; less than the exact one.
    """

    costs: Floats
    least: Floats
    value: float


class Lagrangian:
    """Values of duals for one instance.

    Parameters
    ----------
    reward
        Shape (types,): cost of leaving a job of a type out.
    copies, keep_copies
        Shape (GPUs,) and (kept placements,): how often each is there, in aggregated arrays; once
        each by default.
    """

    def __init__(
        self,
        problem: PalArrays,
        options: GangOptions,
        reward: Floats,
        copies: Floats | float = 1.0,
        keep_copies: Floats | None = None,
    ) -> None:
        self._options, self._reward, self._copies = options, reward, copies
        self._keep_types = options.type[options.first_keep :]
        self._keeps = np.ones(len(self._keep_types)) if keep_copies is None else keep_copies
        counts = np.array([len(jobs.jobs) for jobs in problem.types])
        kept = np.bincount(self._keep_types, weights=self._keeps, minlength=len(counts))
        self._others = counts - kept
        self._jobs = int(counts.sum())
        self._groups = _groups(problem, options)
        gpus = {keep.job: keep.gpus for keep in problem.keeps}
        self._keep_gpus = [gpus[job] for job in options.job[options.first_keep :].tolist()]

    def priced(self, gpu_duals: Floats, extra: Floats, constant: float) -> PricedOptions:
        """Return what jobs may take, and the lower bound on the cost of all plans.

        Parameters
        ----------
        gpu_duals
            Shape (GPUs,), not negative.
        extra
            Shape (options,): what the rules that count an option add to its cost.
        constant
            What their right-hand sides add.
        """
        first = self._options.first_keep
        costs = self._options.cost + extra + self._gpu_costs(gpu_duals)
        least = self._reward.copy()
        np.minimum.at(least, self._options.type[:first], costs[:first])
        terms = np.where(self._others > 0, least, 0.0) * self._others
        keeping = np.minimum(costs[first:], least[self._keep_types]) * self._keeps
        capacity = float((gpu_duals * self._copies).sum())
        total = float(terms.sum()) + float(keeping.sum()) + constant - capacity
        if not np.isfinite(total):
            return PricedOptions(costs, least, np.inf)
        spread = float(np.abs(extra).max(initial=0.0)) * self._jobs
        size = (
            float(np.abs(terms).sum() + np.abs(keeping).sum()) + capacity + abs(constant) + spread
        )
        return PricedOptions(costs, least, total - SETTINGS.rounding * size)

    def fixed_by_reduced_cost(self, priced: PricedOptions, limit: float) -> Bools:
        """Tell which options are only in plans that cost at least a limit."""
        first = self._options.first_keep
        kept = np.minimum(priced.costs[first:], priced.least[self._keep_types])
        most = np.where(self._others > 0, priced.least, -np.inf)  # of what jobs of a type cost
        np.maximum.at(most, self._keep_types, kept)
        added = priced.costs - np.r_[most[self._options.type[:first]], kept]
        least, most_limit = added * (1 - SETTINGS.rounding), limit * (1 + SETTINGS.rounding)
        is_fixed: Bools = priced.value + least >= most_limit
        return is_fixed

    def _gpu_costs(self, duals: Floats) -> Floats:
        costs = np.zeros(len(self._options.type))
        for group in self._groups:
            sums = group.sums(duals[group.order])
            costs[group.options] = sums[group.chain, group.end - 1]
        for n, gpus in enumerate(self._keep_gpus):
            costs[self._options.first_keep + n] = duals[gpus].sum()
        return costs


class NodeDuals(NamedTuple):
    """Duals of GPUs, of the branches of a path, and of cuts by rule."""

    gpus: Floats
    branches: tuple[float, ...]
    cuts: dict[int, float]

    def leaf(self, number: dict[int, int]) -> Leaf:
        """Return the duals as they stand in certificates, with rules renumbered."""
        cuts = tuple(Cut(rule=number[rule], price=price) for rule, price in self.cuts.items())
        return Leaf(gpu_prices=tuple(self.gpus.tolist()), split_prices=self.branches, cuts=cuts)


class DualSolution(NamedTuple):
    """Duals of GPUs and cuts; cuts go by their number among the rules."""

    rules: list[CountRule]
    duals: NodeDuals

    def priced(
        self, problem: PalArrays, options: GangOptions, lagrangian: Lagrangian
    ) -> PricedOptions:
        """Return the options priced at these duals, and what the duals prove."""
        extra, constant = np.zeros(len(options.type)), 0.0
        for number, dual in self.duals.cuts.items():
            rule = self.rules[number]
            extra[rule.columns(problem, options)] += dual
            constant -= dual * capacity(problem, rule)
        return lagrangian.priced(self.duals.gpus, extra, constant)

    def certificate(
        self, instance: PalInstance, problem: PalArrays, bound: float
    ) -> PalCertificate:
        """Return the duals as a certificate of a bound."""
        numbers = {number: n for n, number in enumerate(self.duals.cuts)}
        rules = tuple(self.rules[number].document(instance, problem) for number in numbers)
        return PalCertificate(bound=bound, rules=rules, nodes=(self.duals.leaf(numbers),))


def without_cuts(duals: Floats) -> DualSolution:
    """Return duals of GPUs alone."""
    return DualSolution([], NodeDuals(duals, (), {}))


class PricedDuals(NamedTuple):
    """Duals, and the options priced at them."""

    solution: DualSolution
    priced: PricedOptions

    @property
    def value(self) -> float:
        """The Lagrangian value."""
        return self.priced.value


class ChainGroup(NamedTuple):
    """Chains of equally many GPUs, and the options of gangs of one size that stand in them.

    Attributes
    ----------
    size
        Of the gangs.
    order
        Shape (chains, GPUs): each chain's GPUs, as far as some option reaches.
    options, chain, end
        Shape (options,): number of each option, its chain, and how many of its GPUs it may take.
    """

    size: int
    order: Indices
    options: Indices
    chain: Indices
    end: Indices

    def sums(self, duals: Floats) -> Floats:
        """Return the sum of the least `size` of the first n duals, n = 1, 2, ..., by chain."""
        if not duals.any():
            return np.zeros_like(duals)
        if self.size == 1:
            return np.minimum.accumulate(duals, axis=1)
        if len(duals) == 1:
            return np.array([_least_sums(duals[0].tolist(), self.size)])
        sums = np.cumsum(duals, axis=1)
        for n in range(self.size, duals.shape[1]):
            sums[:, n] = np.sort(duals[:, : n + 1], axis=1)[:, : self.size].sum(axis=1)
        return sums


def _groups(problem: PalArrays, options: GangOptions) -> list[ChainGroup]:
    """Return short chains of equally many GPUs together, each long one by itself."""
    first = options.first_keep
    if not first:
        return []
    row, size = (
        np.array(each)[options.type[:first]]
        for each in zip(*((jobs.row, jobs.gpus) for jobs in problem.types), strict=True)
    )
    domain = options.domain[:first]
    chain, width = row * len(problem.domains) + domain, problem.widths[row, domain]
    is_long = width > SETTINGS.priced_at_once
    keys = (size * (int(width.max()) + 1) + width) * (int(chain.max()) + 2)
    keys += np.where(is_long, chain + 1, 0)
    alike, heads, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(group, kind="stable")
    stops = np.cumsum(np.bincount(group, minlength=len(alike)))[:-1]
    parts = zip(size[heads].tolist(), width[heads].tolist(), np.split(order, stops), strict=True)
    return [
        _group(problem, options, gangs, gpus, members, chain[members])
        for gangs, gpus, members in parts
    ]


def _group(
    problem: PalArrays,
    options: GangOptions,
    size: int,
    width: int,
    members: Indices,
    chain: Indices,
) -> ChainGroup:
    """Return the group of some options, in chains of some number of GPUs."""
    numbers, at = np.unique(chain, return_inverse=True)
    known, orders = problem.orders[width]
    order, end = orders[np.searchsorted(known, numbers)], options.end[members]
    reach = width if width <= SETTINGS.priced_at_once else int(end.max())
    return ChainGroup(size, order[:, :reach], members, at, end)


def _least_sums(duals: list[float], size: int) -> list[float]:
    """Return the sum of the least `size` of the first n duals, n = 1, 2, ..."""
    heap: list[float] = []
    total, sums = 0.0, []
    for dual in duals:
        total += dual
        if len(heap) < size:
            heapq.heappush(heap, -dual)
        else:
            total += heapq.heappushpop(heap, -dual)
        sums.append(total)
    return sums
