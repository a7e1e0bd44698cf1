"""The verifier of rounds: reduced costs of options at prices of the capacities, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.sia.arrays import Floats, Round


class ReducedCosts:
    """A round as the verifier reads it: plain integers, and floats that stand for fractions.

    Attributes
    ----------
    jobs
        How many there are.
    capacity
        Of each kind.
    """

    def __init__(self, instance: Round) -> None:
        self.round, self.jobs = instance, len(instance.jobs)
        self.capacity: list[float] = instance.capacity.tolist()

    def job(self, options: Sequence[int]) -> list[int]:
        """Return the jobs of options."""
        jobs: list[int] = self.round.job[options].tolist()
        return jobs

    def capacity_value(self, prices: Sequence[float]) -> Fraction:
        """Return what all of the capacities come to."""
        pairs = zip(prices, self.capacity, strict=True)
        return sum((Fraction(price) * Fraction(capacity) for price, capacity in pairs), Fraction(0))

    def priced(
        self, options: Sequence[int], prices: Sequence[float], *, farkas: bool
    ) -> tuple[list[int], int]:
        """Return costs and priced uses of options, in whole multiples of one over the second.

        Parameters
        ----------
        farkas
            Whether uses alone count.
        """
        whole, price_unit = _whole(np.array(prices, dtype=float))
        costs, cost_unit = [0] * len(options), 1
        if not farkas:
            costs, cost_unit = _whole(self.round.cost[options])
        uses, use_unit = _whole(self.round.use[options].ravel())
        weight = price_unit * use_unit
        priced = [weight * each for each in costs]
        for number, price in enumerate(whole):
            if price:
                factor, used = price * cost_unit, uses[number :: len(whole)]
                priced = [value + factor * use for value, use in zip(priced, used, strict=True)]
        return priced, cost_unit * weight


def _whole(numbers: Floats) -> tuple[list[int], int]:
    """Return floats as multiples of one over a power of two, and that power."""
    _, exponents = np.frexp(numbers)
    shift = 62 - int(exponents.max(initial=0))  # magnitudes stay below 2**62
    if 0 <= shift < 900:
        scaled = np.ldexp(numbers, shift)  # exact: it only changes exponents, of no denormal
        if (scaled == np.rint(scaled)).all():
            return scaled.astype(np.int64).tolist(), 1 << shift
    ratios = [number.as_integer_ratio() for number in numbers.tolist()]
    unit = max((below for _, below in ratios), default=1)
    return [above * (unit // below) for above, below in ratios], unit
