"""The phases of a group's run, in whole numbers of ever finer units: exact, and no fractions kept.

Part of the verifier: it imports neither numpy nor solvers and shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from optsched.eaco.interference import Rates


class GroupPhase(NamedTuple):
    """A stretch of a group's run in which the same jobs are active.

    Attributes
    ----------
    jobs
        Ids of the active jobs.
    seconds
        How long it takes until the first of them ends.
    gpu_w
        Watts of each GPU.
    rates
        Work per second of each active job, relative to running alone at full power.
    """

    jobs: tuple[str, ...]
    seconds: Fraction
    gpu_w: Fraction
    rates: dict[str, Fraction]


class Pace(NamedTuple):
    """How jobs of some types run side by side.

    Attributes
    ----------
    rates, slowdowns
        By type; no slowdowns if they do not fit together.
    steps, unit
        By type the rate as a whole number of 1 / unit.
    gpu_w
        Watts of each GPU.
    """

    rates: dict[str, Fraction]
    slowdowns: dict[str, Fraction]
    steps: dict[str, int]
    unit: int
    gpu_w: Fraction

    @classmethod
    def of(cls, rates: Rates, factor: Fraction, gpu_w: Fraction) -> Pace:
        """Return the pace of known rates, slowed down by a factor."""
        by_type = {kind: rate * factor for kind, rate in rates.by_type.items()}
        unit = lcm(*[rate.denominator for rate in by_type.values()])
        steps = {kind: int(rate * unit) for kind, rate in by_type.items()}
        slowdowns = {kind: 1 / rate for kind, rate in by_type.items()} if rates.fits else {}
        return cls(by_type, slowdowns, steps, unit, gpu_w)


def phases(
    works: Mapping[str, Fraction],
    types: Mapping[str, str],
    pace_of: Callable[[tuple[str, ...]], Pace | None],
) -> Iterator[GroupPhase]:
    """Yield the phases of a group's run to completion.

    Parameters
    ----------
    works, types
        By job: its seconds alone, and its type.
    pace_of
        Tells how active jobs run; where that is not known, they go on as they did.
    """
    unit = lcm(*[work.denominator for work in works.values()])
    left = {name: work.numerator * (unit // work.denominator) for name, work in works.items()}
    pace: Pace | None = None
    while left:
        active = tuple(left)
        pace = pace_of(active) or pace
        assert pace is not None  # no plan has a group whose rates are not known
        steps = {name: pace.steps[types[name]] for name in active}
        first = active[0]
        for name in active[1:]:
            if left[name] * steps[first] < left[first] * steps[name]:
                first = name
        took, step = left[first], steps[first]
        rates = {name: pace.rates[types[name]] for name in active}
        yield GroupPhase(active, Fraction(took * pace.unit, unit * step), pace.gpu_w, rates)
        left = {name: work * step - took * steps[name] for name, work in left.items()}
        left = {name: work for name, work in left.items() if work > 0}
        unit *= step
