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

    def least_across(self, free: int, size: int) -> int:
        """Return the least bin within which so many GPUs are free, which there are."""
        if size == 1:
            return bisect_left(self.upto, 1, key=free.__and__)
        return bisect_left(self.upto, size, key=lambda gpus: (free & gpus).bit_count())

    def least_within(self, free: int, size: int, across: int) -> int:
        """Return the least bin within which a node has so many free GPUs; one more without it.

        Parameters
        ----------
        across
            The least bin within which there are so many.
        """
        lanes = self._lanes

        def enough(gpus: int) -> int:
            return lanes.with_at_least(free & gpus, size)

        return bisect_left(self.upto, 1, lo=across, key=enough)

    def ranked(self, node: int, mask: int) -> list[tuple[int, int]]:
        """Return (bin, n) of the n-th GPUs of a node that are in a mask, the best ones first."""
        first, rank_of = self._lanes.first_gpu[node], self._rank_of
        return sorted((rank_of[first + n], n) for n in members(mask))

    def _first_of(self, rank: int, node: int) -> int:
        return self.better[rank] | (self.inside[rank] & self._lanes.upto(node))

    def _near(self, rank: int, size: int) -> int:
        lanes, gpus = self._lanes, self.inside[rank] if size == 1 else self.upto[rank]
        return lanes.whole(lanes.nodes(lanes.with_at_least(gpus, size)))
