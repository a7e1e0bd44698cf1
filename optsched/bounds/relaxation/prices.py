"""Prices that prove much: those of the fluid schedule, then steps along what is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.bounds.relaxation.fluid import fluid_prices
from optsched.bounds.relaxation.rows import Pricing, Rows, Value, rows_of
from optsched.bounds.relaxation.slots import slot_edges

if TYPE_CHECKING:
    from optsched.bounds.least_times import World
    from optsched.documents.arrays import Floats


class PriceSettings(NamedTuple):
    """How prices are looked for.

    Attributes
    ----------
    slots, per_job
        Of time, about: so many at most, and so many for each job.
    most_steps, work
        Steps: so many at most, and so many that they look at so many pairs of job and slot.
    growth, decay
        Of the step after one that gained, or lost.
    """

    slots: int = 1500
    per_job: int = 20
    most_steps: int = 120
    work: int = 20_000_000
    growth: float = 1.15
    decay: float = 0.6

    def steps(self, pricing: Pricing) -> int:
        """Return how many steps there are."""
        return min(self.most_steps, self.work // max(1, pricing.size))


SETTINGS = PriceSettings()


class Relaxation(NamedTuple):
    """The relaxation by mean busy times, as far as its prices were found.

    Attributes
    ----------
    rows
        The jobs in it, and their numbers in the trace.
    edges
        Of slots, in seconds, shape (slots + 1,); GPUs are free afterwards.
    prices
        By slot, seconds of all jobs' JCT per GPU-second.
    value
        What they prove (in floats), and by job the threshold and the mean busy time.
    """

    rows: Rows
    edges: Floats
    prices: Floats
    value: Value

    def alpha_points(self, alpha: float) -> Floats:
        """Return by job the moment at which it has had a share of its time; NaN if it needs none.

        In the solution of the priced problem, where a job takes the cheapest time for itself.
        """
        from optsched.bounds.relaxation.alpha_points import alpha_points

        return alpha_points(self, alpha)


def relaxed(world: World, settings: PriceSettings = SETTINGS) -> Relaxation | None:
    """Return the relaxation of a world with good prices; None if no job holds GPUs."""
    rows = rows_of(world)
    if not len(rows.number):
        return None
    edges = slot_edges(world, min(settings.slots, settings.per_job * len(rows.number)))
    pricing = Pricing(rows, edges, float(world.capacity))
    prices = fluid_prices(rows, edges, float(world.capacity))
    value = pricing.value(prices)
    if prices.any():
        prices, value = _improved(pricing, prices, value, settings)
    return Relaxation(rows, edges, prices, value)


def _improved(
    pricing: Pricing, prices: Floats, value: Value, settings: PriceSettings
) -> tuple[Floats, Value]:
    """Go along the GPUs asked for beyond those there are, as long as it gains; all floats."""
    spans = np.diff(pricing.edges) * pricing.capacity
    best, at = value, prices
    step, momentum = 0.2, np.zeros(len(prices))
    scale = np.maximum(prices, prices.mean() / 10)
    for _ in range(settings.steps(pricing)):
        excess = np.clip(best.use / spans - 1, -1, 1)
        move = 0.5 * momentum + step * scale * excess
        trial = np.maximum(0, at + move)
        found = pricing.value(trial)
        if found.total > best.total:
            best, at, momentum, step = found, trial, move, step * settings.growth
        else:
            momentum, step = momentum * 0, step * settings.decay
        if step < 1e-5:
            break
    return at, best
