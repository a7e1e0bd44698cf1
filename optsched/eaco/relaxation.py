"""The linear relaxation over all groups: few are in the program, the others are priced in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from optsched.eaco.master import Master, Prices
from optsched.eaco.rules import FRACTION, NodesUsed, Rounded, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from optsched.eaco.columns import Columns
    from optsched.eaco.master import Frame
    from optsched.linear import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

FIRST = 2_000  # groups in the program at first
ADDED = 600  # at most in one round
TOLERANCE = 1e-9  # of a reduced cost, relative to the dearest group


class Case(NamedTuple):
    """A rule and a number: its count is at most that, or at least one more."""

    rule: Rule
    at_most: int
    is_above: bool


@dataclass
class Point:
    """An optimum of the relaxation, and what its duals prove.

    Attributes
    ----------
    value
        Lagrangian value: no plan of the case costs less.
    prices, split_prices, cuts
        Of the frame's rows, of the cases on the path, and of cuts.
    columns, x
        Which of the columns are not zero, and how much of each.
    nodes
        Counts of nodes.
    unplaced
        Jobs that the point leaves out, against the rules.
    """

    value: float
    prices: Prices
    split_prices: tuple[float, ...]
    cuts: dict[Rule, float]
    columns: Indices
    x: Floats
    nodes: dict[NodesUsed, float]
    unplaced: float

    def used(self, pool: int, *, asleep: bool) -> float:
        """Return how many nodes of a pool are in use, or woken; infinite if it does not matter."""
        return self.nodes.get(NodesUsed(pool, asleep), np.inf)

    @property
    def is_whole(self) -> bool:
        """Whether groups and nodes are whole."""
        values = np.append(self.x, list(self.nodes.values()))
        return bool((np.abs(values - np.rint(values)) <= FRACTION).all())


class Relaxation:
    """The relaxation over a pool of columns, with rules whose counts may be bounded.

    Attributes
    ----------
    pool
        All columns that are still possible.
    capacity
        Greatest count of each rule that is a cut.
    """

    def __init__(
        self, frame: Frame, pool: Columns, penalty: float, seed: int, first: Indices | None = None
    ) -> None:
        self.frame, self.pool = frame, pool
        self.master = Master(frame, penalty, seed)
        self.capacity: dict[Rule, float] = {}
        self._numbers: dict[Rule, int] = {}
        self._counts: list[tuple[Indices, Floats]] = []
        self._rows: list[int] = []
        self._bounded: list[Rule] = []
        self._inside = np.zeros(0, dtype=np.intp)  # columns of the pool that are in the program
        self._at = np.zeros(0, dtype=np.intp)  # and as which ones
        self._is_inside = np.zeros(len(pool.cost), dtype=bool)
        self._add(self._first() if first is None else first)

    # --- rules ---------------------------------------------------------------------------------

    def _row(self, rule: Rule) -> int:
        """Return the row of a rule; it gets one when it is first asked for."""
        number = self._numbers.get(rule)
        if number is not None:
            return self._rows[number]
        self._numbers[rule] = len(self._rows)
        if isinstance(rule, NodesUsed):
            column = self.master.classes + rule.asleep * self.master.pools + rule.pool
            where, values = np.array([column]), np.ones(1)
            counted = (np.zeros(0, dtype=np.intp), np.zeros(0))
        else:
            counts = rule.counts(self.pool)
            which = np.flatnonzero(counts)
            counted = (which, counts[which])
            inside = counts[self._inside]
            where, values = self._at[inside > 0], inside[inside > 0]
        self._counts.append(counted)
        self._rows.append(self.master.add_rule(where, values))
        return self._rows[-1]

    def add_cut(self, rule: Rounded) -> bool:
        """Bound the count of a rule for good; return whether it was not bounded before."""
        if rule in self.capacity:
            return False
        self.capacity[rule] = rule.most(self.frame.copies)
        self.master.bound_row(self._row(rule), -np.inf, self.capacity[rule])
        return True

    # --- solving -------------------------------------------------------------------------------

    def solve(
        self, path: tuple[Case, ...], seconds_left: Callable[[], float | None]
    ) -> Point | None:
        """Solve a case; return None if there is no optimum in time."""
        tightest = self._bound_rows(path)
        while True:
            solved = self.master.solve(seconds_left())
            if solved is None:
                return None
            prices = self.master.prices(solved)
            charges = self._charges(solved)
            reduced = self.reduced(prices, charges)
            wanting = np.flatnonzero((reduced < -self._tolerance) & ~self._is_inside)
            if not len(wanting):
                return self._point(path, tightest, solved, prices)
            self._add(self._chosen(wanting, reduced[wanting]))

    def reduced(self, prices: Prices, charges: dict[Rule, float]) -> Floats:
        """Return the reduced cost of every column of the pool."""
        reduced = prices.reduced(self.pool)
        for rule, charge in charges.items():
            which, counts = self._counts[self._numbers[rule]]
            reduced[which] += charge * counts
        return reduced

    @property
    def _tolerance(self) -> float:
        return TOLERANCE * max(1e-300, float(np.abs(self.pool.cost).max(initial=0.0)))

    def _chosen(self, wanting: Indices, reduced: Floats) -> Indices:
        """Return the columns with least reduced cost, in all and of each class."""
        order = wanting[np.argsort(reduced, kind="stable")]
        first = [np.unique(self.pool.members[order, n], return_index=True)[1] for n in (0, -1)]
        chosen = np.unique(np.concatenate([np.arange(min(ADDED, len(order))), *first]))
        return np.asarray(order[chosen])

    def _first(self) -> Indices:
        """Return the columns of single jobs, and those that cost least of what these cost."""
        pool, classes = self.pool, self.master.classes
        single = (pool.members < classes).sum(axis=1) == 1
        alone = np.full(classes + 1, np.inf)
        np.minimum.at(alone, pool.members[single].min(axis=1), pool.cost[single])
        alone[-1] = 0.0
        saved = pool.cost - alone[pool.members].sum(axis=1)
        size = np.maximum(np.abs(alone[pool.members]).sum(axis=1), 1e-300)
        known = np.isfinite(saved) & ~single
        share = np.divide(saved, size, out=np.zeros(len(saved)), where=known)
        rank = np.argsort(np.where(single, -np.inf, share), kind="stable")
        return rank[: FIRST + int(single.sum())]

    def _add(self, which: Indices) -> None:
        which = which[~self._is_inside[which]]
        inverse = np.full(len(self.pool.cost), -1)
        inverse[which] = np.arange(len(which))
        entries = [(np.zeros(0, int), np.zeros(0, int), np.zeros(0))]
        for row, (counted, values) in enumerate(self._counts):
            hit = inverse[counted] >= 0
            entries.append((np.full(hit.sum(), row), inverse[counted[hit]], values[hit]))
        rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
        shape = (len(self._rows), len(which))
        first = self.master.columns
        self.master.add_groups(
            self.pool.take(which), csr_array((values, (rows, columns)), shape=shape)
        )
        self._inside = np.append(self._inside, which)
        self._at = np.append(self._at, first + np.arange(len(which)))
        self._is_inside[which] = True

    # --- cases ---------------------------------------------------------------------------------

    def _bound_rows(self, path: tuple[Case, ...]) -> set[int]:
        """Bound the rows of a path's rules; return the indices of the cases that are tightest."""
        for rule in self._bounded:
            most = self.capacity.get(rule, np.inf)
            self.master.bound_row(self._row(rule), -np.inf, most)
        lower: dict[Rule, int] = {}
        upper: dict[Rule, int] = {}
        for n, case in enumerate(path):
            side, sign = (lower, 1) if case.is_above else (upper, -1)
            kept = side.setdefault(case.rule, n)
            if sign * case.at_most > sign * path[kept].at_most:
                side[case.rule] = n
        for rule in {*lower, *upper}:
            low = path[lower[rule]].at_most + 1 if rule in lower else -np.inf
            high = path[upper[rule]].at_most if rule in upper else np.inf
            high = min(high, self.capacity.get(rule, np.inf))
            self.master.bound_row(self._row(rule), low, max(low, high))
        self._bounded = list({*lower, *upper})
        return {*lower.values(), *upper.values()}

    def _charges(self, solved: Solved) -> dict[Rule, float]:
        duals = solved.row_duals[self._rows] if self._rows else np.zeros(0)
        charges = {rule: -float(duals[n]) for rule, n in self._numbers.items()}
        return {rule: charge for rule, charge in charges.items() if charge}

    def _point(
        self,
        path: tuple[Case, ...],
        tightest: set[int],
        solved: Solved,
        prices: Prices,
    ) -> Point:
        charges = self._charges(solved)
        split_prices = [0.0] * len(path)
        for n in tightest:
            charge = charges.get(path[n].rule, 0.0)
            split_prices[n] = max(0.0, -charge if path[n].is_above else charge)
        cuts = {
            rule: charge
            for rule, charge in charges.items()
            if rule in self.capacity and rule not in self._bounded and charge > 0
        }
        prices, least = self._polished(path, prices, split_prices, cuts)
        x = solved.x[self._at]
        used = x > 1e-9
        first, pools = self.master.classes, self.master.pools
        nodes = {
            NodesUsed(p, asleep): float(solved.x[first + asleep * pools + p])
            for asleep in (False, True)
            for p in range(pools)
            if self.frame.matters(p, asleep=asleep)
        }
        return Point(
            value=self.value(path, prices, tuple(split_prices), cuts, least),
            prices=prices,
            split_prices=tuple(split_prices),
            cuts=cuts,
            columns=self._inside[used],
            x=x[used],
            nodes=nodes,
            unplaced=float(solved.x[:first][self.frame.must].sum()),
        )

    def _polished(
        self,
        path: tuple[Case, ...],
        prices: Prices,
        split_prices: list[float],
        cuts: dict[Rule, float],
    ) -> tuple[Prices, float]:
        """Lower prices of jobs until no group pays too much; return the least reduced cost."""
        charges = dict(cuts)
        for case, price in zip(path, split_prices, strict=True):
            sign = -1.0 if case.is_above else 1.0
            charges[case.rule] = charges.get(case.rule, 0.0) + sign * price
        reduced = self.reduced(prices, charges)
        low = np.flatnonzero(reduced < 0)
        if not len(low):
            return prices, 0.0
        drop = np.zeros(self.master.classes)
        np.maximum.at(drop, self.pool.members[low, 0], -reduced[low])
        prices = prices._replace(jobs=prices.jobs - drop)
        return prices, float(self.reduced(prices, charges).min(initial=0.0))

    def floor(self) -> Point:
        """Return a point whose prices need no solver: each job pays its least share of a group."""
        size = (self.pool.members < self.master.classes).sum(axis=1)
        share = np.append(np.where(np.isfinite(self.frame.waiting), self.frame.waiting, np.inf), 0)
        each = np.repeat((self.pool.cost / size)[:, None], self.pool.members.shape[1], axis=1)
        np.minimum.at(share, self.pool.members.ravel(), each.ravel())
        share[np.isinf(share)] = 0.0
        none = np.zeros(0)
        prices = Prices(share[:-1], 0 * self.frame.gpus, 0 * self.frame.places, 0.0)
        least = float(prices.reduced(self.pool).min(initial=0.0))
        value = self.value((), prices, (), {}, least)
        return Point(value, prices, (), {}, none.astype(np.intp), none, {}, np.inf)

    def value(
        self,
        path: tuple[Case, ...],
        prices: Prices,
        split_prices: tuple[float, ...],
        cuts: dict[Rule, float],
        least_reduced: float,
    ) -> float:
        """Return what prices prove in a case, in floats."""
        frame = self.frame
        total = float(frame.copies @ prices.jobs) - float(prices.places.sum())
        waiting = np.minimum(0.0, frame.waiting - prices.jobs)
        total += float(frame.copies @ np.where(np.isfinite(waiting), waiting, 0.0))
        total += frame.most_groups * min(0.0, least_reduced)
        if prices.watt:
            total -= prices.watt * frame.room_w
        on = frame.node_cost + prices.watt * frame.node_w - prices.pools * frame.gpus
        wake = frame.wake_cost.copy()
        for case, price in zip(path, split_prices, strict=True):
            sign = -1.0 if case.is_above else 1.0
            total -= sign * price * (case.at_most + case.is_above)
            if isinstance(case.rule, NodesUsed):
                (wake if case.rule.asleep else on)[case.rule.pool] += sign * price
        total -= sum(price * self.capacity[rule] for rule, price in cuts.items())
        asleep = frame.number - frame.awake
        corners = [
            0 * on,
            on * frame.awake,
            on * frame.number + wake * asleep,
            (on + wake) * asleep,
        ]
        return total + float(np.min(corners, axis=0).sum())
