"""What more GPUs would be worth, and which hours and jobs make a bound, from its prices."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from optsched.bounds.least_times import US, world_of
from optsched.bounds.verify.mean_jct import least_ends_us

if TYPE_CHECKING:
    from optsched.bounds.certificate import Bounds
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
    unit, scale = certificate.unit_us, 2.0**certificate.price_bits
    by_hour: dict[int, float] = {}
    for price, (begin, end) in zip(certificate.prices, pairwise(certificate.edges), strict=True):
        if price:
            hour = (begin + end) * unit // 2 // HOUR_US
            paid = price / scale * (end - begin) * unit / US
            by_hour[hour] = by_hour.get(hour, 0.0) + paid
    total = sum(by_hour.values())
    shared = scenario.sharing.max_jobs_per_gpu
    gpu_s = total * shared / max(1, bounds.jobs)
    dearest = sorted(by_hour.items(), key=lambda entry: (-entry[1], entry[0]))[:most]
    world = world_of(scenario, trace, bounds.schedules)
    added = [
        (end - job.end_us, -n)
        for n, (end, job) in enumerate(
            zip(least_ends_us(world.jobs, certificate), world.jobs, strict=True)
        )
    ]
    held = sorted(added, reverse=True)[:most]
    return Worth(
        gpu_s,
        gpu_s * world.largest_node,
        tuple((hour, paid / total) for hour, paid in dearest),
        tuple((trace.ids[-n], late / US) for late, n in held if late > 0),
    )
