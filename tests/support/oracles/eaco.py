"""Slow and obvious ways to least energy, for tests only, by the verifier's rules and objective."""

from __future__ import annotations

import itertools
import math
from contextlib import contextmanager
from functools import cache

import networkx as nx
import pytest

from optsched.eaco import EacoPlan, Group
from optsched.eaco.verify import feasibility
from optsched.eaco.verify.feasibility import exact_objective, objective, violations
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.mip import highs
from tests.support.oracles.eaco_pairwise import build_pairwise

# --- groups by the verifier -----------------------------------------------------------------------


def is_allowed(instance, group):
    """Whether the verifier has nothing against a group by itself, power cap aside."""
    jobs = tuple(job for job in instance.jobs if job.id in group.jobs)
    places = [
        place.model_copy(update={"jobs": inside})
        for place in instance.running
        if (inside := tuple(name for name in place.jobs if name in group.jobs))
    ]
    changes = {"jobs": jobs, "running": tuple(places), "power_cap_w": None}
    return not violations(instance.model_copy(update=changes), EacoPlan(groups=(group,)))


def variants(instance, jobs):
    """Groups of these jobs, fresh ones on node 0, at all levels, nodes and locations."""
    levels = {gpu.id: [None, *(level.id for level in gpu.levels)] for gpu in instance.gpu_types}
    names = tuple(job.id for job in jobs)
    for pool in instance.nodes:
        stays = [p for p in instance.running if p.nodes == pool.id and set(p.jobs) & set(names)]
        for level, place in itertools.product(levels[pool.gpu], [None, *stays]):
            node, location = (0, None) if place is None else (place.node, place.id)
            group = Group(jobs=names, nodes=pool.id, node=node, level=level, location=location)
            if is_allowed(instance, group):
                yield group


def subsets(jobs, most):
    """Subsets of jobs with equal gangs, all with the first job."""
    first, *rest = jobs
    equal = [job for job in rest if job.gpus == first.gpus]
    for size in range(min(most, len(equal) + 1)):
        for others in itertools.combinations(equal, size):
            yield (first, *others)


# --- all plans ------------------------------------------------------------------------------------


def brute_force(instance):
    """The least objective of all plans, checked one by one; None if there is no plan."""
    memory, costs, best = {}, {}, math.inf
    with remembering(instance):
        for plan in _plans(instance, list(instance.jobs), (), (), memory):
            key = _figures(instance, plan)
            if key not in costs:
                costs[key] = objective(instance, plan)
            if costs[key] < best and not violations(instance, plan):
                best = costs[key]
    return None if math.isinf(best) else best


def _figures(instance, plan):
    """What the objective of a plan depends on: of nodes their kinds and loads, not the numbers."""
    awake = {pool.id: pool.awake for pool in instance.nodes}
    groups = tuple((g.jobs, g.nodes, g.level, g.location) for g in plan.groups)
    loads = _loads(instance, plan.groups).items()
    nodes = sorted((pool, node < awake[pool], load) for (pool, node), load in loads)
    return plan.waiting, groups, tuple(nodes)


