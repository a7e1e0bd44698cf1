"""The GPUs of a cluster by the bins of their slowdowns for a class."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.node_sets import members
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.rollout.policies.rounds.lanes import Lanes

    Sets = Remembered[tuple[int, int], int]

MOST_SETS = 1 << 12
"""Of GPUs that are remembered for a class."""


class Bins:
    """Which GPUs are of which bin of a class, as sets of `Lanes`.

    Attributes
    ----------
    values
        Of each bin, ascending.
    inside, upto, better
        By bin, which GPUs are of it; of it or better ones; and of better ones.
    first_of
        By bin and node, the GPUs better than those of the bin, and those of it up to the node.
    near
        By bin and size, all GPUs of nodes that may have so many up to the bin, the last of it.
    bar
        By bin and penalties, the least bin for which GPUs of one node within the bin are not worse
        than those across nodes within the other.
    """

    def __init__(self, scores: Floats, lanes: Lanes) -> None:
        values, ranks = np.unique(scores, return_inverse=True)
        self._lanes = lanes
        self.values: list[float] = values.tolist()
        self._rank_of: list[int] = ranks.tolist()
        gpus: list[list[int]] = [[] for _ in self.values]
        for gpu, rank in enumerate(self._rank_of):
            gpus[rank].append(gpu)
        self.inside = [lanes.set_of(of_bin) for of_bin in gpus]
        self.upto: list[int] = list(accumulate(self.inside, or_))
        self.better = [0, *self.upto]
        self.first_of: Sets = Remembered(self._first_of, MOST_SETS)
        self.near: Sets = Remembered(self._near, MOST_SETS)
        self.bar: Remembered[tuple[int, tuple[float, ...]], int] = Remembered(self._bar, MOST_SETS)

    def best_of(self, free: int, likely: int) -> tuple[int, int]:
        """Return the least bin of the free GPUs, and those of it."""
        if free & self.better[likely]:
            likely = bisect_left(self.upto, 1, 0, likely, key=free.__and__)
        elif best := free & self.inside[likely]:
            return likely, best
        else:
            likely = bisect_left(self.upto, 1, likely + 1, key=free.__and__)
        return likely, free & self.inside[likely]

    def least_across(self, free: int, size: int, likely: int = 0) -> int:
        """Return the least bin within which so many GPUs are free, which there are.

        Parameters
        ----------
        likely
            A guess.
        """
        upto = self.upto
        low, high = 0, len(upto) - 1
        if (free & upto[likely]).bit_count() < size:
            low = likely + 1
        elif likely and (free & upto[likely - 1]).bit_count() >= size:
            high = likely - 1
        else:
            return likely
        return bisect_left(upto, size, low, high, key=lambda gpus: (free & gpus).bit_count())

    def least_within(self, free: int, size: int, likely: int) -> int:
        """Return the least bin within which a node has so many free GPUs; one more without it.

        Parameters
        ----------
        likely
            A guess.
        """
        having, upto = self._lanes.having, self.upto
        low, high = 0, len(upto)
        if not having(free & upto[likely], size):
            low = likely + 1
        elif likely and having(free & upto[likely - 1], size):
            high = likely - 1
        else:
            return likely
        return bisect_left(upto, 1, low, high, key=lambda gpus: having(free & gpus, size))

    def ranked(self, node: int, mask: int) -> list[tuple[int, int]]:
        """Return (bin, n) of the n-th GPUs of a node that are in a mask, the best ones first."""
        first, rank_of = self._lanes.first_gpu[node], self._rank_of
        return sorted((rank_of[first + n], n) for n in members(mask))

    def _first_of(self, rank: int, node: int) -> int:
        return self.better[rank] | (self.inside[rank] & self._lanes.upto(node))

    def _bar(self, within: int, penalty: tuple[float, ...]) -> int:
        near = penalty[0] * self.values[within]
        return bisect_left(self.values, near, key=lambda value: penalty[-1] * value)

    def _near(self, rank: int, size: int) -> int:
        lanes, gpus = self._lanes, self.inside[rank] if size == 1 else self.upto[rank]
        return lanes.whole(lanes.nodes(lanes.with_at_least(gpus, size)))
