"""From a point of the relaxation to a plan, and the options to begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.mip.incremental_lp import Bools
    from optsched.sia.instance import Floats, Indices, Round

FEW, PER_JOB = 1000, 3  # options to begin with: so many, or more for more jobs


def moved_to_cheaper(found: Round, chosen: Indices, room: Floats) -> Indices:
    """Let jobs move to cheaper options that fit, the largest drop first."""
    is_open = found.cost < np.repeat(found.cost[chosen], found.counts)
    for use, left in zip(found.of_capacity, room.tolist(), strict=True):
        is_open &= use <= np.repeat(use[chosen] + left, found.counts)
    moves = np.flatnonzero(is_open)
    while len(moves):
        own = chosen[found.job[moves]]
        drop = found.cost[own] - found.cost[moves]
        fits = (found.use[moves] - found.use[own] <= room).all(axis=1)
        moves = moves[(drop > 0) & fits]
        if len(moves):
            best = moves[np.argmax(drop[(drop > 0) & fits])]
            job = found.job[best]
            room = room + found.use[chosen[job]] - found.use[best]
            chosen[job] = best
    return chosen


def first_options(found: Round, excess: Floats, basic: Bools) -> Indices:
    """Return the options of least excess, and the basic ones, of every job its best."""
    many = max(FEW, PER_JOB * len(found.jobs))
    if len(excess) <= many:
        return np.arange(len(excess), dtype=np.intp)
    most = np.partition(excess, many)[many]
    return np.flatnonzero((excess <= max(float(most), 0.0)) | basic)
