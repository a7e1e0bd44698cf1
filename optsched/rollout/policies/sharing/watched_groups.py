"""EaCO's Algorithm 1 to its end: jobs are put together, watched for an epoch, and parted again.

Source: Haghshenas and Hashemi, EaCO, arXiv 2412.08294, algorithm 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from optsched.rollout.checkpoints.restorable import RestorablePolicy
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.sharing.learnt_rates import Beginning, LearntRates
from optsched.rollout.policies.sharing.options import ThresholdOptions
from optsched.rollout.policies.sharing.priorities import by_priority
from optsched.rollout.policies.sharing.shared_gpus import SharedGpus, Thresholds
from optsched.rollout.policies.sharing.watches import (
    ROUNDED,
    TRAINING_EPOCH_S,
    TrainingEpoch,
    Watches,
)
from optsched.rollout.policy_needs import refuse_quotas
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]

NAME = "eaco-trials"


class TrialOptions(ThresholdOptions):
    """What the history begins with, and how long jobs are watched."""

    begins_with: Beginning = Field(
        default="formula",
        description="What is known of groups before any was seen: formula, that of utilisations; "
        "told, the measured groups of the scenario.",
    )
    training_epoch_s: TrainingEpoch = TRAINING_EPOCH_S


class WatchedGroups(RestorablePolicy):
    """Jobs join the busiest GPUs that should bear it, and leave if these do not.

    A job is placed where the history predicts that no tolerance and no deadline breaks. Then all
    jobs that it meets are watched until each has done a training epoch; nobody else joins their
    GPUs meanwhile. What was seen is written into the history. If by it a rule does not hold, the
    newcomer leaves, for the next candidate or the queue, and pays what a move or a stop costs.
    Where GPUs differ or distance costs, what is seen is that, too.

    Attributes
    ----------
    trials
        The watches, by newcomer.
    """

    name = NAME
    changing = ("rates", "trials", "_ready", "every_epoch")

    def __init__(self, scenario: Scenario, seed: int, options: TrialOptions) -> None:
        if scenario.rented is not None:
            raise ValueError(f"policy '{NAME}': it does not rent nodes")
        refuse_quotas(NAME, scenario)
        self.rates = LearntRates(scenario, options.begins_with)
        self.thresholds = Thresholds(options.utilisation_threshold, options.memory_threshold)
        self.window = options.window
        self.trials: Watches[int] = Watches(scenario, options.training_epoch_s)
        self._ready: list[bool] = []

    def decide(self, view: View) -> Decision:
        """End trials that are over, then place the jobs that wait, in the order of the queue."""
        decision = self._decided(view)
        self.every_epoch = bool(self.trials)  # while somebody is watched
        return decision

    def _decided(self, view: View) -> Decision:
        ready, self._ready = self._ready, list(view.ready)
        has_news = bool(view.arrived or view.ended or view.failed) or ready != self._ready
        if not (has_news or self.trials):
            return NOTHING
        gpus = SharedGpus(view, self.rates, self.thresholds)
        undone = self._undone(view, gpus)
        if not (has_news or undone):
            return NOTHING
        for job in undone:
            gpus.detach(job)
        place: dict[int, Gpus] = {}
        waiting = by_priority(view, view.pending.tolist())[: self.window]
        for job in by_priority(view, [*undone, *waiting]):
            found = self._place(view, gpus, job)
            if found is not None:
                place[job] = found
        return Decision(place=place, stop=tuple(job for job in undone if job not in place))

    # --- trials -------------------------------------------------------------------------------

    def _undone(self, view: View, gpus: SharedGpus) -> list[int]:
        """Look at all trials, and return the newcomers that have to leave."""
        undone = []
        for job in list(self.trials.keys):
            watched = gpus.beside(gpus.of[job]) if job in gpus.of else []
            if len(watched) < 2:
                self.trials.end(job)
            elif seen := self.trials.seen(view, job, watched):
                self._learn(view, gpus, seen)
                if not self._holds(view, gpus, watched):
                    undone.append(job)
        return undone

    def _learn(self, view: View, gpus: SharedGpus, seen: dict[int, float]) -> None:
        """Write the rates of watched jobs into the history, for the GPU that holds each up most."""
        found = [(job, gpus.slowest(job)[1]) for job in seen]
        for job, gpu in found:
            types = gpus.types(gpu)
            if len(types) > 1:
                self.rates.note(types, view.model(job), seen[job])

    # --- places -------------------------------------------------------------------------------

    def _place(self, view: View, gpus: SharedGpus, job: int) -> Gpus | None:
        """Return the GPUs of the first candidate where all rules should hold; the job is there."""
        locked = {gpu for trial in self.trials.keys for gpu in self._locked(gpus, trial)}
        for chosen in gpus.candidates(job, locked):
            gpus.attach(job, chosen)
            watched = gpus.beside(chosen)
            if self._holds(view, gpus, watched):
                if len(watched) > 1:
                    self.trials.begin(view, job, watched)
                return chosen
            gpus.detach(job)
        return None

    @staticmethod
    def _locked(gpus: SharedGpus, newcomer: int) -> Iterable[int]:
        """Return the GPUs of all jobs that a trial watches."""
        if newcomer not in gpus.of:
            return ()
        return (gpu for job in gpus.beside(gpus.of[newcomer]) for gpu in gpus.of[job])

    @staticmethod
    def _holds(view: View, gpus: SharedGpus, jobs: list[int]) -> bool:
        """Tell whether by the history no tolerance and no deadline of some jobs breaks.

        A job that would be late alone, too, and one of which nothing is known is not late by this.
        """
        for job in jobs:
            rate, model = gpus.slowest(job)[0], view.scenario.models.get(view.model(job))
            most = None if model is None else model.max_slowdown
            if most is not None and rate * max(1.0, most) < 1 - ROUNDED:
                return False
            deadline = view.deadline_us(job)
            if deadline >= 0:
                left, time = float(view.remaining_us([job])[0]), deadline - view.now_us
                if left <= time < left / rate * (1 - ROUNDED):
                    return False
        return True


@takes(TrialOptions)
def eaco_trials(scenario: Scenario, seed: int, options: TrialOptions) -> WatchedGroups:
    """Put jobs together, watch them for an epoch, and part those that do not bear it."""
    return WatchedGroups(scenario, seed, options)
