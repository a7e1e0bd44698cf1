"""What the methods of EaCO take of the memory at their peak, from an instance's sizes.

Bytes are fitted to `benchmarks/memory.py`. Groups are counted without listing them: of those that
memory, rates and tolerances may forbid, a few are drawn and looked at.
"""

from __future__ import annotations

import random
from math import comb
from operator import attrgetter
from typing import TYPE_CHECKING

from optsched.eaco.due_times import due_s
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Job

    Count = Callable[[Sequence[Job]], int]


TYPE = attrgetter("type", "gpus", "work_s", "max_slowdown", "deadline_s", "waiting_penalty_kwh")


def memory(instance: EacoInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, its bound does."""
    each = SETTINGS.bytes_listed * instance.max_jobs_per_gpu
    if method == "milp":
        return SETTINGS.bytes_pyomo + (SETTINGS.bytes_formulated + each) * groups(instance, len)
    by_columns = _has_pricing_problems(instance) and (method == "columns" or _is_large(instance))
    if by_columns:
        pairs = SETTINGS.bytes_priced * classes(instance.jobs) ** 2
        return SETTINGS.bytes_loaded + min(pairs, SETTINGS.most_priced)
    return SETTINGS.bytes_loaded + each * min(groups(instance), SETTINGS.most_groups)


def _has_pricing_problems(instance: EacoInstance) -> bool:
    from optsched.eaco.groups.pricing_scope import has_pricing_problems

    return has_pricing_problems(instance)


def _is_large(instance: EacoInstance) -> bool:
    apart, most = classes(instance.jobs), instance.max_jobs_per_gpu
    is_wide = most > 2 and apart > SETTINGS.most_wide_classes
    is_long = len(instance.jobs) > SETTINGS.most_listed_jobs
    return is_wide or is_long or _combinations(apart, most) > SETTINGS.most_groups


def classes(jobs: Sequence[Job]) -> int:
    """Return how many jobs differ by more than their ids."""
    return len({TYPE(job) for job in jobs})


def _combinations(apart: int, size: int) -> int:
    return comb(apart + size - 1, size)


def groups(instance: EacoInstance, count: Count = classes) -> int:
    """Return about how many groups are possible, with nodes, power levels and locations.

    Parameters
    ----------
    count
        Of jobs, how many are told apart.
    """
    by_gang: dict[int, list[Job]] = {}
    for job in instance.jobs:
        by_gang.setdefault(job.gpus, []).append(job)
    running = {name for place in instance.running for name in place.jobs}
    total = 0.0
    for gpu in instance.gpu_types:
        pools = [nodes for nodes in instance.nodes if nodes.gpu == gpu.id]
        for gang, jobs in by_gang.items():
            fitting = sum(gang <= nodes.gpus or gang % nodes.gpus == 0 for nodes in pools)
            stay = instance.max_jobs_per_gpu * sum(job.id in running for job in jobs) / len(jobs)
            levels = 1 + len(gpu.levels or ())
            total += _on(instance, jobs, gpu, count) * fitting * levels * (1 + stay)
    return round(total)


def _on(instance: EacoInstance, jobs: list[Job], gpu: GpuType, count: Count) -> float:
    """Return about how many groups of jobs may share GPUs of a type."""
    apart, sizes = count(jobs), range(1, min(instance.max_jobs_per_gpu, len(jobs)) + 1)
    most = {k: min(comb(len(jobs), k), _combinations(apart, k)) for k in sizes}
    if sum(most.values()) <= SETTINGS.few_groups:
        return sum(most.values())
    return sum(number * _share(instance, jobs, gpu, k) for k, number in most.items())


def _share(instance: EacoInstance, jobs: list[Job], gpu: GpuType, size: int) -> float:
    """Return the share of groups of a size that are allowed, among some that are drawn."""
    if size == 1:
        return 1.0
    rng, types = random.Random(size), {kind.id: kind for kind in instance.types}
    least = {job.id: _least_rate(instance, job, gpu) for job in jobs}
    limit = gpu.memory_gb * (1 - instance.memory_headroom)
    allowed, rates = 0, dict[tuple[str, ...], dict[str, float]]()
    for _ in range(SETTINGS.drawn_groups):
        group = rng.sample(jobs, size)
        if sum(types[job.type].memory_gb for job in group) <= limit:
            key = tuple(sorted([job.type for job in group]))
            if key not in rates:
                rates[key] = _rates(instance, key, gpu)
            allowed += _bear(group, rates[key], least)
    return max(allowed, 1) / SETTINGS.drawn_groups


def _least_rate(instance: EacoInstance, job: Job, gpu: GpuType) -> float:
    """Return the least rate that a job bears on GPUs of a type, wherever it runs now."""
    least = 0.0 if job.max_slowdown is None else 1 / job.max_slowdown
    due = due_s(instance, job)
    if due is None:
        return least
    kind = next(kind for kind in instance.types if kind.id == job.type)
    return max(least, job.work_s / kind.speeds.get(gpu.id, 1.0) / float(due))


def _rates(instance: EacoInstance, types: tuple[str, ...], gpu: GpuType) -> dict[str, float]:
    """Return the rates of types side by side; none if that is not known or they do not fit."""
    rates = instance.rates[gpu.id].of(types)
    is_of_use = rates.fits and rates.is_known
    return {name: float(rate) for name, rate in rates.by_type.items()} if is_of_use else {}


def _bear(group: list[Job], rates: dict[str, float], least: dict[str, float]) -> bool:
    """Tell whether jobs bear each other's company."""
    share = SETTINGS.nearly_borne
    return bool(rates) and all(rates[job.type] >= least[job.id] * share for job in group)
