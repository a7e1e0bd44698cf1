"""The verifier of PAL: the rules of a plan, and its exact cost; `certificate.py` verifies bounds.

Integers and fractions only, no tolerances; it shares no code with the methods.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.pal.verify.costs import PlacementTerms, cost_of_leaving_out
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from optsched.pal.instance import Job, PalInstance
    from optsched.pal.plan import PalPlan, Placement


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: PalInstance, plan: PalPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    jobs = {job.id: job for job in instance.jobs}
    home = {gpu: domain.id for domain in instance.topology.domains for gpu in domain.gpus}
    given = [gpu for placement in plan.jobs for gpu in placement.gpus]
    homes, distinct = list(map(home.get, given)), set(given)
    broken = [*_listing(jobs, plan), *_gpu_ids(instance, home, distinct, plan)]
    if len(distinct) < len(given):
        broken += _sharing(plan)
    stop = 0
    for placement in plan.jobs:
        job, gpus = jobs.get(placement.id), placement.gpus
        start, stop = stop, stop + len(gpus)
        if job is None:
            continue
        if len(gpus) != job.gpus or len(distinct) < len(given):
            broken += _gang(instance, job, placement)
        if len(gpus) > 1 and job.highest_level is not None and len(set(homes[start:stop])) > 1:
            broken += _cap(instance, job, [gpu for gpu in gpus if gpu in home])
    return broken


def _listing(jobs: dict[str, Job], plan: PalPlan) -> Iterator[BrokenRule]:
    names = [placement.id for placement in plan.jobs]
    if names == list(jobs):
        return
    listed = Counter(names)
    for name in listed:
        if name not in jobs:
            yield BrokenRule("known-job", f"the instance has no job '{name}'")
        if listed[name] > 1:
            yield BrokenRule("one-placement-per-job", f"job '{name}' is listed more than once")
    for name in jobs:
        if name not in listed:
            yield BrokenRule("every-job", f"job '{name}' is not listed")


def _gpu_ids(
    instance: PalInstance, existing: Container[str], given: set[str], plan: PalPlan
) -> Iterator[BrokenRule]:
    free, unavailable = set(instance.free_gpus), set(instance.unavailable)
    if given <= free:
        return
    for placement in plan.jobs:
        for gpu in dict.fromkeys(placement.gpus):
            if gpu not in existing:
                text = f"job '{placement.id}': the topology has no GPU '{gpu}'"
                yield BrokenRule("known-gpu", text)
            elif gpu not in free:
                why = "unavailable" if gpu in unavailable else "drained"
                yield BrokenRule("free-gpu", f"job '{placement.id}': GPU '{gpu}' is {why}")


def _sharing(plan: PalPlan) -> Iterator[BrokenRule]:
    holders: dict[str, dict[str, None]] = {}
    for placement in plan.jobs:
        for gpu in placement.gpus:
            holders.setdefault(gpu, {})[placement.id] = None
    for gpu, names in holders.items():
        if len(names) > 1:
            listed = ", ".join(f"'{name}'" for name in names)
            yield BrokenRule("one-job-per-gpu", f"GPU '{gpu}' is given to the jobs {listed}")


def _gang(instance: PalInstance, job: Job, placement: Placement) -> Iterator[BrokenRule]:
    if not placement.gpus:
        if instance.admission == "all":
            text = f"job '{job.id}' is left out; admission 'all' places every job"
            yield BrokenRule("all-placed", text)
        return
    for gpu, count in Counter(placement.gpus).items():
        if count > 1:
            yield BrokenRule("gang", f"job '{job.id}' lists GPU '{gpu}' {count} times")
    given = len(set(placement.gpus))
    if given != job.gpus:
        yield BrokenRule("gang", f"job '{job.id}' needs {job.gpus} GPUs, but is given {given}")


def _cap(instance: PalInstance, job: Job, gpus: Sequence[str]) -> Iterator[BrokenRule]:
    if job.highest_level is None or not gpus:
        return
    levels = instance.topology.levels
    level = instance.topology.lowest_common_level(gpus)
    if level > levels.index(job.highest_level):
        text = f"job '{job.id}' must stay within one {job.highest_level}, but its GPUs have only "
        yield BrokenRule("highest-level", f"{text}a {levels[level]} in common")


# --- exact figures of a plan ------------------------------------------------------------------


class JobPerformance(NamedTuple):
    """How a job runs on its GPUs.

    Attributes
    ----------
    level
        Number of the level of the lowest domain around the GPUs, 0 for the lowest.
    slowest
        Id of the slowest GPU for the job's class; the first one listed of equals.
    slowdown
        Locality penalty times the slowdown of that GPU.
    moved
        Whether the job held another set of GPUs before.
    cost
        What it adds to the objective: weight x (remaining time x slowdown + restart if moved).
    """

    level: int
    slowest: str
    slowdown: Fraction
    moved: bool
    cost: Fraction


def performance(instance: PalInstance, job: Job, gpus: Sequence[str]) -> JobPerformance:
    """Return how a job of the instance runs on some of its GPUs, at least one.

    Source: Jain et al., SC 2024, arXiv 2408.11919: iteration time is L x max V.
    """
    slowest = max(gpus, key=instance.slowdowns[job.application_class].__getitem__)
    level = instance.topology.lowest_common_level(gpus)
    terms = _terms(instance, job, gpus)
    slowdown = Fraction(terms.penalty) * Fraction(terms.slowest)
    return JobPerformance(level, slowest, slowdown, _is_moved(job, gpus), terms.cost())


def _terms(instance: PalInstance, job: Job, gpus: Sequence[str]) -> PlacementTerms:
    slowest = max(map(instance.slowdowns[job.application_class].__getitem__, gpus))
    level = instance.topology.lowest_common_level(gpus)
    return PlacementTerms.of(instance, job, level, slowest, is_moved=_is_moved(job, gpus))


def _is_moved(job: Job, gpus: Sequence[str]) -> bool:
    return bool(job.current) and set(gpus) != set(job.current)


def objective(instance: PalInstance, plan: PalPlan) -> float:
    """Return the objective of a plan that breaks no rule, the float nearest to its exact value.

    It is in seconds if `instance.is_timed`, else a sum of weighted slowdowns; a job that is left
    out costs its reward.
    """
    jobs = {job.id: job for job in instance.jobs}
    placed = Counter(
        _terms(instance, jobs[placement.id], placement.gpus)
        for placement in plan.jobs
        if placement.gpus
    )
    left_out = (jobs[placement.id] for placement in plan.jobs if not placement.gpus)
    costs = sum(count * terms.cost() for terms, count in placed.items())
    return float(costs + sum(cost_of_leaving_out(job) for job in left_out))
