"""The verifier of rounds: which options may be the cheapest of their jobs, in 63 bits.

Costs, uses and prices are rounded down to whole numbers whose sums of products stay below 2**62. An
option that costs more than another one of its job by more than all of that rounding is left out;
those that are left are priced exactly (`certificate.py`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Round

    Wholes = NDArray[np.int64]

USE_BITS, SUM_BITS = 30, 61


class ReducedCostFilter:
    """The options of a round, with uses in whole numbers below 2**30."""

    def __init__(self, instance: Round) -> None:
        self._round = instance
        self._most = [Fraction(float(use.max(initial=0.0))) for use in instance.of_capacity]
        self._shifts = [USE_BITS - _bits(most) for most in self._most]
        used = zip(instance.of_capacity, self._shifts, strict=True)
        self._uses = [_floors(use, shift) for use, shift in used]

    def near(self, prices: Sequence[float], cost: Floats) -> Bools:
        """Return which options may be the cheapest of their jobs, shape (options,).

        Parameters
        ----------
        prices
            Of the capacities, none below 0.
        cost
            Shape (options,): what options cost besides.
        """
        instance, greatest = self._round, Fraction(float(np.abs(cost).max(initial=0.0)))
        spent = [Fraction(price) * most for price, most in zip(prices, self._most, strict=True)]
        unit = SUM_BITS - _bits(greatest + sum(spent))  # the sum is below 2**61 in this unit
        lower = _floors(cost, unit)
        tolerance = 2  # of the cost, which may also have lost what is below all floats
        for most, price, shift, use in zip(spent, prices, self._shifts, self._uses, strict=True):
            if most:
                whole = int(Fraction(price) * Fraction(2) ** (unit - shift))  # below 2**32
                lower += whole * use
                tolerance += whole + (1 << USE_BITS) + 1
        least = np.minimum.reduceat(lower, instance.first)
        return np.asarray(lower <= np.repeat(least + tolerance, instance.counts))


def _bits(value: Fraction) -> int:
    """Return n with value < 2**n, and for a float above 0 also value >= 2**(n - 1)."""
    return value.numerator.bit_length() - value.denominator.bit_length() + 1


def _floors(values: Floats, shift: int) -> Wholes:
    """Return values times a power of two, rounded down."""
    if abs(shift) <= 1000:  # 2.0 to this power is a float
        return np.floor(values * 2.0**shift).astype(np.int64)  # the same, and faster
    return np.floor(np.ldexp(values, shift)).astype(np.int64)
