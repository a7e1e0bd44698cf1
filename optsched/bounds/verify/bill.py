"""The least GPU time that a trace can be billed for, and mean JCT by the GPU time that is spent."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from optsched.bounds.verify.groups import Groups, job_types
from optsched.bounds.verify.least_work import WorkReader, least_end_us, least_rates

if TYPE_CHECKING:
    from optsched.bounds.schedules import Schedules
    from optsched.bounds.verify.least_work import Speeds
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

PPM: Final = 1_000_000
HOUR_US: Final = 3_600_000_000
BITS: Final = 100
"""Times are whole numbers of 2**-BITS microseconds, rounded down."""


class Bill:
    """What jobs of a trace must hold, each GPU that they share counted once.

    Raises
    ------
    Refused
        If there are too many groups of jobs that share GPUs.
    """

    def __init__(self, scenario: Scenario, trace: Trace, schedules: Schedules) -> None:
        types = job_types(scenario, trace)
        groups = list(Groups(scenario, types, within_slowdowns=schedules.within_slowdowns).all())
        self._scenario, self._trace = scenario, trace
        self._least_rate = least_rates(groups, types)
        self._reader = WorkReader(scenario, trace, schedules, self._least_rate)
        self._shared = max((sum(group.rates) for group in groups), default=Fraction(1))

    def least_gpu_hours(self) -> Fraction:
        """Return the least GPU-hours that are paid for.

        Of rented nodes those with jobs at least: on a GPU as much work is done in a second as the
        rates of a group add up to. Other clusters are paid for until the last end.
        """
        works = self._reader.all()
        if self._scenario.rented is None:
            end_us = least_end_us(self._scenario, self._trace, works)
            return self._scenario.gpus * end_us / HOUR_US
        return sum((work.gpu_us for work in works), Fraction(0)) / self._shared / HOUR_US

    def line_us(self, price_ppm: int) -> Fraction:
        """Return what all JCTs and the price of the GPU time add up to at least, microseconds.

        Each job has the widths that are best for itself at the price: a dynamic program over its
        phases, in which another width costs the overhead of the change. A job with failures has the
        least time and the least GPU time of all ways to end.
        """
        price = Fraction(price_ppm, PPM) / self._shared
        total, whole = Fraction(0), 0
        known: dict[tuple[int, Fraction], tuple[list[list[int]], list[int]]] = {}
        for job in range(len(self._trace)):
            if job in self._trace.failures:
                least = self._reader.of(job)
                total += least.time_us + price * least.gpu_us
                continue
            speeds, least_rate = self._reader.speeds(job), self._least_rate[job]
            key = (id(speeds), least_rate)
            if key not in known:
                known[key] = _costs(speeds, price, least_rate)
            whole += _cheapest(self._reader.work(job), *known[key])
        return total + Fraction(whole, 1 << BITS)


def _costs(
    speeds: Speeds, price: Fraction, least_rate: Fraction
) -> tuple[list[list[int]], list[int]]:
    """Return by phase and width the cost of a part of a job's work, and by width of an overhead."""
    widths = list(speeds.phases[0][1]) if speeds.phases else []
    parts = [
        [_down(share * (1 + price * k) / rates[k]) for k in widths]
        for share, rates in speeds.phases
    ]
    return parts, [_down(speeds.overhead_us * (1 + price * k * least_rate)) for k in widths]


def _cheapest(work: int, parts: list[list[int]], overheads: list[int]) -> int:
    """Return the least cost of a job over all widths of its phases."""
    best = overheads
    for number, costs in enumerate(parts):
        if number:
            least = min(best)
            best = [min(b, least + o) for b, o in zip(best, overheads, strict=True)]
        best = [b + work * c for b, c in zip(best, costs, strict=True)]
    return min(best, default=0)


def _down(cost: Fraction) -> int:
    return (cost * (1 << BITS)).__floor__()
