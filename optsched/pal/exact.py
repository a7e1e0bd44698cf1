"""The method "exact": the type-chain relaxation by HiGHS, rounding, and a tree of cases.

Source: PAL, SC'24, arXiv 2408.11919, as the integer program F7 of pal.md 4.5; the bound is the
Lagrangian one of 4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal import heuristics
from optsched.pal.arrays import arrays
from optsched.pal.relaxation import labels
from optsched.pal.rounding import rounded
from optsched.pal.tree import Tree
from optsched.solve import Infeasible

if TYPE_CHECKING:
    from optsched.pal.arrays import Arrays
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.pal.relaxation import Labels
    from optsched.pal.tree import Node
    from optsched.solve import Search

MOST_NODES = 20_000
ROUNDED_NODES = 40  # of the first nodes all are rounded, of later ones every tenth
PENALTY = 4.0  # what missing a job or a rule costs in the relaxation, relative to a whole plan
SAFETY = 1e-12
LEFT_OUT = 1e-3  # a proof that more than this many jobs are left out proves that one is


def exact(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs at least cost, from the best greedy plan on, and prove the bound.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    _start(instance, search)
    return _prove(instance, search, np.inf, MOST_NODES)


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify what the root of the tree proves; a method that found no plan gets one if it can."""
    return _prove(instance, search, np.inf, most_nodes=1)


def certify_claim(instance: PalInstance, search: Search, claimed: float) -> PalCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow."""
    return _prove(instance, search, claimed, MOST_NODES)


def _start(instance: PalInstance, search: Search) -> None:
    plan = heuristics.quick_start(instance)
    if plan is not None:
        search.offer(plan)


def _prove(
    instance: PalInstance, search: Search, claimed: float, most_nodes: int
) -> PalCertificate | None:
    problem = arrays(instance)
    found = labels(problem)
    if search.plan is None:
        _find_any(instance, search, problem, found)
    if search.objective is None:
        return None
    reward = np.array([jobs.reward for jobs in problem.types])
    tree = Tree(problem, found, reward, PENALTY * search.objective, search.seed)
    if not tree.plant(search.seconds_left):
        search.out_of_time()
        return None

    def goal() -> float:
        assert search.objective is not None
        return min(claimed, search.objective * (1 - max(0.9 * search.gap, SAFETY)))

    def visit(node: Node) -> None:
        number = len(tree.nodes)
        if number <= ROUNDED_NODES or number % 10 == 0 or node.point.is_whole:
            search.offer(rounded(problem, found, node.point).plan(instance))

    visit(tree.nodes[0])
    tree.grow(goal, visit, search.seconds_left, most_nodes)
    if tree.bound < goal():
        search.out_of_time()
    return tree.certificate(instance, "prices")


def _find_any(instance: PalInstance, search: Search, problem: Arrays, found: Labels) -> None:
    """Offer a plan that places all jobs, or prove that there is none."""
