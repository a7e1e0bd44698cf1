"""The same number of GPUs for every job, of so many."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

from optsched.rollout.policies.fixed_capacity import SharedOfType, SharedOptions, SharedOut
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


class Equi(SharedOut):
    """An equal share for every job, but no more than it can use; what is left to the oldest.

    If there are fewer GPUs than jobs, the oldest get their least width each.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._asked: tuple[Sequence[int], list[Curve]] = ((), [])  # shares were chosen of these
        self._kinds: dict[int, Curve] = {}  # by identity: they are kept, so it stays theirs
        self._at: dict[int, tuple[dict[int, int], dict[int, int]]] = {}  # by share
        self._gets_share = not self.curves.types.are_several  # else a job may get less

    def goes_on(self, view: View, job: int) -> bool:
        """Tell whether a running job's next phase has the same widths."""
        if not self._gets_share:
            return False
        known = dict(zip(*self._asked, strict=True)).get(job)
        return known is not None and known.gpus == self.curve(view, job).gpus

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        if not jobs:
            return {}
        curves = self.curves_of(view, jobs)
        self._asked = (jobs, curves)
        which = list(map(id, curves))
        share = gpus // len(jobs)
        least, more = self._widths_at(share, which, curves)
        chosen, widths = jobs, list(map(least.__getitem__, which))
        if sum(widths) > gpus:
            chosen, curves, widths = _as_they_fit(jobs, curves, widths, gpus)
            which = list(map(id, curves))
        left = gpus - sum(widths)
        if left:
            _give(left, curves, widths, share + 1, list(map(more.__getitem__, which)))
        return dict(zip(chosen, widths, strict=True))

    def _widths_at(
        self, share: int, which: Sequence[int], curves: Sequence[Curve]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return by identity of a curve its width at a share, and what one GPU more adds to it."""
        least, more = known = self._at.setdefault(share, ({}, {}))
        if not least.keys() >= set(which):  # few differ
            for kind, curve in zip(which, curves, strict=True):
                self._kinds[kind] = curve
                least[kind] = curve.at_most(share) or curve.least
                more[kind] = curve.at_most(share + 1) - least[kind] if least[kind] <= share else 0
        return known


def _give(
    left: int, curves: Sequence[Curve], widths: list[int], most: int, gains: Sequence[int]
) -> None:
    """Give what is left to the oldest: to each what it gains by one more, if there is as much."""
    upto = list(accumulate(gains))
    whole = bisect_right(upto, left)
    widths[:whole] = map(add, widths[:whole], gains)
    left -= upto[whole - 1] if whole else 0
    for n in range(whole, len(curves)):
        if not left:
            break
        gained = gains[n]
        if gained and most > widths[n] + left:
            gained = curves[n].at_most(widths[n] + left) - widths[n]
        widths[n] += gained
        left -= gained


def _as_they_fit(
    jobs: Sequence[int], curves: Sequence[Curve], widths: Sequence[int], gpus: int
) -> tuple[list[int], list[Curve], list[int]]:
    """Return the jobs, with their curves and widths, that fit, one after another."""
    found: list[tuple[int, Curve, int]] = []
    for job, curve, width in zip(jobs, curves, widths, strict=True):
        if width <= gpus:
            found.append((job, curve, width))
            gpus -= width
    return [job for job, _, _ in found], [each for _, each, _ in found], [n for _, _, n in found]


@takes(SharedOfType)
def equi(scenario: Scenario, seed: int, options: SharedOfType) -> Equi:
    """Share the GPUs out equally."""
    return Equi("equi", scenario, options)
