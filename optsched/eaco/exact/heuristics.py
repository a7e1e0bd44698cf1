"""What branch and bound calls for help: heuristics, separators and warm starts, by entry.

None of it is needed to follow a bound. Plans that these offer are checked by the verifier's rules;
cuts hold for all plans, whichever are chosen; and what duals prove is their Lagrangian value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.registry import loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from optsched.eaco.cuts.cut_pool import CutPool
    from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow
    from optsched.eaco.exact.branch_and_bound import GroupingTree
    from optsched.eaco.exact.lp_solution import Point, Proof
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.exact.relaxation import Relaxation
    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoPlan
    from optsched.search import Search

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

ENTRIES = {
    "first plan": "optsched.eaco.greedy.methods:quick_start",
    "restricted master": "optsched.eaco.primal.restricted_master:restricted_plan",
    "dive": "optsched.eaco.primal.relaxation_dive:dive",
    "node packing": "optsched.eaco.primal.node_packing:offer_columns",
    "cuts": "optsched.eaco.cuts.separation:violated_cuts",
    "odd sets": "optsched.eaco.cuts.odd_set:needed",
    "warm start": "optsched.eaco.exact.warm_start_duals:WarmStartDuals",
}


def quick_start(instance: EacoInstance) -> EacoPlan | None:
    """Return a good plan in little time; None if there is none at hand."""
    plan: EacoPlan | None = loaded(ENTRIES["first plan"])(instance)
    return plan


def restricted_plan(tree: GroupingTree, search: Search) -> tuple[Indices, Floats] | None:
    """Return groups of the tree's pool and how often each is in a plan; None if none was found."""
    plan: tuple[Indices, Floats] | None = loaded(ENTRIES["restricted master"])(tree, search)
    return plan


def dived_plan(relaxation: Relaxation) -> tuple[Indices, Floats] | None:
    """Return groups of the pool and how often each is in a plan; None if none was found."""
    plan: tuple[Indices, Floats] | None = loaded(ENTRIES["dive"])(relaxation)
    return plan


def offer_columns(
    search: Search,
    classes: list[JobClass],
    columns: Columns,
    times: Floats,
    limits: Mapping[str, tuple[int, int]],
) -> str | None:
    """Offer the plan of columns; return the nodes on which its groups do not fit for certain.

    Parameters
    ----------
    times
        How often each column is in the plan.
    limits
        By nodes: how many of them may be used, and how many woken.
    """
    nodes: str | None = loaded(ENTRIES["node packing"])(search, classes, columns, times, limits)
    return nodes


def violated_cuts(frame: Frame, pool: CutPool, support: Columns, x: Floats) -> list[Rank1CutRow]:
    """Return cuts that a point violates, the most violated first; the pool gets new ones."""
    cuts: list[Rank1CutRow] = loaded(ENTRIES["cuts"])(frame, pool, support, x)
    return cuts


def needed_odd_sets(
    frame: Frame, pool: Columns, reduced: Floats, penalty: float, point: Point
) -> list[Rank1CutRow]:
    """Return the odd sets of jobs that an optimal matching needs, as cuts."""
    cuts: list[Rank1CutRow] = loaded(ENTRIES["odd sets"])(frame, pool, reduced, penalty, point)
    return cuts


def resumed(
    search: Search, instance: EacoInstance, classes: list[JobClass], relaxation: Relaxation
) -> Point | None:
    """Return what the duals of the previous epoch prove; None if they say too little."""
    last = search.previous(loaded(ENTRIES["warm start"]))
    return None if last is None else last.resumed(instance, classes, relaxation)


def root_duals(instance: EacoInstance, classes: list[JobClass], proof: Proof) -> Any:
    """Return what the proof of a root leaves to the next epoch."""
    return loaded(ENTRIES["warm start"]).of(instance, classes, proof)
