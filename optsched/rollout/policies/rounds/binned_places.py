"""PM-First and PAL on sets of GPUs, where a class has the bins of their slowdowns.

The rules are `pal_rules.pm_first_rule` and `pal_rules.pal_rule` without caps; which GPUs they pick
is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from optsched.rollout.policies.rounds.bins import Bins
from optsched.rollout.policies.rounds.lanes import MOST_PARTS, Lanes, lowest
from optsched.rollout.policies.rounds.moving_places import Place
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.documents.arrays import Floats
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.moving_places import Choose


class BinnedPlaces:
    """The rules that look at the bins of GPUs.

    Parameters
    ----------
    scores
        By class the value of the bin of each GPU, shape (GPUs,).
    penalties
        By model, one for each level; None for PM-First, which does not look at places.

    Attributes
    ----------
    fullest
        Whether a gang takes the node with the most free GPUs within the bin, and a single GPU is
        one of those with the fewest.
    """

    fullest: ClassVar[bool] = True

    def __init__(
        self,
        cluster: Cluster,
        scores: Mapping[str, Floats],
        penalties: Mapping[str, tuple[float, ...]] | None,
    ) -> None:
        self.lanes = Lanes(cluster)
        self.everything = self.lanes.everything
        self.penalties = penalties
        self._bins = {name: Bins(row, self.lanes) for name, row in scores.items()}
        self._in_node: Remembered[tuple[Bins, int, int, int], Place | None] = Remembered(
            self.in_node, MOST_PARTS
        )
        self._alone: Remembered[tuple[Bins, int, int, int, bool], Place] = Remembered(
            self._one_gpu, MOST_PARTS
        )

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        return self.choose

    def choose(self, gang: GangJob, free: int, likely: int = 0, alike: int = 0) -> Place:
        """Return a place for a gang.

        Parameters
        ----------
        likely
            A guess at the bin within which its GPUs are.
        alike
            A guess at the least bin within which a node has enough of them.
        """
        bins, size, within = self._bins[gang.application_class], gang.gpus, 0
        if size == 1 and self.fullest:
            return self.alone(bins, free, likely)
        if self.penalties is not None:
            within = bins.least_within(free, size, alike)
            if within < len(bins.values) and self._is_near(gang, bins, within, free):
                node = self.best_node(bins, free, size, within)
                place = self._in_node[bins, size, node, self.lanes.mask(free, node)]
                assert place is not None, "the node has so many free GPUs"
                return place
        return self.across(bins, free, size, bins.least_across(free, size, likely), within)

    def again(self, gang: GangJob, last: Place, free: int, changed: int) -> Place:
        """Return what the rule chooses, which once chose a place among other GPUs.

        In nodes that have not changed, no place is better than the last one was. So one that is not
        worse, in a node that has, is the best of all.
        """
        bins, size, lanes = self._bins[gang.application_class], gang.gpus, self.lanes
        if size == 1 and self.fullest:  # as quick as to look at what has changed
            return self.alone(bins, free, last.why[0])
        changed &= last.looked_at
        if last.node < 0:
            if self.stays_across(bins, size, last, free, changed):
                return last
            return self.choose(gang, free, last.why[0], min(last.why[-1], len(bins.values) - 1))
        nodes = lanes.nodes(changed)
        best = None if nodes & lanes.guard[last.node] else last
        if best is not None and self.fullest and not free & changed:
            return best  # no node has gained a GPU, and none that was taken was in the best one
        around, least = free & lanes.whole(nodes) & bins.upto[last.why[0]], last.why
        for node in lanes.members(lanes.having(around, size)):
            place = self._in_node[bins, size, node, lanes.mask(free, node)]
            if place is not None and place.why <= least:
                best, least = place, place.why
        if best is None or not self._is_near(gang, bins, least[0], free):
            return self.choose(gang, free, last.why[0], last.why[0])
        return best

    def _is_near(self, gang: GangJob, bins: Bins, within: int, free: int) -> bool:
        """Tell whether GPUs of one node within a bin are better than those across nodes."""
        assert self.penalties is not None
        bar = bins.bar[within, self.penalties[gang.model]]
        return not bar or (free & bins.better[bar]).bit_count() < gang.gpus

    # --- one GPU ------------------------------------------------------------------------------

    def alone(self, bins: Bins, free: int, likely: int) -> Place:
        """Return the best GPU: of the node with the fewest of the least bin."""
        rank, tied = bins.best_of(free, likely)
        node, is_only = self.lanes.scarcest(tied)
        mask = self.lanes.mask(tied, node)
        return self._alone[bins, rank, node, mask & -mask, is_only]

    def _one_gpu(self, bins: Bins, rank: int, node: int, mask: int, is_only: bool) -> Place:
        """Return a GPU of a bin, of which it is the only free one of its node or not."""
        looked_at = bins.first_of[rank, node] if is_only else bins.upto[rank]
        return Place(*self.lanes.part[node, mask], looked_at, node, (rank,))

    # --- in a node ----------------------------------------------------------------------------

    def best_node(self, bins: Bins, free: int, size: int, within: int) -> int:
        """Return the node whose place is best, of those with enough free GPUs within a bin."""
        lanes = self.lanes
        return lanes.first(lanes.most(free & bins.upto[within]))

    def in_node(self, bins: Bins, size: int, node: int, free: int) -> Place | None:
        """Return the best place of a node, of which some GPUs are free; None if there is none.

        By the bin, the node with the most GPUs within it is best.
        """
        ranked = bins.ranked(node, free)
        if len(ranked) < size:
            return None
        within = ranked[size - 1][0]
        fast = sum(1 << n for rank, n in ranked if rank <= within)
        part = self.lanes.part[node, lowest(fast, size)]
        return Place(*part, bins.upto[within], node, (within, -fast.bit_count(), node))

    # --- across nodes -------------------------------------------------------------------------

    def across(self, bins: Bins, free: int, size: int, rank: int, within: int) -> Place:
        """Return the GPUs better than those of a bin, and of it those that most nearly match.

        Parameters
        ----------
        within
            A bin: if a node had so many free GPUs that are better, they would be chosen instead.
        """
        lanes, tied, taken = self.lanes, free & bins.inside[rank], free & bins.better[rank]
        gpus = lanes.numbers(taken) if taken else ()
        left = size - len(gpus)
        for distance, nodes in lanes.nearest(tied, size):
            for node in lanes.members(nodes):
                mask = lanes.mask(tied, node)
                if mask.bit_count() > left:
                    mask = lowest(mask, left)
                part, numbers = lanes.part[node, mask]
                taken |= part
                gpus += numbers
                left -= len(numbers)
                if not left:
                    looked_at = bins.upto[rank] if distance else bins.first_of[rank, node]
                    looked_at |= bins.better[within]
                    why = (rank, node, distance, within)
                    return Place(taken, tuple(sorted(gpus)), looked_at, why=why)
        raise AssertionError("there are as many free GPUs up to the bin")

    def stays_across(self, bins: Bins, size: int, place: Place, free: int, changed: int) -> bool:
        """Tell whether better GPUs are the same, and none of the bin comes before the last chosen.

        No node has become better than the best one was, which was too bad.
        """
        rank, last, most, within = place.why
        if changed & bins.better[rank]:
            return False
        lanes = self.lanes
        around = lanes.around(changed)
        if around & place.taken:
            return False
        around &= free
        for count, having in lanes.by_count(around & bins.inside[rank], max(1, size - most)):
            distance = abs(count - size)
            if distance < most or (distance == most and having & lanes.upto(last)):
                return False
            if count >= size + most:
                break
        return not (within and lanes.having(around & bins.better[within], size))
