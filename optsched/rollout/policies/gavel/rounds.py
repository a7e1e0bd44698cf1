"""Gavel in rollouts: rounds in which jobs run where their share of time is furthest ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policies.gavel.time_shares import (
    WaitingGangs,
    fair_shares,
    shares_of_least_makespan,
)
from optsched.rollout.policy_options import takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


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
    changing = (
        *SharedOut.changing, "_types", "_shares", "_received_s", "_owed_s", "_round_us", "_set_us",
        "_is_stale",
    )  # fmt: skip

    def __init__(self, name: str, scenario: Scenario, options: GavelOptions) -> None:
        super().__init__(name, scenario, options)
        self.objective = options.objective
        self._types: dict[int, str] = {}  # of what jobs were given last
        self._shares: dict[int, list[float]] = {}  # by job and type
        self._received_s: dict[int, list[float]] = {}  # since shares were computed
        self._owed_s: dict[int, list[float]] = {}  # before
        self._round_us = self._set_us = 0
        self._is_stale = True

    def decide(self, view: View) -> Decision:
        """Share out the GPUs at epochs, which are the rounds; between them nothing changes."""
        self._count(view)
        if self.take_note(view):
            self._is_stale = True
        if not view.is_epoch:
            return NOTHING
        rent = self.held.rent(view, self.gpus)
        return self.share_out(view, min(self.gpus, self.available), rent)

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return its gang for each job that runs in this round."""
        free = self._capacities(jobs, gpus)
        if self._is_stale:
            self._compute(view, jobs, free)
            self._is_stale = False
        given: dict[int, str] = {}
        for job, gpu_type in self._in_order(view, jobs):
            if job not in given and view.demand(job) <= free[gpu_type]:
                free[gpu_type] -= view.demand(job)
                given[job] = gpu_type
        held = {job: name for job in self.held.of if (name := self._holds(job)) is not None}
        self._types = held | given
        return {job: view.demand(job) for job in given}

    def changed(self, shares: Mapping[int, int]) -> dict[int, int]:
        """Return the shares of jobs that do not hold GPUs of the type that they get."""
        items = shares.items()
        return {job: n for job, n in items if n and self._holds(job) != self._types.get(job)}

    def offers(self, view: View, job: int, width: int) -> list[tuple[str, int]]:
        """Return the gang on the type that a job is to have."""
        return [(self._types[job], width)]

    # --- shares of time -----------------------------------------------------------------------

    def _compute(self, view: View, jobs: Sequence[int], free: dict[str, int]) -> None:
        """Compute shares anew; what jobs have not received of the old ones is owed to them."""
        names, since_s = self.curves.types.names, (view.now_us - self._set_us) / US
        self._set_us = view.now_us
        none = [0.0] * len(names)
        self._owed_s = {
            job: [
                owed + share * since_s - received
                for owed, share, received in zip(
                    self._owed_s.get(job, none),
                    self._shares.get(job, none),
                    self._received_s.get(job, none),
                    strict=True,
                )
            ]
            for job in jobs
        }
        gangs = WaitingGangs(
            np.array([view.demand(job) for job in jobs], dtype=float),
            np.array([self._speeds(view, job) for job in jobs]).reshape(len(jobs), len(names)),
            np.array([free[name] for name in names], dtype=float),
        )
        if self.objective == "fairness":
            found = fair_shares(gangs)
        else:
            work = np.nan_to_num(view.remaining_us(jobs) / US, nan=3600.0)
            found = shares_of_least_makespan(gangs, work)
        self._shares = dict(zip(jobs, found.tolist(), strict=True))
        self._received_s = {job: list(none) for job in jobs}

    def _speeds(self, view: View, job: int) -> list[float]:
        """Return how fast a job gets on with its gang on each type, against the reference."""
        types, model = self.curves.types, view.model(job)
        runs_on = types.runs_on(model)
        return [
            1 / types.slowdown(model, view.phase(job), view.demand(job), name)
            if name in runs_on
            else 0.0
            for name in types.names
        ]

    def _count(self, view: View) -> None:
        """Count what jobs have received since the last call."""
        passed_s = (view.now_us - self._round_us) / US
        self._round_us = view.now_us
        names = self.curves.types.names
        for job in self.held.of:
            held = self._holds(job)
            if held is not None and job in self._received_s:
                self._received_s[job][names.index(held)] += passed_s

    def _in_order(self, view: View, jobs: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield jobs and types, the highest priority first; at last where jobs have no share."""
        ranked = []
        for job in jobs:
            speeds = self._speeds(view, job)
            for n, name in enumerate(self.curves.types.names):
                if not speeds[n]:
                    continue
                share, received = self._shares[job][n], self._received_s[job][n]
                priority = share / received if received else np.inf if share else 0.0
                owed = self._owed_s[job][n]
                ranked.append((-priority, -owed, -share, -speeds[n], job, name))
        for *_, job, name in sorted(ranked):
            yield job, name

    # --- what is held -------------------------------------------------------------------------

    def _holds(self, job: int) -> str | None:
        gpus = self.held.of.get(job, ())
        return self.held.cluster.type_of(gpus) if gpus else None

    def _capacities(self, jobs: Sequence[int], gpus: int) -> dict[str, int]:
        """Return how many GPUs of each type there are for jobs: so many, if all are of one."""
        held = self.held
        if len(held.nodes_of) == 1:
            return dict.fromkeys(held.nodes_of, gpus)
        free = {name: held.free_on(nodes & held.usable) for name, nodes in held.nodes_of.items()}
        for job in jobs:
            name = self._holds(job)
            if name is not None:
                free[name] += self.held.width(job)
        return free


@takes(GavelOptions)
def gavel(scenario: Scenario, seed: int, options: GavelOptions) -> Gavel:
    """Run gangs in rounds, by shares of time on each type of GPUs."""
    return Gavel("gavel", scenario, options)
