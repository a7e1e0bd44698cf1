"""PAL over the levels of a cluster of nodes, on masks: `pal_rules.multilevel_rule` without caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.binned_places import ACROSS, WITHIN, BinnedPlaces
from optsched.rollout.policies.rounds.moving_places import lowest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.bins import Bins
    from optsched.rollout.policies.rounds.moving_places import Place


class MultilevelPlaces(BinnedPlaces):
    """Free GPUs of a cluster with two levels, nodes and the root."""

    def choose(self, gang: GangJob) -> Place | None:
        """Return a place for a gang; None if there is none."""
        bins, size = self.bins(gang), gang.gpus
        across = bins.least_across(size)
        if across < 0:
            return None
        within, nodes = bins.best_nodes(size)
        penalty, values = self.penalties(gang), bins.values
        if nodes and penalty[0] * values[within] <= penalty[1] * values[across]:
            masks = self.masks
            free, node = min((masks[node].bit_count(), node) for node in nodes)
            return self.place(
                ((node, bins.best(node, size)),), (WITHIN, within, node, free, across)
            )
        chosen, left = dict(bins.better(across)), size
        for mask in chosen.values():
            left -= mask.bit_count()
        for node, mask in bins.of(across):
            chosen[node] = chosen.get(node, 0) | lowest(mask, min(left, mask.bit_count()))
            left -= mask.bit_count()
            if left <= 0:
                return self.place(chosen.items(), (ACROSS, across, 0, node, within))
        raise AssertionError("there are as many free GPUs up to the bin")

    def _stays_within(
        self, bins: Bins, size: int, why: tuple[int, ...], changed: Mapping[int, int]
    ) -> bool:
        """Tell whether no node has become better or as good and fuller, and others no better."""
        _, within, best, fewest, across = why
        for node, change in changed.items():
            upto, now = bins.upto[node], self.masks[node]
            if node == best or (across and change & now & upto[across - 1]):
                return False
            if within and (now & upto[within - 1]).bit_count() >= size:
                return False
            is_as_good = (now & upto[within]).bit_count() >= size
            if is_as_good and (now.bit_count(), node) < (fewest, best):
                return False
        return True

    def _stays_across(
        self, bins: Bins, size: int, why: tuple[int, ...], changed: Mapping[int, int]
    ) -> bool:
        """Tell whether better GPUs are the same, and those of the bin up to the last chosen."""
        _, rank, _, last, within = why
        for node, change in changed.items():
            upto = bins.upto[node]
            if rank and change & upto[rank - 1]:
                return False
            if node <= last and change & bins.inside[node][rank]:
                return False
            if within and (self.masks[node] & upto[within - 1]).bit_count() >= size:
                return False
        return True
