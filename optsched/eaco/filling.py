"""A plan in little time for many jobs: groups of jobs that end together, the longest first.

As `greedy.longest_first`, but of the next jobs in that order the best one joins, and it is found in
arrays of them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.columns import Columns
from optsched.eaco.energy import Book
from optsched.eaco.groups import NEAR
from optsched.eaco.members import is_allowed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.groups import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.markets import Market

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

WINDOW = 200  # jobs that are looked at for a group


class _Jobs(NamedTuple):
    """Jobs on the nodes of one market: work, utilisation, memory, least rate, cost alone."""

    work: Floats
    busy: Floats
    memory: Floats
    least: Floats
    alone: Floats


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
        self.instance, self.classes, self.pays = instance, classes, pays
        self.markets, self.book = markets, Book(instance)
        self.free = [nodes.gpus * nodes.count for nodes in instance.nodes]
        self.groups: list[tuple[list[int], Market, float]] = []
        self.of = [_on(market, len(classes)) for market in markets]

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
        window, jobs, market = left[:WINDOW], self.of[n], self.markets[n]
        taken = np.zeros(len(window), dtype=bool)
        members, start = [first], 0
        while len(members) < self.instance.max_jobs_per_gpu:
            best = self._best(members, window[start:], jobs, market)
            if best is None:
                break
            members.append(int(window[start + best]))
            taken[start + best] = True
            start += best + 1
        self.groups.append((members, market, _cost(members, jobs, market)))
        return np.concatenate([window[~taken], left[WINDOW:]])

    def _best(self, members: list[int], window: Indices, jobs: _Jobs, market: Market) -> int | None:
        """Return which job of a window joins a group."""
        size, busy = len(members), float(jobs.busy[members].sum())
        together = busy + jobs.busy[window]
        slowdown = market.slowdown(together, size + 1)
        before = market.watts(np.array([busy]), market.slowdown(np.array([busy]), size))
        more = jobs.work[window] * (market.watts(together, slowdown) - before)
        memory = float(jobs.memory[members].sum()) + jobs.memory[window]
        slack = 1 / slowdown - np.maximum(jobs.least[members].max(), jobs.least[window])
        slack = np.minimum(slack, 1 - memory / (market.room or NEAR))
        slack = np.minimum(slack, 1 - together / slowdown / market.limit)
        pays = more < jobs.alone[window]
        worth = np.where((slack >= -NEAR) & pays, self.pays[window] - more, -np.inf)
        while len(worth):
            at = int(worth.argmax())
            if worth[at] == -np.inf:
                break
            row = np.array([*members, window[at]])
            if slack[at] > NEAR or is_allowed(self.book, self.classes, row, market.pool):
                return at
            worth[at] = -np.inf
        return None

    def columns(self) -> Columns:
        """Return the groups."""
        many, size = len(self.groups), self.instance.max_jobs_per_gpu
        members = np.full((many, size), len(self.classes))
        for n, (row, _, _) in enumerate(self.groups):
            members[n, : len(row)] = sorted(row)
        pool = np.array([market.pool for _, market, _ in self.groups], dtype=np.intp)
        gang = np.array([market.gang for _, market, _ in self.groups], dtype=np.intp)
        cost = np.array([cost for _, _, cost in self.groups], dtype=float)
        return Columns(members, pool, 0 * pool - 1, 0 * pool - 1, gang, cost, 0 * cost)


def _on(market: Market, classes: int) -> _Jobs:
    """Return the jobs of a market by class; those that do not fit there cost without limit."""
    found = _Jobs(*(np.full(classes, value) for value in (0.0, 0.0, np.inf, np.inf, np.inf)))
    alone = market.alone()
    parts: list[Any] = [market.work, market.busy, market.memory, market.least, alone.cost]
    for array, values in zip(found, parts, strict=True):
        array[market.classes] = values
    return found


def _cost(members: list[int], jobs: _Jobs, market: Market) -> float:
    """Return the cost of a group, whose jobs need not have been found in the order of their end."""
    order = np.array(sorted(members, key=lambda n: -jobs.work[n]))
    busy = np.cumsum(jobs.busy[order])
    watts = [
        market.watts(busy[n : n + 1], market.slowdown(busy[n : n + 1], n + 1))[0]
        for n in range(len(order))
    ]
    return float(jobs.work[order] @ np.diff(watts, prepend=0.0))