@contextmanager
def remembering(instance):
    """Let the verifier work out the figures of a group once: they are the same in all plans."""
    figures = ExactFigures(instance)
    gpu_w = cache(figures.gpu_w)
    figures.gpu_w = lambda jobs, group: gpu_w(tuple(jobs), group)
    for name in ("slowdown", "phases", "credit_w", "later_j"):
        setattr(figures, name, cache(getattr(figures, name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            feasibility, "ExactFigures", lambda o: figures if o is instance else ExactFigures(o)
        )
        yield


def _plans(instance, left, groups, waiting, memory):
    if not left:
        yield EacoPlan(groups=groups, waiting=waiting)
        return
    if left[0].waiting_penalty_kwh is not None:
        yield from _plans(instance, left[1:], groups, (*waiting, left[0].id), memory)
    for chosen in subsets(left, instance.max_jobs_per_gpu):
        names = tuple(job.id for job in chosen)
        if names not in memory:
            memory[names] = list(variants(instance, chosen))
        rest = [job for job in left if job not in chosen]
        for group in memory[names]:
            for node in _nodes(instance, group, groups):
                placed = (*groups, group.model_copy(update={"node": node}))
                yield from _plans(instance, rest, placed, waiting, memory)


def _loads(instance, groups):
    size = {pool.id: pool.gpus for pool in instance.nodes}
    gang = {job.id: job.gpus for job in instance.jobs}
    loads = {}
    for group in groups:
        each, need = size[group.nodes], gang[group.jobs[0]]
        for n in range(max(1, need // each)):
            key = (group.nodes, group.node + n)
            loads[key] = loads.get(key, 0) + min(need, each)
    return loads


def _nodes(instance, group, groups):
    """Numbers of nodes with room; of empty nodes that are alike only the first."""
    if group.location is not None:
        return [group.node]
    pool = next(pool for pool in instance.nodes if pool.id == group.nodes)
    gang = {job.id: job.gpus for job in instance.jobs}
    wide = any(size > pool.gpus for size in gang.values())
    held = {place.node for place in instance.running if place.nodes == pool.id}
    loads, numbers, seen = _loads(instance, groups), [], set()
    for node in range(pool.count):
        kind = node < pool.awake
        if not wide and node not in held and (pool.id, node) not in loads:
            if kind in seen:
                continue
            seen.add(kind)
        trial = group.model_copy(update={"node": node})
        after = _loads(instance, (*groups, trial))
        if all(
            n < pool.count and load <= pool.gpus for (p, n), load in after.items() if p == pool.id
        ):
            numbers.append(node)
    return numbers


# --- dynamic programming over sets of jobs --------------------------------------------------------


def sums_pack(instance):
    """Whether gangs pack wherever their sum does: sizes divide each other and the nodes' sizes."""
    for pool in instance.nodes:
        sizes = sorted({min(job.gpus, pool.gpus) for job in instance.jobs} | {pool.gpus})
        if any(large % small for small, large in itertools.pairwise(sizes)):
            return False
    return True


def bitmask_optimum(instance):
    """The least objective by dynamic programming over sets of jobs; None if there is no plan.

    For instances without running jobs and without a power cap in which `sums_pack`: of a set of
    jobs, the least cost for each number of GPUs in use on nodes of each kind.
    """
    awake = instance.changed({"nodes.*.on": None})
    jobs, pools = instance.jobs, [pool.id for pool in instance.nodes]
    least = {0: {(0,) * len(pools): 0.0}}
    for mask in range(1, 2 ** len(jobs)):
        first, *rest = [n for n in range(len(jobs)) if mask >> n & 1]
        least[mask] = {}
        waits = _waiting_cost(awake, jobs[first])
        _merge(least[mask], least[mask & ~(1 << first)], waits, None, 0)
        for chosen in subsets([jobs[n] for n in (first, *rest)], instance.max_jobs_per_gpu):
            taken = sum(1 << n for n in (first, *rest) if jobs[n] in chosen)
            for group in _cheapest(awake, chosen):
                pool = pools.index(group.nodes)
                cost = _own_cost(awake, group)
                _merge(least[mask], least[mask & ~taken], cost, pool, chosen[0].gpus)
    totals = [c + _nodes_cost(instance, used) for used, c in least[2 ** len(jobs) - 1].items()]
    best = min(totals, default=math.inf)
    return None if math.isinf(best) else best


def _merge(into, before, cost, pool, gpus):
    for used, so_far in before.items():
        key = tuple(n + gpus if p == pool else n for p, n in enumerate(used))
        into[key] = min(into.get(key, math.inf), so_far + cost)


_memory = {}


def _cheapest(instance, jobs):
    """Groups of these jobs, the cheapest level for each kind of nodes; remembered by instance."""
    key = tuple(job.id for job in jobs)
    if _memory.get("instance") is not instance:
        _memory.clear()
        _memory["instance"] = instance
    if key not in _memory:
        cheapest = {}
        for group in variants(instance, jobs):
            rival = cheapest.get(group.nodes)
            if rival is None or _own_cost(instance, group) < _own_cost(instance, rival):
                cheapest[group.nodes] = group
        _memory[key] = list(cheapest.values())
    return _memory[key]


def _own_cost(instance, group):
    """Cost of a group without its nodes: all of them are awake here."""
    cost = exact_objective(instance, EacoPlan(groups=(group,)))
    gang = next(job.gpus for job in instance.jobs if job.id == group.jobs[0])
    pool = next(pool for pool in instance.nodes if pool.id == group.nodes)
    return float(cost) - max(1, gang // pool.gpus) * _epoch_node(instance, pool)


def _epoch_node(instance, pool):
    """Cost of a node that is on without jobs."""
    if instance.objective != "epoch":
        return 0.0
    bare = next(gpu.power.bare_w for gpu in instance.gpu_types if gpu.id == pool.gpu)
    watts = pool.power.base_w - pool.power.sleep_w + pool.gpus * bare
    return float(instance.per_kwh) * instance.epoch_s * watts / 3.6e6


def _waiting_cost(instance, job):
    if job.waiting_penalty_kwh is None:
        return math.inf
    return float(exact_objective(instance, EacoPlan(waiting=(job.id,))))


def _nodes_cost(instance, used):
    """Cost of the nodes that so many GPUs need; infinite if there are too few."""
    total = 0.0
    for gpus, pool in zip(used, instance.nodes, strict=True):
        nodes = -(-gpus // pool.gpus)
        if nodes > pool.count:
            return math.inf
        wake_w = pool.power.base_w if pool.power.wake_w is None else pool.power.wake_w
        joules = max(0, nodes - pool.awake) * pool.power.wake_s * (wake_w - pool.power.sleep_w)
        weight = float(instance.per_kwh)
        if instance.objective == "eaco":
            weight *= instance.energy_weight
        total += nodes * _epoch_node(instance, pool) + joules / 3.6e6 * weight
    return total


# --- pairs ----------------------------------------------------------------------------------------


def matching_optimum(instance):
    """The least objective of pairs on equal GPUs, by matching on jobs and dummies; None without.

    For run to completion on one kind of nodes, all of them awake, gangs of one size, two jobs per
    GPU at most, none of which runs or may wait, and without a power cap.
    """
    pool, gang = instance.nodes[0], instance.jobs[0].gpus
    slots = (
        pool.count * (pool.gpus // gang) if gang <= pool.gpus else pool.count * pool.gpus // gang
    )
    jobs = list(instance.jobs)
    if 2 * slots < len(jobs):
        return None
    slots = min(slots, len(jobs))
    costs = {(a, b): 0.0 for a, b in itertools.combinations(range(len(jobs), 2 * slots), 2)}
    for n, job in enumerate(jobs):
        (alone,) = _cheapest(instance, (job,))
        costs |= {(n, d): _own_cost(instance, alone) for d in range(len(jobs), 2 * slots)}
        for other in range(n + 1, len(jobs)) if instance.max_jobs_per_gpu > 1 else ():
            for pair in _cheapest(instance, (job, jobs[other])):
                costs[n, other] = _own_cost(instance, pair)
    graph = nx.Graph()
    graph.add_nodes_from(range(2 * slots))
    big = 1 + max(costs.values(), default=0.0)
    graph.add_weighted_edges_from((a, b, big - cost) for (a, b), cost in costs.items())
    matching = nx.max_weight_matching(graph, maxcardinality=True)
    if len(matching) < slots:
        return None
    return math.fsum(costs[min(edge), max(edge)] for edge in matching)


def compact_optimum(instance):
    """The least objective by the pairwise program; None if there is no plan."""
    outcome = highs.solve(highs.compile_model(build_pairwise(instance)).program, gap=1e-9)
    assert outcome.status in ("optimal", "infeasible")
    return outcome.objective
