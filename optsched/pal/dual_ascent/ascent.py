"""Prices of GPUs by ascent on the smoothed dual (Nesterov 2005; L-BFGS-B: Byrd et al., SISC 1995).

The less the dual is smoothed, the nearer its maximum is to that of the Lagrangian dual, which is
the value of the linear program over whole gangs; each stage begins where a smoother one ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.dual_ascent.smoothed_dual import SmoothedDual
from optsched.pal.exact.lagrangian_bound import PricedDuals, without_cuts
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools, Floats
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import Lagrangian
    from optsched.pal.exact.relaxation import GangOptions


class OutOfTime(Exception):
    """Ends an ascent from within."""


class DualAscent:
    """Ascends the dual of one instance.

    Parameters
    ----------
    seconds_left
        Until the deadline; None without one.

    Attributes
    ----------
    dual
        What is ascended.
    bound
        The duals that prove most so far.
    """

    def __init__(
        self,
        problem: PalArrays,
        options: GangOptions,
        lagrangian: Lagrangian,
        seconds_left: Callable[[], float | None],
    ) -> None:
        self.problem, self.options, self.lagrangian = problem, options, lagrangian
        self.seconds_left = seconds_left
        self.bound = self._priced(np.zeros(len(problem.gpus)))
        jobs = sum(len(jobs.jobs) for jobs in problem.types)
        self.dual = SmoothedDual(problem, max(self.bound.value, 1e-300) / jobs)

    def run(self, is_enough: Callable[[float], bool]) -> PricedDuals:
        """Return duals that prove nearly as much as any, or enough."""
        count, jobs = len(self.problem.gpus), float(self.dual.counts.sum() + len(self.dual.keeps))
        prices = np.full(count, SETTINGS.first_price * jobs / count)
        return self._climb(prices, SETTINGS.smoothing, SETTINGS.ascent_steps, is_enough)

    def go_on(self, is_enough: Callable[[float], bool]) -> PricedDuals:
        """Return duals that prove more, from the best ones on, where that takes many steps.

        With thousands of options for a job, as from a thousand GPUs on, the first steps of each
        stage end before its maximum.
        """
        prices = self.bound.solution.duals.gpus / self.dual.unit
        return self._climb(prices, SETTINGS.late_smoothing, SETTINGS.late_steps, is_enough)

    def _climb(
        self,
        prices: Floats,
        stages: tuple[float, ...],
        steps: int,
        is_enough: Callable[[float], bool],
    ) -> PricedDuals:
        for smoothing in stages:
            try:
                prices = ascended(self.dual, prices, smoothing, steps, self.seconds_left)
            except OutOfTime:
                break
            priced = self._priced(prices * self.dual.unit)
            self.bound = max(self.bound, priced, key=lambda each: each.value)
            if is_enough(self.bound.value):
                break
            self.dual.refine(self.options, priced.priced)
        return self.bound

    def _priced(self, duals: Floats) -> PricedDuals:
        solution = without_cuts(duals)
        return PricedDuals(solution, solution.priced(self.problem, self.options, self.lagrangian))


def ascended(
    dual: SmoothedDual,
    prices: Floats,
    smoothing: float,
    steps: int,
    seconds_left: Callable[[], float | None],
    free: Bools | None = None,
) -> Floats:
    """Return prices of more value, after so many steps from some prices on.

    Parameters
    ----------
    free
        Shape (GPUs,): others are not to be had; all by default.

    Raises
    ------
    OutOfTime
        If there is none.
    """
    from scipy.optimize import minimize  # slow to import

    taken = np.zeros(len(prices)) if free is None else np.where(free, 0.0, dual.far)
    moved = np.arange(len(prices)) if free is None else np.flatnonzero(free)

    def negated(some: Floats) -> tuple[float, Floats]:
        if seconds_left() == 0:
            raise OutOfTime
        every = taken.copy()
        every[moved] = some
        value, gradient = dual.value(every, smoothing)
        return -value - float(taken.sum()), -gradient[moved]

    found = minimize(
        negated,
        np.maximum(prices[moved], 0.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(moved),
        options={
            "maxiter": steps,
            "maxfun": steps,
            "maxcor": SETTINGS.ascent_memory,
            "ftol": SETTINGS.ascent_flat,
        },
    )
    every = taken.copy()
    every[moved] = found.x
    return every
