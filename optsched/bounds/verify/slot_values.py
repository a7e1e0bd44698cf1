"""What prices are worth to jobs, in whole numbers of 63 bits, each line rounded to the safe side.

Moments are below 2**36 units and prices below 2**40, as certificates have them; what would be
larger is left out of the bound. docs/obligations-bounds.md says line by line why nothing overflows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Integers

CHUNK = 1_000_000
LIMB = 16
SPLIT = 19
FAR = 1 << 37


class Slots:
    """The slots of a certificate, with the free time before and after them."""

    def __init__(self, edges: Sequence[int], prices: Sequence[int], bits: int) -> None:
        self.begin = np.array([0, *edges], np.int64)
        self.end = np.array([*edges, FAR], np.int64)
        self.price = np.array([0, *prices, 0], np.int64)
        self.bits = bits

    def surplus(self, release: Integers, threshold: Integers, need: Integers) -> list[int]:
        """Return for each row twice what lies between its threshold and its costs.

        The cost at moment t of a slot is t + need x price, rounded down. The surplus is the
        integral of 2 x max(0, threshold - cost) over all t from the release on, in units squared,
        and no less than that.

        Parameters
        ----------
        need
            Width x length of each row, rounded down, below 2**54.
        """
        first = np.searchsorted(self.end, release, side="right")
        last = np.searchsorted(self.begin, threshold, side="left")
        counts = np.maximum(1, last - first)
        upto, found, low = np.cumsum(counts), [], 0
        while low < len(counts):
            before = int(upto[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(upto, before + CHUNK, side="right")))
            rows = slice(low, high)
            found += self._surplus(
                release[rows], threshold[rows], need[rows], first[rows], counts[rows]
            )
            low = high
        return found

    def _surplus(
        self,
        release: Integers,
        threshold: Integers,
        need: Integers,
        first: Integers,
        counts: Integers,
    ) -> list[int]:
        starts = np.cumsum(counts) - counts
        row = np.repeat(np.arange(len(counts)), counts)
        slot = np.minimum(first[row] + np.arange(len(row)) - starts[row], len(self.price) - 1)
        begin = np.maximum(self.begin[slot], release[row])
        depth = threshold[row] - begin - self._delay(need[row], self.price[slot])
        taken = np.minimum(np.maximum(depth, 0), self.end[slot] - begin)
        height = 2 * depth - taken  # of a trapezium that is `taken` long, twice
        large = np.add.reduceat(taken * (height >> SPLIT), starts)
        small = np.add.reduceat(taken * (height & ((1 << SPLIT) - 1)), starts)
        return [(a << SPLIT) + b for a, b in zip(large.tolist(), small.tolist(), strict=True)]

    def _delay(self, need: Integers, price: Integers) -> Integers:
        """Return need x price, rounded down, or FAR where it is larger than any threshold."""
        mask = (1 << LIMB) - 1
        total = ((need & mask) * price) >> self.bits
        total += (((need >> LIMB) & mask) * price) >> (self.bits - LIMB)
        rest = (need >> 2 * LIMB) * price
        shift = self.bits - 2 * LIMB
        total += rest >> shift if shift >= 0 else np.minimum(rest, FAR) << -shift
        delay: Integers = np.minimum(total, FAR)
        return delay
