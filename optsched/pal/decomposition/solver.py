"""The method "decomposition": Lagrangian decomposition over a partition (POP, SOSP 2021).

The cluster is divided into blocks of about a thousand GPUs that stand together. For the bound each
block solves the relaxation for its *share* of every type of jobs, fractions of jobs and all; blocks
that are alike then agree on duals, and the Lagrangian value of all duals together is a bound for
the whole cluster (any duals are). For the plan each type's jobs are dealt out evenly, and each
block places its own by the exact method's relaxation, rounding and dives. Last, jobs that pay far
more than the duals ask for are reoptimised, and then some jobs at a time, wherever they are.

The blocks are those of POP (Narayanan et al., SOSP'21), which has no bound; with whole jobs instead
of shares blocks disagree on duals, and the bound is ten times as far away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.decomposition.partition import GpuBlock, partitioned
from optsched.pal.decomposition.subproblems import PlacementTask, PricingTask, results
from optsched.pal.dual_ascent.prices_first import prove_by_prices
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.heuristics import HEURISTICS
from optsched.pal.exact.lagrangian_bound import Lagrangian, PricedDuals, without_cuts
from optsched.pal.exact.large_neighbourhood_search import run_lns
from optsched.pal.exact.relaxation import all_options
from optsched.pal.exact.rounding import repaired
from optsched.pal.exact.smallest_first import stronger
from optsched.pal.exact.solver import PlacementSolver, exact
from optsched.pal.exact.warm_start import WarmStart, best_duals
from optsched.pal.exact.worst_removal import DualCosts, remove_worst
from optsched.pal.greedy.fast_fallback import fall_back, is_short, offer_greedy
from optsched.pal.node_classes.solver import by_patterns, few_node_classes, from_node_classes
from optsched.pal.plan import PalCertificate, PalPlan
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.lagrangian_bound import DualSolution
    from optsched.pal.instance import PalInstance
    from optsched.results.result import Result
    from optsched.search import Search


def by_size(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Solve by `exact`, from `node-classes` on if these are few; if large, by one or in blocks.

    A time limit that is too short for either gets what `fast_fallback` does. Where the slowest
    GPU counts most, a sort may do; and what it proves counts if it is more than all else.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    certificate = HEURISTICS["smallest first"](instance, search) or _by_size(instance, search)
    return None if certificate is None else stronger(instance, search, certificate)


def _by_size(instance: PalInstance, search: Search) -> PalCertificate | None:
    if search.program_limit is not None:
        return exact(instance, search)
    nodes = few_node_classes(instance, search)
    if len(instance.free_gpus) <= SETTINGS.large_gpus:
        return (
            exact(instance, search) if nodes is None else from_node_classes(instance, search, nodes)
        )
    short_s = SETTINGS.blocks_short_s if nodes is None else SETTINGS.classes_short_s
    if is_short(instance, search, short_s):
        certificate = fall_back(instance, search)
        if certificate is not None:
            return certificate
    return by_blocks(instance, search) if nodes is None else by_patterns(instance, search, nodes)


def by_blocks(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs block by block, and bound the cost by duals for the whole cluster.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    largest = max(job.gpus for job in instance.jobs)
    partition = partitioned(instance, max(SETTINGS.block_gpus, SETTINGS.block_gangs * largest))
    if len(partition) < 2:
        return exact(instance, search)
    search.gave_up = (
        f"the prices of {len(partition)} blocks prove no more, and reoptimising jobs gained no more"
    )
    certificate = _solved(Whole(instance), partition, search)
    search.out_of_time()  # parts may have been cut short
    return certificate


def _solved(whole: Whole, partition: Sequence[GpuBlock], search: Search) -> PalCertificate | None:
    instance = whole.instance
    search.state = WarmStart.of(whole.problem)
    resumed = None if search.start is None else _resumed(whole, search.start, partition, search)
    if resumed is not None and search.is_closed(resumed.value):
        return whole.certificate(resumed, search)
    offer_greedy(instance, search)
    if search.plan is not None and whole.has_few_options(whole.at_zero_duals(), search):
        return exact(instance, search)
    bound = resumed or whole.prices_first(search) or _by_blocks(whole, partition, search)
    if bound is None:
        return exact(instance, search)
    search.certificate = whole.certificate(bound, search)
    remove_worst(instance, search, whole.dual_costs(bound), lambda: search.is_closed(bound.value))
    if not search.is_closed(bound.value) and whole.has_few_options(bound, search):
        return whole.solved(bound, search)
    run_lns(instance, search, lambda: search.is_closed(bound.value))
    if not search.is_closed(bound.value) and whole.has_few_options(bound, search):
        return whole.solved(bound, search)
    return whole.certificate(bound, search)


def _by_blocks(whole: Whole, partition: Sequence[GpuBlock], search: Search) -> PricedDuals | None:
    """Return what the duals of the blocks prove, and offer their plan; None without a plan."""
    block_duals = _place(whole, partition, search)
    if search.plan is None:
        return None
    return whole.bound(_gpu_duals(whole, partition, block_duals, search))


def _resumed(
    whole: Whole, start: Result, partition: Sequence[GpuBlock], search: Search
) -> PricedDuals | None:
    """Begin with the previous epoch, and do no more than it takes to close the gap.

    Returns
    -------
    PricedDuals | None
        None without a plan, when everything is to be done as if there had been no previous epoch.
    """
    instance, problem = whole.instance, whole.problem
    packing, new = repaired(instance, problem, start)
    search.offer(packing.plan(instance))
    if search.plan is None:
        return None
    bound = whole.previous_bound(start, search)
    search.certificate = whole.certificate(bound, search)
    if search.is_closed(bound.value):
        return bound
    remove_worst(instance, search, whole.dual_costs(bound), lambda: search.is_closed(bound.value))
    if search.is_closed(bound.value):
        return bound
    packing.reinsert()
    search.offer(packing.plan(instance))
    names = [instance.jobs[n].id for n in new]
    run_lns(instance, search, lambda: search.is_closed(bound.value), SETTINGS.least_patience, names)
    if search.is_closed(bound.value):
        return bound
    bound = max(
        bound, whole.bound(_gpu_duals(whole, partition, {}, search)), key=lambda each: each.value
    )
    search.certificate = whole.certificate(bound, search)
    run_lns(instance, search, lambda: search.is_closed(bound.value), around=names)
    return bound


class PricedBlock(NamedTuple):
    """A block, and the duals of its GPUs by number."""

    block: GpuBlock
    duals: Floats


class Whole:
    """The whole cluster as arrays, and what duals prove for it."""

    def __init__(self, instance: PalInstance) -> None:
        self.instance = instance
        self.problem = arrays(instance)
        self.options = all_options(self.problem)
        self._reward = np.array([jobs.reward for jobs in self.problem.types])
        self._lagrangian = Lagrangian(self.problem, self.options, self._reward)

    def bound(self, duals: Floats) -> PricedDuals:
        """Return what GPU duals prove, or zero duals if that is more."""
        bounds = (self._bound(without_cuts(each)) for each in (np.zeros_like(duals), duals))
        return max(bounds, key=lambda bound: bound.value)

    def at_zero_duals(self) -> PricedDuals:
        """Return what zero duals prove: that each job costs what it would cost alone."""
        return self._bound(without_cuts(np.zeros(len(self.problem.gpus))))

    def has_few_options(self, bound: PricedDuals, search: Search) -> bool:
        """Tell whether a plan that is better by the gap may use few of the options.

        At the duals of the bound any plan with one of the others costs too much. Even without
        duals these are nearly all, where jobs are few or it is expensive to move them.
        """
        assert search.objective is not None
        goal = search.objective * (1 - search.gap)
        is_fixed = self._lagrangian.fixed_by_reduced_cost(bound.priced, goal)
        return bool((~is_fixed).sum() < SETTINGS.few_options)

    def prices_first(self, search: Search) -> PricedDuals | None:
        """Return what prices prove, with a plan that they suggest; None if blocks are quicker."""
        return prove_by_prices(self.instance, search, self.problem, self.options, self._reward)

    def solved(self, bound: PricedDuals, search: Search) -> PalCertificate | None:
        """Solve one tree for the whole cluster, without what the duals of the bound rule out."""
        solver = PlacementSolver(self.instance, search, is_thorough=True)
        solver.start_from(bound)
        return solver.solve()

    def previous_bound(self, start: Result, search: Search) -> PricedDuals:
        """Return what duals of the previous epoch prove, or zero duals if that is more."""
        assert search.objective is not None
        none = self.at_zero_duals()
        parts = self.instance, self.problem, self.options, self._lagrangian
        best = best_duals(*parts, start, search.objective)
        return none if best is None or best.value <= none.value else best

    def dual_costs(self, bound: PricedDuals) -> DualCosts:
        """Return what jobs cost at the duals of a bound."""
        return DualCosts(self.problem, self.options, bound)

    def _bound(self, solution: DualSolution) -> PricedDuals:
        return PricedDuals(solution, solution.priced(self.problem, self.options, self._lagrangian))

    def certificate(self, bound: PricedDuals, search: Search) -> PalCertificate:
        """Return the duals as a certificate."""
        assert search.objective is not None
        value = min(bound.value, search.objective)
        return bound.solution.certificate(self.instance, self.problem, value)


# --- blocks -----------------------------------------------------------------------------------


def _place(
    whole: Whole, partition: Sequence[GpuBlock], search: Search
) -> dict[object, PricedBlock]:
    """Offer the plan in which each block places the jobs that were dealt to it; return duals."""
    first = {(block.likeness, block.demand): block for block in reversed(partition)}
    keys = dict.fromkeys((block.likeness, block.demand) for block in partition)
    tasks = [_placement_task(whole, first[key], search) for key in keys]
    places: dict[object, list[Indices]] = {}
    block_duals: dict[object, PricedBlock] = {}
    for key, placed in zip(keys, results(tasks, search), strict=True):
        if placed is None:
            return {}
        order = np.argsort(first[key].open)
        places[key] = [order[list(inside)] for inside in placed.places]
        if placed.duals is not None:
            block_duals.setdefault(key[0], PricedBlock(first[key], placed.duals))
    gpus_of = {job.id: job.current for job in partition[0].spanning}
    names = np.array(whole.problem.gpus)
    for block in partition:
        for job, inside in zip(block.jobs, places[block.likeness, block.demand], strict=True):
            gpus_of[job.id] = tuple(names[block.open[inside]].tolist())
    placements = [{"id": job.id, "gpus": gpus_of[job.id]} for job in whole.instance.jobs]
    search.offer(PalPlan.model_validate({"jobs": placements}))
    return block_duals


def _gpu_duals(
    whole: Whole,
    partition: Sequence[GpuBlock],
    known: dict[object, PricedBlock],
    search: Search,
) -> Floats:
    """Return the duals of all GPUs, as the blocks see them; zero where time runs out."""
    first = {block.likeness: block for block in reversed(partition) if block.likeness not in known}
    tasks = [_pricing_task(whole, block, search) for block in first.values()]
    block_duals = dict(known)
    for block, solved in zip(first.values(), results(tasks, search), strict=True):
        if solved is not None:
            block_duals[block.likeness] = PricedBlock(block, solved)
    duals = np.zeros(len(whole.problem.gpus))
    for block in partition:
        if block.likeness in block_duals:
            like, inside = block_duals[block.likeness]
            duals[block.gpus] = inside[like.rank]
    return duals


def _placement_task(whole: Whole, block: GpuBlock, search: Search) -> PlacementTask:
    part = block.to_place(whole.instance)
    return PlacementTask(part, _pricing_task(whole, block, search), SETTINGS.block_gap)


def _pricing_task(whole: Whole, block: GpuBlock, search: Search) -> PricingTask:
    instance, penalty = whole.instance, np.inf
    if search.objective is not None:
        penalty = SETTINGS.penalty * search.objective / len(instance.jobs)
    if len(whole.problem.types) > SETTINGS.most_shared_types:
        return PricingTask(block.instance(instance, block.jobs), 1.0, penalty, search.seed)
    own = {job.id for job in block.jobs}
    others = (job for job in instance.jobs if job.id not in own and job.id not in block.running)
    part = block.instance(instance, [*block.jobs, *others])  # types in the order of the block's own
    return PricingTask(part, block.share, penalty, search.seed)
