"""bound(): what no schedule of a trace in a scenario can be below, with its certificate."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from optsched.bounds.certificate import Bounds, scenario_digest, trace_digest
from optsched.bounds.least_times import world_of
from optsched.bounds.relaxation.bill_prices import bill_prices
from optsched.bounds.relaxation.energy_prices import energy_prices
from optsched.bounds.relaxation.gang_prices import gang_certificate
from optsched.bounds.relaxation.makespan_values import makespan_certificate
from optsched.bounds.relaxation.prices import relaxed
from optsched.bounds.relaxation.rounding import certificate_of
from optsched.bounds.relaxation.start_prices import starts_certificate
from optsched.bounds.schedules import Schedules, UnknownPhysics
from optsched.bounds.verify.bounds import (
    proven_bill,
    proven_kwh,
    proven_makespan_s,
    proven_mean_jct_s,
    proven_starts_s,
    proven_trade,
)
from optsched.bounds.verify.refusal import Refused
from optsched.rollout.trace_source import jobs_of, scenario_of, with_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from optsched.bounds.certificate import (
        GangCertificate,
        JctCertificate,
        StartsCertificate,
        TradeCertificate,
    )
    from optsched.bounds.least_times import World
    from optsched.bounds.relaxation.prices import Relaxation
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.trace_source import TraceLike
    from optsched.traces.trace import Trace


def bound(
    scenario: Scenario | str | Path,
    *,
    trace: TraceLike | None = None,
    seed: int = 0,
    schedules: Schedules | None = None,
    bills: Sequence[float] = (),
) -> Bounds:
    """Return certified lower bounds of JCT, makespan, energy and cost over a class of schedules.

    Parameters
    ----------
    scenario, trace, seed
        As in `optsched.simulate`.
    schedules
        The class: by default all that the engine allows in the scenario, except trials on one GPU
        and giving up jobs that could be retried.
    bills
        GPU-hours billed for rented nodes at which mean JCT is bounded with the starts of nodes,
        too: some 20 s for each and 170 jobs. `Bounds.jct_mean_s_at_bill` tells it.

    Returns
    -------
    Bounds
        Seconds, kWh, GPU-hours and USD, with certificates from which `verify_bounds` proves them.

    Raises
    ------
    UnknownPhysics
        If the scenario has something that the bounds do not know: it is refused, never ignored. If
        bills are asked for where nodes do not start, or jobs are not elastic, fail or share GPUs.
    InstanceError, OSError, ValueError
        As `optsched.simulate` does.

    Examples
    --------
    >>> import optsched
    >>> best = optsched.bound("philly-small")
    >>> fifo = optsched.simulate("philly-small", "fifo").metrics["jct_mean_s"]
    >>> bool(best.jct_mean_s <= fifo)
    True
    """
    where = with_trace(scenario_of(scenario), trace)
    return bound_of(where, jobs_of(where, trace, seed), schedules or Schedules(), seed, bills)


def bound_of(
    scenario: Scenario,
    trace: Trace,
    schedules: Schedules,
    seed: int = 0,
    bills: Sequence[float] = (),
) -> Bounds:
    """Return the bounds of jobs that are there already."""
    world = world_of(scenario, trace, schedules)
    certificate, jct_s = _best(scenario, world)
    makespan = makespan_certificate(world)
    energy = energy_prices(scenario, trace, world, schedules)
    energy_kwh = proven_kwh(scenario, trace, schedules, energy)
    gpu_hours, cost_usd = proven_bill(scenario, trace, schedules, energy_kwh)
    prices = [] if gpu_hours is None else bill_prices(scenario, trace, schedules)
    trade = proven_trade(scenario, trace, schedules, prices)
    return Bounds(
        scenario=scenario.name,
        scenario_sha256=scenario_digest(scenario),
        trace=trace.name,
        trace_sha256=trace_digest(trace),
        jobs=len(trace),
        seed=seed,
        schedules=schedules,
        class_of_schedules=schedules.words(scenario),
        jct_mean_s=jct_s,
        makespan_s=proven_makespan_s(world, makespan),
        energy_kwh=energy_kwh,
        rented_gpu_hours=gpu_hours,
        cost_usd=cost_usd,
        jct=certificate,
        makespan=makespan,
        trade=trade,
        starts=[_started(scenario, trace, schedules, trade, hours) for hours in bills],
        energy=energy,
    )


def _started(
    scenario: Scenario,
    trace: Trace,
    schedules: Schedules,
    trade: TradeCertificate | None,
    gpu_hours: float,
) -> StartsCertificate:
    """Return the line that starts of nodes prove near a bill."""
    if not (isfinite(gpu_hours) and gpu_hours > 0):
        raise ValueError(f"a bill is a number of GPU-hours above 0, not {gpu_hours}")
    found = None
    if trade is not None:
        price_ppm = trade.price_ppm_at(gpu_hours, len(trace))
        found = starts_certificate(scenario, trace, schedules, price_ppm, gpu_hours)
    if found is None:
        raise UnknownPhysics(
            f"scenario '{scenario.name}': starts of nodes are priced where all jobs are elastic "
            "and nodes are rented that take time to start"
        )
    try:
        least_s = proven_starts_s(scenario, trace, schedules, found)
    except Refused as refusal:
        raise UnknownPhysics(f"scenario '{scenario.name}': {refusal}") from None
    return found.model_copy(update={"jct_mean_s": least_s})


def _best(
    scenario: Scenario, world: World
) -> tuple[JctCertificate | GangCertificate | None, float | None]:
    """Return the certificate that proves the most of mean JCT, and what it proves."""
    relaxation = relaxed(world)
    if relaxation is None:
        return None, proven_mean_jct_s(world, None)
    by_gpus = certificate_of(relaxation, len(world.jobs))
    by_gangs = gang_certificate(scenario, world, relaxation)
    least_s = proven_mean_jct_s(world, by_gpus)
    more_s = None if by_gangs is None else proven_mean_jct_s(world, by_gangs)
    return (by_gangs, more_s) if (more_s or 0.0) > (least_s or 0.0) else (by_gpus, least_s)


def relaxation(
    scenario: Scenario, trace: Trace, schedules: Schedules | None = None
) -> Relaxation | None:
    """Return slots, prices and what jobs do at them, for policies; None if no job holds GPUs."""
    return relaxed(world_of(scenario, trace, schedules or Schedules()))
