"""Figures of several seeds as a mean with its 95 % interval, and how they are read off rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.rollout.results.intervals import bootstrapped, mean

if TYPE_CHECKING:
    from collections.abc import Iterable

Figures = Mapping[str, float | None]
"""What was measured of one rollout, by name; None where there is nothing to measure."""
Draw = Mapping[str, Figures]
"""What was measured with one seed, by cell: a policy as a rule."""


class Estimate(NamedTuple):
    """A figure over seeds.

    Attributes
    ----------
    low, high
        Ends of the 95 % interval (a bootstrap over seeds); both are the value where there is none.
    seeds
        How many have the figure.
    """

    value: float
    low: float
    high: float
    seeds: int


class Reading(NamedTuple):
    """How a figure is read off.

    Attributes
    ----------
    of_draw
        Of one seed; None where it has none.
    cells
        What it is read off.
    told
        Makes the figure of the mean over seeds; it must not fall where its argument rises.
    """

    of_draw: Callable[[Draw], float | None]
    cells: tuple[str, ...]
    told: Callable[[float], float] = float


def estimate(reading: Reading, draws: Iterable[Draw]) -> Estimate | None:
    """Return a figure over seeds; None if no seed has it."""
    found = [reading.of_draw(draw) for draw in draws]
    values = np.array([value for value in found if value is not None])
    if not len(values):
        return None
    middle = float(values.mean() if np.ptp(values) else values[0])
    ends = bootstrapped((values,), mean) if np.ptp(values) else None
    low, high = ends or (middle, middle)
    told = reading.told
    return Estimate(told(middle), told(low), told(high), len(values))


def in_common(draws: Iterable[Draw], cells: Iterable[str]) -> list[Draw]:
    """Return the seeds that have all of some cells, of those that any seed has.

    Some cells have fewer seeds than others, and figures of other seeds are not beside each other.
    """
    found = list(draws)
    measured = {cell for cell in cells if any(cell in draw for draw in found)}
    return [draw for draw in found if measured <= draw.keys()]


def level(cell: str, key: str, scale: float = 1.0) -> Reading:
    """Return how the mean of a figure is read off."""

    def of_draw(draw: Draw) -> float | None:
        value = draw.get(cell, {}).get(key)
        return None if value is None else scale * value

    return Reading(of_draw, (cell,))


def change(cell: str, base: str, key: str) -> Reading:
    """Return how the change from one cell to another is read off, in % of the first.

    Over seeds it is the geometric mean of ratios, and the interval is of their logarithms.
    """

    def of_draw(draw: Draw) -> float | None:
        value, other = draw.get(cell, {}).get(key), draw.get(base, {}).get(key)
        return None if not value or not other else math.log(value / other)

    return Reading(of_draw, (cell, base), in_per_cent)


def in_per_cent(log_ratio: float) -> float:
    """Return the logarithm of a ratio as a change in %."""
    return 100 * math.expm1(log_ratio)
