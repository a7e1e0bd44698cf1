"""Gavel in rollouts: rounds in which jobs run where their share of time is furthest ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policies.gavel.ledger import TimeLedger
from optsched.rollout.policies.gavel.time_shares import (
    WaitingGangs,
    fair_shares,
    shares_of_least_makespan,
)
from optsched.rollout.policies.rounds.remembered import Remembered
from optsched.rollout.policy_options import takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

MOST_SPEEDS = 10_000
"""Of so many kinds of gangs it is remembered how fast they get on."""


class GavelOptions(SharedOptions):
    """What shares of time are to be best for."""

    objective: Literal["fairness", "makespan"] = Field(
        default="fairness",
        description="fairness: the least gain over an equal share; makespan: the last end.",
    )


class Gavel(SharedOut):
    """Gangs run in rounds, on one type each, in the order of priorities.

    A priority is the share of time that a job is to have on a type over what it has received there
    since shares were computed: when jobs come or go. Equal ones are ordered by what jobs should
    have received on a type until then and have not, then by the shares.

    Source: Narayanan et al., Gavel, OSDI 2020, sections 4 and 5.
    """

    every_epoch = True
    changing = (*SharedOut.changing, "_ledger", "_types", "_round_us", "_set_us", "_is_stale")

    def __init__(self, name: str, scenario: Scenario, options: GavelOptions) -> None:
        super().__init__(name, scenario, options)
        self.objective = options.objective
        self._ledger = TimeLedger(self.curves.types.names)
        self._types: dict[int, str] = {}  # of what jobs were given last
        self._round_us = self._set_us = 0
        self._is_stale = True
        self._all_run = False  # on the only type, so that no order matters
        self._speeds: Remembered[tuple[str, int, int], list[float]] = Remembered(
            self._speeds_of, MOST_SPEEDS
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; whether all jobs run is found anew."""
        super().restore(state)
        self._all_run = False

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs, which are the rounds; between them nothing changes."""
        self._ledger.count((view.now_us - self._round_us) / US)
        self._round_us = view.now_us
        if self.take_note(view):
            self._is_stale = True
        self._ledger.leave([*view.ended, *view.failed])
        if not view.is_epoch:
            return NOTHING
        rent = self.held.rent(view, self.gpus)
        if self._all_run and not self._is_stale:
            return NOTHING if rent is None else Decision(rent=rent)
        decision = self.share_out(view, min(self.gpus, self.available), rent)
        self._ledger.run_on(self._held_types())
        return decision

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return its gang for each job that runs in this round."""
        free = self._capacities(jobs, gpus)
        widths = [view.demand(job) for job in jobs]
        models, phases = map(view.model, jobs), map(view.phase, jobs)
        speeds = map(self._speeds.__getitem__, zip(models, phases, widths, strict=True))
        speed = np.array(list(speeds)).reshape(len(jobs), len(free))
        if self._is_stale:
            self._compute(view, jobs, WaitingGangs(np.array(widths, dtype=float), speed, free))
            self._is_stale = False
        given: dict[int, str] = {}
        names, left = self._ledger.types, free.tolist()
        for row, n in self._ledger.ranked(speed):
            job, width = jobs[row], widths[row]
            if job not in given and width <= left[n]:
                left[n] -= width
                given[job] = names[n]
        self._types = self._held_types() | given
        self._all_run = len(names) == 1 and len(given) == len(self.active)
        return {job: view.demand(job) for job in given}

    def changed(self, shares: Mapping[int, int]) -> dict[int, int]:
        """Return the shares of jobs that do not hold GPUs of the type that they get."""
        held, items = self._held_types(), shares.items()
        return {job: n for job, n in items if n and held.get(job) != self._types.get(job)}

    def offers(self, view: View, job: int, width: int) -> list[tuple[str, int]]:
        """Return the gang on the type that a job is to have."""
        return [(self._types[job], width)]

    # --- shares of time -----------------------------------------------------------------------

    def _compute(self, view: View, jobs: Sequence[int], gangs: WaitingGangs) -> None:
        """Compute shares anew."""
        since_s = (view.now_us - self._set_us) / US
        self._set_us = view.now_us
        if self.objective == "fairness":
            found = fair_shares(gangs)
        else:
            work = np.nan_to_num(view.remaining_us(jobs) / US, nan=3600.0)
            found = shares_of_least_makespan(gangs, work)
        self._ledger.renew(jobs, found, since_s)

    def _speeds_of(self, model: str, phase: int, width: int) -> list[float]:
        """Return how fast a job gets on with its gang on each type, against the reference."""
        types = self.curves.types
        runs_on = types.runs_on(model)
        return [
            1 / types.slowdown(model, phase, width, name) if name in runs_on else 0.0
            for name in types.names
        ]

    # --- what is held -------------------------------------------------------------------------

    def _held_types(self) -> dict[int, str]:
        """Return the type on which each job runs that holds GPUs of one."""
        held, names = self.held, self._ledger.types
        if len(names) == 1:
            return dict.fromkeys(held.of, names[0])
        types = {job: held.cluster.type_of(gpus) for job, gpus in held.of.items()}
        return {job: name for job, name in types.items() if name is not None}

    def _capacities(self, jobs: Sequence[int], gpus: int) -> Floats:
        """Return how many GPUs of each type there are for jobs: so many, if all are of one."""
        held = self.held
        if len(held.nodes_of) == 1:
            return np.array([gpus], dtype=float)
        free = {name: held.free_on(nodes & held.usable) for name, nodes in held.nodes_of.items()}
        types = self._held_types()
        for job in jobs:
            if job in types:
                free[types[job]] += held.width(job)
        return np.array([free[name] for name in self._ledger.types], dtype=float)


@takes(GavelOptions)
def gavel(scenario: Scenario, seed: int, options: GavelOptions) -> Gavel:
    """Run gangs in rounds, by shares of time on each type of GPUs."""
    return Gavel("gavel", scenario, options)
