"""Greedy plans for EaCO: how the groupings of rules are offered, and local search from the best.

Every rule keeps memory, tolerances, deadlines, gang sizes and the limit on jobs. If the cluster has
a power cap, `power_cap.capped` lowers power levels, or lets jobs wait, until it is kept. Jobs that
find no GPUs wait if they may; if one of them must not, there is no plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy import simple_rules
from optsched.eaco.greedy.group_costs import GroupCosts
from optsched.eaco.greedy.local_search import improved, total
from optsched.eaco.greedy.power_cap import capped, with_best_levels

if TYPE_CHECKING:
    from optsched.eaco.greedy.grouping import Grouping
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoPlan
    from optsched.search import Search


def local_search(instance: EacoInstance, search: Search) -> None:
    """Improve the best of the simple rules by `local_search.improved`."""
    estimates = GroupCosts(instance)
    start = _best([*_longest_first(estimates), simple_rules.best_delta_energy(estimates)])
    if start is not None:
        offer(search, start)
        offer(search, improved(start, search.out_of_time))


def quick_start(instance: EacoInstance) -> EacoPlan | None:
    """Return a good plan in little time, without drawing anything; None if there is none at hand.

    The best of longest-first with and without asking whether it pays, each with the power levels
    that cost least; if neither places all jobs, what best-delta-energy gives.
    """
    estimates = GroupCosts(instance)
    start = _best(_longest_first(estimates)) or _best([simple_rules.best_delta_energy(estimates)])
    return None if start is None else capped(start).plan()


def _longest_first(estimates: GroupCosts) -> list[Grouping]:
    return [simple_rules.longest_first(estimates), simple_rules.longest_first_full(estimates)]


def _best(starts: list[Grouping]) -> Grouping | None:
    """Return the grouping of the least objective that gives a plan, at its best levels."""
    usable = [with_best_levels(start) for start in starts if start.plan() is not None]
    return min(usable, key=_total, default=None)


def _total(grouping: Grouping) -> float:
    estimates = grouping.estimates
    waiting = sum(estimates.waiting_cost(n) for n in grouping.waiting)
    return total(estimates, grouping.drafts) + waiting


def offer(search: Search, grouping: Grouping, *, with_levels: bool = False) -> None:
    """Offer the plan of a grouping, if it has one; and that at the power levels that cost least."""
    for variant in (grouping, with_best_levels(grouping)) if with_levels else (grouping,):
        plan = capped(variant).plan()
        if plan is not None:
            search.offer(plan)
