"""The same number of GPUs for every job, of so many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.capacity.shared_by_kind import SharedByKind
from optsched.rollout.policies.fixed_capacity import SharedOfType, SharedOptions
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.capacity.shared_by_kind import ActiveRows
    from optsched.rollout.scenario import Scenario


class Equi(SharedByKind):
    """An equal share for every job, but no more than it can use; what is left to the oldest.

    If there are fewer GPUs than jobs, the oldest get their least width each.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._at: dict[int, tuple[Integers, Integers]] = {}  # by share
        self._gets_share = not self.curves.types.are_several  # else a job may get less

    def goes_on(self, view: View, job: int) -> bool:
        """Tell whether a running job's next phase has the same widths."""
        if not self._gets_share:
            return False
        known = self.curve_known(job)
        return known is not None and known.gpus == self.curve(view, job).gpus

    def assigned(self, view: View, rows: ActiveRows, gpus: int) -> tuple[Integers, Integers]:
        """Return rows in the order of submission, and the widths of their jobs."""
        order, kinds = np.arange(len(rows.jobs)), rows.kinds
        if not len(order):
            return order, order
        share = gpus // len(order)
        least, more = self._widths_at(share)
        widths, gains = least[kinds], more[kinds]
        left = gpus - int(widths.sum())
        if left < 0:
            fit = _that_fit(widths.tolist(), gpus)
            widths, gains = widths * fit, gains * fit
            left = gpus - int(widths.sum())
        if left:
            self._give(left, kinds, widths, share + 1, gains)
        return order, widths

    def _widths_at(self, share: int) -> tuple[Integers, Integers]:
        """Return by kind of curve its width at a share, and what one GPU more adds to it."""
        known, table = self._at.get(share), self.table
        if known is None or len(known[0]) < len(table.curves):
            kinds = np.arange(len(table.curves))
            at, wider = (table.widths[table.within(kinds, n)] for n in (share, share + 1))
            least = np.array([curve.least for curve in table.curves])
            known = np.where(at, at, least), np.where(at, wider - at, 0)
            self._at[share] = known
        return known

    def _give(
        self, left: int, kinds: Integers, widths: Integers, most: int, gains: Integers
    ) -> None:
        """Give what is left to the oldest: to each what it gains by one more, as far as it goes."""
        upto = gains.cumsum()
        whole = int(upto.searchsorted(left, "right"))
        widths[:whole] += gains[:whole]
        left -= int(upto[whole - 1]) if whole else 0
        for n, gained in enumerate(gains[whole:].tolist(), whole):
            if not left:
                break
            width = int(widths[n])
            if gained and most > width + left:
                gained = self.table.curves[kinds[n]].at_most(width + left) - width
            widths[n] += gained
            left -= gained


def _that_fit(widths: Sequence[int], gpus: int) -> list[bool]:
    """Tell of widths, one after another, which ones fit into what those before have left."""
    fit = []
    for width in widths:
        fit.append(width <= gpus)
        gpus -= width if width <= gpus else 0
    return fit


@takes(SharedOfType)
def equi(scenario: Scenario, seed: int, options: SharedOfType) -> Equi:
    """Share the GPUs out equally."""
    return Equi("equi", scenario, options)
