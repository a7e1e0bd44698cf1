"""PM-First and PAL on sets of GPUs, where a class has the bins of their slowdowns.

The rules are `pal_rules.pm_first_rule` and `pal_rules.pal_rule` without caps; which GPUs they pick
is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.bins import Bins
from optsched.rollout.policies.rounds.lanes import MOST_PARTS, Lanes, lowest
from optsched.rollout.policies.rounds.moving_places import Place
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.documents.arrays import Floats
    from optsched.pal.greedy.pal_rules import Penalties
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
    """

    def __init__(
        self, cluster: Cluster, scores: Mapping[str, Floats], penalties: Penalties | None
    ) -> None:
        self.lanes = Lanes(cluster)
        self.everything = self.lanes.everything
        self.penalties = penalties
        self._bins = {name: Bins(row, self.lanes) for name, row in scores.items()}
        self._in_node: Remembered[tuple[Bins, int, int, int], Place | None] = Remembered(
            self.in_node, MOST_PARTS
        )
        self._changed, self._nodes = 0, list[int]()  # in which there are changed GPUs

    def begin(self) -> Choose:
        """Begin a round, and return the rule."""
        return self.choose

    def choose(self, gang: GangJob, free: int) -> Place:
        """Return a place for a gang."""
        bins, size = self._bins[gang.application_class], gang.gpus
        across = bins.least_across(free, size)
        if size == 1:
            within = across
        elif self.penalties is None:
            return self.across(bins, free, size, across, 0)
        else:
            within = bins.least_within(free, size, across)
            if not self._is_better(gang, bins, within, across):
                return self.across(bins, free, size, across, within)
        node = self.best_node(bins, free, size, within)
        place = self._in_node[bins, size, node, self.lanes.mask(free, node)]
        assert place is not None, "the node has so many free GPUs"
        return place

    def again(self, gang: GangJob, last: Place, free: int, changed: int) -> Place:
        """Return what the rule chooses, which once chose a place among other GPUs.

        In nodes that have not changed, no place is better than the last one was. So one that is not
        worse, in a node that has, is the best of all.
        """
        bins, size = self._bins[gang.application_class], gang.gpus
        if last.node < 0:
            stays = self.stays_across(bins, size, last, free, changed & last.looked_at)
            return last if stays else self.choose(gang, free)
        if changed != self._changed:
            lanes = self.lanes
            self._changed, self._nodes = changed, list(lanes.members(lanes.nodes(changed)))
        best = None if last.node in self._nodes else last
        least, in_node, mask_of = last.why, self._in_node, self.lanes.mask
        for node in self._nodes:
            place = in_node[bins, size, node, mask_of(free, node)]
            if place is not None and place.why <= least:
                best, least = place, place.why
        if best is not None and size > 1 and free & changed & bins.better[last.why[0]]:
            across = bins.least_across(free, size)  # has become better, too
            best = best if self._is_better(gang, bins, least[0], across) else None
        return self.choose(gang, free) if best is None else best

    def _is_better(self, gang: GangJob, bins: Bins, within: int, across: int) -> bool:
        """Tell whether GPUs of one node are better than those across nodes."""
        assert self.penalties is not None
        penalty, values = self.penalties[gang.model], bins.values
        return within < len(values) and penalty[0] * values[within] <= penalty[-1] * values[across]

    # --- in a node ----------------------------------------------------------------------------

    def best_node(self, bins: Bins, free: int, size: int, within: int) -> int:
        """Return the node whose place is best, of those with enough free GPUs within a bin."""
        lanes = self.lanes
        if size == 1:
            _, nodes = next(lanes.by_count(free & bins.inside[within]))
        else:
            *_, (_, nodes) = lanes.by_count(free & bins.upto[within], size)
        return lanes.first(nodes)

    def in_node(self, bins: Bins, size: int, node: int, free: int) -> Place | None:
        """Return the best place of a node, of which some GPUs are free; None if there is none.

        By the bin, a single GPU is the better the fewer of the bin are free, and for a gang the
        node with the most GPUs within the bin is best.
        """
        ranked = bins.ranked(node, free)
        if len(ranked) < size:
            return None
        within = ranked[size - 1][0]
        fast = sum(1 << n for rank, n in ranked if rank <= within)
        count = fast.bit_count()
        looked_at = bins.first_of[within, node] if size == count == 1 else bins.upto[within]
        part = self.lanes.part[node, lowest(fast, size)]
        return Place(*part, looked_at, node, (within, count if size == 1 else -count, node))

    # --- across nodes -------------------------------------------------------------------------

    def across(self, bins: Bins, free: int, size: int, rank: int, within: int) -> Place:
        """Return the GPUs better than those of a bin, and of it those that most nearly match.

        Parameters
        ----------
        within
            A bin: if a node had so many free GPUs that are better, they would be chosen instead.
        """
        lanes, tied, taken = self.lanes, free & bins.inside[rank], free & bins.better[rank]
        left = size - taken.bit_count()
        for distance, nodes in self._nearest(tied, size):
            for node in lanes.members(nodes):
                mask = lanes.mask(tied, node)
                mask = lowest(mask, min(left, mask.bit_count()))
                taken |= lanes.part[node, mask][0]
                left -= mask.bit_count()
                if not left:
                    looked_at = bins.upto[rank] if distance else bins.first_of[rank, node]
                    looked_at |= bins.better[within]
                    why = (rank, node, distance, within)
                    return Place(taken, lanes.numbers(taken), looked_at, why=why)
        raise AssertionError("there are as many free GPUs up to the bin")

    def _nearest(self, tied: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield (distance, nodes) of a set, those first that have most nearly so many of it."""
        at_distance: dict[int, int] = {}
        for count, nodes in self.lanes.by_count(tied):
            distance = abs(count - size)
            at_distance[distance] = at_distance.get(distance, 0) | nodes
        yield from sorted(at_distance.items())

    def stays_across(self, bins: Bins, size: int, place: Place, free: int, changed: int) -> bool:
        """Tell whether better GPUs are the same, and none of the bin comes before the last chosen.

        No node has become better than the best one was, which was too bad.
        """
        rank, last, most, within = place.why
        lanes, nodes = self.lanes, self.lanes.nodes(changed)
        if changed & bins.better[rank] or nodes & lanes.nodes(place.taken):
            return False
        around = free & lanes.whole(nodes)
        for count, having in lanes.by_count(around & bins.inside[rank]):
            distance = abs(count - size)
            if distance < most or (distance == most and having & lanes.upto(last)):
                return False
        return not (within and lanes.with_at_least(around & bins.better[within], size))
