"""Rates of groups of which more is measured as time goes on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from optsched.eaco.interference import GroupRates
from optsched.eaco.multisets import is_within

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from optsched.eaco.interference import Interference, Key, MeasuredGroup


class GrowingRates(GroupRates):
    """As `GroupRates`, but groups can be measured later, too, and again.

    What was found of other groups stays known, unless it may follow from what was measured now.

    Examples
    --------
    >>> from optsched.eaco.interference import Interference, MeasuredGroup
    >>> rates = GrowingRates(Interference(), "V100", {"a": 0.4, "b": 0.2})
    >>> rates.of("ab").origin
    'utilisation'
    >>> sorted(rates.measure(MeasuredGroup(types=("a", "b"), rates=(0.5, 0.75))))
    [('a', 'b')]
    >>> rates.of("ab").by_type
    {'a': Fraction(1, 2), 'b': Fraction(3, 4)}
    """

    def __init__(self, table: Interference, gpu: str, utilisation: Mapping[str, float]) -> None:
        super().__init__(table, gpu, utilisation)
        self._by_formula: dict[Key, dict[str, Fraction]] = {}

    def measure(self, group: MeasuredGroup) -> set[Key]:
        """Let a group be measured, of two jobs or more; return the groups with other rates.

        Those that may have others are among them, and the group itself.
        """
        key = tuple(sorted(group.types))
        self.measured[key] = group
        self._near.update(itertools.combinations(key, 2))
        changed = {key}
        for larger in sorted(self.measured, key=len):
            if is_within(key, larger):
                before, self._known[larger] = self._known.get(larger), self._repaired(larger)
                if self._known[larger] != before:
                    changed.add(larger)
        # Fallbacks look at groups around a group and around parts of it, all of two jobs or more.
        pairs = {pair for each in changed for pair in itertools.combinations(each, 2)}
        for other in self._known.keys() - self.measured.keys():
            if not pairs.isdisjoint(itertools.combinations(other, 2)):
                del self._known[other]
                changed.add(other)
        return changed

    def _formula(self, key: Key) -> dict[str, Fraction]:
        if key not in self._by_formula:
            self._by_formula[key] = super()._formula(key)
        return self._by_formula[key]
