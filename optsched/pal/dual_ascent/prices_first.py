"""Prices before programs: where gangs have many options, ascent and relax-and-fix come first.

With a slowdown of its own for each GPU and class, in three levels, the type-chain program has some
eighty columns for each GPU, its relaxation is weak, and blocks of it take long. The smoothed dual
(`ascent`) gives prices of nearly as much value as any in a second per thousand GPUs, and
relax-and-fix (`relax_and_fix`) a plan from them, which `annealing` makes better. What is left of
the gap is for the tree, without the options that these prices rule out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.dual_ascent.ascent import DualAscent
from optsched.pal.dual_ascent.improvement import Improvement
from optsched.pal.dual_ascent.relax_and_fix import RelaxAndFix
from optsched.pal.exact.lagrangian_bound import Lagrangian
from optsched.pal.exact.worst_removal import DualCosts
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import PricedDuals
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.exact.rounding import GangPacking
    from optsched.pal.instance import PalInstance
    from optsched.search import Search


def _is_worthwhile(
    instance: PalInstance, search: Search, problem: PalArrays, options: GangOptions
) -> bool:
    """Tell whether prices come first: with a plan, for many jobs and options, and no narrow gap."""
    if search.plan is None:
        return False
    if search.gap < SETTINGS.coarse_gap or len(instance.jobs) < SETTINGS.many_jobs:
        return False
    return len(options.type) >= SETTINGS.options_per_gpu * len(problem.gpus)


def prove_by_prices(
    instance: PalInstance, search: Search, problem: PalArrays, options: GangOptions, reward: Floats
) -> PricedDuals | None:
    """Return prices that prove much, and offer plans that they suggest; None if a tree is quicker.

    Parameters
    ----------
    reward
        Shape (types,): cost of leaving a job of a type out.
    """
    if not _is_worthwhile(instance, search, problem, options):
        return None
    lagrangian = Lagrangian(problem, options, reward)
    ascent = DualAscent(problem, options, lagrangian, search.seconds_left)
    bound = ascent.run(search.is_closed)
    if search.is_closed(bound.value) or search.seconds_left() == 0:
        return bound
    prices = bound.solution.duals.gpus / ascent.dual.unit
    fixing = RelaxAndFix(ascent.dual, search.seed, search.seconds_left)
    packing = fixing.packed(prices)
    packing.reinsert()

    def is_done(better: GangPacking) -> bool:
        search.offer(better.plan(instance))
        return search.is_closed(bound.value) or search.seconds_left() == 0

    if is_done(packing):
        return bound
    bound = ascent.go_on(search.is_closed)
    prices = bound.solution.duals.gpus / ascent.dual.unit
    if not is_done(packing) and len(packing.placed) == len(instance.jobs):
        costs, goal = DualCosts(problem, options, bound), bound.value / (1 - search.gap)
        improvement = Improvement(packing, fixing, prices, goal, search.seed)
        improvement.run(costs.excess, is_done)
    return bound
