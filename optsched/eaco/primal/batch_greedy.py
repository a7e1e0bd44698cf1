"""A plan in little time for many jobs: groups of jobs that end together, the longest first.

As `simple_rules.longest_first`, but of the next jobs in that order the best one joins, and it is
found in arrays of them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.groups.columns import Columns, joined, none
from optsched.eaco.groups.enumeration import NEAR
from optsched.eaco.groups.group_members import is_allowed
from optsched.eaco.verify.group_energy import Book

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.pricing import Market
    from optsched.eaco.instance import EacoInstance

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

WINDOW = 200  # jobs that are looked at for a group


class _Jobs(NamedTuple):
    """Jobs on the nodes of one market: work, utilisation, memory, least rate, cost alone, worth."""

    work: Floats
    busy: Floats
    memory: Floats
    least: Floats
    alone: Floats
    pays: Floats

    def take(self, which: Indices | slice) -> _Jobs:
        """Return some of the jobs."""
        return _Jobs(*(array[which] for array in self))


class _Group(NamedTuple):
    """Jobs by class, with their sums of utilisation and memory, greatest least rate, and watts."""

    members: tuple[int, ...]
    busy: float
    memory: float
    least: float
    watts: float


def filled(
    instance: EacoInstance,
    classes: list[JobClass],
    markets: list[Market],
    pays: Floats,
) -> Columns:
    """Return groups for as many jobs as there is room for.

    Parameters
    ----------
    pays
        Shape (classes,): what a job is worth to a group, roughly.
    """
    found = _Filling(instance, classes, markets, pays)
    for gang in sorted({market.gang for market in markets}, reverse=True):
        found.fill(gang)
    return found.columns()


class _Filling:
    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        markets: list[Market],
        pays: Floats,
    ) -> None:
        self.instance, self.classes, self.markets = instance, classes, markets
        self.book = Book(instance)
        self.free = [nodes.gpus * nodes.count for nodes in instance.nodes]
        self.groups: list[list[tuple[int, ...]]] = [[] for _ in markets]
        self.of = [_on(market, pays) for market in markets]

    def fill(self, gang: int) -> None:
        """Part all jobs of a gang size."""
        among = [n for n, market in enumerate(self.markets) if market.gang == gang]
        work = np.max([self.of[n].work for n in among], axis=0)
        copies = [len(c.jobs) if c.job.gpus == gang else 0 for c in self.classes]
        left = np.repeat(np.arange(len(copies)), copies)
        left = left[np.argsort(-work[left], kind="stable")]
        while len(left):
            first, left = int(left[0]), left[1:]
            room = [n for n in among if self.free[self.markets[n].pool] >= gang]
            costs = [(self.of[n].alone[first], n) for n in room]
            cost, n = min(costs, default=(np.inf, -1))
            if cost < np.inf:
                self.free[self.markets[n].pool] -= gang
                left = self._group(first, left, n)

    def _group(self, first: int, left: Indices, n: int) -> Indices:
        """Make a group around a job of the next ones that fit best; return who is left."""
        window, market = left[:WINDOW], self.markets[n]
        work, busy, memory, least, alone, _ = (float(array[first]) for array in self.of[n])
        group = _Group((first,), busy, memory, least, alone / work if work else 0.0)
        jobs, kept = self.of[n].take(window), np.ones(len(window), dtype=bool)
        start = 0
        while len(group.members) < self.instance.max_jobs_per_gpu:
            larger = self._larger(group, window[start:], jobs.take(slice(start, None)), market)
            if larger is None:
                break
            at, group = larger
            kept[start + at] = False
            start += at + 1
        self.groups[n].append(group.members)
        return np.concatenate([window[kept], left[WINDOW:]])

    def _larger(
        self, group: _Group, window: Indices, jobs: _Jobs, market: Market
    ) -> tuple[int, _Group] | None:
        """Return which job of a window joins a group, and the group with it."""
        size, busy = len(group.members), group.busy + jobs.busy
        slowdown = market.slowdown(busy, size + 1)
        watts = market.watts(busy, slowdown)
        more = jobs.work * (watts - group.watts)
        memory, least = group.memory + jobs.memory, np.maximum(group.least, jobs.least)
        slack = np.minimum(1 / slowdown - least, 1 - memory / (market.room or NEAR))
        slack = np.minimum(slack, 1 - busy / slowdown / market.limit)
        fits = (slack >= -NEAR) & (more < jobs.alone)
        worth = np.where(fits, jobs.pays - more, -np.inf)
        while len(worth):
            at = int(worth.argmax())
            if worth[at] == -np.inf:
                break
            members = (*group.members, int(window[at]))
            if slack[at] > NEAR or is_allowed(
                self.book, self.classes, np.array(members), market.pool
            ):
                return at, _Group(members, busy[at], memory[at], least[at], watts[at])
            worth[at] = -np.inf
        return None

    def columns(self) -> Columns:
        """Return the groups."""
        parts = [none(self.instance)]
        for market, groups in zip(self.markets, self.groups, strict=True):
            parts.append(self._costed(market, groups))
        return joined(parts)

    def _costed(self, market: Market, groups: list[tuple[int, ...]]) -> Columns:
        """Return groups of a market with their costs."""
        at, many = np.full(len(self.classes), -1), len(market.classes)
        at[market.classes] = np.arange(many)
        rows = np.full((len(groups), self.instance.max_jobs_per_gpu), many)
        for n, group in enumerate(groups):
            rows[n, : len(group)] = at[list(group)]
        found = market.allowed(np.sort(rows, axis=1))
        members = np.sort(np.append(market.classes, len(at))[found.at], axis=1)
        same = np.ones(len(members), dtype=np.intp)
        return Columns(
            members,
            same * market.pool,
            -same,
            -same,
            same * market.gang,
            found.cost,
            0 * found.cost,
        )


def _on(market: Market, pays: Floats) -> _Jobs:
    """Return the jobs of a market by class; those that do not fit there cost without limit."""
    work, busy = np.zeros((2, len(pays)))
    memory, least, alone = np.full((3, len(pays)), np.inf)
    found = _Jobs(work, busy, memory, least, alone, pays)
    parts: list[Any] = [market.work, market.busy, market.memory, market.least, market.alone().cost]
    for array, values in zip(found, parts, strict=False):
        array[market.classes] = values
    return found
