"""The method "exact": Lagrangian branch and bound for PAL's problem (Jain et al., SC 2024).

Source: PAL, SC'24, arXiv 2408.11919, as the integer program F7 of docs/math/pal.md (type chains);
the bound is the Lagrangian one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.bounding import PlacementSolver as PlacementSolver
from optsched.pal.exact.heuristics import HEURISTICS
from optsched.pal.plan import Leaf

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.search import Search


def exact(
    instance: PalInstance,
    search: Search,
    first: Callable[[], PalCertificate | None] | None = None,
) -> PalCertificate | None:
    """Place the jobs at least cost, from the best greedy plan on, and prove the bound.

    Parameters
    ----------
    first
        Another method, which offers a plan and returns what it proves by prices of GPUs alone: it
        comes before the tree, which is left out if that is enough and else goes on from there.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    known = first() if first is not None and search.start is None else None
    if known is not None and _is_enough(known, search):
        return known
    is_thorough = search.program_limit is None  # one tree is all that it counts
    solver = PlacementSolver(instance, search, is_thorough=is_thorough)
    search.state = state = HEURISTICS["warm start"](solver.problem)
    certificate = solver.resume()
    if certificate is not None:
        return certificate
    if first is not None and known is None:
        known = first()
    if known is not None and _is_enough(known, search):
        return known
    search.state = state
    search.begin(lambda instance: HEURISTICS["greedy"](instance))
    if known is not None:
        _begin_with(solver, known)
        return _certified(solver)
    return solver.proven_by_sorting() or solver.prices_first() or _certified(solver)


def _is_enough(known: PalCertificate, search: Search) -> bool:
    """Tell whether a certificate closes the gap, or there is no time to do more."""
    return known.bound is None or search.is_closed(known.bound) or search.out_of_time()


def _begin_with(solver: PlacementSolver, known: PalCertificate) -> None:
    """Let a solver know the prices of a certificate of GPUs alone."""
    leaf = next(iter(known.nodes), None)
    if isinstance(leaf, Leaf):
        solver.start_from(solver.at_duals(np.array(leaf.gpu_prices)))


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify what the root of a tree proves.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    if search.plan is None:
        start(instance, search)
    solver = PlacementSolver(instance, search)
    if search.plan is None:
        HEURISTICS["any plan"](instance, search, solver.problem)
    if search.plan is None:
        return None
    tree = solver.tree(solver.options)
    if tree is None:
        return solver.at_zero_duals()
    return tree.certificate(instance, "prices", [], tree.bound)


def certify_claim(instance: PalInstance, search: Search, claimed: float) -> PalCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow.

    Raises
    ------
    Infeasible
        If that is proven instead.
    """
    return _certified(PlacementSolver(instance, search, claimed, is_thorough=True))


def _certified(solver: PlacementSolver) -> PalCertificate | None:
    instance, search = solver.instance, solver.search
    search.enter("branch and bound")
    if search.plan is None:
        HEURISTICS["any plan"](instance, search, solver.problem)
    return None if search.plan is None else solver.solve()


def start(instance: PalInstance, search: Search) -> None:
    """Offer the best of some quick greedy plans."""
    plan = HEURISTICS["greedy"](instance)
    if plan is not None:
        search.offer(plan)
