"""Whether a file of bounds is of a trace and a scenario, and proves what it states."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

from optsched.bounds.certificate import (
    GangCertificate,
    TradeCertificate,
    scenario_digest,
    trace_digest,
)
from optsched.bounds.least_times import US, world_of
from optsched.bounds.verify.bill import Bill
from optsched.bounds.verify.energy import proven_energy_kwh
from optsched.bounds.verify.gangs import proven_by_gangs_us
from optsched.bounds.verify.makespan import end_by_gangs_us, least_end_us
from optsched.bounds.verify.mean_jct import proven_total_us
from optsched.bounds.verify.refusal import Refused
from optsched.bounds.verify.starts import proven_starts_us
from optsched.verification import BrokenRule, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.bounds.certificate import (
        Bounds,
        EnergyCertificate,
        JctCertificate,
        MakespanCertificate,
        StartsCertificate,
    )
    from optsched.bounds.least_times import World
    from optsched.bounds.schedules import Schedules
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


def proven_mean_jct_s(
    world: World, certificate: JctCertificate | GangCertificate | None
) -> float | None:
    """Return the mean JCT that a certificate proves, or the jobs' earliest ends without one."""
    if not world.jobs:
        return None
    total = sum(job.end_us for job in world.jobs)
    if isinstance(certificate, GangCertificate):
        total = max(total, proven_by_gangs_us(world, certificate))
    elif certificate is not None:
        total = max(total, proven_total_us(world, certificate))
    return _down(Fraction(total - sum(world.submit_us), US * len(world.jobs)))


def proven_makespan_s(world: World, certificate: MakespanCertificate | None = None) -> float:
    """Return the makespan below which no schedule is, from the first submission on."""
    latest = least_end_us(world)
    if certificate is not None:
        latest = max(latest, end_by_gangs_us(world, certificate))
    return _down(Fraction(latest - min(world.submit_us, default=0), US))


def proven_kwh(
    scenario: Scenario, trace: Trace, schedules: Schedules, certificate: EnergyCertificate | None
) -> float | None:
    """Return the energy that a certificate proves; None without one."""
    if certificate is None:
        return None
    return _down(proven_energy_kwh(scenario, trace, schedules, certificate))


def proven_bill(
    scenario: Scenario, trace: Trace, schedules: Schedules, energy_kwh: float | None
) -> tuple[float | None, float | None]:
    """Return the least GPU-hours that are paid for, and the least cost; None if unknown."""
    try:
        gpu_hours = Bill(scenario, trace, schedules).least_gpu_hours()
    except Refused:
        return None, None
    power = scenario.power
    usd = gpu_hours * Fraction(scenario.price_usd_per_gpu_h)
    if power is not None and energy_kwh is not None:
        usd += Fraction(energy_kwh) * Fraction(power.price_usd_per_kwh)
    inward = 1 - Fraction(1, 10**12)  # the engine divides and multiplies floats
    return _down(gpu_hours * inward), _down(usd * inward) if usd else None


def proven_trade(
    scenario: Scenario, trace: Trace, schedules: Schedules, prices_ppm: Sequence[int]
) -> TradeCertificate | None:
    """Return the lines that prices of GPU time prove of mean JCT; None without prices or jobs."""
    if not prices_ppm or not len(trace):
        return None
    bill = Bill(scenario, trace, schedules)
    lines = [_down(bill.line_us(price) / (US * len(trace))) for price in prices_ppm]
    return TradeCertificate(prices_ppm=list(prices_ppm), jct_mean_s=lines)


def proven_starts_s(
    scenario: Scenario, trace: Trace, schedules: Schedules, certificate: StartsCertificate
) -> float:
    """Return what a job's mean JCT and its part of the priced bill are at least together."""
    total = proven_starts_us(scenario, trace, schedules, certificate)
    return _down(Fraction(total, US * len(trace)))


