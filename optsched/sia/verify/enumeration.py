"""The verifier of rounds, where prices alone leave a gap: all partial plans are enumerated.

For prices of the capacities, every option has an excess over the cheapest one of its job. The
Lagrangian bound says that the excesses of a plan below the bound add up to less than a budget; so
it is for every one of several vectors of prices. All partial plans that keep every budget are
enumerated, job by job: if none is left at the end, no plan costs less than the bound.

Excesses and budgets are exact integers. For the enumeration they are put in units in which a budget
is at most 2**40, excesses rounded down and budgets up, so that no plan is lost and no sum of two
numbers overflows 63 bits. Partial plans of the same uses are put together, with the least sum of
every row: that loses no plan either, and there are no more of them than uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from optsched.sia.verify.reduced_costs import ReducedCosts

    Wholes = NDArray[np.int64]

MOST_SUMS = 1_000_000_000  # that an enumeration may compute: seconds
AT_ONCE = 1 << 20  # sums: 8 MiB


class PriceRow(NamedTuple):
    """Prices of the capacities, for costs, or (`farkas`) for uses alone."""

    farkas: bool
    prices: tuple[float, ...]


class _Table(NamedTuple):
    """Excesses of the options in one row's unit, option by option, and what they must stay below.

    A plan below the bound has excesses whose sum is less than `budget`.
    """

    excess: list[int]
    budget: int


def unproven(
    problem: ReducedCosts, options: list[int], rows: Sequence[PriceRow], bound: Fraction | None
) -> str | None:
    """Return why it is not proven that no plan of these options costs less; None if it is.

    Parameters
    ----------
    options
        In ascending order, at least one of every job.
    bound
        What no plan is to cost less than; None if there is to be no plan at all.
    """
    capacities = len(problem.capacity)
    units = [tuple(float(k == number) for k in range(capacities)) for number in range(capacities)]
    every = [*rows, PriceRow(False, (0.0,) * capacities), *[PriceRow(True, unit) for unit in units]]
    every = [row for row in every if row.farkas or bound is not None]
    if not every:
        return "there is no capacity that a plan could exceed"
    for row in every:
        table = _table(problem, options, row, bound)
        pairs = zip(options, table.excess, strict=True)
        kept = [option for option, excess in pairs if excess < table.budget]
        if len(set(problem.job(kept))) < problem.jobs:
            return None  # a job is left without an option
        options = kept
    tables = [_table(problem, options, row, bound) for row in every]
    if any(table.budget <= 0 for table in tables):
        return None
    excess = np.array([_in_units(table) for table in tables], dtype=np.int64).T
    budget = np.array([_units(table) for table in tables], dtype=np.int64)
    own: dict[int, list[int]] = {}
    for n, job in enumerate(problem.job(options)):
        own.setdefault(job, []).append(n)
    choices = [excess[places] for places in own.values() if len(places) > 1]
    choices.sort(key=lambda choice: -float((choice / budget).max(axis=0).sum()))
    return _enumerate(choices, budget, capacities)


def _table(
    problem: ReducedCosts, options: list[int], row: PriceRow, bound: Fraction | None
) -> _Table:
    """Price options exactly, in whole multiples of one over a power of two."""
    priced, unit = problem.priced(options, row.prices, farkas=row.farkas)
    jobs, least = problem.job(options), dict[int, int]()
    for job, value in zip(jobs, priced, strict=True):
        least[job] = min(value, least.get(job, value))
    excess = [value - least[job] for job, value in zip(jobs, priced, strict=True)]
    capacity_value = problem.capacity_value(row.prices)
    if row.farkas:  # a plan uses at most the capacities: excesses of at most this, so below the
        return _Table(
            excess, _floor(capacity_value * unit) - sum(least.values()) + 1
        )  # next whole number
    assert bound is not None
    return _Table(
        excess, -_floor(-(bound + capacity_value) * unit) - sum(least.values())
    )  # rounded up


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _shift(table: _Table) -> int:
    return max(table.budget.bit_length() - 40, 0)


def _in_units(table: _Table) -> list[int]:
    """Return excesses in units of a power of two, rounded down, at most 2**40.

    One that reaches the budget, as others were left out, is in no plan below the bound: it counts
    as the budget in units, which is rounded up, so that it reaches that one as well.
    """
    shift, most = _shift(table), _units(table)
    return [e >> shift if e < table.budget else most for e in table.excess]


def _units(table: _Table) -> int:
    """Return the budget in the same units, rounded up: at most 2**40."""
    return -(-table.budget >> _shift(table))


def _enumerate(choices: list[Wholes], budget: Wholes, capacities: int) -> str | None:
    """Return why partial plans are left at the end; None if there are none.

    Parameters
    ----------
    choices
        Of every job, shape (options, rows): excesses, at least 0.
    budget
        Shape (rows,): what sums of excesses stay below in plans that cost less.
    """
    stack, seen = [(0, np.zeros((1, len(budget)), dtype=np.int64))], 0
    while stack:
        level, sums = stack.pop()
        if level == len(choices):
            return "a plan may cost less"
        many = max(AT_ONCE // choices[level].size, 1)
        if len(sums) > many:
            stack.append((level, sums[many:]))
        seen += len(sums[:many]) * choices[level].size
        if seen > MOST_SUMS:
            return f"more than {MOST_SUMS:,} sums of partial plans are to be looked at"
        # a sum is below its budget, at most 2**40, and an excess at most 2**40: no overflow
        sums = (sums[:many, None, :] + choices[level][None, :, :]).reshape(-1, len(budget))
        sums = _together(sums[(sums < budget).all(axis=1)], capacities)
        if len(sums):
            stack.append((level + 1, sums))
    return None


def _together(sums: Wholes, capacities: int) -> Wholes:
    """Put partial plans of the same uses together: of each row the least sum.

    Whatever completes one of them below every budget completes these sums. All rows are of costs
    and uses, so but for rounding, which keeps plans of equal costs apart, all least sums are those
    of the cheapest.
    """
    if len(sums) < 2:
        return sums
    used = sums[:, sums.shape[1] - capacities :]
    order = np.lexsort(used.T) if capacities else np.arange(len(sums))
    sums, used = sums[order], used[order]
    is_new = np.concatenate(([True], (used[1:] != used[:-1]).any(axis=1)))
    together: Wholes = np.minimum.reduceat(sums, np.flatnonzero(is_new))
    return together
