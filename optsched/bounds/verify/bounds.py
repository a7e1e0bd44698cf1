"""Whether a file of bounds is of a trace and a scenario, and proves what it states."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

from optsched.bounds.certificate import scenario_digest, trace_digest
from optsched.bounds.least_times import US, world_of
from optsched.bounds.verify.energy import proven_energy_kwh
from optsched.bounds.verify.makespan import least_end_us
from optsched.bounds.verify.mean_jct import proven_total_us
from optsched.verification import BrokenRule, Violation

if TYPE_CHECKING:
    from optsched.bounds.certificate import Bounds, EnergyCertificate, JctCertificate
    from optsched.bounds.least_times import World
    from optsched.bounds.schedules import Schedules
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


def proven_mean_jct_s(world: World, certificate: JctCertificate | None) -> float | None:
    """Return the mean JCT that a certificate proves, or the jobs' earliest ends without one."""
    if not world.jobs:
        return None
    total = sum(job.end_us for job in world.jobs)
    if certificate is not None:
        total = max(total, proven_total_us(world, certificate))
    return _down(Fraction(total - sum(world.submit_us), US * len(world.jobs)))


def proven_makespan_s(world: World) -> float:
    """Return the makespan below which no schedule is, from the first submission on."""
    return _down(Fraction(least_end_us(world) - min(world.submit_us, default=0), US))


def proven_kwh(
    scenario: Scenario, trace: Trace, schedules: Schedules, certificate: EnergyCertificate | None
) -> float | None:
    """Return the energy that a certificate proves; None without one."""
    if certificate is None:
        return None
    return _down(proven_energy_kwh(scenario, trace, schedules, certificate))


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
        broken = [*_unproven(world, bounds), *_unproven_energy(scenario, trace, bounds)]
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
        jct, makespan = proven_mean_jct_s(world, bounds.jct), proven_makespan_s(world)
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


def _down(exact: Fraction) -> float:
    """Return the greatest float that is not above a fraction."""
    near = float(exact)
    return near if near <= exact else nextafter(near, -inf)
