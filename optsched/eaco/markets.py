"""The best groups at prices of jobs, where rates come from utilisations: a bounded search.

Jobs of a group end in the order of their work, so one with less work than all others changes its
cost only while it runs. Groups grow from the job with most work on, and those that no further jobs
can make pay are left behind: a job adds at most what it pays, less its least share of the watts.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.goods import BLOCK, CELLS, STEPS, Goods
from optsched.eaco.groups import NEAR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CHUNK = 1_000_000  # groups that are looked at in one go


class Partial(NamedTuple):
    """Groups that may grow by jobs at the same or later positions.

    Attributes
    ----------
    at
        Shape (groups, k): positions in the order of work, ascending.
    busy, memory, least
        Shape (groups,): sum of utilisations and of memory, and the least rate that all bear.
    watts, reduced
        Shape (groups,): cost of a second of work, and cost less what the jobs pay.
    """

    at: Indices
    busy: Floats
    memory: Floats
    least: Floats
    watts: Floats
    reduced: Floats

    def take(self, which: Indices | NDArray[np.bool_] | slice) -> Partial:
        """Return some of the groups."""
        taken: list[Any] = [array[which] for array in self]
        return Partial(*taken)


class Found(NamedTuple):
    """Groups below a threshold, or the best of them if they are too many.

    Attributes
    ----------
    at, cost, reduced
        Positions, filled up with the number of jobs; costs; costs less what the jobs pay.
    is_near
        Whether a figure is too near to a limit to be trusted.
    least
        Shape (jobs,): no group at all costs less than this above what its jobs pay, by the position
        of the one with most work; the threshold at most.
    """

    at: Indices
    cost: Floats
    reduced: Floats
    is_near: NDArray[np.bool_]
    least: Floats


class Market(Goods):
    """Groups of one gang size on nodes of one pool.

    Attributes
    ----------
    is_cut
        Whether the last search left groups out, since they were too many.
    """

    is_cut = False

    def below(self, pays: Floats, charge: float, threshold: Floats | float, most: int) -> Found:
        """Return groups that cost less than a threshold above what their jobs pay.

        Parameters
        ----------
        pays
            Shape (jobs,), by position; minus infinity for jobs that are left out.
        charge
            Of the group's GPUs.
        threshold
            Or thresholds, by the position of the job with most work.
        most
            Groups that grow further, at most, of each size; the most promising ones.
        """
        limit = np.broadcast_to(np.asarray(threshold, dtype=float), pays.shape)
        gains, least, self.is_cut = self._gains(pays), limit.copy(), False
        partial = self._alone(pays, charge)
        found = [self._best(partial.take(partial.reduced < limit[partial.at[:, 0]]), most, least)]
        for further in range(self._most - 1, 0, -1):
            partial = self._promising(partial, gains[further], limit, most, least)
            grown, below = [partial.take(slice(0, 0))], []
            for chunk in self._chunks(partial):
                both = self._grown(chunk, pays, gains[further - 1], gains[1], limit)
                grown.append(both[0])
                below.append(self._best(both[1], most, least))
            partial = _joined(grown[1:] or grown)
            found += [self._best(_joined(below), most, least)] if below else []
        return self._found(found, pays, charge, least)

    def _best(self, partial: Partial, most: int, least: Floats) -> Partial:
        """Return groups, the best if they are too many; note the best of each leader."""
        np.minimum.at(least, partial.at[:, 0], partial.reduced)
        if len(partial.at) <= most:
            return partial
        self.is_cut = True
        rank = partial.reduced / self.work[partial.at[:, 0]]
        return partial.take(np.argpartition(rank, most)[:most])

    def _found(self, found: list[Partial], pays: Floats, charge: float, least: Floats) -> Found:
        padded = np.append(pays, 0.0)
        parts = []
        for partial in found:
            size = partial.at.shape[1]
            at = np.full((len(partial.at), self._most), len(pays))
            at[:, :size] = partial.at
            slowdown = self._slowdown(partial.busy, size)
            near = np.abs(slowdown * partial.least - 1) <= NEAR
            near |= partial.memory > self._room * (1 - NEAR)
            near |= partial.busy >= self._limit * slowdown * (1 - NEAR)
            cost = partial.reduced + padded[at].sum(axis=1) - charge
            parts.append((at, cost, partial.reduced, near))
        at, cost, reduced, near = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Found(at, cost, reduced, near, least)

    def _slowdown(self, busy: Floats, size: int) -> Floats:
        if size == 1:
            return np.ones(len(busy))
        return 1 + self._partner * (size - 1) + self._slope * np.maximum(busy - 1, 0)

    def alone(self) -> Found:
        """Return each job alone."""
        nothing = np.zeros(len(self.work))
        partial = self._alone(nothing, 0.0)
        return self._found([partial], nothing, 0.0, partial.reduced)

    def _alone(self, pays: Floats, charge: float) -> Partial:
        watts = self._context + self._span * np.minimum(1.0, self._busy)
        at = np.flatnonzero(np.isfinite(pays))
        reduced = (self.work * watts - pays + charge)[at]
        return Partial(
            at[:, None], self._busy[at], self._memory[at], self._least[at], watts[at], reduced
        )

    def _hopes(self, partial: Partial, gain: Floats) -> Floats:
        """Return what groups cost at least above what jobs pay, however they grow."""
        size, last = partial.at.shape[1], partial.at[:, -1]
        cells = ((self._room - partial.memory) / self._unit * (1 + NEAR)).astype(int)
        cells = np.clip(cells, 0, CELLS)
        steps = np.full(len(last), STEPS)
        if self._slope > 0:
            slower = np.maximum(1 / partial.least - 1 - self._partner * size, 0)
            steps = (1 + slower / self._slope - partial.busy) / self._stride * (1 + NEAR) + NEAR
            steps = np.clip(steps, 0, STEPS).astype(int)
        calm = self._context * (1 + self._partner * (size - 1)) + self._span * partial.busy
        sags = np.maximum(partial.watts - calm + self._sag[size], 0.0)
        return np.asarray(
            partial.reduced - gain[last // BLOCK, cells, steps] - self.work[last] * sags
        )

    def _promising(
        self, partial: Partial, gain: Floats, limit: Floats, most: int, least: Floats
    ) -> Partial:
        """Return the groups that may grow to one below the limit, the best if they are too many."""
        hopes = self._hopes(partial, gain)
        above = hopes - limit[partial.at[:, 0]]
        kept = np.flatnonzero(above < 0)
        if len(kept) > most:
            self.is_cut = True
            rank = above[kept] / self.work[partial.at[kept, 0]]
            order = kept[np.argpartition(rank, most)]
            kept, gone = np.sort(order[:most]), order[most:]
            np.minimum.at(least, partial.at[gone, 0], hopes[gone])
        return partial.take(kept)

    def _chunks(self, partial: Partial) -> list[Partial]:
        sizes = np.cumsum(len(self.work) - partial.at[:, -1])
        ends = np.searchsorted(sizes, np.arange(CHUNK, sizes[-1] if len(sizes) else 0, CHUNK))
        edges = np.unique(np.concatenate([[0], ends, [len(sizes)]])).tolist()
        pairs = list(itertools.pairwise(edges)) or [(0, 0)]
        return [partial.take(np.arange(first, last)) for first, last in pairs]

    def _grown(
        self, partial: Partial, pays: Floats, gain: Floats, one: Floats, limit: Floats
    ) -> tuple[Partial, Partial]:
        """Return groups with one more job: those that may grow on, and those below the limit."""
        size = partial.at.shape[1] + 1
        need = self._hopes(partial, gain) - limit[partial.at[:, 0]]
        ends = BLOCK * np.searchsorted(-one[:, -1, -1], -need)
        rows, last = self._extended(partial, pays, ends)
        busy = partial.busy[rows] + self._busy[last]
        slowdown = self._slowdown(busy, size)
        least = np.maximum(partial.least[rows], self._least[last])
        watts = self._context * slowdown + self._span * np.minimum(busy, slowdown)
        reduced = partial.reduced[rows] - pays[last]
        reduced += self.work[last] * (watts - partial.watts[rows])
        bound = limit[partial.at[rows, 0]]
        fine = slowdown * least <= 1 + NEAR
        if size == self._most:
            fine &= reduced < bound
        rows, last, bound, slowdown = rows[fine], last[fine], bound[fine], slowdown[fine]
        grown = Partial(
            np.hstack([partial.at[rows], last[:, None]]),
            busy[fine],
            partial.memory[rows] + self._memory[last],
            least[fine],
            watts[fine],
            reduced[fine],
        )
        calm = grown.busy <= self._limit * slowdown * (1 + NEAR)
        return grown.take(self._hopes(grown, gain) < bound), grown.take(
            (grown.reduced < bound) & calm
        )

    def _extended(self, partial: Partial, pays: Floats, ends: Indices) -> tuple[Indices, Indices]:
        """Return every group and job before its end that may join it."""
        first = partial.at[:, -1]
        choices = np.clip(np.where(ends > len(pays), len(pays), ends) - first, 0, None)
        rows = np.repeat(np.arange(len(first)), choices)
        starts = np.repeat(np.cumsum(choices) - choices, choices)
        last = np.arange(len(rows)) - starts + first[rows]
        fits = partial.memory[rows] + self._memory[last] <= self._room * (1 + NEAR)
        copies = (partial.at == first[:, None]).sum(axis=1)
        fits &= (last != first[rows]) | (copies < self._copies[first])[rows]
        fits &= np.isfinite(pays)[last]
        return rows[fits], last[fits]


def _joined(parts: list[Partial]) -> Partial:
    joined: list[Any] = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return Partial(*joined)
