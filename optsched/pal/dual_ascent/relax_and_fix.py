"""Relax and fix (Dillenberger et al., EJOR 1994) on the smoothed dual.

At prices jobs ask for shares of gangs. Those that are asked for most are placed, and the others are
priced again on what is left, until all jobs are placed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.dual_ascent.ascent import OutOfTime, ascended
from optsched.pal.exact.rounding import GangPacking
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats
    from optsched.pal.dual_ascent.smoothed_dual import GangShare, SmoothedDual


class RelaxAndFix:
    """Places jobs as the smoothed dual of an instance suggests.

    Parameters
    ----------
    seconds_left
        Until the deadline, when jobs that are left are placed where it is cheapest; None for none.
    """

    def __init__(
        self, dual: SmoothedDual, seed: int, seconds_left: Callable[[], float | None]
    ) -> None:
        self.dual, self.problem = dual, dual.problem
        self.seconds_left = seconds_left
        self._draw = np.random.default_rng(seed)

    def packed(self, prices: Floats) -> GangPacking:
        """Return all jobs on GPUs, from prices (GPUs,) on."""
        packing = GangPacking(self.problem)
        for keep, share in zip(self.dual.keeps, self.dual.kept_shares(prices), strict=True):
            if share > 0.5:
                packing.put(keep.job, keep.gpus)
        self.fill(packing, prices, 0.0)
        return packing

    def fill(self, packing: GangPacking, prices: Floats, noise: float) -> None:
        """Place all jobs that are not placed, from prices on; with some noise in their order."""
        waiting = [
            [job for job in jobs.jobs if job not in packing.placed] for jobs in self.problem.types
        ]
        while any(waiting):
            counts = np.array([len(jobs) for jobs in waiting], dtype=float)
            part = self.dual.only(packing.free, counts)
            steps, smoothing = SETTINGS.fix_steps, SETTINGS.fix_smoothing
            try:
                prices = ascended(part, prices, smoothing, steps, self.seconds_left, packing.free)
            except OutOfTime:
                break
            if not self._fix(packing, waiting, part.shares(prices, smoothing), noise):
                break
        packing.fill()

    def _fix(
        self, packing: GangPacking, waiting: list[list[int]], asked: list[GangShare], noise: float
    ) -> bool:
        """Place jobs on gangs that are asked for most; return whether there were some."""
        sizes = [jobs.gpus for jobs in self.problem.types]
        wanted = sum(size * len(jobs) for size, jobs in zip(sizes, waiting, strict=True))
        drawn = self._draw.normal(0.0, noise, len(asked)) if noise else np.zeros(len(asked))
        worth = [
            min(gang.share, 1.0) * sizes[gang.type] ** 0.5 * np.exp(more)
            for gang, more in zip(asked, drawn.tolist(), strict=True)
        ]
        placed = 0
        for n in np.argsort(-np.array(worth), kind="stable").tolist():
            gang = asked[n]
            if waiting[gang.type] and packing.free[gang.gpus].all():
                packing.put(waiting[gang.type].pop(0), gang.gpus)
                placed += len(gang.gpus)
                if placed >= SETTINGS.fix_share * wanted:
                    break
        return placed > 0
