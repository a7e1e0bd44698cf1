"""Domains of a level side by side: their cheapest gangs at prices, by sorting (Knuth 1973)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.exact.arrays import PalArrays


@dataclass
class DomainGroup:
    """Domains of one level with about equally many GPUs, for one class.

    Attributes
    ----------
    level, row
        Of the domains; of the class among the slowdowns.
    domains
        Shape (domains,): their numbers.
    order
        Shape (domains, GPUs): of each domain, ascending by slowdown; past its last GPU the number
        after that of all GPUs, whose price nobody pays.
    slowdown
        Shape (domains, GPUs).
    sizes
        Shape (sizes,): of the gangs that stand here, ascending.
    ends
        Shape (domains, thresholds): how many GPUs a gang may take its own from.
    """

    level: int
    row: int
    domains: Indices
    order: Indices
    slowdown: Floats
    sizes: Indices
    ends: Indices
    slowest: Floats = field(init=False)
    gangs: Indices = field(init=False)
    sums: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.spread(self.ends)

    def spread(self, ends: Indices) -> None:
        """Take other thresholds."""
        self.ends = ends
        self.slowest = np.take_along_axis(self.slowdown, ends - 1, axis=1)
        width = self.order.shape[1]
        self._past = np.arange(width) >= ends[:, :, np.newaxis]
        self._row = width * np.arange(ends.size).reshape(*ends.shape, 1)
        self._place = np.searchsorted(self.sizes, np.arange(1, int(self.sizes[-1]) + 1))

    def price(self, prices: Floats) -> None:
        """Find the cheapest gang of each size up to each threshold, and what its GPUs cost.

        Parameters
        ----------
        prices
            Shape (GPUs + 1,): the last one is what nobody pays.
        """
        width, most = self.order.shape[1], int(self.sizes[-1])
        priced = np.repeat(prices[self.order][:, np.newaxis, :], self.ends.shape[1], axis=1)
        priced[self._past] = prices[-1]
        flat = priced.reshape(-1)
        if width <= 4 * most:
            first = priced.argsort(axis=2)[:, :, :most]
        else:
            few = priced.argpartition(most - 1, axis=2)[:, :, :most]
            inner = flat[few + self._row].argsort(axis=2)
            row = most * np.arange(self.ends.size).reshape(*self.ends.shape, 1)
            first = few.reshape(-1)[inner + row]
        self.gangs = first
        self.sums = flat[first + self._row].cumsum(axis=2)[:, :, self.sizes - 1]

    def asked(self, shares: Floats, count: int) -> Floats:
        """Return how much of each GPU gangs ask for.

        Parameters
        ----------
        shares
            Shape (domains, thresholds, sizes): how many gangs.
        count
            Of all GPUs.
        """
        larger = shares[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
        row = self.order.shape[1] * np.arange(len(self.order)).reshape(-1, 1, 1)
        gpus = self.order.reshape(-1)[(self.gangs + row).reshape(-1)]
        used = np.bincount(gpus, larger[:, :, self._place].reshape(-1), count + 1)
        return np.asarray(used[:count])

    def gang(self, domain: int, threshold: int, size: int) -> Indices:
        """Return the GPUs of a gang that was priced; domain and threshold by their place here."""
        gang: Indices = self.order[domain, self.gangs[domain, threshold, :size]]
        return gang

    def only(self, free: Bools, sizes: Indices) -> DomainGroup | None:
        """Return what is left for gangs of some sizes on free GPUs (GPUs + 1,); None if nothing."""
        sizes = np.intersect1d(self.sizes, sizes)
        is_free = free[self.order]
        width = is_free.sum(axis=1)
        if not len(sizes) or not (held := width >= sizes[0]).any():
            return None
        is_free, width = is_free[held], width[held]
        first = np.argsort(~is_free, axis=1, kind="stable")[:, : int(width.max())]
        order = np.take_along_axis(self.order[held], first, 1)
        past = np.arange(order.shape[1]) >= width[:, np.newaxis]
        order[past] = len(free) - 1
        slowdown = np.take_along_axis(self.slowdown[held], first, 1)
        slowdown[past] = 0.0  # as slow as the slowest one that is there
        slowdown = np.maximum.accumulate(slowdown, axis=1)
        sizes = sizes[sizes <= order.shape[1]]
        ends = _spread(width, int(sizes[0]), order.shape[1], SETTINGS.part_thresholds)
        return DomainGroup(self.level, self.row, self.domains[held], order, slowdown, sizes, ends)


def domain_groups(problem: PalArrays) -> Iterator[DomainGroup]:
    """Yield the domains by level, class, and about how many GPUs they have."""
    domains, count = problem.domains, len(problem.gpus)
    width = domains.stop - domains.start
    alike: dict[tuple[int, int], list[int]] = {}
    for d, (level, gpus) in enumerate(zip(domains.level.tolist(), width.tolist(), strict=True)):
        alike.setdefault((level, (gpus - 1).bit_length()), []).append(d)
    for (level, _), members in alike.items():
        widest = int(width[members].max())
        for row in range(len(problem.slowdown)):
            types = [jobs for jobs in problem.types if jobs.row == row and jobs.gpus <= widest]
            sizes = {jobs.gpus for jobs in types if np.isfinite(jobs.factor[level])}
            sizes = {size for size in sizes if size > 1 or not domains.has_children[members[0]]}
            if not sizes:
                continue
            order = np.full((len(members), widest), count, dtype=np.intp)
            slowdown = np.zeros((len(members), widest))
            for n, d in enumerate(members):
                chain = problem.chains[row][d].order
                order[n, : len(chain)] = chain
                slowdown[n, : len(chain)] = problem.slowdown[row, chain]
            slowdown = np.maximum.accumulate(slowdown, axis=1)  # none is faster past the last one
            gangs = np.array(sorted(sizes), dtype=np.intp)
            most = SETTINGS.priced_gpus // (len(members) * widest)
            ends = _spread(width[members], int(gangs[0]), widest, most)
            numbers = np.array(members, dtype=np.intp)
            yield DomainGroup(level, row, numbers, order, slowdown, gangs, ends)


def _spread(width: Indices, smallest: int, widest: int, most: int) -> Indices:
    """Return thresholds for domains of some widths: all, or not too many."""
    most = int(np.clip(most, *SETTINGS.thresholds))
    count = widest - smallest + 1
    if count <= most:
        return np.broadcast_to(np.arange(smallest, widest + 1), (len(width), count)).copy()
    steps = np.linspace(smallest, np.maximum(width, smallest), most, axis=1)
    return np.rint(steps).astype(np.intp)
