"""The widths of all curves that came up, one after the other: one search looks at many jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Integers
    from optsched.rollout.policies.width_curves import Curve


class WidthTable:
    """The widths of kinds of curves one after the other, each kind's from 0 on.

    The key of a width is kind x span + width, where the span is more than any width: keys ascend,
    and one search finds the largest width of each job within a limit.

    Attributes
    ----------
    curves
        By kind; kept, so that no later one gets an identity of theirs.
    widths
        Of all kinds.
    ends
        By kind, where its greatest width stands.
    is_unit
        Whether all kinds have every width up to their greatest.
    """

    def __init__(self) -> None:
        self.curves: list[Curve] = []
        self.widths = self._keys = np.zeros(0, dtype=np.int64)
        self.ends = np.zeros(0, dtype=np.int64)
        self.is_unit = True
        self._span = 1
        self._kinds: dict[int, int] = {}  # by the identity of curves

    def kind(self, curve: Curve) -> int:
        """Return the kind of a curve; a new one is taken note of."""
        kind = self._kinds.get(id(curve))
        if kind is None:
            kind = self._kinds[id(curve)] = len(self.curves)
            self.curves.append(curve)
            self._tabulate()
        return kind

    def kinds(self, curves: Sequence[Curve]) -> Integers:
        """Return the kinds of curves."""
        return np.array(list(map(self.kind, curves)), dtype=np.int64)

    def within(self, kinds: Integers, limits: Integers | int) -> Integers:
        """Return where the largest width of each kind stands that is within a limit."""
        keys = kinds * self._span + np.minimum(limits, self._span - 1)
        found: Integers = self._keys.searchsorted(keys, "right") - 1
        return found

    def _tabulate(self) -> None:
        """Put the widths of all kinds one after the other."""
        self._span = 1 + max(curve.gpus[-1] for curve in self.curves)
        lengths = [1 + len(curve.gpus) for curve in self.curves]
        self.widths = np.array([n for curve in self.curves for n in (0, *curve.gpus)])
        self.ends = np.cumsum(lengths) - 1
        self.is_unit = all(curve.gpus[-1] == len(curve.gpus) for curve in self.curves)
        self._keys = np.arange(len(lengths)).repeat(lengths) * self._span + self.widths
