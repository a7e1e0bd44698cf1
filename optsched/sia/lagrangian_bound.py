"""Lagrangian bound of a round: the capacities are relaxed (Fisher, Management Science 1981)."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.sia.arrays import Floats, Indices, Round


class LagrangianValue(NamedTuple):
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

    def __init__(self, instance: Round) -> None:
        self.round = instance
        self._is_signed = bool((instance.cost < 0).any())
        self._rounding = SETTINGS.rounding * (2 + len(instance.capacity))

    def price(self, prices: Floats, cost: Floats) -> LagrangianValue:
        """Return what prices, none below 0, come to.

        Parameters
        ----------
        cost
            Shape (options,): that of the round, infinite for options that are barred, or zero to
            price whether there is a plan.
        """
        instance = self.round
        priced = cost.copy()
        for price, use in zip(prices.tolist(), instance.of_capacity, strict=True):
            if price:
                priced += price * use
        least = np.minimum.reduceat(priced, instance.first)
        if np.isinf(least).any():
            return LagrangianValue(np.inf, priced)
        spent = -prices * instance.capacity
        terms = [*self._lower(priced, least, cost).tolist(), *spent.tolist()]
        total = fsum(terms)
        rounding = self._rounding * (float(prices @ instance.capacity) + abs(total))
        return LagrangianValue(total - rounding, priced - np.repeat(least, instance.counts))

    def _lower(self, priced: Floats, least: Floats, cost: Floats) -> Floats:
        """Return what the cheapest options cost at least: terms without what rounding added.

        An option's rounding is relative to its own terms: a large one does not spoil a small one.
        """
        if not self._is_signed:
            return least * (1 - self._rounding)
        terms = np.where(np.isinf(priced), 0.0, priced - 2 * np.minimum(cost, 0.0))
        return np.asarray(np.minimum.reduceat(priced - self._rounding * terms, self.round.first))

    def best(self, excess: Floats) -> Indices:
        """Return the first option without excess of every job, shape (jobs,)."""
        free = np.flatnonzero(excess <= 0)
        return free[np.searchsorted(free, self.round.first)]
