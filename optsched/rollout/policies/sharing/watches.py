"""Jobs that share GPUs are watched until each has done a training epoch: at what rate each ran."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import Field

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policy_options import Positive
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import KeysView, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Watch = tuple[int, bool, dict[int, int]]

ROUNDED = 1e-6
"""Rates are seen with this relative error at most: the engine rounds them."""
TRAINING_EPOCH_S = 1440.0
TrainingEpoch = Annotated[
    Positive,
    Field(
        description="A training epoch of any job alone, of which scenarios know nothing (0.39 to "
        "0.40 h in the paper's tables): so much work of each job is watched."
    ),
]


Key = TypeVar("Key", bound=Hashable)


class Watches(Restorable, Generic[Key]):
    """Watches of several companies of jobs.

    What a newcomer's start takes is waited for, and who leaves or comes makes it a new company,
    which is watched from then on.

    Parameters
    ----------
    epoch_s
        A training epoch of any job alone: so much work of each is watched.

    Attributes
    ----------
    of
        By key since when, whether the company is watched (else somebody is starting), and what each
        of its jobs had done then, in microseconds of work.
    """

    changing = ("of",)

    def __init__(self, scenario: Scenario, epoch_s: float) -> None:
        costs = scenario.costs
        self._start_us = round((costs.start_s + costs.restore_s + costs.checkpoint_s) * US)
        self._epoch_us = round(epoch_s * US)
        self.of: dict[Key, Watch] = {}

    def __len__(self) -> int:
        """Return how many companies are watched."""
        return len(self.of)

    @property
    def keys(self) -> KeysView[Key]:
        """What is watched."""
        return self.of.keys()

    def begin(self, view: View, key: Key, jobs: Sequence[int]) -> None:
        """Watch jobs that come together now; if a start takes time, once it is over."""
        self.of[key] = view.now_us, not self._start_us, _done(view, jobs)

    def end(self, key: Key) -> None:
        """Watch a company no longer."""
        del self.of[key]

    def seen(self, view: View, key: Key, jobs: Sequence[int]) -> dict[int, float]:
        """Return the rates of a company, by job, once the watch is over; empty before.

        Parameters
        ----------
        jobs
            Who is there now, ascending.
        """
        since, is_watched, before = self.of[key]
        if not is_watched or list(jobs) != sorted(before):
            if view.now_us - since >= self._start_us:
                self.of[key] = view.now_us, True, _done(view, jobs)
            return {}
        now = _done(view, jobs)
        worked = {job: now[job] - before[job] for job in before}
        if min(worked.values()) < self._epoch_us:
            return {}
        self.end(key)
        return {job: min(work / (view.now_us - since), 1.0) for job, work in worked.items()}


def _done(view: View, jobs: Sequence[int]) -> dict[int, int]:
    chosen = list(jobs)
    return dict(zip(chosen, view.done_us(chosen).tolist(), strict=True))
