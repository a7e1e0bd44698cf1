"""The verifier of EaCO: completion bounds (Baldacci et al., Mathematical Programming 115, 2008).

How much further jobs can lower what a group costs above what its jobs pay, at most.

A job that joins a group pays, and adds at least its own dynamic watts and its share of a slowdown
while it runs. What several of them add at most, within the memory and the utilisation that are
left, is in a table in whole cells, rounded so that it is never too little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.verify.limits import LIMITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Wholes = NDArray[np.int64]
    Positions = NDArray[np.int32]


class CompletionBounds:
    """What jobs add at most, by the first position that they may have.

    Parameters
    ----------
    nets
        Shape (jobs,): what each pays above what it costs at least beside others, by position.
    memory, busy
        Shape (jobs,): what each takes, by position.
    tops
        Greatest memory and utilisation that further jobs may take.
    most
        Further jobs at most.
    """

    def __init__(
        self, nets: Wholes, memory: Wholes, busy: Wholes, tops: tuple[int, int], most: int
    ) -> None:
        self._nets, self._block = nets, max(LIMITS.block, -(-len(nets) // LIMITS.blocks))
        self._wide = LIMITS.cells if len(nets) > LIMITS.few_jobs else (2, 2)
        self._units = tops[0] // self._wide[0] + 1, tops[1] // self._wide[1] + 1
        self._cell = np.minimum(memory // self._units[0], self._wide[0] + 1)
        self._step = np.minimum(busy // self._units[1], self._wide[1] + 1)
        self._busiest = np.maximum.accumulate(busy[::-1])[::-1]
        self._lists()
        one = self._ones()
        self._tables = [np.zeros_like(one), one]
        for _ in range(2, most + 1):
            self._tables.append(_both(self._tables[-1], one))

    def _lists(self) -> None:
        """List the positions from each block on, by memory, the jobs that add most first."""
        order = np.argsort(-self._nets, kind="stable").astype(np.int32)
        cells, parts = self._cell[order], []
        for first in range(0, len(order), self._block):
            later = order >= first
            inside, small = order[later], cells[later]
            parts += [inside[small <= cell] for cell in range(self._wide[0] + 1)]
        sizes = np.array([len(part) for part in parts])
        self._order = np.concatenate(parts)
        self._starts = np.cumsum(sizes) - sizes
        self._ends = np.cumsum(sizes)

    def _ones(self) -> Wholes:
        """Return what one job adds at most, by block and cells."""
        wide = (self._wide[0] + 2, self._wide[1] + 2)
        blocks = -(-len(self._nets) // self._block)
        one = np.zeros((blocks, *wide), dtype=np.int64)
        at = (np.arange(len(self._nets)) // self._block, self._cell, self._step)
        np.maximum.at(one, at, self._nets)
        one = one[:, :-1, :-1]
        one = np.maximum.accumulate(np.maximum.accumulate(one, axis=1), axis=2)
        return np.asarray(np.maximum.accumulate(one[::-1], axis=0)[::-1])

    def busiest_from(self, first: Positions) -> Wholes:
        """Return the greatest utilisation of a job from a position on."""
        return np.asarray(self._busiest[first])

    def of(self, count: int, first: Positions, memory: Wholes, busy: Wholes) -> Wholes:
        """Return what a number of jobs add at most, from a position on, within what is left."""
        a = np.clip(memory // self._units[0], 0, self._wide[0])
        b = np.clip(busy // self._units[1], 0, self._wide[1])
        return np.asarray(self._tables[count][first // self._block, a, b])

    def candidates(
        self, first: Positions, memory: Wholes, need: Wholes
    ) -> tuple[Wholes, Positions, Wholes]:
        """Return the jobs, from the block of a position on, that add more than is needed.

        Returns
        -------
        tuple
            How many for each group; positions; and where in them those of a group start.
        """
        cells = np.clip(memory // self._units[0], 0, self._wide[0])
        keys = first // self._block * (self._wide[0] + 1) + cells
        order = np.argsort(keys, kind="stable")
        counts = np.zeros(len(keys), dtype=np.int64)
        edges = np.flatnonzero(np.diff(keys[order])) + 1
        for rows in np.split(order, edges) if len(order) else ():
            key = keys[rows[0]]
            nets = self._nets[self._order[self._starts[key] : self._ends[key]]]
            counts[rows] = np.searchsorted(-nets, -need[rows])
        return counts, self._order, self._starts[keys]


def _both(before: Wholes, one: Wholes) -> Wholes:
    """Return the most that the jobs of two tables add together, by cells."""
    best = np.zeros_like(one)
    _, wide, long = one.shape
    for i, j in np.ndindex(wide, long):
        both = before[:, : wide - i, : long - j] + one[:, i, j, None, None]
        np.maximum(best[:, i:, j:], both, out=best[:, i:, j:])
    return best
