"""The Lagrangian dual over prices of GPUs, made smooth (Nesterov, Math. Programming 2005).

At prices every job takes its cheapest option by itself; the least of a type's options, which jumps
from one gang to another, is replaced by the soft minimum -mu log sum exp(-cost / mu). It is below
the least by no more than mu times the logarithm of their number, and its gradient says how much of
each GPU is asked for: a job asks for parts of all gangs that are nearly cheapest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.dual_ascent.domain_groups import domain_groups
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import PricedOptions
    from optsched.pal.exact.relaxation import GangOptions


class Spot(NamedTuple):
    """Where gangs of a type may stand: group, place of their size in it, cost of a unit there."""

    group: int
    size: int
    factor: float


class GangShare(NamedTuple):
    """How many of a type's jobs take a gang of a domain."""

    share: float
    type: int
    gpus: Indices


class SmoothedDual:
    """Smooth values of prices, in a unit in which jobs cost about one.

    Parameters
    ----------
    unit
        What a job costs.

    Attributes
    ----------
    counts
        Shape (types,): jobs that do not keep their GPUs.
    far
        A price that nobody pays.
    """

    def __init__(self, problem: PalArrays, unit: float) -> None:
        self.problem, self.unit = problem, unit
        self.counts = np.array([len(jobs.jobs) for jobs in problem.types], dtype=float)
        self.keeps = list(problem.keeps)
        np.subtract.at(self.counts, [keep.type for keep in self.keeps], 1.0)
        self.reward = np.array([jobs.reward for jobs in problem.types]) / unit
        factors = [jobs.factor[np.isfinite(jobs.factor)].max(initial=0.0) for jobs in problem.types]
        moving = max((jobs.moving for jobs in problem.types), default=0.0)
        self.far = 10 + 10 * (max(factors) * float(problem.slowdown.max()) + moving) / unit
        self.groups = list(domain_groups(problem))
        self.spots = list(self._spots())

    def _spots(self) -> Iterator[list[Spot]]:
        for jobs in self.problem.types:
            yield [
                Spot(n, int(np.searchsorted(group.sizes, jobs.gpus)), jobs.factor[group.level])
                for n, group in enumerate(self.groups)
                if group.row == jobs.row
                and jobs.gpus in group.sizes
                and np.isfinite(jobs.factor[group.level])
            ]

    def only(self, free: Bools, counts: Floats) -> SmoothedDual:
        """Return the dual of some of the jobs on the GPUs that are free; nobody keeps any."""
        new = object.__new__(SmoothedDual)
        new.problem, new.unit, new.far, new.reward = self.problem, self.unit, self.far, self.reward
        new.counts, new.keeps = counts, []
        padded = np.r_[free, False]
        new.groups = []
        for group in self.groups:
            wanted = [
                jobs.gpus
                for jobs, count in zip(self.problem.types, counts.tolist(), strict=True)
                if count and jobs.row == group.row
            ]
            left = group.only(padded, np.array(wanted, dtype=np.intp))
            if left is not None:
                new.groups.append(left)
        new.spots = list(new._spots())
        return new

    def refine(self, options: GangOptions, priced: PricedOptions) -> None:
        """Spread the thresholds of each domain over those at which options are nearly cheapest."""
        near = SETTINGS.threshold_excess * self.unit
        excess = (priced.costs - priced.least[options.type])[: options.first_keep]
        rows = np.array([jobs.row for jobs in self.problem.types])[options.type]
        for group in self.groups:
            count, width = group.order.shape
            if group.ends.shape[1] >= width:
                continue
            place = np.full(len(self.problem.domains), -1)
            place[group.domains] = np.arange(count)
            mine = np.flatnonzero(
                (rows[: options.first_keep] == group.row)
                & (place[options.domain[: options.first_keep]] >= 0)
            )
            mine = mine[excess[mine] <= near]
            first, last = np.full(count, width), np.zeros(count, dtype=np.intp)
            np.minimum.at(first, place[options.domain[mine]], options.end[mine])
            np.maximum.at(last, place[options.domain[mine]], options.end[mine])
            some = last > 0
            steps = np.linspace(first[some], last[some], group.ends.shape[1], axis=1)
            ends = group.ends.copy()
            ends[some] = np.rint(steps).astype(np.intp)
            group.spread(ends)

    def value(self, prices: Floats, smoothing: float) -> tuple[float, Floats]:
        """Return the smooth value of prices (GPUs,), and its gradient."""
        value, asked = 0.0, np.zeros(len(prices))
        padded = np.r_[prices, self.far]
        for group in self.groups:
            group.price(padded)
        shares = [np.zeros(group.sums.shape) for group in self.groups]
        kept_by_type: dict[int, list[int]] = {}
        for n, keep in enumerate(self.keeps):
            kept_by_type.setdefault(keep.type, []).append(n)
        for t, count in enumerate(self.counts.tolist()):
            kept = kept_by_type.get(t, [])
            if count or kept:
                least, parts = self._soft(t, smoothing)
                value += count * least
                for n in kept:
                    soft, share = self._kept(n, least, padded, smoothing)
                    value, count = value + soft, count + 1 - share
                    asked[self.keeps[n].gpus] += share
                for spot, part in parts:
                    shares[spot.group][:, :, spot.size] += count * part
        for group, of_group in zip(self.groups, shares, strict=True):
            asked += group.asked(of_group, len(prices))
        return value - float(prices.sum()), asked - 1.0

    def _soft(self, t: int, smoothing: float) -> tuple[float, list[tuple[Spot, Floats]]]:
        """Return the soft minimum of what a type may take, and the shares of its options."""
        moving = self.problem.types[t].moving
        costs = [
            (spot, (spot.factor * group.slowest + moving) / self.unit + group.sums[:, :, spot.size])
            for spot in self.spots[t]
            if (group := self.groups[spot.group]).sums.size
        ]
        out = float(self.reward[t])
        least = min([out, *(float(cost.min()) for _, cost in costs)])
        if least == np.inf:
            return self.far, []
        weights = [(spot, np.exp((least - cost) / smoothing)) for spot, cost in costs]
        total = sum(float(weight.sum()) for _, weight in weights)
        total += float(np.exp((least - out) / smoothing))
        parts = [(spot, weight / total) for spot, weight in weights]
        return least - smoothing * float(np.log(total)), parts

    def _kept(
        self, number: int, other: float, prices: Floats, smoothing: float
    ) -> tuple[float, float]:
        """Return the soft minimum of keeping GPUs or else, and how much of the job keeps them."""
        keep = self.keeps[number]
        cost = keep.cost / self.unit + float(prices[keep.gpus].sum())
        least = min(cost, other)
        stay, go = np.exp((least - cost) / smoothing), np.exp((least - other) / smoothing)
        return least - smoothing * float(np.log(stay + go)), float(stay / (stay + go))

    def kept_shares(self, prices: Floats, smoothing: float = SETTINGS.smoothing[-1]) -> list[float]:
        """Return how much of each job that may keep its GPUs does so."""
        padded = np.r_[prices, self.far]
        for group in self.groups if self.keeps else ():
            group.price(padded)
        return [
            self._kept(n, self._soft(keep.type, smoothing)[0], padded, smoothing)[1]
            for n, keep in enumerate(self.keeps)
        ]

    def shares(self, prices: Floats, smoothing: float) -> list[GangShare]:
        """Return gangs that jobs ask for at prices, one for each type and domain, and how much."""
        padded, found = np.r_[prices, self.far], []
        for group in self.groups:
            group.price(padded)
        for t, count in enumerate(self.counts.tolist()):
            if not count:
                continue
            size = self.problem.types[t].gpus
            for spot, part in self._soft(t, smoothing)[1]:
                group, of_domain = self.groups[spot.group], count * part.sum(axis=1)
                for d in np.flatnonzero(of_domain > SETTINGS.least_share).tolist():
                    gpus = group.gang(d, int(part[d].argmax()), size)
                    found.append(GangShare(float(of_domain[d]), t, gpus))
        return found
