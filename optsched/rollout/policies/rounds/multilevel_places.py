"""PAL over the levels of a cluster of nodes, on sets: `pal_rules.multilevel_rule` without caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.binned_places import BinnedPlaces
from optsched.rollout.policies.rounds.lanes import lowest
from optsched.rollout.policies.rounds.moving_places import Place

if TYPE_CHECKING:
    from optsched.rollout.policies.rounds.bins import Bins


class MultilevelPlaces(BinnedPlaces):
    """Two levels, nodes and the root."""

    fullest = False

    def best_node(self, bins: Bins, free: int, size: int, within: int) -> int:
        """Return the node whose place is best, of those with enough free GPUs within a bin."""
        lanes = self.lanes
        nodes = lanes.having(free & bins.upto[within], size)
        return lanes.first(lanes.fewest(free & lanes.whole(nodes)))

    def in_node(self, bins: Bins, size: int, node: int, free: int) -> Place | None:
        """Return the best GPUs of a node; by the bin, the fewer others are free the better."""
        ranked = bins.ranked(node, free)
        if len(ranked) < size:
            return None
        within = ranked[size - 1][0]
        part = self.lanes.part[node, sum(1 << n for _, n in ranked[:size])]
        looked_at = bins.near[within, size] | bins.better[within]
        return Place(*part, looked_at, node, (within, len(ranked), node))

    def across(self, bins: Bins, free: int, size: int, rank: int, within: int) -> Place:
        """Return the GPUs better than those of a bin, and the first ones of it."""
        lanes, tied, taken = self.lanes, free & bins.inside[rank], free & bins.better[rank]
        left = size - taken.bit_count()
        for node in lanes.members(lanes.nodes(tied)):
            mask = lanes.mask(tied, node)
            mask = lowest(mask, min(left, mask.bit_count()))
            taken |= lanes.part[node, mask][0]
            left -= mask.bit_count()
            if not left:
                looked_at = bins.first_of[rank, node] | bins.better[within]
                return Place(taken, lanes.numbers(taken), looked_at, why=(rank, node, within))
        raise AssertionError("there are as many free GPUs up to the bin")

    def stays_across(self, bins: Bins, size: int, place: Place, free: int, changed: int) -> bool:
        """Tell whether better GPUs are the same, and those of the bin up to the last chosen."""
        rank, last, within = place.why
        if changed & bins.first_of[rank, last]:
            return False
        around = free & self.lanes.whole(self.lanes.nodes(changed))
        return not self.lanes.having(around & bins.better[within], size)
