"""PM-First and PAL on masks of nodes, where the slowdowns of GPUs are a few bins.

The rules are `pal_rules.pm_first_rule` and `pal_rules.pal_rule` without caps; which GPUs they pick
is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.bins import Bins
from optsched.rollout.policies.rounds.moving_places import MaskedPlaces, lowest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.documents.arrays import Floats
    from optsched.pal.greedy.pal_rules import Penalties
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import GangJob
    from optsched.rollout.policies.rounds.moving_places import Choose, Place

WITHIN, ACROSS = range(2)
"""How a place was chosen: the first number of `Place.why`."""


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
