"""Restricted master heuristic (Joncour et al., Electronic Notes in Discrete Mathematics 36, 2010).

The set partitioning of docs/math/eaco.md as an integer program over groups of least reduced cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.settings import SETTINGS
from optsched.mip import highs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.exact.branch_and_bound import GroupingTree
    from optsched.search import Search

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


def restricted_plan(tree: GroupingTree, search: Search) -> tuple[Indices, Floats] | None:
    """Return groups of the tree's pool and how often each is in a plan; None if none was found."""
    reduced = tree.reduced()
    best = np.inf if search.objective is None else search.objective
    order = np.argsort(reduced, kind="stable")[: SETTINGS.restricted_groups]
    order = order[reduced[order] <= best - tree.bound]
    outcome = highs.solve(
        tree.relaxation.master.whole(tree.pool.take(order)),
        time_limit_s=search.seconds_for_program(),
        gap=SETTINGS.restricted_share * search.gap,
        most_nodes=SETTINGS.restricted_nodes,
        seed=search.seed,
    )
    must = np.flatnonzero(tree.frame.must)
    if outcome.x is None or outcome.x[must].sum() > 0.5:
        return None
    times = np.rint(outcome.x[len(outcome.x) - len(order) :])
    return order[times > 0], times[times > 0]
