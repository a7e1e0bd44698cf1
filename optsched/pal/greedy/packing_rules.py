"""Best fit (Johnson et al., SIAM J. Computing 1974) and other rules that ignore slowdowns.

Packed, random, and other schedulers' placement. Hard caps are kept by all of them: only domains at
or below the cap are chosen.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.free_gpus import ClusterState, best_fit, fewest_domains, most_free_first
from optsched.pal.greedy.list_scheduling import keep_running, place, plan

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Iterator

    from optsched.pal.greedy.free_gpus import FreeGpus, Gang, Indices
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.pal.instance import Job, PalInstance
    from optsched.pal.plan import PalPlan

# --- rules of PAL's baselines -----------------------------------------------------------------


def consolidate(state: FreeGpus, job: Gang) -> Indices | None:
    """Pick the node with the fewest free GPUs that suffice, else few nodes.

    Such a node with exactly as many comes first by itself. Where none suffices, GPUs come from the
    node with the most free ones, again and again. A capped job does so in the domain at its cap
    that has the fewest free GPUs that suffice.

    Source: hal-uw/blox-pal, branch artifact, placement/packing_sticky.py, consolidated placement;
    caps are ours.
    """
    node = best_fit(state.counts(0), job.gpus)
    if node is not None:
        return state.free_in(0, node)[: job.gpus]
    level = state.cap(job)
    domain = best_fit(state.counts(level), job.gpus)
    if domain is None:
        return None
    nodes = state.inside(level, domain, 0)
    return state.gather(_within(nodes, most_free_first(_part(state, 0, nodes), job.gpus)))


def drawn_by(generator: random.Random) -> Rule:
    """Return the rule that draws all sets of GPUs that the cap allows with equal probability.

    Parameters
    ----------
    generator
        May go on from round to round.

    Source: hal-uw/blox-pal, branch artifact, placement/random_sticky.py; caps are ours.
    """

    def rule(state: FreeGpus, job: Gang) -> Indices | None:
        level = state.cap(job)
        counts = state.counts(level).tolist()
        fitting = [domain for domain, count in enumerate(counts) if count >= job.gpus]
        if not fitting:
            return None
        sets = [math.comb(counts[domain], job.gpus) for domain in fitting]
        free = state.free_in(level, _drawn(generator, fitting, sets))
        return np.sort(free[generator.sample(range(len(free)), job.gpus)])

    return rule


def _drawn(generator: random.Random, items: list[int], weights: list[int]) -> int:
    """Draw an item with a probability proportional to its weight, an integer of any size."""
    ends = list(accumulate(weights))
    return items[bisect_right(ends, generator.randrange(ends[-1]))]


# --- rules of cluster managers ----------------------------------------------------------------


def slurm(state: FreeGpus, job: Gang) -> Indices | None:
    """Pick the best fit of the lowest level with a domain that suffices, then few nodes in it.

    Inside, the node with the fewest free GPUs that suffice for what is left is the last one; until
    there is one, the node with the most free GPUs is used up.

    Source: Slurm's topology guide ("the lowest level switch in the hierarchy that can satisfy a
    job's request", then its leaf switches "using a best-fit algorithm"). Its leaves are switches
    over nodes, ours are nodes; that nearer leaves go first where several are needed is left out.
    """
    for level in range(state.cap(job) + 1):
        domain = best_fit(state.counts(level), job.gpus)
        if domain is not None:
            nodes = state.inside(level, domain, 0)
            return state.gather(_within(nodes, fewest_domains(_part(state, 0, nodes), job.gpus)))
    return None


def kueue(state: FreeGpus, job: Gang) -> Indices | None:
    """Pick the best fit of a level, then few domains in it, level by level down to the nodes.

    The level is that of the cap, which is Kueue's "required". A job without one "prefers" the
    lowest level, and goes up where no domain suffices. Each domain hands its share down: its child
    with the fewest free GPUs that suffice for what is left is the last one, until then the child
    with the most free GPUs is used up.

    Source: Kubernetes Kueue, KEP-2724, BestFit; the steps as in findLevelWithFitDomains and
    updateCountsToMinimum of its pkg/cache/tas_flavor_snapshot.go. Ties go by order, not by label.
    """
    lowest = 0 if job.highest_level is None else state.cap(job)
    for level in range(lowest, state.cap(job) + 1):
        domain = best_fit(state.counts(level), job.gpus)
        if domain is not None:
            return state.gather(_handed_down(state, level, [(domain, job.gpus)]))
    return None


def _handed_down(
    state: FreeGpus, level: int, shares: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    for lower in range(level - 1, -1, -1):
        below: list[tuple[int, int]] = []
        for domain, size in shares:
            children = state.inside(lower + 1, domain, lower)
            below += _within(children, fewest_domains(_part(state, lower, children), size))
        shares = below
    return shares


def _part(state: FreeGpus, level: int, domains: range) -> Indices:
    return state.counts(level)[domains.start : domains.stop]


def _within(domains: range, shares: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    return ((domains[n], size) for n, size in shares)


# --- Gandiva ----------------------------------------------------------------------------------


def gandiva(instance: PalInstance) -> PalPlan | None:
    """Consolidate waiting jobs; then move one fragmented running job together if that pays.

    The candidates are running jobs that kept GPUs on several nodes, the most fragmented first: by
    the level at which their GPUs meet, then by the number of nodes, then by order. The first one
    that fits in a domain of a lower level, together with the GPUs that it holds, and gains more
    than its restart takes is moved: to the best fit of the lowest such level, and few nodes in it.

    Source: Gandiva, OSDI'18, migration to defragment, without packing and time-slicing. That it
    moves one job per round, and asks whether it pays, is ours.
    """
    state = ClusterState(instance)
    kept = keep_running(instance, state)
    chosen = place(instance.jobs, state, consolidate, kept)
    for n in _most_fragmented(state, kept):
        gpus = _together(state, instance.jobs[n], chosen[n])
        if gpus is not None and _saving(instance, state, instance.jobs[n], chosen[n], gpus) > 0:
            chosen[n] = gpus
            break
    return plan(instance, state, chosen)


def _most_fragmented(state: ClusterState, kept: dict[int, Indices]) -> list[int]:
    spread = {}
    for n, gpus in kept.items():
        nodes = len(np.unique(state.columns[0].owner[gpus]))
        if nodes > 1:
            spread[n] = (-state.meeting_level(gpus), -nodes, n)
    return sorted(spread, key=lambda n: spread[n])


def _together(state: ClusterState, job: Job, held: Indices) -> Indices | None:
    """Return GPUs that meet below where they meet now; the state is left as it was."""
    state.release(held)
    gpus = slurm(state, job)
    state.take(held)
    if gpus is None or state.meeting_level(np.sort(gpus)) >= state.meeting_level(held):
        return None
    return np.sort(gpus)


def _saving(
    instance: PalInstance, state: ClusterState, job: Job, held: Indices, gpus: Indices
) -> float:
    """Return the seconds that a move saves, after the restart."""
    before, after = (_slowdown(instance, state, job, placed) for placed in (held, gpus))
    return (job.remaining_s or 1.0) * (before - after) - (job.restart_s or 0.0)


def _slowdown(instance: PalInstance, state: ClusterState, job: Job, gpus: Indices) -> float:
    slowdowns = instance.slowdowns[job.application_class]
    penalty = instance.penalties[job.model][state.meeting_level(gpus)]
    return penalty * max(slowdowns[state.gpus[g]] for g in gpus)
