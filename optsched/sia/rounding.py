"""Rounding heuristic of the relaxation, greedy improvement, and the options to begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.sia.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Indices, Round


def moved_to_cheaper(instance: Round, chosen: Indices, free: Floats) -> Indices:
    """Let jobs move to cheaper options that fit, the largest drop first."""
    is_open = instance.cost < np.repeat(instance.cost[chosen], instance.counts)
    for use, left in zip(instance.of_capacity, free.tolist(), strict=True):
        is_open &= use <= np.repeat(use[chosen] + left, instance.counts)
    moves = np.flatnonzero(is_open)
    while len(moves):
        own = chosen[instance.job[moves]]
        drop = instance.cost[own] - instance.cost[moves]
        fits = (instance.use[moves] - instance.use[own] <= free).all(axis=1)
        moves = moves[(drop > 0) & fits]
        if len(moves):
            best = moves[np.argmax(drop[(drop > 0) & fits])]
            job = instance.job[best]
            free = free + instance.use[chosen[job]] - instance.use[best]
            chosen[job] = best
    return chosen


def first_options(instance: Round, excess: Floats, basic: Bools) -> Indices:
    """Return the options of least excess, and the basic ones, of every job its best."""
    many = max(SETTINGS.columns_at_start, SETTINGS.columns_per_job_at_start * len(instance.jobs))
    if len(excess) <= many:
        return np.arange(len(excess), dtype=np.intp)
    most = np.partition(excess, many)[many]
    return np.flatnonzero((excess <= max(float(most), 0.0)) | basic)
