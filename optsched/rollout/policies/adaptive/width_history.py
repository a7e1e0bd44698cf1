"""What jobs have run on so far, which bounds what they may be given next."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from optsched.instance import LARGEST
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.width_curves import Curve
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

Growth = Annotated[float, Field(gt=1, le=LARGEST)]
GROWTH = (
    "A job gets at most so many times the GPUs that it has run on so far, and its least width "
    "until it has run; null: any width at once."
)


class WidthHistory(Restorable):
    """The most GPUs that each job has run on, and how often it was started or resized since.

    A width counts once the job got on at it: when the overhead of the start or the change is over.

    Attributes
    ----------
    restarts
        By job, starts and changes of width beside the first start.
    """

    changing = ("most", "restarts", "last")

    def __init__(self, scenario: Scenario, growth: float | None) -> None:
        self.growth = growth
        self.most: dict[int, int] = {}
        self.restarts: dict[int, int] = {}
        self.last: dict[int, tuple[int, int]] = {}  # width, and when the overhead will be over
        costs = scenario.costs
        self._usual_us = round(max(costs.start_s, costs.restore_s, costs.rescale_s) * US)
        self._own_us = {
            name: round(model.rescale_s * US)
            for name, model in scenario.models.items()
            if model.rescale_s is not None
        }

    def note(self, view: View, widths: Mapping[int, int]) -> None:
        """Take note of widths that jobs get now which they did not hold."""
        now = view.now_us
        for job, width in widths.items():
            self._learn(job, now)
            self.last[job] = (width, now + self._own_us.get(view.model(job), self._usual_us))
            self.restarts[job] = self.restarts.get(job, -1) + 1

    def stop(self, view: View, jobs: Iterable[int]) -> None:
        """Take note of jobs that hold no GPUs any more."""
        for job in jobs:
            self._learn(job, view.now_us)
            self.last.pop(job, None)

    def forget(self, jobs: Iterable[int]) -> None:
        """Forget jobs that ended."""
        for job in jobs:
            for known in (self.most, self.restarts, self.last):
                known.pop(job, None)

    def limited(self, view: View, job: int, curve: Curve, *, is_soon: bool = False) -> Curve:
        """Return the widths of a curve that a job may be given now; the least is always one.

        With `is_soon`, those that it may be given if it goes on as it is.
        """
        count = self.count(view, job, curve, is_soon=is_soon)
        if count == len(curve.gpus):
            return curve
        return Curve(curve.gpus[:count], curve.speed[:count])

    def count(self, view: View, job: int, curve: Curve, *, is_soon: bool = False) -> int:
        """Return how many widths of a curve these are."""
        if self.growth is None:
            return len(curve.gpus)
        self._learn(job, view.now_us)
        most = self.most.get(job, 0)
        if is_soon and job in self.last:
            most = max(most, self.last[job][0])
        return bisect_right(curve.gpus, max(self.growth * most, curve.gpus[0]))

    def _learn(self, job: int, now: int) -> None:
        if job in self.last:
            width, ready = self.last[job]
            if now > ready and width > self.most.get(job, 0):
                self.most[job] = width
