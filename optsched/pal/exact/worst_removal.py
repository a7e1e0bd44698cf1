"""Worst removal (Ropke & Pisinger, Transportation Science 2006), by what jobs pay at duals.

Whatever the duals, an objective exceeds what they prove by what jobs pay above the least that they
could, and by the duals of idle GPUs. An epoch after another one most of that is paid by few jobs:
those for which no domain of their size was left. Where they would pay least, others stand; these
are reoptimised with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.exact.large_neighbourhood_search import reoptimised
from optsched.pal.exact.rounding import GangPacking
from optsched.pal.plan import PalPlan
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import PricedDuals
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.exact.solver import PlacementSolver
    from optsched.pal.instance import PalInstance
    from optsched.search import Search


class DualCosts(NamedTuple):
    """What jobs cost at some duals of an instance."""

    problem: PalArrays
    options: GangOptions
    bound: PricedDuals

    def excess(self, packing: GangPacking) -> Floats:
        """Return what each job pays above the least that it could; cuts are not looked at."""
        duals, excess = self.bound.solution.duals.gpus, {}
        for t, jobs in enumerate(self.problem.types):
            least = float(self.bound.priced.least[t])
            for n in jobs.jobs:
                charged = float(duals[packing.placed[n]].sum()) if n in packing.placed else 0.0
                excess[n] = packing.cost(n) + charged - least
        return np.array([excess[n] for n in range(len(excess))])


def remove_worst_at(solver: PlacementSolver, options: GangOptions, bound: PricedDuals) -> None:
    """Reoptimise jobs of much excess at some duals of a solver, until these prove its goal."""
    costs = DualCosts(solver.problem, options, bound)
    instance, search, proven = solver.instance, solver.search, bound.value
    remove_worst(instance, search, costs, lambda: proven >= solver.goal())


def remove_worst(
    instance: PalInstance, search: Search, costs: DualCosts, is_done: Callable[[], bool]
) -> None:
    """Reoptimise jobs of much excess, the worst first, until it is done or each had a turn.

    Nothing for few jobs.
    """
    had: set[int] = set()
    if len(instance.jobs) < SETTINGS.many_jobs:
        return
    while not is_done() and search.seconds_left() != 0:
        assert isinstance(search.plan, PalPlan)
        assert search.objective is not None
        packing = packed(instance, costs.problem, search.plan)
        excess = costs.excess(packing)
        limit = SETTINGS.worst_excess * (search.objective - costs.bound.value) / len(excess)
        worst = [n for n in np.argsort(-excess).tolist() if excess[n] > limit and n not in had]
        if not worst:
            return
        jobs = _with_obstacles(costs, packing, excess, worst, had)
        reoptimised(instance, search, [instance.jobs[n] for n in jobs])


def packed(instance: PalInstance, problem: PalArrays, plan: PalPlan) -> GangPacking:
    """Return a plan as jobs on GPUs."""
    number = {gpu: n for n, gpu in enumerate(problem.gpus)}
    gpus = {placement.id: placement.gpus for placement in plan.jobs}
    packing = GangPacking(problem)
    for n, job in enumerate(instance.jobs):
        if gpus[job.id]:
            packing.put(n, np.array([number[gpu] for gpu in gpus[job.id]], dtype=np.intp))
    return packing


def _with_obstacles(
    costs: DualCosts, packing: GangPacking, excess: Floats, worst: list[int], had: set[int]
) -> list[int]:
    """Return the first of some jobs, with those that stand where they would pay least.

    Which ones had their turn is written down.
    """
    owner = np.full(len(costs.problem.gpus), -1, dtype=np.intp)
    for n, gpus in packing.placed.items():
        owner[gpus] = n
    chosen: dict[int, None] = {}
    taken: set[int] = set()
    type_of = {n: t for t, jobs in enumerate(costs.problem.types) for n in jobs.jobs}
    for n in worst:
        if len(chosen) >= SETTINGS.worst_jobs - SETTINGS.worst_in_the_way:
            break
        had.add(n)
        chosen[n] = None
        domain = _emptiest(costs, packing, type_of[n], float(excess[n]), taken)
        if domain is not None:
            taken.add(domain)
            inside = slice(costs.problem.domains.start[domain], costs.problem.domains.stop[domain])
            others = np.unique(owner[inside][owner[inside] >= 0])
            if len(others) <= SETTINGS.worst_in_the_way:
                chosen |= dict.fromkeys(others.tolist())
    return list(chosen)


def _emptiest(
    costs: DualCosts, packing: GangPacking, t: int, excess: float, taken: set[int]
) -> int | None:
    """Return the domain with most idle GPUs of those where jobs of a type pay nearly least."""
    options, priced, domains = costs.options, costs.bound.priced, costs.problem.domains
    mine = np.flatnonzero(options.type[: options.first_keep] == t)
    near = mine[priced.costs[mine] <= priced.least[t] + SETTINGS.worst_near * excess]
    where = np.setdiff1d(options.domain[near], np.array(list(taken), dtype=np.intp))
    if not len(where):
        return None
    idle = np.r_[0, np.cumsum(packing.free)]
    busy = (
        domains.stop[where]
        - domains.start[where]
        - (idle[domains.stop[where]] - idle[domains.start[where]])
    )
    return int(where[np.argmin(busy)])
