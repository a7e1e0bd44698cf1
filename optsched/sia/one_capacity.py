"""Rounds that need no linear program: options that all fit, and capacities of one kind.

With one capacity in whole numbers, as GPUs of one type are, the best plan comes from dynamic
programming over what is used (Dudzinski & Walukiewicz, EJOR 1987), and the best price from tangents
of the Lagrangian function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.sia.arrays import Floats, Indices, Round


def cheapest(instance: Round) -> Indices | None:
    """Return the first option of least cost of every job; None if these exceed a capacity."""
    excess = instance.cost - np.repeat(
        np.minimum.reduceat(instance.cost, instance.first), instance.counts
    )
    free = np.flatnonzero(excess <= 0)
    chosen: Indices = free[np.searchsorted(free, instance.first)]
    fits = (instance.use[chosen].sum(axis=0) <= instance.capacity).all()
    return chosen if fits else None


def in_wholes(instance: Round) -> Indices | None:
    """Return what options use of the only capacity, shape (options,), and last the capacity.

    In the largest whole unit of all uses. None if there are more capacities, uses that are not
    whole, or too many units for a table.
    """
    if len(instance.capacity) != 1 or (instance.use != np.rint(instance.use)).any():
        return None
    use = instance.use[:, 0]
    room = min(float(instance.capacity[0]), float(use.sum()))
    if room * len(use) > SETTINGS.most_table:
        return None
    wholes = np.minimum(use, room + 1).astype(np.intp)
    return np.append(wholes, int(room)) // max(int(np.gcd.reduce(wholes)), 1)


def best_plan(instance: Round, uses: Indices, options: Indices) -> Indices | None:
    """Return a plan of least cost, up to the rounding of sums; None if there is none.

    Parameters
    ----------
    uses
        As of `in_wholes`.
    options
        That the plan may take, in ascending order, at least one of every job.
    """
    use, job, room = uses[options], instance.job[options], int(uses[-1])
    ends = [*(np.flatnonzero(np.diff(job)) + 1).tolist(), len(options)]
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    room -= sum(int(use[first]) for first, end in spans if end == first + 1)
    if room < 0:
        return None
    wholes, costs = use.tolist(), instance.cost[options].tolist()
    upto = np.full(room + 1, np.inf)
    upto[0] = 0.0  # least cost of the jobs so far, by what they use
    table = []
    for first, end in spans:
        if end == first + 1:
            continue
        least, best = np.full(room + 1, np.inf), np.zeros(room + 1, dtype=np.int32)
        for n in range(first, end):
            if wholes[n] <= room:
                after, sums = least[wholes[n] :], upto[: room + 1 - wholes[n]] + costs[n]
                np.copyto(best[wholes[n] :], n - first, where=sums < after)  # the first of equals
                np.minimum(after, sums, out=after)
        table.append((first, best))
        upto = least
    at, plan = int(upto.argmin()), {}
    if not np.isfinite(upto[at]):
        return None
    for first, best in reversed(table):
        plan[first] = first + int(best[at])
        at -= int(use[plan[first]])
    chosen: Indices = options[[plan.get(first, first) for first, _ in spans]]
    return chosen


def best_price(instance: Round) -> tuple[Floats, Indices | None]:
    """Return the price of the only capacity that proves most, shape (1,), by tangents.

    Also the plan of its cheapest options that use no more than there is; None if all use more.
    """
    capacity, use = float(instance.capacity[0]), instance.use[:, 0]

    def tangent(price: float) -> _Tangent:
        """Return the cheapest options, of equal ones the first."""
        priced = instance.cost + price * use
        least = np.repeat(np.minimum.reduceat(priced, instance.first), instance.counts)
        free = np.flatnonzero(priced <= least)
        plan = free[np.searchsorted(free, instance.first)]
        return _Tangent(float(instance.cost[plan].sum()), float(use[plan].sum()) - capacity, plan)

    low, price = tangent(0.0), 1.0 + 2 * float(np.ptp(instance.cost))
    high = tangent(price)
    for _ in range(SETTINGS.most_tangents):
        if low.excess <= 0 or high.excess > 0 or high.cost <= low.cost:
            break
        price = (high.cost - low.cost) / (low.excess - high.excess)
        here = tangent(price)
        if here[:2] in (low[:2], high[:2]):
            break
        low, high = (here, high) if here.excess > 0 else (low, here)
    return np.array([price]), high.plan if high.excess <= 0 else None


class _Tangent(NamedTuple):
    """Options that cost least at a price: their own cost, and what they use beyond the capacity."""

    cost: float
    excess: float
    plan: Indices
