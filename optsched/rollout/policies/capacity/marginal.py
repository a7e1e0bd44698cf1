"""GPUs step by step to the largest gain, of so many."""

from __future__ import annotations

from functools import partial
from operator import attrgetter, getitem
from typing import TYPE_CHECKING

from optsched.rollout.policies.capacity.near_cut import NearCut
from optsched.rollout.policies.capacity.steepest_steps import Steepest
from optsched.rollout.policies.capacity.unit_steps import may_be_followed, unit_steps
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.decision import Decision, Rent
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.capacity.unit_steps import UnitSteps
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


GPUS = attrgetter("gpus")


class Marginal(SharedOut):
    """GPUs step by step to the job whose remaining time drops most for each of them.

    First every job gets its least width, the oldest first.

    Source: Optimus, EuroSys'18, resource allocation, without parameter servers.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._steepest = Steepest()
        self._is_followed = may_be_followed(scenario, self.curves)
        self._near: NearCut | None = None  # of the active jobs, where they are followed
        self._steps: dict[tuple[str, int], UnitSteps] = {}

    def share_out(self, view: View, gpus: int, rent: Rent) -> Decision:
        """Give every active job its width: all are looked at if a look at few is not enough."""
        near = self._followed(view) if self._is_followed else None
        if near is None:
            return super().share_out(view, gpus, rent)
        if self.held.stuck or near.least > gpus:
            near.upset()
        changes = near.changes(view.now_us, gpus, partial(self.work_left, view))
        if changes is None:
            return super().share_out(view, gpus, rent)
        decision = self.placed(view, changes, self.held.of.keys() & changes, rent)
        if decision.stop or decision.place.keys() != changes.keys():
            near.upset()
        return decision

    def _followed(self, view: View) -> NearCut:
        """Return what is known of the active jobs, with those that came and without those gone."""
        near = self._near
        if near is None:
            near, came = NearCut(), list(self.active)
        else:
            came = list(view.arrived)
            for job in {*view.ended, *view.failed}.intersection(near.jobs):
                near.remove(job)
        for job in came:
            key = view.model(job), view.demand(job)
            if key not in self._steps:
                self._steps[key] = unit_steps(self.curves, *key)
            near.add(job, self._steps[key])
        self._near = near
        return near

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        chosen, curves = list(jobs), self.curves_of(view, jobs)
        least = sum([gpus[0] for gpus in map(GPUS, curves)])
        if least > gpus:
            chosen, curves, least = _that_fit(chosen, curves, gpus)
        gpus -= least
        work = self.remaining_s(view, chosen) if gpus else []
        steps = self._steepest.steps(curves, work, gpus) if gpus else [0] * len(chosen)
        if self._near is not None and gpus and chosen == self._near.jobs:
            self._near.settle(work, steps)
        return dict(zip(chosen, map(getitem, map(GPUS, curves), steps), strict=True))


def _that_fit(
    jobs: Sequence[int], curves: Sequence[Curve], gpus: int
) -> tuple[list[int], list[Curve], int]:
    """Return the jobs, with their curves, that fit at least widths, and what these take."""
    left, chosen, kept = gpus, [], []
    for job, curve in zip(jobs, curves, strict=True):
        if curve.least <= left:
            left -= curve.least
            chosen.append(job)
            kept.append(curve)
    return chosen, kept, gpus - left


# --- policies ---------------------------------------------------------------------------------


@takes(SharedOptions)
def marginal_greedy(scenario: Scenario, seed: int, options: SharedOptions) -> Marginal:
    """Give GPUs to the largest drop of a job's remaining time."""
    return Marginal("marginal-greedy", scenario, options)
