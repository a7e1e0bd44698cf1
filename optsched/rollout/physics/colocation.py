"""Jobs side by side on a GPU: how fast each runs, and what the GPU draws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.interference import GroupRates
from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.physics.cluster import Occupancy
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

ALONE = "\0"
"""Begins the types of jobs whose model the scenario does not know: no model's name does."""

MOST_COMPANIES = 10_000
"""Jobs on a GPU whose mix is remembered."""


class Mix(NamedTuple):
    """Job types side by side on one GPU.

    Attributes
    ----------
    is_known
        Whether the interference table or its fallback reaches them.
    fits
        Whether they can run together, memory aside.
    rates
        By type, work per second relative to running alone.
    memory_gb
        What they take of the GPU's memory.
    gpu_w
        Watts of the GPU; 0 without a power model.
    """

    is_known: bool
    fits: bool
    rates: dict[str, float]
    memory_gb: Fraction
    gpu_w: float


class Colocation(Restorable):
    """Rates and watts of the jobs on a GPU, remembered by the multiset of their types.

    The **type** of a job is its model, where the scenario has it; otherwise one that stands for the
    utilisation that the trace gives, rounded to a thousandth, or 1 if that is unknown either. Such
    types are in no table.

    Rates are those of `sharing.interference`. **Watts** as in EaCO: as measured for the group, else
    by the power model at the measured utilisation, else at the sum of utilisation x rate.

    If the jobs that remain on a GPU are a group whose rates are not known, rates and watts stay as
    they were before the others left, as in EaCO's phases.
    """

    def __init__(self, scenario: Scenario, trace: Trace) -> None:
        models = scenario.models
        self.utilisation = {name: model.utilisation for name, model in models.items()}
        self.type_of = list(trace.model)
        if any(name not in models for name in set(trace.model)):
            self._name_the_others(trace)
        table = scenario.sharing.interference
        self._table = GroupRates(table, "", self.utilisation)
        whole = table.model_copy(update={"fallback": "utilisation"})
        self._never_unknown = GroupRates(whole, "", self.utilisation)
        self._power = None if scenario.power is None else scenario.power.gpu
        self._memory_gb = {name: Fraction(model.memory_gb) for name, model in models.items()}
        self._mixes: dict[tuple[str, ...], Mix] = {}
        self._of_jobs: dict[tuple[int, ...], Mix] = {}
        self._before: dict[int, Mix] = {}
        self._remembers = table.fallback != "utilisation"

    def snapshot(self) -> dict[str, Any]:
        """Return of each GPU the types that its last known rates are of."""
        types = {id(mix): key for key, mix in self._mixes.items()}
        return {"before": {gpu: types[id(mix)] for gpu, mix in self._before.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        before = state["before"].items()
        self._before = {gpu: self._mixes.setdefault(key, self._mix(key)) for gpu, key in before}

    def on(self, gpu: int, state: Occupancy) -> Mix:
        """Return the mix of the jobs on a GPU that has some."""
        mix = self.of(state.jobs_on[gpu])
        if not self._remembers:
            return mix
        if mix.is_known:
            self._before[gpu] = mix
            return mix
        before = self._before.get(gpu, mix)
        return before if mix.rates.keys() <= before.rates.keys() else mix

    def of(self, jobs: tuple[int, ...]) -> Mix:
        """Return the mix of some jobs; rates of groups that are not known are by utilisation."""
        known = self._of_jobs.get(jobs)
        if known is not None:
            return known
        types = self.type_of
        key = tuple(sorted([types[job] for job in jobs])) if len(jobs) > 1 else (types[jobs[0]],)
        mix = self._mixes.get(key)
        if mix is None:
            mix = self._mixes[key] = self._mix(key)
        if len(self._of_jobs) == MOST_COMPANIES:
            self._of_jobs.clear()
        self._of_jobs[jobs] = mix
        return mix

    def shared(
        self, job: int, gpus: tuple[int, ...], state: Occupancy, busy: Sequence[float]
    ) -> tuple[float, float]:
        """Return the least rate of a job over its GPUs, and the turns that it has on them.

        Parameters
        ----------
        busy
            By job the share of time for which its GPUs compute when it runs alone.
        """
        types, name, jobs_on = self.type_of, self.type_of[job], state.jobs_on
        slowest, turns, turn = math.inf, 0.0, 0.0
        before, rates = None, None
        for gpu in gpus:
            jobs, now = jobs_on[gpu], self.on(gpu, state).rates
            if jobs != before or now is not rates:  # a gang meets the same jobs on most GPUs
                before, rates = jobs, now
                slowest = min(slowest, now[name])
                turn = 1 / max(1.0, sum([busy[other] * now[types[other]] for other in jobs]))
            turns += turn
        return slowest, turns

    def watts(self, gpus: Sequence[int], state: Occupancy) -> float:
        """Return what some GPUs with jobs draw."""
        return sum([self.on(gpu, state).gpu_w for gpu in gpus])

    def _mix(self, key: tuple[str, ...]) -> Mix:
        rates = self._table.of(key)
        table = self._table if rates.is_known else self._never_unknown
        memory = sum((self._memory_gb.get(name, Fraction(0)) for name in key), Fraction(0))
        speeds = {name: float(rate) for name, rate in table.of(key).by_type.items()}
        watts = 0.0 if self._power is None else float(table.gpu_w(key, self._power))
        return Mix(rates.is_known, rates.fits, speeds, memory, watts)

    def _name_the_others(self, trace: Trace) -> None:
        """Give jobs of unknown models types by utilisation; few, as each is worked out once."""
        known = set(self.utilisation)
        shares = np.nan_to_num(trace.utilization, nan=1.0).clip(0, 1).round(3).tolist()
        for job, (model, share) in enumerate(zip(trace.model, shares, strict=True)):
            if model not in known:
                name = f"{ALONE}{share}"
                self.type_of[job] = name
                self.utilisation[name] = share
