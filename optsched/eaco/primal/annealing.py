"""Simulated annealing (Kirkpatrick, Gelatt & Vecchi, Science 1983) of which jobs share.

The groups of a plan stand in pairs, and the jobs of each pair are parted anew: one of all ways to
part them into two groups is drawn by its cost (heat bath), for all pairs in one go. A dive's faults
are spread over many groups, which integer programs mend a few of at a time, and slowly.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from optsched.eaco.groups.columns import joined
from optsched.eaco.primal.diving import held
from optsched.eaco.primal.large_neighbourhood_search import keeps_cap, total
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.exact.column_generation import ColumnGeneration
    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.pricing_scope import Pricing

    Clock = Callable[[], float | None]


def annealed(
    generation: ColumnGeneration,
    x: Floats,
    goal: float,
    seed: int,
    clock: Clock,
    warmth: float | None = None,
    most_sweeps: int | None = None,
) -> Floats:
    """Return how often each group of the program is in a plan that costs no more.

    Groups that measured figures concern stay as they are, and so do the pools, gangs and power
    levels of all others: no plan takes more GPUs than before. Jobs are drawn together as if all
    that run were moved; of the groups that come of it, each takes over the location, if any, which
    saves most moves.

    Parameters
    ----------
    x
        The same of a plan that leaves no job out.
    goal
        Cost at which to stop.
    warmth
        The first temperature, in mean costs of a group; None for that of a plan that is not good.
    most_sweeps
        Over pairs of groups; None for as many as `SETTINGS` has.
    """
    rng = np.random.default_rng(seed)
    for pricing in generation.pricing_problems:
        cost = total(generation, x)
        if cost <= goal or clock() == 0:
            break
        which = _movable(generation, x, pricing)
        if len(which) < 2:
            continue
        at = _positions(generation, pricing)[generation.pool.members[which]]
        annealing = GroupAnnealing(pricing, at, rng, warmth)
        at = annealing.run(annealing.cost - (cost - goal), clock, most_sweeps)
        kept = x - np.bincount(which, minlength=len(x))
        taken = generation.pool.place[: len(x)][kept > SETTINGS.whole]
        x = _better(generation, x, which, _columns(generation, pricing, at, taken))
    return x


def _movable(generation: ColumnGeneration, x: Floats, pricing: Pricing) -> Indices:
    """Return the groups of a plan, each as often as it is there, that a pricing problem has."""
    if pricing.is_measured and not pricing.is_sequenced:
        return np.zeros(0, dtype=np.intp)
    which = np.repeat(np.arange(len(x)), np.rint(x).astype(int))
    plan, where = generation.pool.take(which), _positions(generation, pricing)
    is_on = (plan.pool == pricing.pool) & (plan.level == pricing.level)
    which = which[is_on & (plan.gang == pricing.gang) & (where[plan.members] >= 0).all(axis=1)]
    costs = pricing.costs(where[generation.pool.members[which]])
    return np.asarray(which[np.isfinite(costs)])


def _positions(generation: ColumnGeneration, pricing: Pricing) -> Indices:
    """Return the position of each class; -1 for those that a pricing problem does not have."""
    at = np.full(len(generation.frame.copies) + 1, -1)
    at[pricing.classes], at[-1] = np.arange(len(pricing.classes)), len(pricing.classes)
    return at


def _columns(
    generation: ColumnGeneration, pricing: Pricing, at: Indices, taken: Indices
) -> Columns:
    """Return groups as columns of the pricing problem's nodes and level, where they cost least.

    Parameters
    ----------
    at
        Shape (groups, most): their positions; groups without jobs are left out.
    taken
        Locations that other groups keep.
    """
    many = len(pricing.classes)
    at = np.sort(at[(at < many).any(axis=1)], axis=1)
    at = np.append(pricing.classes, len(generation.frame.copies))[at]
    _, firsts, times = np.unique(at, axis=0, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    rows, times = np.sort(at[firsts[order]], axis=1), times[order]
    groups = generation.known_groups(rows)
    is_on = (groups.pool == pricing.pool) & (groups.level == pricing.level)
    groups = groups.take(np.flatnonzero(is_on & (groups.gang == pricing.gang)))
    number = {tuple(row): n for n, row in enumerate(rows.tolist())}
    of = np.array([number[tuple(row)] for row in np.sort(groups.members, axis=1).tolist()])
    away = np.full(len(rows), -1)
    away[of[groups.place < 0]] = np.flatnonzero(groups.place < 0)
    chosen = np.repeat(away, times)
    first = np.cumsum(times) - times
    for n, column in _homes(groups, of, away, taken):
        chosen[first[n]] = column
    return groups.take(np.sort(chosen[chosen >= 0]))


def _homes(
    groups: Columns, of: Indices, away: Indices, taken: Indices
) -> Iterator[tuple[int, int]]:
    """Yield groups that take over locations, with the columns that say so: an assignment.

    Parameters
    ----------
    of, away
        The group of each column; the column of each group off all locations.
    """
    at_home = np.flatnonzero((groups.place >= 0) & ~np.isin(groups.place, taken))
    at_home = at_home[away[of[at_home]] >= 0]
    saves = groups.cost[away[of[at_home]]] - groups.cost[at_home]
    at_home, saves = at_home[saves > 0], saves[saves > 0]
    places, where = np.unique(groups.place[at_home], return_inverse=True)
    gain = np.zeros((len(away), len(places)))
    column = np.full(gain.shape, -1)
    gain[of[at_home], where], column[of[at_home], where] = saves, at_home
    for n, place in zip(*linear_sum_assignment(gain, maximize=True), strict=True):
        if column[n, place] >= 0:
            yield int(n), int(column[n, place])


def _better(generation: ColumnGeneration, x: Floats, which: Indices, fresh: Columns) -> Floats:
    """Return the plan with other groups for some, if it is allowed and costs less."""
    kept = x - np.bincount(which, minlength=len(x))
    generation.add(fresh)
    chosen = generation.pool.take(np.repeat(np.arange(len(x)), np.rint(kept).astype(int)))
    better, many = generation.amounts_of(joined([chosen, fresh])), len(generation.frame.copies)
    x = np.append(x, np.zeros(len(better) - len(x)))
    members = generation.pool.members
    has_all = (held(members, better, many) == held(members, x, many)).all()
    is_better = total(generation, better) < total(generation, x)
    return better if has_all and is_better and keeps_cap(generation, better) else x


class GroupAnnealing:
    """Groups of a pricing problem, whose jobs change places.

    Parameters
    ----------
    at
        Shape (groups, most): positions, filled up with the number of jobs.
    warmth
        As of `annealed`.

    Attributes
    ----------
    cost
        Of all groups.
    """

    def __init__(
        self,
        pricing: Pricing,
        at: Indices,
        rng: np.random.Generator,
        warmth: float | None = None,
    ) -> None:
        self._pricing, self._at, self._rng = pricing, at, rng
        first, last = SETTINGS.annealing_heat
        self._heat = (first if warmth is None else warmth, last)
        self._costs = pricing.costs(at)
        self.cost = float(self._costs.sum())
        work = np.append(pricing.work, 0.0)
        self._length = np.log(np.maximum(work, SETTINGS.done_share * work.max(initial=1e-300)))

    def run(self, goal: float, clock: Clock, most_sweeps: int | None = None) -> Indices:
        """Return the best groups that were seen; it ends at once where they cost so little."""
        best, least = self._at.copy(), self.cost
        hot, cold = (share * least / len(best) for share in self._heat)
        sweeps = self._sweeps(most_sweeps)
        for sweep in range(sweeps):
            if clock() == 0 or least <= goal:
                break
            self._sweep(sweep, hot * (cold / hot) ** (sweep / sweeps))
            cost = float(self._costs.sum())
            if cost < least:
                best, least = self._at.copy(), cost
        return best

    def _sweeps(self, most: int | None) -> int:
        """Return how often all pairs are parted anew: fewer times where that takes longer."""
        groups, width = self._at.shape
        ways = min(comb(2 * width - 1, width), SETTINGS.annealing_ways)
        costs = SETTINGS.annealing_costs[not self._pricing.is_exact]
        sweeps = SETTINGS.annealing_sweeps if most is None else most
        return int(min(sweeps, costs // (ways * groups)))

    def _sweep(self, sweep: int, heat: float) -> None:
        """Part the jobs of all pairs anew."""
        one, two = self._pairs(sweep)
        slots = np.hstack([self._at[one], self._at[two]])
        halves = slots[:, self._ways()]  # (pairs, ways, 2, most)
        costs = self._pricing.costs(halves.reshape(-1, halves.shape[-1]))
        costs = costs.reshape(halves.shape[:3])
        whole = costs.sum(axis=2)
        drawn = np.argmin(whole + heat * np.log(self._rng.exponential(size=whole.shape)), axis=1)
        pair = np.arange(len(one))
        self._at[one], self._at[two] = halves[pair, drawn, 0], halves[pair, drawn, 1]
        self._costs[one], self._costs[two] = costs[pair, drawn, 0], costs[pair, drawn, 1]

    def _pairs(self, sweep: int) -> tuple[Indices, Indices]:
        """Return pairs of groups whose jobs are about as long, as a rule, so that they may fit."""
        many, noise = len(self._at), SETTINGS.annealing_noise
        longest = self._length[self._at].max(axis=1)
        far = noise[sweep % len(noise)]
        order = np.argsort(longest + self._rng.normal(0.0, far, many), kind="stable")
        order = order[many % 2 * int(self._rng.integers(2)) :]
        return order[0 : len(order) // 2 * 2 : 2], order[1::2]

    def _ways(self) -> Indices:
        """Return ways to part the slots of two groups, (ways, 2, most); as it is, first."""
        most = self._at.shape[1]
        if comb(2 * most - 1, most) <= SETTINGS.annealing_ways:
            others = [(0, *rest) for rest in combinations(range(1, 2 * most), most - 1)]
            first = np.array(others)
        else:
            shape = (SETTINGS.annealing_ways, 2 * most)
            drawn = np.argsort(self._rng.random(shape), axis=1)[:, :most]
            first = np.vstack([np.arange(most), drawn[1:]])
        is_first = np.zeros((len(first), 2 * most), dtype=bool)
        np.put_along_axis(is_first, first, values=True, axis=1)
        second = np.nonzero(~is_first)[1].reshape(len(first), most)
        return np.stack([first, second], axis=1)
