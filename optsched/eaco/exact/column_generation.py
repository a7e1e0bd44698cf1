"""Column generation with smoothed duals (Wentges, Int. Trans. in Operational Research 4, 1997).

Groups are priced by a bounded search (`pricing_problems`). What duals prove is known in each round,
whatever they are: jobs that lead groups which cost less than their jobs pay are charged less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from optsched.eaco.exact.lp_solution import Proof, lagrangian
from optsched.eaco.exact.master import Duals, Master
from optsched.eaco.groups.columns import Columns, joined, none
from optsched.eaco.groups.group_members import is_allowed
from optsched.eaco.groups.pricing_scope import pricing_problems
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify.group_energy import ExactFigures

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from optsched.eaco.exact.master import Frame
    from optsched.eaco.exact.warm_start import MatchedStart
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.pricing import PricedGroups, PricingProblem
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
    value
        What is proven of the relaxation.
    optimum
        Of the program over the groups that it has.
    duals
        Duals that prove `value`: no group costs less than its jobs pay.
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
        self.pricing_problems = pricing_problems(instance, classes)
        self._figures = ExactFigures(instance)
        self.lengths = np.log(np.maximum([c.job.work_s for c in classes], 1e-300))
        singles = [pricing.alone() for pricing in self.pricing_problems]
        costliest = float(np.max([single.cost.max(initial=0.0) for single in singles], initial=0.0))
        nodes = float(frame.number @ (frame.node_cost + frame.wake_cost))
        self.penalty = SETTINGS.penalty_factor * (frame.most_groups * costliest + nodes) or 1.0
        self.master = Master(frame, self.penalty, seed)
        self.first = self.master.columns
        self.pool = none(instance)
        self.fresh, self._known = 0, set[tuple[int, ...]]()
        self._most, self._smoothed = SETTINGS.first_width, SETTINGS.smoothing
        self.value, self.optimum = -np.inf, np.inf
        self.duals = self._guess()
        for pricing, single in zip(self.pricing_problems, singles, strict=True):
            self.add(self._columns(pricing, single, np.arange(len(single.at))))

    def seed(self, shares: tuple[float, ...] = SETTINGS.seed_shares) -> None:
        """Put groups into the program that cost little more than their jobs pay.

        Parameters
        ----------
        shares
            Of what the first job pays, that they cost more at most.
        """
        for pricing in self.pricing_problems:
            self.add(self._promising(pricing, shares))

    # --- rounds --------------------------------------------------------------------------------

    def run(self, gap: float, clock: Clock) -> Solved | None:
        """Add groups until the bound is near enough; return the last optimum of the program."""
        solved = None
        for _ in range(SETTINGS.generation_rounds):
            solved = self.master.solve(clock()) or solved
            if solved is None or clock() == 0:
                return solved
            self.optimum = solved.objective
            if self.optimum - self.value <= max(gap, SETTINGS.converged) * abs(self.optimum):
                return solved
            duals = _between(self.master.duals(solved), self.duals, self._smoothed)
            before, fresh = self.value, self.priced(duals)
            new = self.add(fresh)
            self.fresh += new
            if len(fresh.cost) < SETTINGS.scarce_groups:
                self._smoothed /= 2
            if self.value <= before and not self._look_wider(new):
                return solved
        return solved

    def prove_first_bound(self) -> None:
        """Prove a first bound in little time.

        The more jobs there are, the more groups seem to pay that do not; at lower duals few do.
        """
        share = 1 - SETTINGS.caution * min(1.0, len(self._classes) / SETTINGS.cautious_classes)
        self.add(self.priced(self.duals._replace(jobs=share * self.duals.jobs)))

    def begin(self, last: MatchedStart) -> None:
        """Take over the duals, and the groups that are allowed now, of the previous epoch."""
        for members in (last.members, last.planned):
            for pricing in self.pricing_problems:
                self.add(self._known_groups(pricing, members))
        if last.jobs is None:
            return
        pools = 0 * self.frame.gpus
        if last.pools is not None and len(last.pools) == len(pools):
            pools = last.pools
        self._most = SETTINGS.most_width
        self.add(self.priced(self.duals._replace(jobs=last.jobs, pools=pools)))
        self._most = SETTINGS.first_width

    def _known_groups(self, pricing: PricingProblem, members: Indices) -> Columns:
        """Return those of some groups that are allowed in a pricing problem."""
        many = len(pricing.classes)
        at = np.full(len(self._classes) + 1, -1)
        at[pricing.classes], at[-1] = np.arange(many), many
        rows = np.sort(at[members], axis=1)
        rows = rows[(rows[:, 0] >= 0) & (rows[:, 0] < many)]
        allowed = pricing.allowed(rows)
        return self._columns(pricing, allowed, np.arange(len(allowed.at)))

    def near_zero(self, most: int) -> Indices:
        """Return which groups of the program cost least above what their jobs pay."""
        reduced = self.duals.reduced(self.pool)
        return np.sort(np.argsort(reduced, kind="stable")[:most])

    def _look_wider(self, new: int) -> bool:
        """Search more, or nearer to the duals of the program, as the bound did not rise."""
        if not new and self._smoothed > 0.1:
            self._smoothed /= 4
        elif not new and self._most >= SETTINGS.most_width:
            return False
        else:
            self._most = min(SETTINGS.width_growth * self._most, SETTINGS.most_width)
        return True

    def priced(self, duals: Duals, left: Floats | None = None, slack: float = 0.0) -> Columns:
        """Return groups that cost less than their jobs pay; keep the duals if they prove more.

        Parameters
        ----------
        left
            Jobs of each class that may be in the groups; then nothing is proven.
        slack
            How much more than that they may cost.
        """
        drop, parts = np.zeros(len(duals.jobs)), [none(self._instance)]
        for pricing in self.pricing_problems:
            pays = duals.jobs[pricing.classes]
            if left is not None:
                pays = np.where(left[pricing.classes] > 0.5, pays, -np.inf)
            charge = float(duals.pools[pricing.pool]) * pricing.gang
            width = self._most if left is None else SETTINGS.first_width
            groups = pricing.below(pays, charge, slack, width)
            np.maximum.at(drop, pricing.classes, -np.minimum(groups.least, 0.0))
            parts.append(self._columns(pricing, groups, _best(groups, pays, SETTINGS.best_layers)))
        if left is None:
            jobs = duals.jobs - drop
            rounding = SETTINGS.term_rounding * (np.abs(duals.jobs) + drop)
            jobs -= rounding + SETTINGS.dual_doubt * np.abs(jobs)
            lower = duals._replace(jobs=jobs)
            value = lagrangian(self.frame, {}, (), Proof(lower, (), {}), 0.0)
            if np.isfinite(lower.jobs).all() and value > self.value:
                self.value, self.duals = value, lower
        return joined(parts)

    def near(self, duals: Duals, slack: float) -> Columns | None:
        """Return all groups that cost less than `slack` above what jobs pay; None if too many."""
        parts = [none(self._instance)]
        for pricing in self.pricing_problems:
            charge = float(duals.pools[pricing.pool]) * pricing.gang
            groups = pricing.below(duals.jobs[pricing.classes], charge, slack, SETTINGS.most_near)
            if pricing.is_cut:
                return None
            parts.append(self._columns(pricing, groups, np.arange(len(groups.at))))
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

    def _promising(self, pricing: PricingProblem, shares: tuple[float, ...]) -> Columns:
        """Return groups that at the first duals cost little more than their jobs pay."""
        pays, parts = self.duals.jobs[pricing.classes], [none(self._instance)]
        for share in shares:
            groups = pricing.below(pays, 0.0, share * pays, SETTINGS.seed_width)
            parts.append(self._columns(pricing, groups, _best(groups, pays, SETTINGS.seed_layers)))
        return joined(parts)

    def _guess(self) -> Duals:
        """Return duals of full groups of jobs that end together, of jobs alone if that is less."""
        jobs = np.full(len(self.frame.copies), np.inf)
        for pricing in self.pricing_problems:
            np.minimum.at(jobs, pricing.classes, pricing.shares())
            np.minimum.at(jobs, pricing.classes, pricing.alone().cost)
        jobs = np.minimum(np.where(np.isfinite(jobs), jobs, 0.0), self.frame.waiting)
        return Duals(jobs, 0 * self.frame.gpus, 0 * self.frame.places, 0.0)

    def _columns(self, pricing: PricingProblem, groups: PricedGroups, which: Indices) -> Columns:
        """Return some of the groups that were found; fractions decide where a limit is near."""
        near = groups.is_near[which]
        members = np.append(pricing.classes, len(self._classes))[groups.at[which]]
        allowed = np.ones(len(which), dtype=bool)
        for row in np.flatnonzero(near):
            allowed[row] = is_allowed(self._figures, self._classes, members[row], pricing.pool)
        members, cost = np.sort(members[allowed], axis=1), groups.cost[which][allowed]
        same = np.ones(len(members), dtype=np.intp)
        return Columns(
            members, same * pricing.pool, -same, -same, same * pricing.gang, cost, 0 * cost
        )


def _best(groups: PricedGroups, pays: Floats, layers: int) -> Indices:
    """Return the groups to add: the best of all, of each leader, and of each job at each place."""
    size = np.maximum(np.where(np.isfinite(pays), pays, 0.0), 1e-300)[groups.at[:, 0]]
    order = np.argsort(groups.reduced / size, kind="stable")
    chosen = [order[: SETTINGS.best_groups]]
    at = groups.at[order]
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
    """Return smoothed duals: between those of the program and those that prove most."""
    pairs: list[tuple[Any, Any]] = list(zip(best, duals, strict=True))
    mixed = [share * mine + (1 - share) * his for mine, his in pairs]
    return Duals(*mixed)
