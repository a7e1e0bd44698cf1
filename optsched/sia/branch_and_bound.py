"""LP-based branch and bound for the multiple-choice knapsack (Sinha & Zoltners, OR 1979)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from optsched.certificates.bound_tree import Split
from optsched.mip.branch_and_bound import Branch, BranchAndBound, TreeNode
from optsched.sia.lagrangian_bound import Pricing
from optsched.sia.master import Master
from optsched.sia.rounding import first_options, moved_to_cheaper
from optsched.sia.settings import SETTINGS
from optsched.sia.verify.certificate import ChoiceCertificate, Prices, violations
from optsched.verification import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Indices, Round
    from optsched.sia.master import LpSolution


class WarmStart(NamedTuple):
    """Where a search begins.

    Attributes
    ----------
    prices
        Shape (capacities,).
    basic
        Shape (options,): which ones are basic.
    loose
        Shape (capacities,): which ones are basic, since they do not bind.
    """

    prices: Floats
    basic: Bools
    loose: Bools


def aim_at(objective: float, size: float, gap: float) -> float:
    """Return the bound that closes the gap to a plan, given what the gap is relative to."""
    return objective - SETTINGS.closed_share * max(gap, ROUNDING) * size


@dataclass(eq=False)
class ChoiceNode(TreeNode[int]):
    """A node of the tree: options are taken and barred there.

    Attributes
    ----------
    proof
        Prices that prove its bound.
    point
        Solution of its linear program; None before it is solved.
    """

    proof: Prices
    point: LpSolution | None = None

    @property
    def taken(self) -> list[int]:
        """The options that are taken."""
        return [branch.rule for branch in self.path if branch.is_above]

    @property
    def barred(self) -> list[int]:
        """The options that are barred."""
        return [branch.rule for branch in self.path if not branch.is_above]

    def inherit(self, parent: Self) -> None:
        """Take the prices of the parent, which prove more."""
        self.bound, self.proof = parent.bound, parent.proof


class ChoiceTree(BranchAndBound[ChoiceNode]):
    """Finds a plan of a round, and a proof of how good it is.

    Attributes
    ----------
    plan
        The best so far, an option of the common list for every job; None if there is none.
    objective
        Its cost.
    programs
        How many linear programs were solved.
    is_over, heard, count
        Tells whether time is up; takes each better plan; is called before each linear program.
    root_prices, root_basis
        Of the root, for the next round to begin with.
    """

    is_over: Callable[[], bool]
    heard: Callable[[Indices], None]
    count: Callable[[], object]
    dives = True

    def __init__(self, instance: Round, start: WarmStart, gap: float, seed: int = 0) -> None:
        super().__init__(lambda: 0.0 if self.is_over() else None)
        self.round, self.gap = instance, gap
        self.pricing = Pricing(instance)
        self.plan: Indices | None = None
        self.objective = np.inf
        self.programs = 0
        self.is_over, self.heard, self.count = lambda: False, lambda plan: None, lambda: None
        self._size = 0.0
        self._solved = 0
        self._limited: tuple[list[int], list[int]] = ([], [])
        least = np.minimum.reduceat(instance.cost, instance.first)
        self._negligible = SETTINGS.lp_tolerance * (1.0 + float(np.abs(least).mean()))
        priced = self.pricing.price(start.prices, instance.cost)
        self.plant(ChoiceNode((), priced.bound, Prices(prices=tuple(start.prices.tolist()))))
        self.root_prices = start.prices
        self.root_basis = np.flatnonzero(start.basic), start.loose
        self.master = Master(instance, first_options(instance, priced.excess, start.basic), seed)
        self.master.start_from(start.basic, start.loose)

    # --- the tree -----------------------------------------------------------------------------

    def run(self, most_nodes: int) -> ChoiceCertificate:
        """Search until the gap is closed or so many nodes are solved; or go on so far."""
        self.explore(lambda: self.aim, lambda _: None, most_nodes)
        nodes = tuple(
            node.proof if node.disjunction is None else Split(**node.disjunction._asdict())
            for node in self.standing
        )
        return ChoiceCertificate(bound=None if np.isinf(self.bound) else self.bound, nodes=nodes)

    @property
    def solved(self) -> int:
        """How many nodes are solved: each when it is its turn."""
        return self._solved

    def relax(self, path: tuple[Branch[int], ...], parent: ChoiceNode) -> ChoiceNode:
        """Return a node with the prices of its parent; plans may close it before it is solved."""
        return ChoiceNode(path, parent.bound, parent.proof)

    def branch(self, node: ChoiceNode) -> tuple[ChoiceNode, ChoiceNode] | None:
        """Solve a node, round its solution, and return its branches unless it is settled.

        The branch that takes the option, the second one, is dived into.
        """
        self._solved += 1
        point = self._settle(node)
        if self._solved == 1 and point is not None:
            self.root_prices, self.root_basis = point.prices, self.master.basic()
        if point is None or self.is_closed(node.bound):
            return None
        self._round(point)
        node.point = point
        return None if self.is_closed(node.bound) else super().branch(node)

    def is_closed(self, bound: float) -> bool:
        """Tell whether a bound is within the gap asked for."""
        return bound >= self.aim

    @property
    def aim(self) -> float:
        """The bound that closes the gap; infinite without a plan."""
        return aim_at(self.objective, self._size, self.gap)

    def candidates(self, node: ChoiceNode) -> list[tuple[int, float]]:
        """Return the largest part of a split job; none if a node is settled.

        A point without split jobs may still be no plan, by less than HiGHS' tolerance. To try other
        options would take as long as to go on: few rounds have more than five nodes.
        """
        point = node.point
        assert point is not None
        split = np.flatnonzero(point.share <= 1 - SETTINGS.lp_tolerance)
        if len(split):
            largest = split[np.argmax(point.share[split])]
            return [(int(point.options[largest]), float(point.share[largest]))]
        if point.missing > SETTINGS.lp_tolerance or not self._refused(point.options):
            return []
        is_free = self.round.counts[self.round.job[point.options]] > 1
        is_free &= ~np.isin(point.options, node.taken)
        return [(int(point.options[np.argmax(is_free)]), 0.5)] if is_free.any() else []

    # --- a node -------------------------------------------------------------------------------

    def _settle(self, node: ChoiceNode) -> LpSolution | None:
        """Solve the linear program of a node over all options; None if it has no plan."""
        cost = self._cost(node)
        if np.isinf(np.minimum.reduceat(cost, self.round.first)).any():
            node.bound = np.inf
            return None
        self._limit(node, cost)
        point, raises = None, 0
        for _ in range(SETTINGS.most_pricing_rounds):
            if point is not None and self.is_over():
                break
            self.programs += 1
            self.count()
            point = self.master.solve()
            if point is None:
                return None
            priced = self.pricing.price(point.prices, cost)
            if priced.bound > node.bound:
                node.bound = priced.bound
                node.proof = Prices(prices=tuple(point.prices.tolist()))
            wanted = self._wanted(priced.excess)
            near = SETTINGS.pricing_share * self.gap * abs(point.objective)
            if len(wanted) and point.objective - node.bound > near:
                self.master.add(wanted)
            elif point.missing <= SETTINGS.lp_tolerance or raises == SETTINGS.most_penalty_raises:
                break
            elif self._has_no_plan(node, point, cost):
                return None
            else:
                raises += 1
                self.master.raise_penalty(SETTINGS.penalty_factor)
        return point

    def _cost(self, node: ChoiceNode) -> Floats:
        """Return the costs of the options, infinite where a node does not have them."""
        instance = self.round
        if not (node.taken or node.barred):
            return instance.cost
        cost = instance.cost.copy()
        for option in node.taken:
            job = int(instance.job[option])
            own = slice(int(instance.first[job]), int(instance.first[job] + instance.counts[job]))
            kept = cost[option]
            cost[own] = np.inf
            cost[option] = kept
        cost[list(node.barred)] = np.inf
        return cost

    def _limit(self, node: ChoiceNode, cost: Floats) -> None:
        """Bring the linear program from the last node to this one."""
        taken, barred = self._limited
        free = np.setdiff1d(
            np.array([*taken, *barred], dtype=np.intp),
            np.array([*node.taken, *node.barred], dtype=np.intp),
        )
        self.master.limit(free, 0.0, np.inf)
        self.master.limit(np.array(node.taken, dtype=np.intp), 1.0, np.inf)
        self.master.limit(np.array(node.barred, dtype=np.intp), 0.0, 0.0)
        self._limited = node.taken, node.barred
        prices = np.array(node.proof.prices)
        missing = self._wanted(self.pricing.price(prices, cost).excess)
        if len(missing):
            self.master.add(missing)

    def _wanted(self, excess: Floats) -> Indices:
        """Return the best option of every job for which no known one is as good."""
        known = np.where(self.master.column >= 0, excess, np.inf)
        lacking = np.minimum.reduceat(known, self.round.first) > self._negligible
        return self.pricing.best(excess)[lacking]

    def _has_no_plan(self, node: ChoiceNode, point: LpSolution, cost: Floats) -> bool:
        """Prove that a node has no plan, if the prices do."""
        value = self.pricing.price(point.prices, np.where(np.isinf(cost), np.inf, 0.0)).bound
        if value <= 0:
            return False
        node.bound = np.inf
        node.proof = Prices(kind="infeasible", prices=tuple(point.prices.tolist()))
        return True

    # --- plans --------------------------------------------------------------------------------

    def _refused(self, plan: Indices) -> bool:
        """Tell whether options, one for every job, break a rule."""
        return bool(violations(self.round, (np.sort(plan) - self.round.first).tolist()))

    def offer(self, plan: Indices | None) -> None:
        """Take a plan if it is one, and better."""
        if plan is None or self._refused(plan):
            return
        places = (plan - self.round.first).tolist()
        objective = self.round.objective(places)
        if objective < self.objective:
            self.plan, self.objective = plan, objective
            self._size = max(abs(objective), self.round.gap_scale(places))
            self.heard(plan)

    def _round(self, point: LpSolution) -> None:
        """Round a point: jobs that are split take the cheapest option that still fits."""
        instance = self.round
        whole = point.share > 1 - SETTINGS.lp_tolerance
        chosen = np.full(len(instance.jobs), -1, dtype=np.intp)
        chosen[instance.job[point.options[whole]]] = point.options[whole]
        free = instance.capacity - instance.use[point.options[whole]].sum(axis=0)
        for job in np.flatnonzero(chosen < 0).tolist():
            own = np.arange(instance.first[job], instance.first[job] + instance.counts[job])
            fitting = own[(instance.use[own] <= free).all(axis=1)]
            if not len(fitting):
                return
            chosen[job] = fitting[np.argmin(instance.cost[fitting])]
            free -= instance.use[chosen[job]]
        self.offer(moved_to_cheaper(instance, chosen, free))
