"""The least work left first, on so many GPUs: of jobs that wait, nothing is asked twice."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from pydantic import Field

from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policy_options import NonNegative, takes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario


class SrptOptions(SharedOptions):
    """What a job can use."""

    knee: NonNegative = Field(
        default=0.0,
        description="A job uses no width at which a further GPU adds less to its speedup.",
    )


class Srpt(SharedOut):
    """The job with the least work left gets all that it can use, then the next.

    What a job has left stays the same while it waits, unless estimates learn from jobs that end:
    those that wait are kept in order, and only those that run are asked again.
    """

    def __init__(self, name: str, scenario: Scenario, options: SrptOptions) -> None:
        super().__init__(name, scenario, options)
        self.knee = options.knee
        self._learns = scenario.estimates.kind == "history"
        self._left: dict[int, float] = {}  # of jobs that wait, as they were asked
        self._in_order: list[tuple[float, int]] = []
        self._most_of: dict[int, tuple[Curve, int]] = {}  # by the curve's identity

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        for job in (*view.ended, *view.failed):  # who failed may be back already, with more to do
            self._forget(job)
        return super().take_note(view)

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        shares: dict[int, int] = {}
        curve_of, most_of = self._only, self._most_of
        for _, job in self._ranked(view, jobs):
            if not gpus:
                break
            curve = curve_of.get(job) or self.curve(view, job)
            known = most_of.get(id(curve))
            width = self._most(curve) if known is None else known[1]
            if width > gpus:
                width = curve.at_most(gpus)
            if width:
                shares[job] = width
                gpus -= width
        return shares

    def _ranked(self, view: View, jobs: Sequence[int]) -> Iterable[tuple[float, int]]:
        """Return the work that jobs have left, and jobs, in this order."""
        held, known = self.held.of, self._left
        if self._learns:
            return sorted(zip(self.remaining_s(view, jobs), jobs, strict=True))
        for job in known.keys() & held.keys():
            self._forget(job)
        asked = [job for job in jobs if job not in known]
        running = []
        for left, job in zip(self.remaining_s(view, asked), asked, strict=True):
            if job in held:
                running.append((left, job))
            else:
                known[job] = left
                insort(self._in_order, (left, job))
        running.sort()
        running += self._in_order
        running.sort()  # two runs in order, which take one comparison a job
        return running

    def _forget(self, job: int) -> None:
        left = self._left.pop(job, None)
        if left is not None:
            del self._in_order[bisect_left(self._in_order, (left, job))]

    def _most(self, curve: Curve) -> int:
        known = self._most_of[id(curve)] = (curve, self._knee_of(curve))  # which is kept: so its id
        return known[1]

    def _knee_of(self, curve: Curve) -> int:
        most = curve.least
        for n in range(1, len(curve.gpus)):
            added = curve.speed[n] - curve.speed[n - 1]
            if added < self.knee * (curve.gpus[n] - curve.gpus[n - 1]):
                break
            most = curve.gpus[n]
        return most


@takes(SrptOptions)
def srpt_k(scenario: Scenario, seed: int, options: SrptOptions) -> Srpt:
    """Give the job with the least work left all that it can use."""
    return Srpt("srpt-k", scenario, options)
