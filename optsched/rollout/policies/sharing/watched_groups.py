"""EaCO's Algorithm 1 to its end: jobs are put together, watched for an epoch, and parted again.

Source: Haghshenas and Hashemi, EaCO, arXiv 2412.08294, algorithm 1.
"""

from __future__ import annotations

from functools import reduce
from heapq import heappop, heappush
from operator import or_
from typing import TYPE_CHECKING, ClassVar

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
    done_by,
)
from optsched.rollout.policy_needs import refuse_quotas
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
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
    keeps_gpus: ClassVar[bool] = True
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
        self._seen: tuple[bool, ...] | None = None  # what this was made of
        self._gpus: SharedGpus | None = None
        self._in_vain: dict[tuple[str, int], int] = {}  # by type and gang size: the version
        self._looks: list[tuple[int, int]] = []  # when at the latest, and at whom: a heap
        self._locks: dict[int, int] = {}  # by newcomer the GPUs of all that are watched with it
        self._has_deadlines: bool | None = None

    def decide(self, view: View) -> Decision:
        """End trials that are over, then place the jobs that wait, in the order of the queue."""
        decision = self._decided(view)
        self.every_epoch = bool(self.trials)  # while somebody is watched
        return decision

    def _decided(self, view: View) -> Decision:
        has_news = bool(view.arrived or view.ended or view.failed)
        ready = tuple(view.ready)
        if ready is not self._seen:  # the same tuple, mostly
            self._seen = ready
            has_news = has_news or self._ready != [*ready]
            self._ready[:] = ready
        if not (has_news or self.trials):
            return NOTHING
        gpus = self._shared(view)
        undone = self._undone(view, gpus)
        if not (has_news or undone):
            return NOTHING
        for job in undone:
            gpus.detach(job)
        gpus.lock(self._locked(gpus))
        place: dict[int, Gpus] = {}
        waiting = by_priority(view, view.pending.tolist())[: self.window]
        for job in by_priority(view, [*undone, *waiting]):
            found = self._place(view, gpus, job)
            if found is not None:
                place[job] = found
        return Decision(place=place, stop=tuple(job for job in undone if job not in place))

    def _shared(self, view: View) -> SharedGpus:
        """Return who is on which GPU; what is known from the last call is brought up to date."""
        jobs = view.arrived
        if self._gpus is None or not self.keeps_gpus:
            self._gpus = SharedGpus(view, self.rates, self.thresholds)
            self._in_vain.clear()
            self._looks = [(view.now_us, job) for job in sorted(self.trials.keys)]
            self._locks.clear()
            jobs = [*view.running.tolist(), *view.pending.tolist()]
        else:
            self._gpus.note(view)
        late = any(view.deadline_us(job) >= 0 for job in jobs)
        self._has_deadlines = self._has_deadlines or late
        return self._gpus

    # --- trials -------------------------------------------------------------------------------

    def _undone(self, view: View, gpus: SharedGpus) -> list[int]:
        """Look at the trials that may be over, and return the newcomers that have to leave."""
        due = gpus.stirred & self.trials.keys
        gpus.stirred.clear()
        while self._looks and self._looks[0][0] <= view.now_us:
            due.add(heappop(self._looks)[1])
        if not due:
            return []
        undone = []
        watched = {
            job: gpus.beside(gpus.of[job]) if job in gpus.of else []
            for job in self.trials.keys
            if job in due
        }
        done = done_by(view, {job for jobs in watched.values() for job in jobs})
        for job, jobs in watched.items():
            self._locks.pop(job, None)
            if len(jobs) < 2:
                self.trials.end(job)
            elif seen := self.trials.seen(view, job, jobs, done):
                self._learn(view, gpus, seen)
                if not self._holds(view, gpus, jobs):
                    undone.append(job)
            else:
                heappush(self._looks, (self.trials.earliest_us(view, job, jobs, done), job))
        return undone

    def _learn(self, view: View, gpus: SharedGpus, seen: dict[int, float]) -> None:
        """Write the rates of watched jobs into the history, for the GPU that holds each up most."""
        found = [(job, gpus.slowest(job)[1]) for job in seen]
        for job, gpu in found:
            types = gpus.types(gpu)
            if len(types) > 1:
                self.rates.note(types, view.model(job), seen[job])
        gpus.learn()

    # --- places -------------------------------------------------------------------------------

    def _place(self, view: View, gpus: SharedGpus, job: int) -> Gpus | None:
        """Return the GPUs of the first candidate where all rules should hold; the job is there."""
        kind = view.model(job), view.demand(job)
        if not self._has_deadlines and self._in_vain.get(kind) == gpus.version:
            return None
        for chosen in gpus.candidates(job):
            gpus.attach(job, chosen)
            watched = gpus.beside(chosen)
            if self._holds(view, gpus, watched):
                if len(watched) > 1:
                    self.trials.begin(view, job, watched)
                    heappush(self._looks, (view.now_us, job))
                    gpus.lock(gpus.locked | _held(gpus, watched))
                return chosen
            gpus.detach(job)
        self._in_vain[kind] = gpus.version
        return None

    def _locked(self, gpus: SharedGpus) -> int:
        """Return the GPUs of all jobs that trials watch, as a number.

        As nobody comes to any of them, trials have no job in common: who leaves for one of them
        changes none of the others.
        """
        for newcomer in self.trials.keys - self._locks.keys():
            watched = gpus.beside(gpus.of[newcomer]) if newcomer in gpus.of else []
            self._locks[newcomer] = _held(gpus, watched)
        return reduce(or_, self._locks.values(), 0)

    @staticmethod
    def _holds(view: View, gpus: SharedGpus, jobs: list[int]) -> bool:
        """Tell whether by the history no tolerance and no deadline of some jobs breaks.

        A job that would be late alone, too, and one of which nothing is known is not late by this.
        """
        for job in jobs:
            rate = gpus.slowest(job)[0]
            if gpus.breaks(view.model(job), rate):
                return False
            deadline = view.deadline_us(job)
            if deadline >= 0:
                left, time = float(view.remaining_us([job])[0]), deadline - view.now_us
                if left <= time < left / rate * (1 - ROUNDED):
                    return False
        return True


def _held(gpus: SharedGpus, jobs: list[int]) -> int:
    """Return the GPUs of some jobs, as a number."""
    return reduce(or_, map(gpus.bits.__getitem__, jobs), 0)


@takes(TrialOptions)
def eaco_trials(scenario: Scenario, seed: int, options: TrialOptions) -> WatchedGroups:
    """Put jobs together, watch them for an epoch, and part those that do not bear it."""
    return WatchedGroups(scenario, seed, options)
