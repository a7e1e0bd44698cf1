"""Fallback where time is short: list scheduling by type (Graham 1969), a bound at no prices.

The jobs of a type are placed all at once, so the work grows with GPUs and types, not with jobs.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.free_gpus import ClusterState
from optsched.pal.greedy.gpu_ranking import Ranking
from optsched.pal.greedy.list_scheduling import keep_running, plan
from optsched.pal.greedy.pal_rules import pal_multilevel, pal_multilevel_sticky, raw_scores
from optsched.pal.greedy.rules import BY_NAME
from optsched.pal.job_types import job_types
from optsched.pal.plan import Leaf, PalCertificate
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.instance import PalInstance
    from optsched.pal.job_types import GangType
    from optsched.pal.plan import PalPlan
    from optsched.search import Search


def is_short(instance: PalInstance, search: Search, seconds_per_gpu: float) -> bool:
    """Tell whether a cluster is large, and the time that is left too short for prices."""
    left, gpus = search.seconds_left(), len(instance.free_gpus)
    if left is None or gpus <= SETTINGS.large_gpus:
        return False
    return left < min(SETTINGS.short_s, seconds_per_gpu * gpus)


def fall_back(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Offer one or two greedy plans, and return what is proven at no prices; None without a plan.

    With a plan, the search counts as stopped by its time limit.
    """
    offer_greedy(instance, search)
    if search.plan is None:
        return None
    search.stopped = search.stopped or "time limit"
    return at_zero_prices(instance)


# --- a plan -----------------------------------------------------------------------------------


def offer_greedy(instance: PalInstance, search: Search) -> None:
    """Offer a plan made type by type, and those of greedy rules that take less than a second.

    The rules are those of `quick_start`, and where jobs run, one that moves none of them.
    """
    rules = [type_by_type]
    if len(instance.jobs) <= SETTINGS.job_by_job:
        rules.append(pal_multilevel)
        if any(job.current for job in instance.jobs):
            rules += [pal_multilevel_sticky, keep_and_consolidate]
    for n, rule in enumerate(rules):
        if n and search.plan is not None and search.out_of_time():
            return
        made = rule(instance)
        if made is not None:
            search.offer(made)


def keep_and_consolidate(instance: PalInstance) -> PalPlan | None:
    """Place waiting jobs on few nodes; running ones keep their GPUs where they may."""
    return BY_NAME["packed-sticky"].plan(instance)


def type_by_type(instance: PalInstance) -> PalPlan | None:
    """Place the jobs of one type after the other: the largest gangs first, the fastest GPUs first.

    Each domain's free GPUs are parted into blocks of the gang's size, the fastest ones together;
    the jobs of the type get the fastest blocks of the lowest level, then those of the next one, up
    to the cap. Running jobs keep their GPUs, unless the others find no place then.
    """
    state = ClusterState(instance)
    kept = keep_running(instance, state)
    made = _placed(instance, state, kept)
    if made is None and kept:
        made = _placed(instance, ClusterState(instance), {})
    return made


def _placed(instance: PalInstance, state: ClusterState, kept: dict[int, Indices]) -> PalPlan | None:
    scores, chosen = raw_scores(instance), dict(kept)
    waiting: dict[tuple[object, ...], list[int]] = {}
    for n, job in enumerate(instance.jobs):
        if n not in kept:
            key = (-job.gpus, state.cap(job), job.application_class)
            waiting.setdefault(key, []).append(n)
    orders: dict[tuple[str, int], Indices] = {}
    for _, left in sorted(waiting.items(), key=lambda entry: entry[0][:2]):
        job = instance.jobs[left[0]]
        name, row = job.application_class, scores[job.application_class]
        for level in range(state.cap(job) + 1):
            if (name, level) not in orders:
                orders[name, level] = np.lexsort((row, state.columns[level].owner))
            blocks = _blocks(state, orders[name, level], level, job.gpus, row)[: len(left)]
            chosen.update(zip(left, blocks, strict=False))
            state.take(blocks.ravel())
            left = left[len(blocks) :]
    return plan(instance, state, chosen)


def _blocks(state: ClusterState, order: Indices, level: int, size: int, scores: Floats) -> Indices:
    """Return blocks of free GPUs (blocks, size) that each stand in one domain, the fastest first.

    Parameters
    ----------
    order
        Shape (GPUs,): all of them by domain, the fastest of each domain first.
    """
    free = order[state.free[order]]
    counts = state.counts(level)
    position = np.arange(len(free)) - np.repeat(np.cumsum(counts) - counts, counts)
    last = np.flatnonzero(position % size == size - 1)
    last = last[np.argsort(scores[free[last]], kind="stable")]
    blocks: Indices = free[last[:, np.newaxis] + np.arange(1 - size, 1)]
    return blocks


# --- a bound ----------------------------------------------------------------------------------


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Return what is proven at no prices, if there is a plan at all; None if none is found."""
    if search.plan is None and type_by_type(instance) is None:
        return None
    return at_zero_prices(instance)


def at_zero_prices(instance: PalInstance) -> PalCertificate:
    """Return the bound that every job costs what it would cost alone on the free cluster."""
    bound = fsum(_least_costs(instance)) * (1 - SETTINGS.rounding)
    leaf = Leaf.model_construct(gpu_prices=(0.0,) * len(instance.free_gpus))
    return PalCertificate(bound=bound, nodes=(leaf,))


def _least_costs(instance: PalInstance) -> Iterator[float]:
    """Yield the least cost of each job, alone on the free cluster."""
    state = ClusterState(instance)
    rankings = {name: Ranking(state, row) for name, row in raw_scores(instance).items()}
    for jobs in job_types(instance, {name: n for n, name in enumerate(rankings)}):
        job = instance.jobs[jobs.jobs[0]]
        ranking = rankings[job.application_class]
        least = min(
            jobs.cost(level, float(ranking.worst_of_best(level, job.gpus).min()))
            for level in range(state.cap(job) + 1)
        )
        for n in jobs.jobs:
            yield min(least, _cost_of_keeping(instance, state, jobs, n), jobs.reward)


def _cost_of_keeping(
    instance: PalInstance, state: ClusterState, jobs: GangType, number: int
) -> float:
    """Return what a job costs where it runs; infinite if it waits, or cannot keep its GPUs."""
    job = instance.jobs[number]
    gpus = state.held(job)
    if gpus is None:
        return np.inf
    slowest = max(instance.slowdowns[job.application_class][gpu] for gpu in job.current)
    return float(jobs.cost(state.meeting_level(gpus), slowest, is_kept=True))
