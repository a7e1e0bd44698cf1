"""Free GPUs of each node by the bins of their slowdowns for a class."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.free_nodes import members
from optsched.rollout.policies.rounds.moving_places import ChangedMasks, lowest

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats
    from optsched.rollout.physics.cluster import Cluster

    Ranks = NDArray[np.int16]

MOST_BINS = 64
"""Of a class; with more of them arrays are quicker."""

MOST_KNOWN = 256
"""Masks of a node of which the bins are remembered."""


class Bins:
    """The free GPUs of each node by the bin of a class; as they were when it was last asked.

    Attributes
    ----------
    values
        Of each bin, ascending.
    inside, upto
        By node and bin, which of its GPUs are of the bin; and of it or better ones.
    """

    def __init__(self, scores: Floats, cluster: Cluster, masks: array[int]) -> None:
        values, ranks = np.unique(scores, return_inverse=True)
        self.values: list[float] = values.tolist()
        self.inside: list[list[int]] = []
        self.upto: list[list[int]] = []
        for first, size in zip(cluster.first, cluster.size, strict=True):
            inside = [0] * len(self.values)
            for n, rank in enumerate(ranks[first : first + size].tolist()):
                inside[rank] |= 1 << n
            self.inside.append(inside)
            self.upto.append([sum(inside[: rank + 1]) for rank in range(len(inside))])
        self._masks, self._changes = masks, ChangedMasks()
        none = np.full(cluster.largest + 1, len(values), dtype=np.int16)
        none[0] = 0
        # By number and node, the bin of the worst of so many best GPUs; that of none is the last.
        self._worst = np.repeat(none[:, None], cluster.nodes, axis=1)
        self._none, self._total = none, [0] * len(self.values)
        self._nodes_with = [[0] * (cluster.largest + 1) for _ in self.values]  # by bin and number
        self._counts: list[tuple[tuple[int, int], ...]] = [() for _ in self.inside]
        self._known: list[dict[int, tuple[tuple[tuple[int, int], ...], Ranks]]] = [
            {} for _ in self.inside
        ]

    def look(self) -> None:
        """Bring everything up to date."""
        masks, groups, total = self._masks, self._nodes_with, self._total
        for node in self._changes.nodes(masks):
            known, mask = self._known[node], masks[node]
            found = known.get(mask)
            if found is None:
                if len(known) == MOST_KNOWN:
                    known.clear()
                found = known[mask] = self._of_mask(node, mask)
            counts, self._worst[:, node] = found
            bit = 1 << node
            for rank, count in self._counts[node]:
                groups[rank][count] ^= bit
                total[rank] -= count
            for rank, count in counts:
                groups[rank][count] ^= bit
                total[rank] += count
            self._counts[node] = counts

    def _of_mask(self, node: int, mask: int) -> tuple[tuple[tuple[int, int], ...], Ranks]:
        """Return (bin, free GPUs of it) where there are any, and the bins of the worst."""
        found = ((rank, (mask & of).bit_count()) for rank, of in enumerate(self.inside[node]))
        counts = tuple((rank, count) for rank, count in found if count)
        worst, upto = self._none.copy(), 1
        for rank, count in counts:
            worst[upto : upto + count] = rank
            upto += count
        return counts, worst

    def least_across(self, size: int) -> int:
        """Return the least bin within which there are so many free GPUs; -1 if there is none."""
        for rank, count in enumerate(self._total):
            size -= count
            if size <= 0:
                return rank
        return -1

    def fullest(self, size: int) -> tuple[int, int, int]:
        """Return the least bin within which a node has so many free GPUs, and of which node.

        Returns
        -------
        tuple
            Bin, the first of the nodes with the most free GPUs up to it, and how many these are.
            Without such a node the bin is one more than the last.
        """
        least: list[int] = self._worst.min(axis=1).tolist()
        rank = least[size] if size < len(least) else len(self.values)
        if rank == len(self.values):
            return rank, -1, 0
        most = size
        while most + 1 < len(least) and least[most + 1] <= rank:
            most += 1
        return rank, int((self._worst[most] <= rank).argmax()), most

    def best_nodes(self, size: int) -> tuple[int, list[int]]:
        """Return the least bin within which a node has so many free GPUs, and these nodes.

        Without such a node the bin is one more than the last.
        """
        if size >= len(self._worst):
            return len(self.values), []
        worst = self._worst[size]
        rank = int(worst.min())
        if rank == len(self.values):
            return rank, []
        nodes: list[int] = (worst == rank).nonzero()[0].tolist()
        return rank, nodes

    def best(self, node: int, size: int) -> int:
        """Return so many free GPUs of a node: of better bins first, and then the first ones."""
        chosen, left, mask = 0, size, self._masks[node]
        for rank, count in self._counts[node]:
            of_bin = mask & self.inside[node][rank]
            chosen |= of_bin if count <= left else lowest(of_bin, left)
            left -= count
            if left <= 0:
                break
        return chosen

    def of(self, rank: int) -> Iterator[tuple[int, int]]:
        """Yield (node, which GPUs) of all that are free and of a bin, the first node first."""
        for node in members(sum(self._nodes_with[rank][1:])):
            yield node, self._masks[node] & self.inside[node][rank]

    def better(self, rank: int) -> Iterator[tuple[int, int]]:
        """Yield (node, which GPUs) of all that are free and better than a bin."""
        if rank:
            masks, upto = self._masks, self.upto
            for node in (self._worst[1] < rank).nonzero()[0].tolist():
                yield node, masks[node] & upto[node][rank - 1]

    def tied(self, rank: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Yield (distance, node, which GPUs) of a bin, those first that have most nearly so many.

        The distance is that of the number of these from the size.
        """
        groups, masks, inside = self._nodes_with[rank], self._masks, self.inside
        for distance, counts in _nearest(len(groups) - 1, size):
            for node in members(sum([groups[count] for count in counts])):
                yield distance, node, masks[node] & inside[node][rank]


@cache
def _nearest(most: int, size: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return (distance, numbers) of the numbers from 1 on, those first that are nearest a size."""
    groups: dict[int, tuple[int, ...]] = {}
    for count in range(1, most + 1):
        distance = abs(count - size)
        groups[distance] = (*groups.get(distance, ()), count)
    return tuple(sorted(groups.items()))
