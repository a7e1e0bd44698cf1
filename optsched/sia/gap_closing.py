"""Gap closing: dynamic programming by reaching with bounds (Morin & Marsten, Oper. Res. 1976).

All partial plans that may cost less than a target are enumerated, job by job. A partial plan is
fathomed where the Lagrangian bound of one of several vectors of prices reaches the target. This is
in floats, with a small allowance; the verifier does it again in integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.sia.settings import SETTINGS
from optsched.sia.verify.certificate import violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Indices, Round


class Rows(NamedTuple):
    """Vectors of prices.

    Attributes
    ----------
    prices
        Shape (rows, capacities).
    farkas
        Shape (rows,): whether they are Farkas duals, for uses alone.
    """

    prices: Floats
    farkas: Bools


class Below(NamedTuple):
    """What an enumeration came to.

    Attributes
    ----------
    plan
        The best plan that costs less than the target, an option of the common list for every job.
    is_complete
        Whether all was looked at.
    sums
        The work: how many sums were computed.
    """

    plan: Indices | None
    is_complete: bool
    sums: int


class _Tables(NamedTuple):
    """The options that a plan below the target may have, job by job.

    Attributes
    ----------
    options, excess
        Of each job, shape (own,) and (own, rows): excesses as shares of the row's budget.
    """

    options: list[Indices]
    excess: list[Floats]


def price_rows(prices: Floats, *, farkas: bool) -> Rows:
    """Return prices, and others near them: parts of the jobs have others that are best."""
    capacities, random = len(prices), np.random.default_rng(0)
    rows = [prices]
    for number in range(min(capacities, 8)):
        for sign in (1, -1):
            row = prices.copy()
            row[number] *= 1 + sign * SETTINGS.price_change
            rows.append(row)
    if capacities > 1:
        rows += [
            prices * np.exp(random.normal(0, SETTINGS.log_price_spread, capacities))
            for _ in range(SETTINGS.random_prices)
        ]
    return Rows(np.array(rows), np.full(len(rows), farkas))


def enumerate_below(
    instance: Round, rows: Rows, target: float, most: int, is_over: Callable[[], bool]
) -> Below:
    """Return the best plan that costs less than a target, infinite for the best of all."""
    capacities = len(instance.capacity)
    farkas = np.concatenate((rows.farkas, [False], np.ones(capacities, dtype=np.bool_)))
    rows = Rows(
        np.concatenate((rows.prices, np.zeros((1, capacities)), np.eye(capacities))), farkas
    )
    if np.isinf(target):
        rows = Rows(rows.prices[rows.farkas], rows.farkas[rows.farkas])
    tables = _tables(instance, rows, target)
    if tables is None:
        return Below(None, is_complete=True, sums=0)
    plans, sums = _complete(tables, capacities, most, is_over)
    if plans is None:
        return Below(None, is_complete=False, sums=sums)
    chosen = [own[plans[:, n]] for n, own in enumerate(tables.options)]
    return Below(*_best(instance, np.sort(np.array(chosen).T, axis=1), target), sums=sums)


def _best(instance: Round, plans: Indices, target: float) -> tuple[Indices | None, bool]:
    """Return the best plan that keeps the capacities exactly, and whether all were looked at."""
    if not len(plans):
        return None, True
    costs = instance.cost[plans].sum(axis=1)
    for plan in plans[np.argsort(costs, kind="stable")][: SETTINGS.most_candidates]:
        places = (plan - instance.first).tolist()
        if not violations(instance, places):
            return (plan, True) if instance.objective(places) < target else (None, True)
    return None, len(plans) <= SETTINGS.most_candidates


def _tables(instance: Round, rows: Rows, target: float) -> _Tables | None:
    """Leave out what exceeds a budget by itself; None if a job is left without an option."""
    options = np.arange(len(instance.cost), dtype=np.intp)
    for prices, farkas in zip(rows.prices, rows.farkas.tolist(), strict=True):
        options = options[_excess(instance, options, prices, target, farkas=farkas) < 1]
        if len(np.unique(instance.job[options])) < len(instance.jobs):
            return None
    pairs = zip(rows.prices, rows.farkas.tolist(), strict=True)
    excess = [_excess(instance, options, row, target, farkas=farkas) for row, farkas in pairs]
    table = np.array(excess).reshape(len(rows.prices), len(options)).T
    ends = np.flatnonzero(np.diff(instance.job[options])) + 1
    own = list(zip(np.split(options, ends), np.split(table, ends), strict=True))
    if any((excess >= 1).all(axis=0).any() for _, excess in own):
        return None
    own.sort(key=lambda pair: (len(pair[0]) > 1, -pair[1].max(axis=0).sum()))
    return _Tables([options for options, _ in own], [excess for _, excess in own])


def _excess(
    instance: Round, options: Indices, prices: Floats, target: float, *, farkas: bool
) -> Floats:
    """Return excesses over the cheapest options as shares of what plans below the target have."""
    priced = instance.use[options] @ prices
    if not farkas:
        priced = priced + instance.cost[options]
    job = instance.job[options]
    first = np.flatnonzero(np.concatenate(([True], job[1:] != job[:-1])))
    least = np.minimum.reduceat(priced, first)
    limit = float(prices @ instance.capacity) + (0.0 if farkas else target)
    terms = float(np.abs(least).sum()) + abs(limit)
    budget = limit - float(least.sum()) + SETTINGS.budget_allowance * terms
    excess = priced - np.repeat(least, np.diff(np.append(first, len(options))))
    if budget > 0:
        return np.asarray(excess / budget)
    # no plan at all, or one without any excess if there is no cost and nothing to use either
    return np.where((excess > 0) | (budget < 0) | (terms > 0), 1.0, 0.0)


def _complete(
    tables: _Tables, capacities: int, most: int, is_over: Callable[[], bool]
) -> tuple[Indices | None, int]:
    """Return all plans that keep the budgets, by places among `options`; None if too many.

    Of plans that use the same, only the cheapest is sure to be there.
    """
    rows = tables.excess[0].shape[1]
    stack: list[tuple[Floats, Indices]] = [(np.zeros((1, rows)), np.zeros((1, 0), np.intp))]
    complete, seen = [], 0
    while stack:
        sums, paths = stack.pop()
        level = paths.shape[1]
        if level == len(tables.excess):
            complete.append(paths)
            continue
        own = tables.excess[level]
        many = max(SETTINGS.sums_at_once // own.size, 1)
        if len(sums) > many:
            stack.append((sums[many:], paths[many:]))
            sums, paths = sums[:many], paths[:many]
        seen += len(sums) * own.size
        if seen > most or is_over():
            return None, seen
        place = np.tile(np.arange(len(own), dtype=np.intp), len(sums))
        paths = np.column_stack((np.repeat(paths, len(own), axis=0), place))
        sums = (sums[:, None, :] + own[None, :, :]).reshape(-1, rows)
        keeps = (sums < 1).all(axis=1)
        sums, paths = _cheapest(sums[keeps], paths[keeps], capacities)
        if len(sums):
            stack.append((sums, paths))
    return np.concatenate(complete) if complete else np.zeros(
        (0, len(tables.excess)), np.intp
    ), seen


def _cheapest(sums: Floats, paths: Indices, capacities: int) -> tuple[Floats, Indices]:
    """Leave one of those partial plans that use the same."""
    if len(sums) < 2:
        return sums, paths
    used = sums[:, -capacities:] if capacities else sums[:, :0]
    order = np.lexsort((sums.sum(axis=1), *used.T))
    used = used[order]
    is_new = np.concatenate(([True], (used[1:] != used[:-1]).any(axis=1)))
    return sums[order[is_new]], paths[order[is_new]]


# --- the gap ----------------------------------------------------------------------------------


class Closed(NamedTuple):
    """What enumerations come to.

    Attributes
    ----------
    plan
        A plan that is better than what was known, or None.
    bound
        No plan costs less; infinite if there is none, minus infinity if nothing was shown.
    rows
        With these prices the verifier can show it.
    """

    plan: Indices | None
    bound: float
    rows: Rows


def close_gap(
    instance: Round, prices: Floats, bound: float, aim: float, is_over: Callable[[], bool]
) -> Closed:
    """Enumerate plans below targets that rise from a bound until there is one, or to an aim.

    Parameters
    ----------
    prices
        Shape (capacities,): those of the bound.
    aim
        Cost of the best plan known, less the gap asked for; infinite without one.
    is_over
        Whether time is up.
    """
    rows = price_rows(prices, farkas=False)
    size = max(abs(bound), SETTINGS.tightness * instance.scale) or 1.0
    step, work, proven = SETTINGS.first_step * size, 0, -np.inf
    while work < SETTINGS.most_sums:
        target = min(aim, bound + step)
        below = enumerate_below(instance, rows, target, SETTINGS.most_sums - work, is_over)
        if not below.is_complete:
            break
        proven = target
        if below.plan is not None:
            objective = instance.objective((below.plan - instance.first).tolist())
            return Closed(below.plan, objective - SETTINGS.tightness * abs(objective), rows)
        if target == aim or not np.isfinite(bound + step):
            break
        work += below.sums
        step *= (
            SETTINGS.step_growth
            if below.sums < SETTINGS.sums_of_slow_growth
            else SETTINGS.slow_step_growth
        )
    return Closed(None, proven, rows)


def prove_none(instance: Round, prices: Floats, is_over: Callable[[], bool]) -> Closed:
    """Enumerate all plans, in the hope that there is none."""
    rows = price_rows(prices, farkas=True)
    below = enumerate_below(instance, rows, np.inf, SETTINGS.most_sums // 4, is_over)
    is_none = below.is_complete and below.plan is None
    return Closed(below.plan, np.inf if is_none else -np.inf, rows)
