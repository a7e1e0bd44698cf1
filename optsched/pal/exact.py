"""The method "exact": the type-chain relaxation by HiGHS, rounding, and a tree of cases.

Source: PAL, SC'24, arXiv 2408.11919, as the integer program F7 of pal.md 4.5; the bound is the
Lagrangian one of 4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal import heuristics
from optsched.pal.arrays import arrays
from optsched.pal.cases import Cases, Prices
from optsched.pal.diving import dive
from optsched.pal.lagrange import Lagrangian
from optsched.pal.misfit import find_any
from optsched.pal.neighbourhoods import Neighbourhoods, joined, only, part
from optsched.pal.partial import near, whole_below_root
from optsched.pal.plan import PalCertificate, PalPlan
from optsched.pal.relaxation import labels
from optsched.pal.rounding import rounded
from optsched.pal.tree import Exclusion, Tree
from optsched.solve import Search

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.pal.instance import PalInstance
    from optsched.pal.relaxation import Labels
    from optsched.pal.rules import Point
    from optsched.pal.tree import Node

WORK = 2_000_000  # labels times nodes, after which a tree is given up
LEAST_NODES = 15
ROUNDED_NODES = 40  # of the first nodes all are rounded, of later ones every tenth
PENALTY = 4.0  # what missing a job or a rule costs in the relaxation, relative to a whole plan
GAP_SHARE = 0.999  # of the gap that is asked for is used, so that rounding cannot miss it
LEAST_GAP = 1e-10
WORTH_EXCLUDING = 0.1  # of the labels: with fewer the next tree would be much like the last one
EXCLUSIONS = 4
MANY_JOBS = 24  # from so many on, parts of them are placed anew
PATIENCE = 16  # parts in a row that bring nothing
PART_GAP, PART_WORK = 2e-4, 0


class Prover:
    """One instance on its way to a proven optimum.

    Parameters
    ----------
    claimed
        A bound that is enough; infinite if only the gap that is asked for counts.
    """

    def __init__(self, instance: PalInstance, search: Search, claimed: float = np.inf) -> None:
        self.instance, self.search, self.claimed = instance, search, claimed
        self.problem = arrays(instance)
        self.labels = labels(self.problem)
        self.reward = np.array([jobs.reward for jobs in self.problem.types])
        self.exclusions: list[Exclusion] = []
        self.limit = np.inf  # of what the exclusions prove

    def goal(self) -> float:
        """Return the bound that would do."""
        objective = np.inf if self.search.objective is None else self.search.objective
        return min(self.claimed, objective * (1 - max(GAP_SHARE * self.search.gap, LEAST_GAP)))

    def offer(self, point: Point, found: Labels) -> None:
        """Round a solution of the relaxation to a plan, and offer that."""
        packing = rounded(self.problem, found, point)
        packing.reinsert()
        self.search.offer(packing.plan(self.instance))

    def tree(self, found: Labels) -> Tree | None:
        """Return a tree with its root; None if there is no time for that."""
        assert self.search.objective is not None
        penalty = PENALTY * self.search.objective
        cases = Cases(self.problem, found, self.reward, penalty, self.search.seed)
        tree = Tree(cases, self.search.seconds_left)
        return tree if tree.plant() else None

    def root(self) -> Tree | None:
        """Return a tree for as few labels as need be, with the plans that its root suggests."""
        tree = self.tree(self.labels)
        has_parts = False
        while tree is not None and tree.bound < self.goal():
            self._offer_near(tree)
            smaller = self._without_dear(tree)
            if smaller is None and not has_parts:
                self.improve_parts(tree)
                has_parts, smaller = True, self._without_dear(tree)
            if smaller is None:
                break
            next_tree = self.tree(smaller)
            if next_tree is None:
                break
            self.exclusions.append(Exclusion(tree.cases.rules, tree.nodes[0].prices))
            self.labels, self.limit, tree = smaller, min(self.goal(), self.limit), next_tree
        return tree

    def _offer_near(self, tree: Tree) -> None:
        """Offer the plans that the root of a tree suggests."""
        point = tree.nodes[0].point
        self.offer(point, self.labels)
        if tree.bound < self.goal():
            dived = dive(tree.cases, point, self.search.seconds_left)
            self.offer(dived, self.labels)
            self.improve(tree, [point, dived])

    def _without_dear(self, tree: Tree) -> Labels | None:
        """Return the labels that plans below the goal may need; None if that is nearly all."""
        kept = ~tree.too_dear(min(self.goal(), self.limit))
        if kept.mean() > 1 - WORTH_EXCLUDING or len(self.exclusions) == EXCLUSIONS:
            return None
        return self.labels.only(kept)

    def improve(self, tree: Tree, points: list[Point]) -> None:
        """Look for better plans near some points; nothing here."""

    def improve_parts(self, tree: Tree) -> None:
        """Look for better plans in parts; nothing here."""

    def prove(self, work: int = WORK) -> PalCertificate | None:
        """Grow a tree to the goal, or as far as time and work allow; return what it proves."""
        tree = self.root()
        if tree is None:
            self.search.out_of_time()
            return self.unpriced()
        most_nodes = max(LEAST_NODES, work // max(1, len(self.labels.type)))
        try:
            tree.grow(self.goal, lambda node: self._visit(tree, node), most_nodes)
        except KeyboardInterrupt:
            self.search.stopped = "interrupted"
        if tree.bound < self.goal():
            self.search.out_of_time()
        return tree.certificate(self.instance, "prices", self.exclusions, self._stated(tree))

    def unpriced(self) -> PalCertificate:
        """Return what is proven without any prices, when there is no time to find some."""
        prices = Prices(np.zeros(len(self.problem.gpus)), (), {})
        lagrangian = Lagrangian(self.problem, labels(self.problem), self.reward)
        value = lagrangian.options(prices.gpus, np.zeros(1), 0.0).value
        assert self.search.objective is not None
        bound = min(value, self.search.objective)
        return PalCertificate(bound=bound, nodes=(prices.leaf({}),))

    def _stated(self, tree: Tree) -> float:
        """Return the greatest bound to state: an empty tree proves no more than was asked."""
        assert self.search.objective is not None
        return min(self.limit, self.search.objective)

    def _visit(self, tree: Tree, node: Node) -> None:
        number = len(tree.nodes)
        if number <= ROUNDED_NODES or number % 10 == 0 or node.point.is_whole:
            self.offer(node.point, self.labels)


class WholeProver(Prover):
    """A prover that also looks for plans by HiGHS' branch and bound, and by placing parts anew."""

    def improve(self, tree: Tree, points: list[Point]) -> None:
        """Look for better plans near some points of the first root; nothing for few jobs."""
        if len(self.instance.jobs) < MANY_JOBS or self.exclusions:
            return
        if tree.bound >= self.goal() or self.search.seconds_left() == 0:
            return
        assert self.search.objective is not None
        kept = self.labels.only(near(tree, self.search.objective, points))
        penalty = PENALTY * self.search.objective
        seconds, seed = self.search.seconds_left(), self.search.seed
        point = whole_below_root(tree, kept, penalty, seconds, seed)
        if point is not None:
            self.offer(point, kept)

    def improve_parts(self, tree: Tree) -> None:
        """Place parts of the jobs anew for as long as it pays; nothing for few jobs."""
        place_parts_anew(self.instance, self.search, lambda: tree.bound >= self.goal())


