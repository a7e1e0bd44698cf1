"""PM-First and PAL on sets of nodes, where the slowdowns of GPUs are a few bins: no array is made.

The rules are `pal_rules.pm_first_rule` and `pal_rules.pal_rule` without caps; which GPUs they pick
is the same. Of each class there is kept which nodes have so many free GPUs of a bin, or of it and
better ones. What is taken or released changes that for a few nodes only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.free_nodes import members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.documents.arrays import Floats
    from optsched.pal.greedy.pal_rules import Penalties
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.places import Pick

    Gpus = tuple[int, ...]

MOST_BINS = 32
"""Of a class; with more of them arrays are quicker."""


class _Bins:
    """The free GPUs of each node by the bin of a class; as they were when it was last asked.

    Attributes
    ----------
    values
        Of each bin, ascending.
    stale
        Nodes whose free GPUs may have changed since.
    exactly, upto
        By bin and number, the set of nodes with so many free GPUs of the bin; and of it or better
        ones.
    """

    def __init__(self, scores: Floats, cluster: Cluster, free: Sequence[int]) -> None:
        values, ranks = np.unique(scores, return_inverse=True)
        self.values: list[float] = values.tolist()
        self.stale: set[int] = set(range(cluster.nodes))
        self._free = free
        none = [0] * (cluster.largest + 1)
        self.exactly = [none.copy() for _ in self.values]
        self.upto = [none.copy() for _ in self.values]
        self._total = [0] * len(self.values)
        self._inside: list[list[int]] = []  # by node and bin, which of its GPUs
        self._counts: list[tuple[int, ...]] = []  # by node, as they were
        self._known: list[dict[int, tuple[int, ...]]] = [{} for _ in cluster.size]
        for node, (first, size) in enumerate(zip(cluster.first, cluster.size, strict=True)):
            masks = [0] * len(self.values)
            for n, rank in enumerate(ranks[first : first + size].tolist()):
                masks[rank] |= 1 << n
            self._inside.append(masks)
            self._counts.append((0,) * len(masks))
            for groups in (*self.exactly, *self.upto):
                groups[0] |= 1 << node

    def look(self) -> None:
        """Bring everything up to date."""
        free, exactly, upto = self._free, self.exactly, self.upto
        for node in self.stale:
            left, before = free[node], self._counts[node]
            counts = self._known[node].get(left)
            if counts is None:
                counts = tuple([(left & mask).bit_count() for mask in self._inside[node]])
                self._known[node][left] = counts
            if counts == before:
                continue
            self._counts[node] = counts
            bit, old_sum, new_sum = 1 << node, 0, 0
            for rank, (old, new) in enumerate(zip(before, counts, strict=True)):
                old_sum, new_sum = old_sum + old, new_sum + new
                if old != new:
                    exactly[rank][old] ^= bit
                    exactly[rank][new] ^= bit
                    self._total[rank] += new - old
                if old_sum != new_sum:
                    upto[rank][old_sum] ^= bit
                    upto[rank][new_sum] ^= bit
        self.stale.clear()

    def least_within(self, size: int) -> int:
        """Return the least bin within which a node has so many free GPUs; -1 if there is none."""
        for rank, groups in enumerate(self.upto):
            if any(groups[size:]):
                return rank
        return -1

    def least_across(self, size: int) -> int:
        """Return the least bin within which there are so many free GPUs; -1 if there is none."""
        for rank, count in enumerate(self._total):
            size -= count
            if size <= 0:
                return rank
        return -1

    def fullest(self, rank: int) -> int:
        """Return the first of the nodes with the most free GPUs up to a bin."""
        group = next(group for group in reversed(self.upto[rank]) if group)
        return (group & -group).bit_length() - 1

    def up_to(self, node: int, rank: int) -> int:
        """Return which free GPUs of a node are up to a bin."""
        return self._free[node] & sum(self._inside[node][: rank + 1])

    def better(self, rank: int) -> Iterator[tuple[int, int]]:
        """Yield (node, which GPUs) of all that are free and better than a bin."""
        if rank:
            for node in members(sum(self.upto[rank - 1][1:])):
                yield node, self.up_to(node, rank - 1)

    def tied(self, rank: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield (node, which GPUs) of a bin; those first that have most nearly so many of it."""
        groups, free = self.exactly[rank], self._free
        for counts in _nearest(len(groups) - 1, size):
            for node in members(sum([groups[count] for count in counts])):
                yield node, free[node] & self._inside[node][rank]


@cache
def _nearest(most: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers from 1 on, those most nearly as large as a size first, equals together."""
    groups: dict[int, list[int]] = {}
    for count in range(1, most + 1):
        groups.setdefault(abs(count - size), []).append(count)
    return tuple(tuple(groups[distance]) for distance in sorted(groups))


class BinnedPlaces:
    """Free GPUs of a cluster, and the rules that look at their bins.

    Parameters
    ----------
    scores
        By class the value of the bin of each GPU, shape (GPUs,).
    penalties
        By model, one for each level; None for PM-First, which does not look at places.
    """

    def __init__(
        self, cluster: Cluster, scores: Mapping[str, Floats], penalties: Penalties | None
    ) -> None:
        self.first, self.node_of = cluster.first, cluster.node_of
        self.free = cluster.gpus
        self._cluster, self._scores, self._penalties = cluster, scores, penalties
        self._free = [(1 << size) - 1 for size in cluster.size]
        self._bins: dict[str, _Bins] = {}

    def take(self, gpus: Gpus) -> None:
        """Mark free GPUs as in use."""
        self._turn(gpus)
        self.free -= len(gpus)

    def release(self, gpus: Gpus) -> None:
        """Mark GPUs in use as free."""
        self._turn(gpus)
        self.free += len(gpus)

    def rule(self) -> Pick:
        """Return the rule for a round."""
        return self._pick

    def _turn(self, gpus: Gpus) -> None:
        free, node_of, first = self._free, self.node_of, self.first
        for gpu in gpus:
            node = node_of[gpu]
            free[node] ^= 1 << (gpu - first[node])
        nodes = [node_of[gpu] for gpu in gpus]
        for bins in self._bins.values():
            bins.stale.update(nodes)

    def _pick(self, gang: GangJob) -> Gpus | None:
        name, size = gang.application_class, gang.gpus
        bins = self._bins.get(name)
        if bins is None:
            bins = self._bins[name] = _Bins(self._scores[name], self._cluster, self._free)
        bins.look()
        across = bins.least_across(size)
        if across < 0:
            return None
        if self._penalties is not None and size > 1:
            within, penalty = bins.least_within(size), self._penalties[gang.model]
            values = bins.values
            if within >= 0 and penalty[0] * values[within] <= penalty[-1] * values[across]:
                node = bins.fullest(within)
                return tuple(self._numbers(node, bins.up_to(node, within))[:size])
        return self._fastest(bins, across, size)

    def _fastest(self, bins: _Bins, rank: int, size: int) -> Gpus:
        chosen: list[int] = []
        for node, which in bins.better(rank):
            chosen += self._numbers(node, which)
        for node, which in bins.tied(rank, size):
            if len(chosen) == size:
                break
            chosen += self._numbers(node, which)[: size - len(chosen)]
        return tuple(sorted(chosen))

    def _numbers(self, node: int, which: int) -> list[int]:
        first = self.first[node]
        return [first + n for n in members(which)]
