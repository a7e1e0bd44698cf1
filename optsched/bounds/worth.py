"""What more GPUs would be worth, and which hours and jobs make a bound, from its prices."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from optsched.bounds.certificate import GangCertificate
from optsched.bounds.least_times import US, world_of
from optsched.bounds.verify.gangs import ends_by_gangs_us, rents_of
from optsched.bounds.verify.mean_jct import least_ends_us

if TYPE_CHECKING:
    from optsched.bounds.certificate import Bounds, JctCertificate
    from optsched.bounds.least_times import World
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

HOUR_US = 3600 * US


class Worth(NamedTuple):
    """What the prices of a bound say.

    Attributes
    ----------
    gpu_s, node_s
        By how much one more GPU, and one more of the largest nodes, lower what the prices prove of
        the mean JCT.
    hours
        The hours since the trace's start with the dearest GPUs, each with its share of all prices.
    jobs
        The jobs that prices keep longest beyond their earliest ends, each with the seconds.
    """

    gpu_s: float
    node_s: float
    hours: tuple[tuple[int, float], ...]
    jobs: tuple[tuple[str, float], ...]


def worth(scenario: Scenario, trace: Trace, bounds: Bounds, most: int = 3) -> Worth:
    """Return what the prices of bounds say of GPUs, hours and jobs; so many of each at most."""
    certificate = bounds.jct
    if certificate is None:
        return Worth(0.0, 0.0, (), ())
    world = world_of(scenario, trace, bounds.schedules)
    shared = scenario.sharing.max_jobs_per_gpu
    paid_s = _paid_s(world, certificate, world.capacity)
    total = sum(paid_s)
    jobs = max(1, bounds.jobs)
    gpu_s = (sum(_paid_s(world, certificate, world.capacity + shared)) - total) / jobs
    node = shared * world.largest_node
    node_s = (sum(_paid_s(world, certificate, world.capacity + node)) - total) / jobs
    by_hour: dict[int, float] = {}
    for paid, (begin, end) in zip(paid_s, pairwise(certificate.edges), strict=True):
        if paid:
            hour = (begin + end) * certificate.unit_us // 2 // HOUR_US
            by_hour[hour] = by_hour.get(hour, 0.0) + paid
    dearest = sorted(by_hour.items(), key=lambda entry: (-entry[1], entry[0]))[:most]
    if isinstance(certificate, GangCertificate):
        ends = ends_by_gangs_us(world, certificate)
    else:
        ends = least_ends_us(world.jobs, certificate)
    added = [
        (end - job.end_us, -n) for n, (end, job) in enumerate(zip(ends, world.jobs, strict=True))
    ]
    held = sorted(added, reverse=True)[:most]
    return Worth(
        gpu_s,
        node_s,
        tuple((hour, paid / total) for hour, paid in dearest),
        tuple((trace.ids[-n], late / US) for late, n in held if late > 0),
    )


def _paid_s(
    world: World, certificate: JctCertificate | GangCertificate, capacity: int
) -> list[float]:
    """Return by slot what so many GPUs are worth at the prices, in seconds of all jobs' JCT."""
    if isinstance(certificate, GangCertificate):
        rents = rents_of(world, certificate, capacity)
    else:
        rents = [capacity * price for price in certificate.prices]
    unit_s = certificate.unit_us / US / 2.0**certificate.price_bits
    slots = zip(rents, pairwise(certificate.edges), strict=True)
    return [rent * (end - begin) * unit_s for rent, (begin, end) in slots]
