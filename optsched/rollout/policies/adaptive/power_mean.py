"""Least sums of separable costs within every number of GPUs, by dynamic programming."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Bools, Floats, Integers

MOST_TANGENTS = 60
ROUNDING = 1e-9
"""Of sums, far more than floating point makes of them."""


class Row(NamedTuple):
    """The widths of a job, 0 among them, and the cost 1/v of each."""

    gpus: tuple[int, ...]
    cost: tuple[float, ...]


class Best(NamedTuple):
    """Least sums of costs: `value[c]` within c GPUs, and which column each job then takes."""

    value: Floats
    choice: NDArray[np.int16]
    rows: Sequence[Row]

    def widths(self, gpus: int) -> list[int]:
        """Return the width of each job, if there are so many GPUs."""
        widths = []
        for n in reversed(range(len(self.rows))):
            width = self.rows[n].gpus[self.choice[n, gpus]]
            widths.append(width)
            gpus -= width
        return widths[::-1]


def best_widths(rows: Sequence[Row], gpus: int) -> Best:
    """Minimise the sum of costs within every number of GPUs, exactly: job by job, over all sums.

    Of equal costs a job takes the least width.
    """
    value = np.zeros(gpus + 1)
    choice = np.zeros((len(rows), gpus + 1), np.int16)
    for n, row in enumerate(rows):
        best = np.full(gpus + 1, np.inf)
        for column, (width, cost) in enumerate(zip(row.gpus, row.cost, strict=True)):
            if width > gpus:
                break
            reached = value[: gpus + 1 - width] + cost
            better = reached < best[width:]
            best[width:][better] = reached[better]
            choice[n, width:][better] = column
        value = best
    return Best(value, choice, rows)


# --- within so many GPUs alone -----------------------------------------------------------------


class Choices(NamedTuple):
    """What jobs may have, one after the other: widths, ascending from 0, and the cost of each.

    Attributes
    ----------
    gpus, cost
        Shape (columns,), all jobs' in one list.
    counts
        Shape (jobs,): how many of them are each job's.
    """

    gpus: Integers
    cost: Floats
    counts: Integers

    @classmethod
    def none(cls) -> Choices:
        """Return those of no job."""
        whole = np.zeros(0, np.int64)
        return cls(whole, np.zeros(0), whole)

    @property
    def first(self) -> Integers:
        """Shape (jobs,): where those of each job begin."""
        first: Integers = np.cumsum(self.counts) - self.counts
        return first


def widths_within(choices: Choices, gpus: int) -> list[int]:
    """Return the widths of least sum of costs within so many GPUs, as `best_widths` has them.

    Costs must be above 0. A price for each GPU bounds the least sum from below; a width that costs
    more than the best of its job, at this price, by more than what is between the bound and a plan
    is in no plan that is as good, nor in one that rounding makes as good. The dynamic program is
    over those that are left, and the numbers of GPUs that they can come to.
    """
    if not len(choices.counts):
        return []
    is_left = _may_be_best(choices, gpus)
    kept = is_left.nonzero()[0]
    if len(kept) == len(choices.counts):  # one of each job
        widths: list[int] = choices.gpus[kept].tolist()
        return widths
    counts = np.add.reduceat(is_left, choices.first, dtype=np.int64).tolist()
    return _by_table(choices.gpus[kept].tolist(), choices.cost[kept].tolist(), counts, gpus)


def _may_be_best(choices: Choices, gpus: int) -> Bools:
    """Return which columns a plan of least sum may have."""
    first, counts = choices.first, choices.counts

    def at(price: float) -> _Priced:
        priced = choices.cost + price * choices.gpus
        least = np.minimum.reduceat(priced, first)
        excess = priced - least.repeat(counts)
        free = (excess <= 0).nonzero()[0]
        plan = free[free.searchsorted(first)]
        used, cost = int(total(choices.gpus[plan])), float(total(choices.cost[plan]))
        return _Priced(plan, used, cost, float(total(least)) - price * gpus, excess)

    total = np.add.reduce
    low = at(0.0)
    best, plan = low, low.plan
    if low.used > gpus:
        best = high = at(2.0 * float(choices.cost.max()))  # there, none has any
        for _ in range(MOST_TANGENTS):
            if high.cost <= low.cost or low.used <= high.used:
                break
            here = at((high.cost - low.cost) / (low.used - high.used))
            best = max(best, here, key=lambda one: one.bound)
            if here.used in (low.used, high.used):
                break
            low, high = (here, high) if here.used > gpus else (low, here)
        plan = _filled_up(choices, low.plan, high.plan, gpus)
        _spend(choices, plan, gpus)
    most = float(choices.cost[plan].sum()) - best.bound
    size = 1.0 + float(choices.cost[plan].sum()) + abs(best.bound)
    is_left: Bools = best.excess <= most + ROUNDING * size
    return is_left


class _Priced(NamedTuple):
    """The cheapest columns at a price: what they use and cost, what it bounds, what others cost."""

    plan: Integers
    used: int
    cost: float
    bound: float
    excess: Floats


def _filled_up(choices: Choices, wide: Integers, narrow: Integers, gpus: int) -> Integers:
    """Return a plan between one that is too wide and one that is not: the first jobs are wide."""
    more = choices.gpus[wide] - choices.gpus[narrow]
    left = gpus - int(choices.gpus[narrow].sum())
    plan: Integers = np.where(np.cumsum(np.maximum(more, 0)) <= left, wide, narrow)
    return plan


def _spend(choices: Choices, plan: Integers, gpus: int) -> None:
    """Let jobs of a plan have what is left, one at a time: the one whose cost drops most by it.

    The nearer the plan is to the best one, the fewer widths are left to the dynamic program.
    """
    first, counts = choices.first, choices.counts
    left = gpus - int(choices.gpus[plan].sum())
    while left:
        more = choices.gpus - choices.gpus[plan].repeat(counts)
        drop = choices.cost[plan].repeat(counts) - choices.cost
        drop[more > left] = 0.0
        column = int(drop.argmax())
        if not drop[column]:
            break
        plan[first.searchsorted(column, "right") - 1] = column
        left -= int(more[column])


def _by_table(gpus: list[int], costs: list[float], counts: list[int], total: int) -> list[int]:
    """Return the best widths, job by job over what the jobs before may leave."""
    ends = list(accumulate(counts))
    spans = [(end - count, end) for end, count in zip(ends, counts, strict=True)]
    lowest = highest = total  # what may be left to the jobs up to one
    windows = [(total, total)]
    for first, end in reversed(spans):
        lowest, highest = max(0, lowest - gpus[end - 1]), highest - gpus[first]
        windows.append((lowest, highest))
    windows.reverse()
    value = np.zeros(windows[0][1] - windows[0][0] + 1)
    chosen: list[Integers | None] = []
    for n, (first, end) in enumerate(spans):
        value, which = _next_row(
            value, windows[n], windows[n + 1], gpus[first:end], costs[first:end]
        )
        chosen.append(which)
    widths = []
    for (first, _), which, window in zip(
        reversed(spans), reversed(chosen), reversed(windows), strict=False
    ):
        place = first if which is None else first + int(which[total - window[0]])
        widths.append(gpus[place])
        total -= gpus[place]
    return widths[::-1]


def _next_row(
    value: Floats, before: tuple[int, int], after: tuple[int, int], gpus: list[int], costs: Any
) -> tuple[Floats, Integers | None]:
    """Return the least sums with one job more, and which of its columns they take."""
    if len(gpus) == 1 and after[0] - gpus[0] >= before[0]:
        begin = after[0] - gpus[0] - before[0]
        return value[begin : begin + after[1] - after[0] + 1] + costs[0], None
    best = np.full(after[1] - after[0] + 1, np.inf)
    which = np.zeros(len(best), np.int64)
    for column, (width, cost) in enumerate(zip(gpus, costs, strict=True)):
        skipped = max(0, before[0] + width - after[0])  # there are fewer GPUs than that
        if skipped >= len(best):
            break
        begin = after[0] + skipped - width - before[0]
        reached = value[begin : begin + len(best) - skipped] + cost
        better = reached < best[skipped:]
        np.copyto(best[skipped:], reached, where=better)
        np.copyto(which[skipped:], column, where=better)
    return best, which
