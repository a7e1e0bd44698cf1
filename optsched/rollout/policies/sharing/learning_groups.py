"""The policy "eaco": the groups of least cost, at rates that are told, or learnt as jobs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from optsched.rollout.policies.sharing.exact_groups import ExactGrouping
from optsched.rollout.policies.sharing.learnt_rates import LearntRates
from optsched.rollout.policies.sharing.options import ExactOptions
from optsched.rollout.policies.sharing.watches import (
    ROUNDED,
    TRAINING_EPOCH_S,
    TrainingEpoch,
    Watches,
    done_by,
)
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]

NAME = "eaco"
SAME = 5 * ROUNDED
"""Rates that differ by less are the same, rounded twice."""


class LearningOptions(ExactOptions):
    """Where the rates of groups are from, besides."""

    rates: Literal["told", "learnt"] = Field(
        default="told",
        description="Of groups that share GPUs: told, by the scenario's interference; learnt, each "
        "group is watched for a training epoch; what was not seen is predicted, as eaco-trials "
        "does it, and watts are those of the power model.",
    )
    training_epoch_s: TrainingEpoch = TRAINING_EPOCH_S


class LearningGrouping(ExactGrouping):
    """The groups of least cost by what has been seen of them, and by predictions of all others.

    Every group is watched from the next epoch on, as under "eaco-trials", and what was seen is
    written into the history. If that says anything new, all jobs are parted anew: so a group that
    breaks a tolerance or a deadline ends when it has been seen, and its jobs pay for their moves.

    Attributes
    ----------
    history
        What was seen. Rates are noted rounded up, so that no group breaks a tolerance by rounding.
    known
        By GPUs the groups there that have been watched to the end.
    """

    changing = (*ExactGrouping.changing, "history", "watches", "known")
    every_epoch = True
    parts_late = True

    def __init__(self, name: str, scenario: Scenario, seed: int, options: LearningOptions) -> None:
        super().__init__(name, scenario, seed, options)
        fallback = scenario.sharing.interference.fallback
        if fallback != "utilisation":
            raise ValueError(
                f"policy '{name}': rates=learnt predicts rates of all groups, but the scenario's "
                f"sharing.interference.fallback, '{fallback}', forbids some"
            )
        self.history = LearntRates(scenario, "formula")
        self.watches: Watches[Gpus] = Watches(scenario, options.training_epoch_s)
        self.known: dict[Gpus, list[int]] = {}

    def fields(self, view: View) -> dict[str, object]:
        """Return the fields of instances that are the policy's own."""
        return super().fields(view) | {"interference": self.history.table}

    def has_news(self, view: View) -> bool:
        """Tell whether there are other jobs or nodes than before, or anything new was seen."""
        has_learnt = self._has_learnt(view)
        if has_learnt:
            self._frame = self._costs = None
            self.solver.forget()  # its prices are of other rates
        return super().has_news(view) or has_learnt

    def _has_learnt(self, view: View) -> bool:
        """Look at all groups; tell whether one of them was seen not to be as expected."""
        groups: dict[Gpus, list[int]] = {}
        for job in sorted(view.running.tolist()):
            if view.model(job) in view.scenario.models:
                groups.setdefault(view.gpus_of(job), []).append(job)
        groups = {gpus: jobs for gpus, jobs in groups.items() if len(jobs) > 1}
        for gpus in self.watches.keys - groups.keys():
            self.watches.end(gpus)
        for gpus in [gpus for gpus, jobs in self.known.items() if groups.get(gpus) != jobs]:
            del self.known[gpus]
        has_learnt = False
        done = done_by(view, [job for jobs in groups.values() for job in jobs])
        for gpus, jobs in groups.items():
            if gpus in self.known:
                continue
            if gpus not in self.watches.keys:
                self.watches.begin(view, gpus, jobs)
            elif seen := self.watches.seen(view, gpus, jobs, done):
                self.known[gpus] = jobs
                has_learnt |= self._note(view, seen)
        return has_learnt

    def _note(self, view: View, seen: dict[int, float]) -> bool:
        """Write the rates of a group into the history, if they are not there; tell whether."""
        types = [view.model(job) for job in seen]
        if self.history.has_seen(types):
            expected = self.history.of(tuple(sorted(types)))
            if all(abs(seen[job] - expected[view.model(job)]) < SAME for job in seen):
                return False
        for job, rate in seen.items():
            self.history.note(types, view.model(job), min(rate * (1 + ROUNDED), 1.0))
        return True


@takes(LearningOptions, draws=True)
def eaco(scenario: Scenario, seed: int, options: LearningOptions) -> ExactGrouping:
    """Part the jobs into groups at least cost."""
    kind = LearningGrouping if options.rates == "learnt" else ExactGrouping
    return kind(NAME, scenario, seed, options)
