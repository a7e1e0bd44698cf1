"""PM-First and PAL on masks of nodes, where the slowdowns of GPUs are a few bins.

The rules are `pal_rules.pm_first_rule` and `pal_rules.pal_rule` without caps; which GPUs they pick
is the same.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.free_nodes import members
from optsched.rollout.policies.rounds.moving_places import ChangedMasks, MaskedPlaces, lowest

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats
    from optsched.pal.greedy.pal_rules import Penalties
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.moving_places import Choose, Place

    Ranks = NDArray[np.int16]

MOST_BINS = 64
"""Of a class; with more of them arrays are quicker."""

MOST_KNOWN = 256
"""Masks of a node of which the bins are remembered."""

WITHIN, ACROSS = range(2)
"""How a place was chosen: the first number of `Place.why`."""


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


class BinnedPlaces(MaskedPlaces):
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
        super().__init__(cluster)
        self._cluster, self._scores, self._penalties = cluster, scores, penalties
        self._bins: dict[str, Bins] = {}

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        return self.choose

    def choose(self, gang: GangJob) -> Place | None:
        """Return a place for a gang; None if there is none."""
        bins, size = self.bins(gang), gang.gpus
        across, within = bins.least_across(size), 0
        if across < 0:
            return None
        if self._penalties is not None and size > 1:
            within, node, count = bins.fullest(size)
            penalty, values = self.penalties(gang), bins.values
            if node >= 0 and penalty[0] * values[within] <= penalty[-1] * values[across]:
                free = self.masks[node] & bins.upto[node][within]
                why = (WITHIN, within, node, count, across)
                return self.place(((node, lowest(free, size)),), why)
        return self._fastest(bins, across, size, within)

    def bins(self, gang: GangJob) -> Bins:
        """Return the bins of a gang's class, up to date."""
        name = gang.application_class
        bins = self._bins.get(name)
        if bins is None:
            bins = self._bins[name] = Bins(self._scores[name], self._cluster, self.masks)
        bins.look()
        return bins

    def penalties(self, gang: GangJob) -> Sequence[float]:
        """Return the penalties of a gang's model by level."""
        assert self._penalties is not None
        return self._penalties[gang.model]

    def _fastest(self, bins: Bins, rank: int, size: int, within: int) -> Place:
        chosen, left = dict(bins.better(rank)), size
        for mask in chosen.values():
            left -= mask.bit_count()
        for distance, node, mask in bins.tied(rank, size):
            count = mask.bit_count()
            chosen[node] = chosen.get(node, 0) | (mask if count <= left else lowest(mask, left))
            left -= count
            if left <= 0:
                return self.place(chosen.items(), (ACROSS, rank, distance, node, within))
        raise AssertionError("there are as many free GPUs up to the bin")

    # --- what would stay ----------------------------------------------------------------------

    def stays(self, gang: GangJob, place: Place, changed: Mapping[int, int]) -> bool:
        """Tell whether nothing has changed on which the choice of a place depended."""
        bins, why = self._bins[gang.application_class], place.why
        if why[0] == WITHIN:
            return self._stays_within(bins, gang.gpus, why, changed)
        return self._stays_across(bins, gang.gpus, why, changed)

    def _stays_within(
        self, bins: Bins, size: int, why: tuple[int, ...], changed: Mapping[int, int]
    ) -> bool:
        """Tell whether no node has become better, and GPUs across nodes no better bin.

        They were worse by the product with the penalty, and still are if there are no more of a
        better bin than theirs.
        """
        _, within, best, most, across = why
        for node, change in changed.items():
            upto, now = bins.upto[node], self.masks[node]
            if node == best:
                if change & upto[within]:
                    return False
                continue
            if across and change & now & upto[across - 1]:
                return False
            count = (now & upto[within]).bit_count()
            if count > most or (count == most and node < best):
                return False
            if within and (now & upto[within - 1]).bit_count() >= size:
                return False
        return True

    def _stays_across(
        self, bins: Bins, size: int, why: tuple[int, ...], changed: Mapping[int, int]
    ) -> bool:
        """Tell whether better GPUs are the same, and none of the bin comes before the last chosen.

        No node has become better than the best one was, which was too bad.
        """
        _, rank, most, last, within = why
        for node, change in changed.items():
            upto, tied, now = bins.upto[node], bins.inside[node][rank], self.masks[node]
            if rank and change & upto[rank - 1]:
                return False
            if within and (now & upto[within - 1]).bit_count() >= size:
                return False
            if change & tied:
                for mask in (now, now ^ change):
                    count = (mask & tied).bit_count()
                    distance = abs(count - size)
                    if count and (distance < most or (distance == most and node <= last)):
                        return False
        return True
