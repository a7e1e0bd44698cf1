"""Completion bounds of pricing (Baldacci, Christofides & Mingozzi, Math. Programming 115, 2008).

What further jobs can lower a group's cost above what its jobs pay, and which jobs may do so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices


class Gains:
    """Tables of what jobs add at most, by their first position and by what is left for them.

    Parameters
    ----------
    net
        Shape (jobs,): what each pays above what it adds at least, minus infinity if it is left out.
    cell, step
        Shape (jobs,): what each takes, rounded down, in `wide[0]` cells of memory and `wide[1]` of
        utilisation.
    most
        Further jobs at most.
    """

    def __init__(
        self, net: Floats, cell: Indices, step: Indices, wide: tuple[int, int], most: int
    ) -> None:
        self.net, self._wide = net, wide
        self._block = max(SETTINGS.block_positions, -(-len(net) // SETTINGS.most_blocks))
        self._blocks = -(-len(net) // self._block)
        self._list(cell)
        one = self._ones(cell, step)
        self._tables = [np.zeros_like(one), one]
        for _ in range(2, most + 1):
            self._tables.append(_both(self._tables[-1], one))

    def _list(self, cell: Indices) -> None:
        """List the positions from each block on, by memory, the jobs that add most first."""
        order = np.argsort(-self.net, kind="stable").astype(np.int32)
        order = order[np.isfinite(self.net[order])]
        cells, parts = cell[order], [order[:0]]
        for first in range(0, self._blocks * self._block, self._block):
            later = order >= first
            inside, small = order[later], cells[later]
            parts += [inside[small <= most] for most in range(self._wide[0] + 1)]
        self._order = np.concatenate(parts)
        self._ends = np.cumsum([len(part) for part in parts])

    def _ones(self, cell: Indices, step: Indices) -> Floats:
        """Return what one job adds at most, by block and cells."""
        one = np.zeros((self._blocks, self._wide[0] + 1, self._wide[1] + 1))
        at = (np.arange(len(self.net)) // self._block, cell, step)
        np.maximum.at(one, at, self.net)
        one = np.maximum.accumulate(np.maximum.accumulate(one, axis=1), axis=2)
        return np.asarray(np.maximum.accumulate(one[::-1], axis=0)[::-1])

    def of(self, count: int, last: Indices, cells: Indices, steps: Indices) -> Floats:
        """Return what a number of jobs add at most, from a position on, within what is left."""
        return np.asarray(self._tables[count][last // self._block, cells, steps])

    def candidates(
        self, last: Indices, cells: Indices, need: Floats
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield groups and jobs that add more than is needed, some in one go.

        The jobs stand from the block of the group's last one on, and may be before it in that.
        """
        keys = last // self._block * (self._wide[0] + 1) + cells
        order = np.argsort(keys, kind="stable")
        counts = np.zeros(len(keys), dtype=np.intp)
        for group in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            if len(group):
                key = keys[group[0]]
                net = self.net[self._order[self._ends[key] : self._ends[key + 1]]]
                counts[group] = np.searchsorted(-net, -need[group])
        ends = np.cumsum(counts)
        last_end, step = ends[-1] if len(ends) else 0, SETTINGS.pairs_at_once
        edges = np.searchsorted(ends, np.arange(step, last_end, step))
        for part in np.split(np.arange(len(keys)), edges):
            times = counts[part]
            rows = np.repeat(part, times)
            offset = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
            yield rows, self._order[self._ends[keys[rows]] + offset]


def _both(before: Floats, one: Floats) -> Floats:
    """Return the most that the jobs of two tables add together, by cells."""
    best = np.zeros_like(one)
    _, wide, long = one.shape
    for i, j in np.ndindex(wide, long):
        both = before[:, : wide - i, : long - j] + one[:, i, j, None, None]
        np.maximum(best[:, i:, j:], both, out=best[:, i:, j:])
    return best
