"""The verifier of EaCO: groups that measured figures concern, filtered before they are priced.

A multiset of types is *touched* if it stands within a measured one. Groups without any touched pair
have the formula's figures. All others cost at least what the filter works out, whatever was
measured: see docs/obligations-eaco.md, section 5. What it lets through is priced exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.verify.equal_rate_groups import filter_data
from optsched.eaco.verify.rates import EqualRateEnergy
from optsched.eaco.verify.reduced_cost_filter import GroupFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import Nodes
    from optsched.eaco.verify.group_enumeration import GroupOptions, Option


class MeasuredGroups:
    """Touched groups of one gang size on some nodes.

    Parameters
    ----------
    among
        Numbers of the sets of equal jobs that fit alone.
    """

    def __init__(self, groups: GroupOptions, gang: int, nodes: Nodes, among: Sequence[int]) -> None:
        self._groups, self._gang, self._nodes = groups, gang, nodes
        self._sets = groups.measured_sets(nodes.gpu)
        data = filter_data(groups, gang, nodes, among)
        energy = EqualRateEnergy(groups.paces.formula, groups.figures, nodes)
        slower = self._sets.slowdown_share(energy)
        drawn = self._sets.watts_share(energy, nodes, groups.figures)
        self._order = data.order
        weights = [self._sets.weight(groups.equal[n].job.type) for n in self._order]
        lowered = data.figures._replace(
            slope=slower * data.figures.slope,
            partner=slower * data.figures.partner,
            context=drawn * data.figures.context,
            span=drawn * data.figures.span,
            weights=weights,
        )
        is_any = sum(sorted(weights)[-data.figures.most :]) >= 2 or self._has_copies(weights)
        self._filter = GroupFilter(lowered, groups.budget) if among and is_any else None

    def _has_copies(self, weights: Sequence[int]) -> bool:
        equal = [self._groups.equal[n] for n in self._order]
        return any(w and len(e.jobs) > 1 for w, e in zip(weights, equal, strict=True))

    def below(self, pays: Sequence[int], threshold: int) -> Iterator[Option]:
        """Yield all options that cost less than a threshold above what their jobs pay, and more."""
        if self._filter is None:
            return
        groups = self._groups
        for rows in self._filter.below([pays[n] for n in self._order], threshold):
            for at in rows.tolist():
                members = tuple(sorted([self._order[n] for n in at]))
                types = sorted([groups.equal[n].job.type for n in members])
                if self._sets.concern(types) and groups.keeps(members, self._nodes):
                    gpu = groups.figures.gpus[self._nodes.gpu]
                    yield from groups.on(members, self._gang, self._nodes.id, gpu)