def verify_bounds(scenario: Scenario, trace: Trace, bounds: Bounds) -> None:
    """Prove bounds from trace and scenario alone.

    Raises
    ------
    Violation
        With every figure that is not so, or if the bounds are of something else.
    UnknownPhysics
        If no bound is known for such a scenario.

    Examples
    --------
    >>> import optsched
    >>> from optsched.rollout.trace_source import jobs_of
    >>> scenario = optsched.read_scenario("pal-64")
    >>> optsched.verify_bounds(scenario, jobs_of(scenario), optsched.bound(scenario))
    """
    broken = _of_others(scenario, trace, bounds)
    if not broken:
        world = world_of(scenario, trace, bounds.schedules)
        broken = [
            *_unproven(world, bounds),
            *_unproven_energy(scenario, trace, bounds),
            *_unproven_bill(scenario, trace, bounds),
            *_unproven_starts(scenario, trace, bounds),
        ]
        if bounds.class_of_schedules != bounds.schedules.words(scenario):
            broken.append(BrokenRule("class", "the words are not those of the class of schedules"))
    if broken:
        raise Violation("parts of the proof", broken)


def _of_others(scenario: Scenario, trace: Trace, bounds: Bounds) -> list[BrokenRule]:
    stated = {
        "scenario": (bounds.scenario_sha256, scenario_digest(scenario)),
        "trace": (bounds.trace_sha256, trace_digest(trace)),
        "jobs": (bounds.jobs, len(trace)),
    }
    return [
        BrokenRule(name, f"the bounds are of another one: {told}, found {found}")
        for name, (told, found) in stated.items()
        if told != found
    ]


def _unproven(world: World, bounds: Bounds) -> list[BrokenRule]:
    try:
        jct = proven_mean_jct_s(world, bounds.jct)
        makespan = proven_makespan_s(world, bounds.makespan)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        return [BrokenRule("certificate", str(error))]
    broken = []
    if (bounds.jct_mean_s is None) != (jct is None) or (bounds.jct_mean_s or 0) > (jct or 0):
        broken.append(BrokenRule("jct_mean_s", f"{bounds.jct_mean_s} stated, {jct} proven"))
    if bounds.makespan_s > makespan:
        broken.append(BrokenRule("makespan_s", f"{bounds.makespan_s} stated, {makespan} proven"))
    return broken


def _unproven_energy(scenario: Scenario, trace: Trace, bounds: Bounds) -> list[BrokenRule]:
    if bounds.energy_kwh is None:
        return []
    try:
        proven = proven_kwh(scenario, trace, bounds.schedules, bounds.energy)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        return [BrokenRule("certificate", str(error))]
    if proven is None or bounds.energy_kwh > proven:
        return [BrokenRule("energy_kwh", f"{bounds.energy_kwh} stated, {proven} proven")]
    return []


def _unproven_bill(scenario: Scenario, trace: Trace, bounds: Bounds) -> Iterator[BrokenRule]:
    """Yield what is stated of bills and not proven; it follows `energy_kwh`, which is looked at."""
    proven = proven_bill(scenario, trace, bounds.schedules, bounds.energy_kwh)
    for key, least in zip(("rented_gpu_hours", "cost_usd"), proven, strict=True):
        told = getattr(bounds, key)
        if told is not None and (least is None or told > least):
            yield BrokenRule(key, f"{told} stated, {least} proven")
    if bounds.trade is None:
        return
    try:
        trade = proven_trade(scenario, trace, bounds.schedules, bounds.trade.prices_ppm)
    except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
        yield BrokenRule("trade", str(error))
        return
    lines = () if trade is None else trade.jct_mean_s
    stated = bounds.trade.jct_mean_s
    if len(stated) != len(lines) or any(a > b for a, b in zip(stated, lines, strict=True)):
        yield BrokenRule("trade", f"jct_mean_s: {list(stated)} stated, {list(lines)} proven")


def _unproven_starts(scenario: Scenario, trace: Trace, bounds: Bounds) -> Iterator[BrokenRule]:
    for number, line in enumerate(bounds.starts):
        try:
            proven = proven_starts_s(scenario, trace, bounds.schedules, line)
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            yield BrokenRule(f"starts[{number}]", str(error))
            continue
        if line.jct_mean_s > proven:
            told = f"jct_mean_s: {line.jct_mean_s} stated, {proven} proven"
            yield BrokenRule(f"starts[{number}]", told)


def _down(exact: Fraction) -> float:
    """Return the greatest float that is not above a fraction."""
    near = float(exact)
    return near if near <= exact else nextafter(near, -inf)