def place_parts_anew(
    instance: PalInstance, search: Search, is_done: Callable[[], bool], patience: int = PATIENCE
) -> None:
    """Place some jobs at a time anew, until it is done, or no longer pays, or time runs out.

    Nothing for few jobs.

    Parameters
    ----------
    patience
        Parts in a row that bring nothing.
    """
    if len(instance.jobs) < MANY_JOBS:
        return
    drawn = Neighbourhoods(instance, search.seed)
    failures = 0
    while failures < patience and not is_done():
        plan, seconds = search.plan, search.seconds_left()
        if seconds == 0:
            return
        assert isinstance(plan, PalPlan)
        jobs = drawn.draw(plan)
        smaller = part(instance, plan, jobs)
        inner = Search(smaller, seconds, PART_GAP, search.seed)
        inner.offer(only(plan, jobs))
        before = inner.objective
        Prover(smaller, inner).prove(PART_WORK)
        failures = 0 if inner.objective != before else failures + 1
        assert isinstance(inner.plan, PalPlan)
        search.offer(joined(plan, inner.plan))


def exact(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs at least cost, from the best greedy plan on, and prove the bound.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    start(instance, search)
    return certify_claim(instance, search, np.inf)


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify what the root of a tree proves.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    if search.plan is None:
        start(instance, search)
    prover = Prover(instance, search)
    if search.plan is None:
        find_any(instance, search, prover.problem)
    if search.plan is None:
        return None
    tree = prover.tree(prover.labels)
    if tree is None:
        return prover.unpriced()
    return tree.certificate(instance, "prices", [], tree.bound)


def certify_claim(instance: PalInstance, search: Search, claimed: float) -> PalCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow.

    Raises
    ------
    Infeasible
        If that is proven instead.
    """
    prover = WholeProver(instance, search, claimed)
    if search.plan is None:
        find_any(instance, search, prover.problem)
    return None if search.plan is None else prover.prove()


def start(instance: PalInstance, search: Search) -> None:
    """Offer the best of some quick greedy plans."""
    plan = heuristics.quick_start(instance)
    if plan is not None:
        search.offer(plan)
