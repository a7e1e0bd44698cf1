"""The method "node-classes": equal nodes as cutting stock (Gilmore & Gomory, Oper. Research 1961).

Equal nodes are aggregated to node classes, so that neither bound nor plan depend on how many there
are. The bound is that of a relaxation with one node for each class (`aggregated_relaxation`). The
plan is made of patterns, what one node may run, by column generation (`pattern_master`); gangs
larger than a node, and jobs that fit into no pattern, are placed last, in nodes that were kept free
for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.large_neighbourhood_search import run_lns
from optsched.pal.exact.solver import PlacementSolver, exact, start
from optsched.pal.exact.subinstance import joined, part
from optsched.pal.greedy.fast_fallback import fall_back
from optsched.pal.node_classes.aggregated_relaxation import AggregatedRelaxation
from optsched.pal.node_classes.aggregation import aggregated, sizes
from optsched.pal.node_classes.disaggregation import Places
from optsched.pal.node_classes.pattern_master import PatternMaster
from optsched.pal.node_classes.warm_start import WarmPatterns, keeping, previous_gpu_duals
from optsched.pal.plan import Leaf, PalCertificate, PalPlan
from optsched.pal.settings import SETTINGS
from optsched.search import Search

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.pal.instance import PalInstance
    from optsched.pal.node_classes.aggregated_relaxation import AggregatedBound
    from optsched.pal.node_classes.aggregation import NodeClasses


def few_node_classes(instance: PalInstance, search: Search) -> NodeClasses | None:
    """Return the nodes of an instance by classes if this method suits it and its time limit.

    Nodes are few kinds if they are so by themselves: racks part each kind into several classes.
    """
    gpus, left = len(instance.free_gpus), search.seconds_left()
    if not gpus:
        return None  # of a part, all of whose jobs may be left out
    is_large = gpus > SETTINGS.large_gpus
    time = np.inf if left is None else left - SETTINGS.classes_s - SETTINGS.classes_s_per_gpu * gpus
    largest = int(sizes(instance).max())
    wide = sum(job.gpus for job in instance.jobs if job.gpus > largest)
    if is_large and wide > SETTINGS.most_wide_share * gpus:
        return None  # their plan is poor, and nothing betters it there
    if time < 0 or largest > SETTINGS.most_node_gpus:
        return None
    nodes = aggregated(instance)
    share = len(set(nodes.class_keys)) / sum(each.count for each in nodes.classes)
    most = min(SETTINGS.most_classes, time / SETTINGS.class_s)
    most_share = SETTINGS.most_class_share if is_large else SETTINGS.most_class_share_before_tree
    is_few = share <= most_share and len(nodes.classes) <= most
    return nodes if is_few and len(nodes.types) <= SETTINGS.most_class_types else None


def from_node_classes(
    instance: PalInstance, search: Search, nodes: NodeClasses
) -> PalCertificate | None:
    """Solve by `exact`, which begins with the plan and the bound that patterns give.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    patience = SETTINGS.least_patience if search.gap >= SETTINGS.coarse_gap else 0
    return exact(instance, search, lambda: by_patterns(instance, search, nodes, patience))


