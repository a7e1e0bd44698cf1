"""Greedy rules for EaCO: each offers its plan, if it has one; see the functions that make them.

Every rule keeps memory, tolerances, deadlines, gang sizes and the limit on jobs. If the cluster has
a power cap, `power_cap.capped` lowers power levels, or lets jobs wait, until it is kept. Jobs that
find no GPUs wait if they may; if one of them must not, there is no plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy import published_rules, simple_rules
from optsched.eaco.greedy.group_costs import Estimates
from optsched.eaco.greedy.local_search import improved, total
from optsched.eaco.greedy.power_cap import capped, with_best_levels

if TYPE_CHECKING:
    from optsched.eaco.greedy.grouping import Grouping
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoPlan
    from optsched.search import Search


def fifo_exclusive(instance: EacoInstance, search: Search) -> None:
    """Never share; see `published_rules.fifo`."""
    _offer(search, published_rules.fifo(Estimates(instance)))


def fifo_packed(instance: EacoInstance, search: Search) -> None:
    """Share in pairs when GPUs run out; see `published_rules.fifo_packed`."""
    _offer(search, published_rules.fifo_packed(Estimates(instance)))


def random_pairs(instance: EacoInstance, search: Search) -> None:
    """Share in random pairs when GPUs run out; see `published_rules.gandiva_gavel`."""
    _offer(search, published_rules.gandiva_gavel(Estimates(instance), search.seed))


def least_utilised(instance: EacoInstance, search: Search) -> None:
    """Pack by utilisation when GPUs run out; see `published_rules.gandiva`."""
    _offer(search, published_rules.gandiva(Estimates(instance)))


def eaco_greedy(instance: EacoInstance, search: Search) -> None:
    """Share the busiest GPUs that are allowed, as `published_rules.eaco` does by default."""
    _offer(search, published_rules.eaco(Estimates(instance)))


def best_fit_memory(instance: EacoInstance, search: Search) -> None:
    """Share where least memory is left; see `simple_rules.best_fit`."""
    _offer(search, simple_rules.best_fit(Estimates(instance)))


def best_delta_energy(instance: EacoInstance, search: Search) -> None:
    """Share where the objective rises least; see `simple_rules.best_delta_energy`.

    At full power, and with the level of each group that costs least.
    """
    _offer_levels(search, simple_rules.best_delta_energy(Estimates(instance)))


def sharing_scores(instance: EacoInstance, search: Search) -> None:
    """Share in pairs of calm jobs; see `published_rules.lucid`."""
    _offer(search, published_rules.lucid(Estimates(instance)))


def longest_first(instance: EacoInstance, search: Search) -> None:
    """Share among jobs that end together: `simple_rules.longest_first` and `longest_first_full`.

    Each at full power, and with the level of each group that costs least.
    """
    estimates = Estimates(instance)
    for grouping in _longest_first(estimates):
        _offer_levels(search, grouping)


def local_search(instance: EacoInstance, search: Search) -> None:
    """Improve the best of the simple rules by `local_search.improved`."""
    estimates = Estimates(instance)
    start = _best([*_longest_first(estimates), simple_rules.best_delta_energy(estimates)])
    if start is not None:
        _offer(search, start)
        _offer(search, improved(start, search.out_of_time))


def quick_start(instance: EacoInstance) -> EacoPlan | None:
    """Return a good plan in little time, without drawing anything; None if there is none at hand.

    The best of longest-first with and without asking whether it pays, each with the power levels
    that cost least; if neither places all jobs, what best-delta-energy gives.
    """
    estimates = Estimates(instance)
    start = _best(_longest_first(estimates)) or _best([simple_rules.best_delta_energy(estimates)])
    return None if start is None else capped(start).plan()


def _longest_first(estimates: Estimates) -> list[Grouping]:
    return [simple_rules.longest_first(estimates), simple_rules.longest_first_full(estimates)]


def _best(starts: list[Grouping]) -> Grouping | None:
    """Return the grouping of the least objective that gives a plan, at its best levels."""
    usable = [with_best_levels(start) for start in starts if start.plan() is not None]
    return min(usable, key=_total, default=None)


def _total(grouping: Grouping) -> float:
    estimates = grouping.estimates
    waiting = sum(estimates.waiting_cost(n) for n in grouping.waiting)
    return total(estimates, grouping.drafts) + waiting


def _offer_levels(search: Search, grouping: Grouping) -> None:
    _offer(search, grouping)
    _offer(search, with_best_levels(grouping))


def _offer(search: Search, grouping: Grouping) -> None:
    plan = capped(grouping).plan()
    if plan is not None:
        search.offer(plan)
