"""What a budget of GPUs allows for a trace, and the least that the trace can be billed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.rollout.policies.budgets.arrival_rates import cheapest
from optsched.rollout.policies.budgets.spot_speeds import SpotSpeeds
from optsched.rollout.policies.budgets.typed_budgets import cheapest as cheapest_option
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.prices.node_rates import prices_of_types
from optsched.rollout.results.time_averages import GPU_H
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

HOUR_S = 3600


class Allowance(NamedTuple):
    """What budgets allow for the jobs of a trace.

    Where GPUs are of several types, GPU-hours are USD, and budgets in USD per hour.

    Attributes
    ----------
    arrivals_h
        Hours from the first arrival to the last.
    drain_gpu_h
        GPU-hours that jobs would take after the last arrival, had each run at its widths of least
        use from its own arrival on.
    """

    arrivals_h: float
    drain_gpu_h: float

    def gpu_hours(self, budget_gpus: float) -> float:
        """Return the GPU-hours that a budget allows: until the last arrival, and the drain."""
        return budget_gpus * self.arrivals_h + self.drain_gpu_h

    def least_budget(self, least_gpu_h: float) -> float:
        """Return the least budget, in GPUs, that allows so many GPU-hours; infinite without time.

        With the least bill of any schedule: no schedule keeps a smaller one.
        """
        beyond = max(least_gpu_h - self.drain_gpu_h, 0.0)
        if not self.arrivals_h:
            return math.inf if beyond else 0.0
        return beyond / self.arrivals_h


def allowance(scenario: Scenario, trace: Trace) -> Allowance:
    """Return what budgets allow for a trace; run times are the true ones."""
    if not len(trace):
        return Allowance(0.0, 0.0)
    uses, last_us = _LeastUses(scenario), int(trace.submit_us[-1])
    drain_gpu_s = 0.0
    columns = (column.tolist() for column in (trace.gpus, trace.run_us, trace.submit_us))
    for model, demand, run_us, submit_us in zip(trace.model, *columns, strict=True):
        seconds, gpu_s = uses.of(model, demand, run_us / US)
        left_s = seconds - (last_us - submit_us) / US
        drain_gpu_s += gpu_s * max(left_s, 0.0) / seconds if seconds else 0.0
    return Allowance((last_us - int(trace.submit_us[0])) / US / HOUR_S, drain_gpu_s / HOUR_S)


class _LeastUses:
    """What jobs take at their widths of least use.

    Those of one model and demand have the same widths: these are looked up once.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._curves = Curves(scenario)
        self._speeds = SpotSpeeds(scenario, self._curves)
        self._phases: dict[tuple[str, int], list[tuple[float, float, float]]] = {}

    def of(self, model: str, demand: int, run_s: float) -> tuple[float, float]:
        """Return seconds and GPU-seconds of a job."""
        phases = self._phases.get((model, demand))
        if phases is None:
            phases = self._phases[model, demand] = list(self._of_phases(model, demand))
        seconds = gpu_s = 0.0
        for work, cost, speed in phases:
            seconds += work * run_s / speed
            gpu_s += cost * work * run_s / speed
        return seconds, gpu_s

    def _of_phases(self, model: str, demand: int) -> Iterator[tuple[float, float, float]]:
        """Yield of each phase its share of the work, and price per hour and speed of its width."""
        curves = self._curves
        works = curves.works(model, demand)
        if curves.types.are_several:
            prices = prices_of_types(curves.scenario)
            for work, own in zip(works, self._speeds.by_type(model, demand), strict=True):
                name, gpus = cheapest_option(own, prices)
                yield work, prices[name] * gpus, own[name].speed_at(gpus)
            return
        for work, curve in zip(works, curves.of(model, demand), strict=True):
            gpus = cheapest(curve.gpus, curve.speed)
            yield work, gpus, curve.speed_at(gpus)


def budget_of(record: Record) -> float | None:
    """Return the budget of rented nodes, in GPUs: the policy's option, else the scenario's.

    In USD per hour where they are of several types.
    """
    if record.scenario.rented is None:
        return None
    options = record.policy.partition(":")[2].split(",")
    given = next((text for text in options if text.startswith("budget=")), "")
    try:
        return float(given.removeprefix("budget="))
    except ValueError:
        return record.scenario.budget_usd_per_h or record.scenario.budget_gpus


def least_bill(scenario: Scenario, trace: Trace) -> float | None:
    """Return the least GPU-hours that any schedule is billed for, proven as in `optsched.bounds`.

    None if the bounds do not know the physics of the scenario, or its nodes are not rented.
    """
    from optsched.bounds.schedules import Schedules, UnknownPhysics
    from optsched.bounds.verify.bounds import proven_bill

    if scenario.rented is None:
        return None
    try:
        return proven_bill(scenario, trace, Schedules(), None)[0]
    except UnknownPhysics:
        return None


def billed(record: Record) -> dict[str, float | None]:
    """Return what a rollout was billed, what of it jobs did not hold, and what the budget says.

    What jobs held and lost by changes of width is `overhead_gpu_h` of the metrics. Beyond the
    budget is negative where something is left of it.
    """
    told: dict[str, float | None] = {
        "rented_gpu_hours": record.spent_gpu_us / GPU_H,
        "idle_gpu_h": (record.available_gpu_us - record.busy_gpu_us) / GPU_H,
        "unready_gpu_h": (record.spent_gpu_us - record.available_gpu_us) / GPU_H,
        "over_budget_gpu_h": None,
        "least_budget_gpus": None,
    }
    budget = budget_of(record)
    if budget is None or len(set(record.scenario.node_types)) > 1:
        return told
    allowed = allowance(record.scenario, record.trace)
    told["over_budget_gpu_h"] = record.spent_gpu_us / GPU_H - allowed.gpu_hours(budget)
    least_gpu_h = least_bill(record.scenario, record.trace)
    if least_gpu_h is not None:
        told["least_budget_gpus"] = allowed.least_budget(least_gpu_h)
    return told


def allowed_so_far(record: Record) -> tuple[Floats, Floats]:
    """Return moments in seconds and the GPU-hours that the budget allows until then, if any.

    From the first arrival to the last it grows evenly; the drain is allowed until the end.
    """
    budget, trace = budget_of(record), record.trace
    if budget is None or not len(trace):
        return np.zeros(0), np.zeros(0)
    allowed = allowance(record.scenario, trace)
    first_us, last_us = int(trace.submit_us[0]), int(trace.submit_us[-1])
    moments = np.array([first_us, last_us, max(last_us, record.end_us)]) / US
    return moments, np.array([0.0, budget * allowed.arrivals_h, allowed.gpu_hours(budget)])


def unkept(record: Record, least_budget: float | None) -> str:
    """Return a sentence if no schedule of the jobs keeps the budget, else nothing."""
    budget = budget_of(record)
    if budget is None or least_budget is None or budget >= least_budget:
        return ""
    beyond_h = (least_budget - budget) * allowance(record.scenario, record.trace).arrivals_h
    return (
        f"No schedule of these jobs keeps a budget of {budget:g} GPUs: each is billed "
        f"{beyond_h:,.1f} GPU-hours more at least. The least budget is {least_budget:,.2f} GPUs."
    )
