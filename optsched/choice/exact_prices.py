"""The verifier of the choice problem: what options cost at prices of the capacities, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.choice.round import Round


class Problem:
    """A round as the verifier reads it: plain integers, and floats that stand for fractions.

    Attributes
    ----------
    first, counts
        Of each job: its first option, and how many it has.
    job
        Of each option.
    capacity
        Of each kind.
    """

    def __init__(self, found: Round) -> None:
        self.round = found
        self.first: list[int] = found.first.tolist()
        self.counts: list[int] = found.counts.tolist()
        self.job: list[int] = found.job.tolist()
        self.capacity: list[float] = found.capacity.tolist()

    def rent(self, prices: Sequence[float]) -> Fraction:
        """Return what all of the capacities come to."""
        pairs = zip(prices, self.capacity, strict=True)
        return sum((Fraction(price) * Fraction(room) for price, room in pairs), Fraction(0))

    def priced(
        self, options: Sequence[int], prices: Sequence[float], *, misfit: bool
    ) -> tuple[list[int], int]:
        """Return costs and priced uses of options, in whole multiples of one over the second.

        Parameters
        ----------
        misfit
            Whether uses alone count.
        """
        whole, price_unit = _whole(prices)
        places = list(options)
        costs, cost_unit = [0] * len(places), 1
        if not misfit:
            costs, cost_unit = _whole(self.round.cost[places].tolist())
        uses, use_unit = _whole(self.round.use[places].ravel().tolist())
        weight = price_unit * use_unit
        priced = [weight * each for each in costs]
        for kind, price in enumerate(whole):
            if price:
                factor, used = price * cost_unit, uses[kind :: len(whole)]
                priced = [value + factor * use for value, use in zip(priced, used, strict=True)]
        return priced, cost_unit * weight


def _whole(numbers: Sequence[float]) -> tuple[list[int], int]:
    """Return floats as multiples of one over a power of two, and that power."""
    ratios = [number.as_integer_ratio() for number in numbers]
    unit = max((below for _, below in ratios), default=1)
    return [above * (unit // below) for above, below in ratios], unit
