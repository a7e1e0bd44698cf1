"""The same number of GPUs for every job, of so many."""

from __future__ import annotations

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
        share, kinds = gpus // len(jobs), dict(zip(which, curves, strict=True))  # few differ
        least = {kind: curve.at_most(share) or curve.least for kind, curve in kinds.items()}
        chosen, widths = jobs, list(map(least.__getitem__, which))
        if sum(widths) > gpus:
            chosen, curves, widths = _as_they_fit(jobs, curves, widths, gpus)
        left = gpus - sum(widths)
        more = {
            kind: curve.at_most(share + 1) - least[kind] if least[kind] <= share else 0
            for kind, curve in kinds.items()
        }
        for n, curve in enumerate(curves if left else ()):
            gained = more[id(curve)]
            if gained:
                if share + 1 > widths[n] + left:
                    gained = curve.at_most(widths[n] + left) - widths[n]
                widths[n] += gained
                left -= gained
                if not left:
                    break
        return dict(zip(chosen, widths, strict=True))


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
