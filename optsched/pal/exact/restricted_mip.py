"""A restricted MIP near the root's solution (RINS: Danna et al., Math. Programming 2005).

Jobs are whole in the domains below the root. How many stand in each node or rack is what plans
differ in most; the thresholds of jobs that spread over the root may stay fractional, since rounding
them costs little. Only options that are nearly as cheap as the cheapest are kept, at the root's
duals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.mip import highs
from optsched.pal.exact.cuts_and_branching import LpPoint
from optsched.pal.exact.relaxation import relaxation
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools
    from optsched.pal.exact.branch_and_bound import PlacementTree
    from optsched.pal.exact.lagrangian_bound import PricedOptions
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.exact.solver import PlacementSolver


def offer_near(solver: PlacementSolver, tree: PlacementTree, points: list[LpPoint]) -> None:
    """Offer a plan of options that are nearly cheapest at a root, or in use at some points."""
    search = solver.search
    assert search.objective is not None
    options = solver.options.only(near(tree, search.objective, points))
    penalty, gap = SETTINGS.penalty * search.objective, SETTINGS.mip_gap_share * search.gap
    point = whole_below_root(tree, options, penalty, gap, search.seconds_left(), search.seed)
    if point is not None:
        solver.offer(point, options)


def near(tree: PlacementTree, objective: float, points: list[LpPoint]) -> Bools:
    """Return the options that are nearly cheapest, or in use at one of some points."""
    root = tree.nodes[0]
    priced: PricedOptions = tree.relaxation.priced(root.path, root.duals)
    costlier = priced.costs - priced.least[tree.relaxation.options.type]
    kept = costlier <= SETTINGS.mip_near * (objective - root.bound)
    for point in points:
        kept[point.columns] = True
    return np.asarray(kept)


def whole_below_root(
    tree: PlacementTree,
    options: GangOptions,
    penalty: float,
    gap: float,
    time_limit_s: float | None,
    seed: int,
) -> LpPoint | None:
    """Return a solution for some options in which counts below the root are whole, if there is one.

    Parameters
    ----------
    penalty
        Cost of leaving out a job where that is not allowed.
    gap
        Relative gap that is enough.
    """
    problem = tree.relaxation.problem
    reward = np.array([jobs.reward for jobs in problem.types])
    program = relaxation(problem, options, np.where(np.isfinite(reward), reward, penalty))
    integer = program.integer.copy()
    at_root = problem.domains.parent[options.domain[: options.first_keep]] < 0
    integer[: options.first_keep][at_root] = False
    outcome = highs.solve(
        replace(program, integer=integer),
        gap=max(SETTINGS.mip_gap, gap),
        time_limit_s=time_limit_s,
        most_nodes=SETTINGS.mip_nodes,
        seed=seed,
    )
    return None if outcome.x is None else LpPoint.of(outcome.x, options)
