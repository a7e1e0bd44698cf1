"""The method "columns": a set partitioning whose groups are found as prices ask for them.

Groups are priced by a bounded search (`markets`). What prices prove is known in each round,
whatever they are: jobs that lead groups which cost less than their jobs pay are charged less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from optsched.eaco.exact.lp_solution import ROUNDING, Proof, lagrangian
from optsched.eaco.exact.master import Duals, Master
from optsched.eaco.groups.columns import Columns, joined, none
from optsched.eaco.groups.group_members import is_allowed
from optsched.eaco.groups.pricing_scope import markets
from optsched.eaco.verify.group_energy import Book

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from optsched.eaco.exact.master import Frame
    from optsched.eaco.exact.warm_start import Past
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.pricing import Market, PricedGroups
    from optsched.eaco.instance import EacoInstance
    from optsched.mip.incremental_lp import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Clock = Callable[[], float | None]

MOST_NEAR = 400_000  # groups that a tree of cases may be about
SEEDS = 30_000
FEW, MANY = 6_000, 3_000_000  # groups that grow on in a search: at first, and at most
CAUTION, MANY_CLASSES = 0.03, 10_000  # share of the first prices, and classes for all of it
WIDER = 8  # times as many once the bound rests on what a search left out
BEST = 300  # groups that are added in a round whichever jobs they have
LAYERS = 2  # times that each job gets the best group in which it is the first, second, ... one
SHARES = (0.05, 0.2)  # of what the first job pays, that the first groups cost more
SEEDED = 4  # layers of the first groups
SMOOTHED = 0.8  # share of the prices that proved most in those that are asked for next
SCARCE = 200  # groups: fewer in a round tell that it may go nearer to the duals
ROUNDS = 200
CONVERGED = 1e-9  # relative
DOUBT = 1e-13  # relative: by so much less do jobs pay than floats say that groups cost
PENALTY = 2.0  # of leaving a job out, relative to the dearest plan


class Generation:
    """A linear program over groups that grows.

    Parameters
    ----------
    seed
        Of HiGHS.

    Attributes
    ----------
    pool
        The groups in the program.
    value
        What is proven of the relaxation.
    optimum
        Of the program over the groups that it has.
    prices
        Prices that prove `value`: no group costs less than its jobs pay.
    lengths
        Shape (classes,): logarithms of the work of the jobs.
    fresh
        Groups that the rounds have found.
    """

    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        frame: Frame,
        seed: int,
    ) -> None:
        self.frame, self._instance, self._classes = frame, instance, classes
        self.markets, self._book = markets(instance, classes), Book(instance)
        self.lengths = np.log(np.maximum([c.job.work_s for c in classes], 1e-300))
        singles = [market.alone() for market in self.markets]
        dearest = float(np.max([found.cost.max(initial=0.0) for found in singles], initial=0.0))
        nodes = float(frame.number @ (frame.node_cost + frame.wake_cost))
        self.penalty = PENALTY * (frame.most_groups * dearest + nodes) or 1.0
        self.master = Master(frame, self.penalty, seed)
        self.first = self.master.columns
        self.pool = none(instance)
        self.fresh, self._known = 0, set[tuple[int, ...]]()
        self._most, self._smoothed = FEW, SMOOTHED
        self.value, self.optimum = -np.inf, np.inf
        self.prices = self._guess()
        for market, found in zip(self.markets, singles, strict=True):
            self.add(self._columns(market, found, np.arange(len(found.at))))

    def seed(self, shares: tuple[float, ...] = SHARES) -> None:
        """Put groups into the program that cost little more than their jobs pay.

        Parameters
        ----------
        shares
            Of what the first job pays, that they cost more at most.
        """
        for market in self.markets:
            self.add(self._promising(market, shares))

    # --- rounds --------------------------------------------------------------------------------

    def run(self, gap: float, clock: Clock) -> Solved | None:
        """Add groups until the bound is near enough; return the last optimum of the program."""
        solved = None
        for _ in range(ROUNDS):
            solved = self.master.solve(clock()) or solved
            if solved is None or clock() == 0:
                return solved
            self.optimum = solved.objective
            if self.optimum - self.value <= max(gap, CONVERGED) * abs(self.optimum):
                return solved
            prices = _between(self.master.prices(solved), self.prices, self._smoothed)
            before, fresh = self.value, self.priced(prices)
            new = self.add(fresh)
            self.fresh += new
            if len(fresh.cost) < SCARCE:
                self._smoothed /= 2
            if self.value <= before and not self._look_wider(new):
                return solved
        return solved

    def hurry(self) -> None:
        """Prove a first bound in little time.

        The more jobs there are, the more groups seem to pay that do not; at lower prices few do.
        """
        share = 1 - CAUTION * min(1.0, len(self._classes) / MANY_CLASSES)
        self.add(self.priced(self.prices._replace(jobs=share * self.prices.jobs)))

    def begin(self, past: Past) -> None:
        """Take over the prices, and the groups that are allowed now, of the epoch before."""
        for members in (past.members, past.planned):
            for market in self.markets:
                self.add(self._known_groups(market, members))
        if past.jobs is None:
            return
        pools = 0 * self.frame.gpus
        if past.pools is not None and len(past.pools) == len(pools):
            pools = past.pools
        self._most = MANY
        self.add(self.priced(self.prices._replace(jobs=past.jobs, pools=pools)))
        self._most = FEW

    def _known_groups(self, market: Market, members: Indices) -> Columns:
        """Return those of some groups that are allowed on a market."""
        many = len(market.classes)
        at = np.full(len(self._classes) + 1, -1)
        at[market.classes], at[-1] = np.arange(many), many
        rows = np.sort(at[members], axis=1)
        rows = rows[(rows[:, 0] >= 0) & (rows[:, 0] < many)]
        found = market.allowed(rows)
        return self._columns(market, found, np.arange(len(found.at)))

    def near_zero(self, most: int) -> Indices:
        """Return which groups of the program cost least above what their jobs pay."""
        reduced = self.prices.reduced(self.pool)
        return np.sort(np.argsort(reduced, kind="stable")[:most])

    def _look_wider(self, found: int) -> bool:
        """Search more, or nearer to the duals of the program, as the bound did not rise."""
        if not found and self._smoothed > 0.1:
            self._smoothed /= 4
        elif not found and self._most >= MANY:
            return False
        else:
            self._most = min(WIDER * self._most, MANY)
        return True

    def priced(self, prices: Duals, left: Floats | None = None, room: float = 0.0) -> Columns:
        """Return groups that cost less than their jobs pay; keep the prices if they prove more.

        Parameters
        ----------
        left
            Jobs of each class that may be in the groups; then nothing is proven.
        room
            How much more than that they may cost.
        """
        drop, parts = np.zeros(len(prices.jobs)), [none(self._instance)]
        for market in self.markets:
            pays = prices.jobs[market.classes]
            if left is not None:
                pays = np.where(left[market.classes] > 0.5, pays, -np.inf)
            charge = float(prices.pools[market.pool]) * market.gang
            found = market.below(pays, charge, room, self._most if left is None else FEW)
            np.maximum.at(drop, market.classes, -np.minimum(found.least, 0.0))
            parts.append(self._columns(market, found, _best(found, pays, LAYERS)))
        if left is None:
            jobs = prices.jobs - drop
            jobs -= ROUNDING * (np.abs(prices.jobs) + drop) + DOUBT * np.abs(jobs)
            lower = prices._replace(jobs=jobs)
            value = lagrangian(self.frame, {}, (), Proof(lower, (), {}), 0.0)
            if np.isfinite(lower.jobs).all() and value > self.value:
                self.value, self.prices = value, lower
        return joined(parts)

    def near(self, prices: Duals, room: float) -> Columns | None:
        """Return all groups that cost less than `room` above what jobs pay; None if too many."""
        parts = [none(self._instance)]
        for market in self.markets:
            charge = float(prices.pools[market.pool]) * market.gang
            found = market.below(prices.jobs[market.classes], charge, room, MOST_NEAR)
            if market.is_cut:
                return None
            parts.append(self._columns(market, found, np.arange(len(found.at))))
        return joined(parts)

    def add(self, fresh: Columns) -> int:
        """Put groups into the program that are not in it yet; return how many."""
        keys = np.column_stack([fresh.pool, fresh.gang, fresh.members]).tolist()
        new: dict[tuple[int, ...], int] = {}
        for n, key in enumerate(map(tuple, keys)):
            if key not in self._known:
                new.setdefault(key, n)
        self._known.update(new)
        chosen = fresh.take(np.array(list(new.values()), dtype=np.intp))
        self.master.add_groups(chosen, csr_array((0, len(new))))
        self.pool = joined([self.pool, chosen])
        return len(new)

    def amounts(self, solved: Solved) -> Floats:
        """Return how much of each group of the program is in a point."""
        x = np.zeros(len(self.pool.cost))
        known = solved.x[self.first : self.first + len(x)]
        x[: len(known)] = known
        return x

    # --- parts ---------------------------------------------------------------------------------

    def _promising(self, market: Market, shares: tuple[float, ...]) -> Columns:
        """Return groups that at the first prices cost little more than their jobs pay."""
        pays, parts = self.prices.jobs[market.classes], [none(self._instance)]
        for share in shares:
            found = market.below(pays, 0.0, share * pays, SEEDS)
            parts.append(self._columns(market, found, _best(found, pays, SEEDED)))
        return joined(parts)

    def _guess(self) -> Duals:
        """Return prices of full groups of jobs that end together, of jobs alone if that is less."""
        jobs = np.full(len(self.frame.copies), np.inf)
        for market in self.markets:
            np.minimum.at(jobs, market.classes, market.shares())
            np.minimum.at(jobs, market.classes, market.alone().cost)
        jobs = np.minimum(np.where(np.isfinite(jobs), jobs, 0.0), self.frame.waiting)
        return Duals(jobs, 0 * self.frame.gpus, 0 * self.frame.places, 0.0)

    def _columns(self, market: Market, found: PricedGroups, which: Indices) -> Columns:
        """Return some of the groups that were found; fractions decide where a limit is near."""
        near = found.is_near[which]
        members = np.append(market.classes, len(self._classes))[found.at[which]]
        allowed = np.ones(len(which), dtype=bool)
        for row in np.flatnonzero(near):
            allowed[row] = is_allowed(self._book, self._classes, members[row], market.pool)
        members, cost = np.sort(members[allowed], axis=1), found.cost[which][allowed]
        same = np.ones(len(members), dtype=np.intp)
        return Columns(
            members, same * market.pool, -same, -same, same * market.gang, cost, 0 * cost
        )


def _best(found: PricedGroups, pays: Floats, layers: int) -> Indices:
    """Return the groups to add: the best of all, of each leader, and of each job at each place."""
    size = np.maximum(np.where(np.isfinite(pays), pays, 0.0), 1e-300)[found.at[:, 0]]
    order = np.argsort(found.reduced / size, kind="stable")
    chosen = [order[:BEST]]
    at = found.at[order]
    for _ in range(layers):
        taken = np.zeros(len(at), dtype=bool)
        for n in range(at.shape[1]):
            taken[np.unique(at[:, n], return_index=True)[1]] = True
        chosen.append(order[taken])
        order, at = order[~taken], at[~taken]
        if not len(order):
            break
    return np.unique(np.concatenate(chosen))


def _between(duals: Duals, best: Duals, share: float) -> Duals:
    """Return prices between the duals of the program and those that prove most."""
    pairs: list[tuple[Any, Any]] = list(zip(best, duals, strict=True))
    mixed = [share * mine + (1 - share) * his for mine, his in pairs]
    return Duals(*mixed)
