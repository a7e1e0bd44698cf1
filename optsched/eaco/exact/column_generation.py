"""Column generation with smoothed duals (Wentges, Int. Trans. in Operational Research 4, 1997).

Groups are priced by a bounded search (`pricing_problems`), in the loop of `mip.column_generation`.
What duals prove is known in each round, whatever they are: jobs that lead groups which cost less
than their jobs pay are charged less.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from optsched.eaco.exact.lp_solution import Proof, lagrangian
from optsched.eaco.exact.master import Duals, Master
from optsched.eaco.group_figures import TypeFigures
from optsched.eaco.groups.columns import Columns, joined, none, on_one_pool
from optsched.eaco.groups.phase_pricing import Charges, best_groups
from optsched.eaco.groups.pricing_scope import pricing_problems
from optsched.eaco.settings import SETTINGS
from optsched.mip.column_generation import DualBound, Priced, Smoothing, generate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from optsched.eaco.exact.master import Frame
    from optsched.eaco.exact.warm_start import MatchedStart
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.phase_pricing import PricedGroups
    from optsched.eaco.groups.pricing_scope import Pricing
    from optsched.eaco.instance import EacoInstance
    from optsched.mip.incremental_lp import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Clock = Callable[[], float | None]


class ColumnGeneration:
    """A linear program over groups that grows.

    Parameters
    ----------
    seed
        Of HiGHS.

    Attributes
    ----------
    pool
        The groups in the program.
    bound
        What is proven of the relaxation, and duals that prove it: no group costs less than its jobs
        pay.
    lengths, gangs
        Shape (classes,): logarithms of the work of the jobs, and their GPUs.
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
        self.pricing_problems = pricing_problems(instance, classes)
        self._figures = TypeFigures(instance)
        self.gangs = np.array([c.job.gpus for c in classes], dtype=np.intp)
        self.lengths = np.log(np.maximum([c.job.work_s for c in classes], 1e-300))
        singles = [pricing.alone for pricing in self.pricing_problems]
        costliest = float(np.max([single.cost.max(initial=0.0) for single in singles], initial=0.0))
        nodes = float(frame.number @ (frame.node_cost + frame.wake_cost))
        self.penalty = SETTINGS.penalty_factor * (frame.most_groups * costliest + nodes) or 1.0
        self.master = Master(frame, self.penalty, seed)
        self.first = self.master.columns
        self.pool = none(instance)
        self.fresh, self._known = 0, dict[tuple[int, ...], int]()
        self._width = SETTINGS.first_width
        self._smoothing = Smoothing(_between, SETTINGS.smoothing, SETTINGS.scarce_groups)
        self.bound = DualBound(self._guess())
        pairs = zip(self.pricing_problems, singles, strict=True)
        parts = [self._columns(pricing, one, np.arange(len(one.at))) for pricing, one in pairs]
        self.add(joined([none(instance), *parts]))

    def seed(self, shares: tuple[float, ...] = SETTINGS.seed_shares) -> None:
        """Put groups into the program that at the first duals cost little more than jobs pay.

        Parameters
        ----------
        shares
            Of what the first job pays, that they cost more at most.
        """
        parts, width, layers = [none(self._instance)], SETTINGS.seed_width, SETTINGS.seed_layers
        for pricing in self.pricing_problems:
            pays = self.bound.duals.jobs[pricing.classes]
            for share in shares:
                groups = pricing.below(pays, Charges(), share * pays, width)
                parts.append(self._columns(pricing, groups, best_groups(groups, pays, layers)))
        self.add(joined(parts))

    def run(self, gap: float, clock: Clock) -> Solved | None:
        """Add groups until the bound is near enough; return the last optimum of the program."""
        share, before = max(gap, SETTINGS.converged), len(self.pool.cost)

        def is_near(solved: Solved, value: float) -> bool:
            return clock() == 0 or solved.objective - value <= share * abs(solved.objective)

        self._clock = clock
        generated = generate(
            self,
            self.price,
            is_near,
            self.bound,
            rounds=SETTINGS.generation_rounds,
            smoothing=self._smoothing,
            widen=self._widen,
            keeps_last=True,  # dives begin with them
        )
        self.fresh += len(self.pool.cost) - before
        return generated.solved

    def optimum(self) -> Solved | None:
        """Return an optimum over the groups in the program, if there is one in time."""
        return self.master.solve(self._clock())

    def duals(self, solved: Solved) -> Duals:
        """Return the duals of an optimum."""
        return self.master.duals(solved)

    def prove_first_bound(self) -> None:
        """Prove a first bound in little time.

        The more jobs there are, the more groups seem to pay that do not; at lower duals few do.
        """
        share = 1 - SETTINGS.caution * min(1.0, len(self._classes) / SETTINGS.cautious_classes)
        self._prove(self.bound.duals._replace(jobs=share * self.bound.duals.jobs))

    def _prove(self, duals: Duals) -> None:
        """Take what duals prove, and the groups that pay at them."""
        priced = self.price(duals)
        self.bound.offer(priced)
        self.add(priced.columns)

    def begin(self, last: MatchedStart) -> Columns:
        """Take over the previous epoch's duals and groups, if allowed now; return its plan's."""
        self.add(self.known_groups(last.members))
        self.add(planned := self.known_groups(last.planned))
        if last.jobs is None:
            return planned
        pools = 0 * self.frame.gpus
        if last.pools is not None and len(last.pools) == len(pools):
            pools = last.pools
        self._width = SETTINGS.most_width
        self._prove(self.bound.duals._replace(jobs=last.jobs, pools=pools))
        self._width = SETTINGS.first_width
        return planned

    def known_groups(self, members: Indices) -> Columns:
        """Return those of some groups that are allowed, wherever they are."""
        return joined([self._allowed(pricing, members) for pricing in self.pricing_problems])

    def _allowed(self, pricing: Pricing, members: Indices) -> Columns:
        many = len(pricing.classes)
        at = np.full(len(self._classes) + 1, -1)
        at[pricing.classes], at[-1] = np.arange(many), many
        rows = np.sort(at[members], axis=1)
        rows = rows[(rows[:, 0] >= 0) & (rows[:, 0] < many)]
        allowed = pricing.allowed(rows)
        return self._columns(pricing, allowed, np.arange(len(allowed.at)))

    def _widen(self) -> bool:
        """Let more groups grow in a search, as the bound did not rise."""
        if self._width >= SETTINGS.most_width:
            return False
        self._width = min(SETTINGS.width_growth * self._width, SETTINGS.most_width)
        return True

    def price(self, duals: Duals) -> Priced[Duals, Columns]:
        """Return groups that cost less than their jobs pay, and lower duals at which none does."""
        drop, parts = np.zeros(len(duals.jobs)), [none(self._instance)]
        for pricing in self.pricing_problems:
            groups, best = self._searched(pricing, duals, duals.jobs, 0.0, self._width)
            np.maximum.at(drop, pricing.classes, -np.minimum(groups.least, 0.0))
            parts.append(best)
        jobs = duals.jobs - drop
        rounding = SETTINGS.term_rounding * (np.abs(duals.jobs) + drop)
        jobs -= rounding + SETTINGS.dual_doubt * np.abs(jobs)
        lower, columns = duals._replace(jobs=jobs), joined(parts)
        value = lagrangian(self.frame, {}, (), Proof(lower, (), {}), 0.0)
        value = value if np.isfinite(jobs).all() else -np.inf
        return Priced(columns, len(columns.cost), lower, value)

    def among(self, duals: Duals, left: Floats, slack: float = 0.0) -> Columns:
        """Return groups of the jobs that are left, which cost little more than these pay.

        Parameters
        ----------
        left
            Jobs of each class that may be in the groups.
        slack
            How much more they may cost.
        """
        pays, width = np.where(left > 0.5, duals.jobs, -np.inf), SETTINGS.first_width
        problems = [pricing for pricing in self.pricing_problems if not pricing.is_scarce]
        parts = [self._searched(p, duals, pays, slack, width)[1] for p in problems]
        return joined([none(self._instance), *parts])

    def _searched(
        self, pricing: Pricing, duals: Duals, pays: Floats, slack: float, width: int
    ) -> tuple[PricedGroups, Columns]:
        """Return what a pricing problem finds, and the best of it."""
        pays, width = pays[pricing.classes], SETTINGS.most_width if pricing.is_scarce else width
        groups = pricing.below(pays, _charges(pricing, duals), slack, width)
        which = best_groups(groups, pays, SETTINGS.best_layers)
        return groups, self._columns(pricing, groups, which)

    def near(self, duals: Duals, slack: float, most: int | None = None) -> Columns | None:
        """Return all groups that cost less than `slack` above what jobs pay; None if too many."""
        parts, most = [none(self._instance)], most or SETTINGS.most_near
        for pricing in self.pricing_problems:
            pays, charges = duals.jobs[pricing.classes], _charges(pricing, duals)
            groups = pricing.below(pays, charges, slack, most)
            if pricing.is_cut:
                return None
            parts.append(self._columns(pricing, groups, np.arange(len(groups.at))))
        return joined(parts)

    def add(self, fresh: Columns) -> int:
        """Put groups into the program that are not in it yet; return how many."""
        new: dict[tuple[int, ...], int] = {}
        for n, key in enumerate(_keys(fresh)):
            if key not in self._known:
                new.setdefault(key, n)
        self._known.update(zip(new, count(len(self.pool.cost)), strict=False))
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

    def amounts_of(self, plan: Columns) -> Floats:
        """Return how often each group of the program is in a plan, whose groups are all there."""
        at = [self._known[key] for key in _keys(plan)]
        return np.bincount(at, minlength=len(self.pool.cost)).astype(float)

    def _guess(self) -> Duals:
        """Return duals of full groups of jobs that end together, of jobs alone if that is less."""
        jobs = np.full(len(self.frame.copies), np.inf)
        for pricing in self.pricing_problems:
            np.minimum.at(jobs, pricing.classes, pricing.shares())
            single = pricing.alone
            np.minimum.at(jobs, pricing.classes[single.at[:, 0]], single.cost)
        jobs = np.minimum(np.where(np.isfinite(jobs), jobs, 0.0), self.frame.waiting)
        return Duals(jobs, 0 * self.frame.gpus, 0 * self.frame.places, 0.0)

    def _columns(self, pricing: Pricing, groups: PricedGroups, which: Indices) -> Columns:
        """Return some of the groups that were found; fractions decide where a limit is near."""
        near = groups.is_near[which]
        members = np.append(pricing.classes, len(self._classes))[groups.at[which]]
        allowed = np.ones(len(which), dtype=bool)
        pool, place = pricing.pool, groups.place[which]
        for row in np.flatnonzero(near):
            where = pool, pricing.level, int(place[row])
            allowed[row] = self._figures.is_allowed(self._classes, members[row], *where)
        cost, watts = groups.cost[which][allowed], groups.watts[which][allowed]
        kept, place = members[allowed], place[allowed]
        return on_one_pool(kept, pool, pricing.gang, place, cost, watts, pricing.level)


def _keys(columns: Columns) -> list[tuple[int, ...]]:
    parts = [columns.pool, columns.level, columns.gang, columns.place, columns.members]
    return [tuple(key) for key in np.column_stack(parts).tolist()]


def _charges(pricing: Pricing, duals: Duals) -> Charges:
    gpus = float(duals.pools[pricing.pool]) * pricing.gang
    return Charges(gpus, float(duals.watt), duals.places)


def _between(duals: Duals, best: Duals, share: float) -> Duals:
    """Return smoothed duals: between those of the program and those that prove most."""
    pairs: list[tuple[Any, Any]] = list(zip(best, duals, strict=True))
    mixed = [share * mine + (1 - share) * his for mine, his in pairs]
    return Duals(*mixed)
