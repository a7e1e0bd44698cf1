"""Jobs that share GPUs are watched until each has done a training epoch: at what rate each ran."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

from pydantic import Field

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policy_options import Positive
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, Mapping, Sequence

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
        self._is_never_faster = _is_never_faster(scenario)
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
        self.of[key] = view.now_us, not self._start_us, done_by(view, jobs)

    def end(self, key: Key) -> None:
        """Watch a company no longer."""
        del self.of[key]

    def earliest_us(
        self, view: View, key: Key, jobs: Sequence[int], done: Mapping[int, int]
    ) -> int:
        """Return the first time at which a watch can begin or be over, if the company stays.

        Parameters are those of `seen`, which was asked before.
        """
        since, is_watched, before = self.of[key]
        if not is_watched or list(jobs) != sorted(before):
            return since + self._start_us
        if not self._is_never_faster:
            return view.now_us
        return view.now_us + self._epoch_us - min(done[job] - was for job, was in before.items())

    def seen(
        self, view: View, key: Key, jobs: Sequence[int], done: Mapping[int, int]
    ) -> dict[int, float]:
        """Return the rates of a company, by job, once the watch is over; empty before.

        Parameters
        ----------
        jobs
            Who is there now, ascending.
        done
            What these have done, at least, as of `done_by`.
        """
        since, is_watched, before = self.of[key]
        if not is_watched or list(jobs) != sorted(before):
            if view.now_us - since >= self._start_us:
                self.of[key] = view.now_us, True, {job: done[job] for job in jobs}
            return {}
        worked = {job: done[job] - was for job, was in before.items()}
        if min(worked.values()) < self._epoch_us:
            return {}
        self.end(key)
        return {job: min(work / (view.now_us - since), 1.0) for job, work in worked.items()}


def done_by(view: View, jobs: Iterable[int]) -> dict[int, int]:
    """Return the work that each of some jobs has done, in microseconds."""
    chosen = list(jobs)
    return dict(zip(chosen, view.done_us(chosen).tolist(), strict=True))


def _is_never_faster(scenario: Scenario) -> bool:
    """Tell whether it is clear that no gang does a second of work in less than a second."""
    models = scenario.models.values()
    has_places = scenario.locality or scenario.spread is not None or scenario.profile is not None
    return not has_places and not any(
        model.locality or model.phases or model.gpu_speeds for model in models
    )
