"""Pricing: for prices of the capacities, the best option of every job, and what that proves."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from optsched.choice.round import Floats, Indices, Round

ROUNDING = 2.0**-48


class Priced(NamedTuple):
    """What prices of the capacities come to.

    Attributes
    ----------
    bound
        Every plan costs at least this: the Lagrangian value, less what rounding may have added;
        infinite if a job has no option left.
    excess
        Shape (options,): priced cost above that of the job's best option.
    """

    bound: float
    excess: Floats


class Pricing:
    """Prices the options of a round."""

    def __init__(self, found: Round) -> None:
        self.round = found
        most = [np.maximum.reduceat(use, found.first).sum() for use in found.of_capacity]
        self._cost_size = float(np.maximum.reduceat(np.abs(found.cost), found.first).sum())
        self._use_size = np.array(most) + found.capacity

    def price(self, prices: Floats, cost: Floats) -> Priced:
        """Return what prices, none below 0, come to.

        Parameters
        ----------
        cost
            Shape (options,): that of the round, infinite for options that are barred, or zero to
            price whether there is a plan.
        """
        found = self.round
        priced = cost.copy()
        for price, use in zip(prices.tolist(), found.of_capacity, strict=True):
            if price:
                priced += price * use
        least = np.minimum.reduceat(priced, found.first)
        if np.isinf(least).any():
            return Priced(np.inf, priced)
        total = fsum([*least.tolist(), *(-prices * found.capacity).tolist()])
        rounding = ROUNDING * (self._cost_size + float(prices @ self._use_size))
        return Priced(total - rounding, priced - np.repeat(least, found.counts))

    def best(self, excess: Floats) -> Indices:
        """Return the first option without excess of every job, shape (jobs,)."""
        free = np.flatnonzero(excess <= 0)
        return free[np.searchsorted(free, self.round.first)]
