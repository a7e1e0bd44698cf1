"""Slow and obvious ways to optimal placements, for tests only; the tree is climbed by hand."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np


def parents(instance):
    """The domain around each domain and each GPU; None around the root."""
    domains = instance.topology.domains
    inside = {gpu: d.id for d in domains for gpu in d.gpus}
    return inside | {d.id: d.parent for d in domains}


def meeting_level(instance, gpus):
    """Number of the level of the lowest domain around all the GPUs."""
    above = parents(instance)
    chains = []
    for gpu in gpus:
        chain, here = [], above[gpu]
        while here is not None:
            chain.append(here)
            here = above[here]
        chains.append(chain)
    met = next(d for d in chains[0] if all(d in chain for chain in chains))
    levels = {d.id: d.level for d in instance.topology.domains}
    return instance.topology.levels.index(levels[met])


def open_gpus(instance):
    """GPUs that are neither unavailable nor in a drained domain, in the order of the document."""
    above = parents(instance)
    drained = {d.id for d in instance.topology.domains if d.drained}
    gpus = []
    for domain in instance.topology.domains:
        here, around = domain.id, set()
        while here is not None:
            around.add(here)
            here = above[here]
        if not around & drained:
            gpus += [gpu for gpu in domain.gpus if gpu not in instance.unavailable]
    return gpus


def slowdown_of(instance, job, gpu):
    return instance.profile.slowdown[job.application_class][instance.profile.gpus.index(gpu)]


def envelope(values):
    return [max(1.0, *values[: n + 1]) for n in range(len(values))]


def job_cost(instance, job, gpus):
    """Cost of a job on these GPUs, its reward if there are none; infinite beyond its cap."""
    if not gpus:
        return math.inf if instance.admission == "all" else job.reward
    level = meeting_level(instance, gpus)
    levels = instance.topology.levels
    if job.highest_level is not None and level > levels.index(job.highest_level):
        return math.inf
    slowest = max(slowdown_of(instance, job, gpu) for gpu in gpus)
    seconds = (job.remaining_s or 1.0) * envelope(instance.locality[job.model])[level] * slowest
    is_moved = bool(job.current) and set(gpus) != set(job.current)
    return job.weight * (seconds + (job.restart_s if is_moved else 0.0))


def plan_cost(instance, plan):
    """The objective of a plan in floats; infinite if it breaks a rule."""
    gpus = {placement.id: placement.gpus for placement in plan.jobs}
    used = [gpu for placement in plan.jobs for gpu in placement.gpus]
    is_sound = (
        len(plan.jobs) == len(gpus)
        and list(gpus) == [job.id for job in instance.jobs]
        and len(set(used)) == len(used)
        and set(used) <= set(open_gpus(instance))
        and all(len(gpus[job.id]) in (0, job.gpus) for job in instance.jobs)
    )
    if not is_sound:
        return math.inf
    return math.fsum(job_cost(instance, job, gpus[job.id]) for job in instance.jobs)


def bitmask_optimum(instance):
    """The least objective by dynamic programming over sets of GPUs; None if there is no plan."""
    gpus = open_gpus(instance)
    masks = np.arange(2 ** len(gpus))
    least = np.full(len(masks), np.inf)  # of the jobs so far, by the set of GPUs that they take
    least[0] = 0.0
    for job in instance.jobs:
        before, least = least, least + job_cost(instance, job, ())
        for chosen in combinations(range(len(gpus)), job.gpus):
            cost = job_cost(instance, job, [gpus[n] for n in chosen])
            taken = sum(1 << n for n in chosen)
            rest = masks[(masks & taken) == 0]
            least[rest | taken] = np.minimum(least[rest | taken], before[rest] + cost)
    optimum = least.min()
    return None if np.isinf(optimum) else float(optimum)


# --- special cases at any size: every job is placed, none runs, none is capped --------------------


def smallest_first(instance):
    """The optimum where distance costs nothing and all jobs are worth the same, of one class.

    Each gang takes the fastest GPUs that are left, the smallest gang first.
    """
    jobs = sorted(instance.jobs, key=lambda job: job.gpus)
    return _blocks(instance, jobs)


def best_order_of_blocks(instance):
    """The optimum where distance costs nothing and all jobs are of one class.

    Gangs take consecutive GPUs, sorted by slowdown, in the best of all orders.
    """
    return min(_blocks(instance, order) for order in permutations(instance.jobs))


def _blocks(instance, jobs):
    slowdowns = sorted(slowdown_of(instance, jobs[0], gpu) for gpu in open_gpus(instance))
    cost, end = 0.0, 0
    for job in jobs:
        end += job.gpus
        cost += job.weight * (job.remaining_s or 1.0) * slowdowns[end - 1]
    return cost


def best_packing(instance):
    """The optimum where all GPUs are equally fast: jobs are confined to domains that can hold them.

    Domains are nested, so gangs fit exactly if none of them is asked for more than it has.
    """
    above, free = parents(instance), dict.fromkeys(parents(instance), 0)
    for gpu in open_gpus(instance):
        here = above[gpu]
        while here is not None:
            free[here] += 1
            here = above[here]
    return _packed(instance, list(instance.jobs), free, above)


def _packed(instance, jobs, free, above):
    if not jobs:
        return 0.0
    job, best = jobs[0], math.inf
    speed = slowdown_of(instance, job, open_gpus(instance)[0])
    for domain in instance.topology.domains:
        left, here = dict(free), domain.id
        while here is not None:
            left[here] -= job.gpus
            here = above[here]
        if min(left.values()) >= 0:
            penalty = envelope(instance.locality[job.model])
            factor = penalty[instance.topology.levels.index(domain.level)] * speed
            cost = job.weight * (job.remaining_s or 1.0) * factor
            best = min(best, cost + _packed(instance, jobs[1:], left, above))
    return best


def best_for_one(instance):
    """The optimum of a single job: in each domain it takes the fastest GPUs."""
    (job,) = instance.jobs
    above, gpus_in = parents(instance), {d.id: [] for d in instance.topology.domains}
    for gpu in open_gpus(instance):
        here = above[gpu]
        while here is not None:
            gpus_in[here].append(gpu)
            here = above[here]
    best = math.inf
    for gpus in gpus_in.values():
        fastest = sorted(gpus, key=lambda gpu: slowdown_of(instance, job, gpu))[: job.gpus]
        if len(fastest) == job.gpus:
            best = min(best, job_cost(instance, job, fastest))
    return best


def assert_encloses_optimum(instance, result):
    """Hold bound and objective of a result to both sides of the optimum, if there is a plan."""
    optimum = bitmask_optimum(instance)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert result.bound <= float(optimum) * (1 + 1e-9)
    assert result.objective >= float(optimum) * (1 - 1e-9)
