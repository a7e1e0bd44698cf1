"""The judge of EaCO: how much further jobs can lower what a group costs above what its jobs pay.

A job that joins a group pays, and adds at least its own dynamic watts and its share of a slowdown
while it runs. What several of them add at most, within the memory and the utilisation that are
left, is in a table in whole cells, rounded so that it is never too little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MEMORY, BUSY = 24, 14  # cells
BLOCK = 20  # positions


class Hopes:
    """What jobs add at most, by the first position that they may have.

    Parameters
    ----------
    nets
        What each job pays above what it costs at least beside others, by position.
    memory, busy
        What each takes, by position.
    tops
        Greatest memory and utilisation that further jobs may take.
    most
        Further jobs at most.
    """

    def __init__(
        self,
        nets: Sequence[int],
        memory: Sequence[int],
        busy: Sequence[int],
        tops: tuple[int, int],
        most: int,
    ) -> None:
        self._units = tops[0] // MEMORY + 1, tops[1] // BUSY + 1
        blocks = range(0, len(nets), BLOCK)
        order = sorted(range(len(nets)), key=lambda n: -nets[n])
        self._promising = [[n for n in order if n >= first] for first in blocks]
        one = [0] * ((MEMORY + 1) * (BUSY + 1))
        ones: list[list[int]] = []
        for first in reversed(blocks):
            for n in range(first, min(first + BLOCK, len(nets))):
                if nets[n] > 0:
                    self._raise(
                        one, memory[n] // self._units[0], busy[n] // self._units[1], nets[n]
                    )
            ones.append(list(one))
        ones.reverse()
        self._tables = [[[0] * len(one)] * len(ones), ones]
        for _ in range(2, most + 1):
            self._tables.append([_both(a, b) for a, b in zip(self._tables[-1], ones, strict=True)])

    def _raise(self, one: list[int], memory: int, busy: int, net: int) -> None:
        for a in range(memory, MEMORY + 1):
            for b in range(busy, BUSY + 1):
                cell = a * (BUSY + 1) + b
                one[cell] = max(one[cell], net)

    def promising_from(self, first: int) -> list[int]:
        """Return positions, from the block of one on, the jobs that add most first."""
        return self._promising[first // BLOCK]

    def of(self, count: int, first: int, memory: int, busy: int) -> int:
        """Return what a number of jobs add at most, from a position on, within what is left."""
        a = min(memory // self._units[0], MEMORY)
        b = min(max(busy, 0) // self._units[1], BUSY)
        return self._tables[count][first // BLOCK][a * (BUSY + 1) + b]


def _both(before: list[int], one: list[int]) -> list[int]:
    """Return the most that the jobs of two tables add together, by cells."""
    wide = BUSY + 1
    found = []
    for a in range(MEMORY + 1):
        for b in range(wide):
            found.append(
                max(
                    [
                        before[(a - i) * wide + b - j] + one[i * wide + j]
                        for i in range(a + 1)
                        for j in range(b + 1)
                    ]
                )
            )
    return found
