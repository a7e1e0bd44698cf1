"""Diving with column generation (Sadykov et al., INFORMS Journal on Computing 31, 2019).

From a fractional point to a plan groups are fixed, a few at a time; after each step the groups of
the jobs that are left are priced again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.settings import SETTINGS
from optsched.mip.column_generation import Priced, generate

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.exact.column_generation import ColumnGeneration
    from optsched.eaco.exact.master import Duals
    from optsched.eaco.groups.columns import Columns
    from optsched.mip.incremental_lp import Solved

    Clock = Callable[[], float | None]


def dive(generation: ColumnGeneration, solved: Solved, step: float, clock: Clock) -> Floats | None:
    """Return how often each group of the program is in a plan; None if some job is left out.

    Parameters
    ----------
    step
        Share of the groups that are left which are fixed at once, at least.
    """
    master, first = generation.master, generation.first
    try:
        return _fixed(generation, solved, step, clock)
    finally:
        at = first + np.arange(len(generation.pool.cost))
        master.limit_columns(at, np.zeros(len(at)), np.full(len(at), np.inf))


def _fixed(
    generation: ColumnGeneration, solved: Solved, step: float, clock: Clock
) -> Floats | None:
    lower = np.zeros(len(generation.pool.cost))
    for _ in range(SETTINGS.dive_steps):
        if clock() == 0:
            return None
        x = generation.amounts(solved)
        lower = np.append(lower, np.zeros(len(x) - len(lower)))
        if (np.abs(x - np.rint(x)) < 1e-6).all():
            must = solved.x[: generation.master.classes][generation.frame.must]
            return np.rint(x) if must.sum() < 1e-6 else None
        lower = _raised(generation, x, lower, step)
        again = _again(generation, lower, clock)
        if again is None:
            return None
        solved = again
    return None


def _again(generation: ColumnGeneration, lower: Floats, clock: Clock) -> Solved | None:
    """Solve with some groups fixed, and price those of the jobs that are left."""
    pool, copies = generation.pool, generation.frame.copies
    left = copies - held(pool.members, lower, len(copies))
    upper = np.where(fit(pool.members, left), np.inf, lower)
    at = generation.first + np.arange(len(lower))
    generation.master.limit_columns(at, lower, upper)

    def price(duals: Duals) -> Priced[Duals, Columns]:
        columns = generation.among(duals, left)
        return Priced(columns, len(columns.cost), duals)

    outcome = generate(generation, price, rounds=SETTINGS.dive_rounds)
    return None if outcome.reason == "unsolved" else outcome.solved


def _raised(generation: ColumnGeneration, x: Floats, lower: Floats, step: float) -> Floats:
    """Return how often groups are fixed after one more step."""
    pool, copies = generation.pool, generation.frame.copies
    lower = np.maximum(lower, np.floor(x + 1e-6))
    left = copies - held(pool.members, lower, len(copies))
    share = x - lower
    order = np.argsort(-share, kind="stable")
    order = order[share[order] > 1e-6]
    least = max(1, int(step * share[order].sum()))
    for n in order.tolist():
        if share[n] < SETTINGS.dive_sure and least <= 0:
            break
        members, times = np.unique(
            pool.members[n][pool.members[n] < len(copies)], return_counts=True
        )
        if (left[members] >= times - 1e-6).all():
            lower[n] += 1
            left[members] -= times
            least -= 1
    return lower


def fit(members: Indices, left: Floats) -> Bools:
    """Tell which groups have no more jobs of any class than are left."""
    most = np.append(left, np.inf) + 1e-6
    fits = np.ones(len(members), dtype=bool)
    for n in range(members.shape[1]):
        fits &= (members == members[:, n : n + 1]).sum(axis=1) <= most[members[:, n]]
    return fits


def held(members: Indices, times: Floats, classes: int) -> Floats:
    """Return how many jobs of each class groups have."""
    each = np.repeat(times[:, None], members.shape[1], axis=1)
    return np.asarray(
        np.bincount(members.ravel(), weights=each.ravel(), minlength=classes + 1)[:classes], float
    )