def by_node_class(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs by patterns of equal nodes, and bound the cost by a relaxation of these.

    Where a node has many GPUs, this is the method "exact".

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    if sizes(instance).max() > SETTINGS.most_node_gpus:
        return exact(instance, search)
    return by_patterns(instance, search, aggregated(instance))


def by_patterns(
    instance: PalInstance,
    search: Search,
    nodes: NodeClasses,
    patience: int = SETTINGS.least_patience,
) -> PalCertificate | None:
    """Place the jobs of an instance whose nodes have been aggregated, and bound the cost.

    Parameters
    ----------
    patience
        Parts that are reoptimised in a row without gain.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    previous = search.previous(WarmPatterns) or WarmPatterns({}, None)
    master = _place(instance, search, nodes, previous)
    if search.plan is None:
        fallback = fall_back(instance, search) if search.out_of_time() else None
        return fallback or exact(instance, search)
    assert search.objective is not None
    relaxation, bound = _bound(nodes, search, previous)
    search.state = WarmPatterns.of(nodes, master.patterns, relaxation)
    search.certificate = _certificate(relaxation, bound, search)
    run_lns(instance, search, lambda: search.is_closed(bound.value), patience)
    if not search.is_closed(bound.value):
        search.out_of_time()
        search.gave_up = (
            "the prices of aggregated nodes prove no more, and reoptimising jobs gained no more"
        )
    return _certificate(relaxation, bound, search)


def _bound(
    nodes: NodeClasses, search: Search, previous: WarmPatterns
) -> tuple[AggregatedRelaxation, AggregatedBound]:
    """Return a bound by the duals of the previous epoch if they do, else by the relaxation's."""
    assert search.objective is not None
    relaxation = None if previous.relaxation is None else previous.relaxation.renewed(nodes)
    if relaxation is None:
        relaxation = AggregatedRelaxation(nodes, SETTINGS.penalty * search.objective, search.seed)
        duals = previous_gpu_duals(search, nodes)
        bound = None if duals is None else relaxation.bound_of_gpus(duals)
        if bound is not None and search.is_closed(bound.value):
            return relaxation, bound
    return relaxation, relaxation.bound_of(relaxation.solve(search.seconds_left()))


def _certificate(
    relaxation: AggregatedRelaxation, bound: AggregatedBound, search: Search
) -> PalCertificate:
    assert search.objective is not None
    leaf = Leaf(gpu_prices=tuple(relaxation.gpu_prices(bound).tolist()))
    return PalCertificate(bound=min(bound.value, search.objective), nodes=(leaf,))


# --- plans ------------------------------------------------------------------------------------


def _place(
    instance: PalInstance, search: Search, nodes: NodeClasses, previous: WarmPatterns
) -> PatternMaster:
    """Offer a plan of patterns, with what fits into none of them placed last."""
    fits = [jobs.gpus <= nodes.largest for jobs in nodes.types]
    wide = [jobs for jobs, fit in zip(nodes.types, fits, strict=True) if not fit]
    open_nodes = nodes.besides(sum(jobs.gpus * len(jobs.jobs) for jobs in wide))
    jobs = np.array([len(jobs.jobs) for jobs in nodes.types]) * fits
    counts = np.array([len(numbers) for numbers in open_nodes], dtype=np.intp)
    master = PatternMaster(nodes, jobs, counts, _missing(nodes), search.seed)
    master.add(keeping(nodes))
    master.add(previous.resumed(nodes))
    uses = master.solve(search.seconds_left)
    if uses is None:
        return master
    whole = master.whole(uses, search.seconds_left())
    places = Places(nodes, open_nodes, master.patterns, whole)
    _offer(instance, search, nodes, places)
    return master


def _missing(nodes: NodeClasses) -> Floats:
    """Return what it costs to place a job of each type nowhere."""
    slowest = nodes.slowdown.max(axis=1)
    costliest = [jobs.cost(0, slowest[jobs.row]) for jobs in nodes.types]
    reward = np.array([jobs.reward for jobs in nodes.types])
    return np.asarray(np.minimum(reward, SETTINGS.missing * np.array(costliest)))


def _offer(instance: PalInstance, search: Search, nodes: NodeClasses, places: Places) -> None:
    """Offer a plan; jobs that have no place yet get one in what is left free, if there is any."""
    plan = places.plan(instance)
    left = [
        instance.jobs[n]
        for jobs in nodes.types
        if jobs.reward == np.inf or jobs.gpus > nodes.largest
        for n in jobs.jobs
        if n not in places.gpus
    ]
    used = sum(len(gpus) for gpus in places.gpus.values())
    if not left or used == len(instance.free_gpus):
        search.offer(plan)  # refused if a job has to be placed
        return
    rest = part(instance, plan, left)
    inner = Search(rest, search.seconds_left(), SETTINGS.root_gap, search.seed)
    start(rest, inner)
    if inner.plan is None:
        return
    assert isinstance(inner.plan, PalPlan)
    search.offer(joined(plan, inner.plan))
    if len(rest.free_gpus) <= SETTINGS.small_rest and not search.out_of_time():
        PlacementSolver(rest, inner).root()
        search.offer(joined(plan, inner.plan))
