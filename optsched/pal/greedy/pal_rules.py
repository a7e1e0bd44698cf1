"""PM-First and PAL (Jain et al., SC 2024), and PAL over all levels of the topology.

Placement by the GPUs' slowdowns. Scores of GPUs take the place of slowdowns: bins for the published
rules, or the slowdowns themselves. All rules are non-sticky and go by class, in the order of
`list_scheduling.class_order`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.greedy.free_gpus import ClusterState, best_fit
from optsched.pal.greedy.gpu_ranking import Ranking
from optsched.pal.greedy.list_scheduling import class_order, keep_running, place, plan
from optsched.pal.verify import feasibility

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from optsched.cluster.binning import Binned
    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.greedy.free_gpus import FreeGpus, Gang
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalPlan

    Scores = Mapping[str, Floats]  # per class (GPUs,), in the order of `topology.gpus`
    Penalties = Mapping[str, Sequence[float]]  # per model, one at each level

# --- scores -----------------------------------------------------------------------------------


def raw_scores(instance: PalInstance) -> dict[str, Floats]:
    """Return the slowdowns (GPUs,) of each class that some job has."""
    names = dict.fromkeys(job.application_class for job in instance.jobs)
    number = {gpu: n for n, gpu in enumerate(instance.profile.gpus)}
    gpus = np.array([number[gpu] for gpu in instance.topology.gpus], dtype=np.intp)
    return {name: instance.profile.array(name)[gpus] for name in names}


def bin_scores(instance: PalInstance, binning: Callable[[Floats], Binned]) -> dict[str, Floats]:
    """Return the scores (GPUs,) of each class that some job has: the values of its bins.

    The bins are those of the whole cluster as far as it is not drained, busy GPUs included.
    """
    return {name: binning(row).scores for name, row in raw_scores(instance).items()}


def _rankings(state: FreeGpus, scores: Scores) -> dict[str, Ranking]:
    return {name: Ranking(state, row) for name, row in scores.items()}


# --- PM-First ---------------------------------------------------------------------------------


def pm_first(instance: PalInstance, scores: Scores) -> PalPlan | None:
    """Give each job the free GPUs with the lowest scores, wherever they stand.

    Of GPUs with equal scores those are preferred whose node has, as nearly as possible, as many
    free GPUs of this score as the gang is large. A capped job does so in the domain at its cap
    where the worst score is lowest.

    Source: Jain et al., SC 2024, arXiv 2408.11919; hal-uw/blox-pal, branch artifact,
    placement/pmfirst.py. Caps and backfill are ours.
    """
    state = ClusterState(instance)
    return _by_class(instance, state, pm_first_rule(state, scores))


def pm_first_rule(state: FreeGpus, scores: Scores, penalties: Penalties | None = None) -> Rule:
    """Return the rule of `pm_first` for one round; penalties do not matter."""
    rankings = _rankings(state, scores)

    def rule(state: FreeGpus, job: Gang) -> Indices | None:
        return _fastest(state, rankings[job.application_class], job)

    return rule


def _by_class(instance: PalInstance, state: ClusterState, rule: Rule) -> PalPlan | None:
    placed = place(instance.jobs, state, rule, order=class_order(instance))
    return plan(instance, state, placed)


def _fastest(state: FreeGpus, ranking: Ranking, job: Gang) -> Indices | None:
    level = state.cap(job)
    worst_in = ranking.worst_of_best(level, job.gpus)
    domain = int(np.argmin(worst_in))
    worst = worst_in[domain]
    if np.isinf(worst):
        return None
    free = state.free_in(level, domain)
    scores = ranking.scores[free]
    better, tied = free[scores < worst], free[scores == worst]
    node = state.columns[0].owner[tied]
    mismatch = np.abs(np.bincount(node)[node] - job.gpus)
    order = np.argsort(mismatch, kind="stable")
    return np.concatenate([better, tied[order][: job.gpus - len(better)]])


# --- PAL --------------------------------------------------------------------------------------


def pal(instance: PalInstance, scores: Scores) -> PalPlan | None:
    """Give each job the GPUs with the least product of locality penalty and worst score.

    PAL walks through the products L x v, ascending: "within" takes a node with enough free GPUs of
    score v or better, "across" takes GPUs as PM-First does. The walk ends at the least v that has
    enough GPUs, within or across, so the two are compared; within comes first of equals. Of several
    nodes, the one with the most such GPUs is taken, and in it the first ones. For single GPUs PAL
    is PM-First.

    PAL knows nodes and one penalty across them: here a model's penalty at the lowest level and the
    one at the root. With two levels, one job is placed optimally in terms of scores.

    Source: Jain et al., SC 2024, arXiv 2408.11919; hal-uw/blox-pal, branch artifact,
    placement/pal.py. A penalty per model, caps and backfill are ours.
    """
    state = ClusterState(instance)
    return _by_class(instance, state, pal_rule(state, scores, instance.penalties))


def pal_rule(state: FreeGpus, scores: Scores, penalties: Penalties) -> Rule:
    """Return the rule of `pal` for one round."""
    rankings = _rankings(state, scores)

    def rule(state: FreeGpus, job: Gang) -> Indices | None:
        ranking = rankings[job.application_class]
        if job.gpus == 1:
            return _fastest(state, ranking, job)
        penalty = penalties[job.model]
        within = penalty[0] * ranking.worst_of_best(0, job.gpus).min()
        across = penalty[-1] * ranking.worst_of_best(state.cap(job), job.gpus).min()
        pick = _within if within <= across else _fastest
        return pick(state, ranking, job)

    return rule


def _within(state: FreeGpus, ranking: Ranking, job: Gang) -> Indices | None:
    worst = ranking.worst_of_best(0, job.gpus).min()
    if np.isinf(worst):
        return None
    eligible = state.free & (ranking.scores <= worst)
    node = int(np.argmax(state.count_marked(0, eligible)))
    free = state.free_in(0, node)
    chosen: Indices = free[eligible[free]][: job.gpus]
    return chosen


# --- PAL over all levels ----------------------------------------------------------------------


def pal_multilevel(instance: PalInstance) -> PalPlan | None:
    """Give each job the GPUs with the least product over all levels, in terms of slowdowns.

    The least product of a model's penalty at a level and the worst slowdown of a job's fastest GPUs
    in one domain of it; the lowest level of equals. Of several domains the one with the fewest free
    GPUs is taken, and in it the fastest.

    Source: docs/math/pal.md (greedy rules); no published rule.
    """
    state = ClusterState(instance)
    return _by_class(instance, state, _multilevel(instance, state))


def pal_multilevel_sticky(instance: PalInstance) -> PalPlan | None:
    """Place waiting jobs as `pal_multilevel` does, beside running ones that keep their GPUs."""
    state = ClusterState(instance)
    kept = keep_running(instance, state)
    rule = _multilevel(instance, state)
    return plan(instance, state, place(instance.jobs, state, rule, kept, class_order(instance)))


def _multilevel(instance: PalInstance, state: ClusterState) -> Rule:
    return multilevel_rule(state, raw_scores(instance), instance.penalties)


def multilevel_rule(state: FreeGpus, scores: Scores, penalties: Penalties) -> Rule:
    """Return the rule of `pal_multilevel` for one round."""
    rankings = _rankings(state, scores)

    def rule(state: FreeGpus, job: Gang) -> Indices | None:
        ranking = rankings[job.application_class]
        least, chosen = np.inf, None
        for level, penalty in enumerate(penalties[job.model][: state.cap(job) + 1]):
            worst_in = ranking.worst_of_best(level, job.gpus)
            worst = worst_in.min()
            if penalty * worst < least:
                least = penalty * worst
                domains = np.flatnonzero(worst_in == worst)
                best = best_fit(state.counts(level)[domains], job.gpus)
                chosen = None if best is None else (level, int(domains[best]))
        return None if chosen is None else ranking.best(*chosen, job.gpus)

    return rule


def largest_first(instance: PalInstance) -> PalPlan | None:
    """Place the largest gangs first, and of equal ones those with the lowest cap.

    With domains that gangs divide evenly it leaves none out that fits at all; otherwise it is what
    first-fit decreasing is to bin packing.
    """
    state = ClusterState(instance)
    jobs = instance.jobs
    order = sorted(range(len(jobs)), key=lambda n: (-jobs[n].gpus, state.cap(jobs[n]), n))
    return plan(instance, state, place(jobs, state, _multilevel(instance, state), order=order))


def quick_start(instance: PalInstance) -> PalPlan | None:
    """Return the better one of two plans over all levels, or one that places largest gangs first.

    All are deterministic: `pal_multilevel`, the sticky one if there are running jobs, and
    `largest_first` if neither places what must be. None if that does not either.
    """
    plans = [pal_multilevel(instance)]
    if any(job.current for job in instance.jobs):
        plans.append(pal_multilevel_sticky(instance))
    feasible = [made for made in plans if made is not None]
    if not feasible:
        return largest_first(instance)
    return min(feasible, key=lambda made: feasibility.objective(instance, made))
