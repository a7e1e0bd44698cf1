"""PAL: a placement, the placement an epoch later, and POP's random parts of the same placement."""

from __future__ import annotations

import random
from typing import Any

import optsched
from benchmarks.generators import classes, equal_jobs, next_epoch, tree, usual
from benchmarks.suite.measure import Outcome, checked, examined, measured, measured_once
from benchmarks.suite.node_kinds import two_kinds, usual_kinds
from optsched.pal import PalInstance
from optsched.pal.plan import PalPlan

SHARE = 0.05  # of the jobs, that change from one epoch to the next


def cluster(
    gpus: int,
    fanouts: list[int] | None = None,
    jobs: int | None = None,
    kinds: int | None = None,
    largest: int = 16,
) -> Any:
    """Return a cluster: so many jobs on 16 node classes, few kinds of nodes, or unlike GPUs."""
    if kinds is not None:
        return two_kinds(gpus) if kinds == 2 else usual_kinds(gpus, largest, kinds)
    return classes(gpus, jobs) if jobs else tree(gpus, fanouts or [])


def solve_usual(gap: float, limit_s: float, gpus: int, seed: int) -> Outcome:
    """Solve a placement on GPUs whose slowdowns are normal, in racks."""
    return _solved(usual(gpus, seed), gap, limit_s)


def solve_equal(gap: float, limit_s: float, seed: int) -> Outcome:
    """Solve a placement of jobs that differ in their width alone."""
    return _solved(equal_jobs(seed=seed), gap, limit_s)


def solve_bundled(gap: float, limit_s: float, name: str) -> Outcome:
    """Solve a bundled instance."""
    return _solved(optsched.read(name), gap, limit_s)


def _solved(instance: Any, gap: float, limit_s: float) -> Outcome:
    optsched.solve(optsched.read("pal/tiny"))
    outcome = Outcome(case_of(instance))
    options = {"gap": gap, "time_limit_s": limit_s}
    return examined(outcome, instance, measured(outcome, optsched.solve, instance, **options))


def case_of(instance: Any) -> str:
    """Return an instance in words."""
    return f"{instance.name}, {len(instance.jobs):,} jobs"


def solve(gap: float, limit_s: float, method: str | None = None, **size: Any) -> Outcome:
    """Solve a placement by a method of ours."""
    optsched.solve(optsched.read("pal/tiny"), method)  # imports everything
    instance = cluster(**size)
    outcome = Outcome(case_of(instance))
    options = {"gap": gap, "time_limit_s": limit_s}
    return examined(
        outcome, instance, measured(outcome, optsched.solve, instance, method, **options)
    )


def epoch_later(gap: float, limit_s: float, *, warm: bool, **size: Any) -> Outcome:
    """Solve the next epoch, from the result of the one before or from nothing."""
    optsched.solve(optsched.read("pal/tiny"))
    before = cluster(**size)
    after = next_epoch(before, SHARE)
    outcome = Outcome(f"{case_of(after)}, 5 % of them new")
    options = {"gap": gap, "time_limit_s": limit_s}
    if warm:
        options["start"] = optsched.solve(before, **options)
    return examined(outcome, after, measured_once(outcome, optsched.solve, after, **options))


def pop(gap: float, limit_s: float, parts: int, **size: Any) -> Outcome:
    """Solve random parts of a placement, each exactly, and put the plans together.

    Nodes and whole jobs are dealt to the parts at random, as in POP (Narayanan et al., SOSP'21).
    There is no bound but that of each part on its own.
    """
    optsched.solve(optsched.read("pal/tiny"))
    instance = cluster(**size)
    outcome = Outcome(case_of(instance))
    results = measured(outcome, _in_parts, instance, parts, gap, limit_s)
    placements = {job.id: job for r in results if r.plan is not None for job in r.plan.jobs}
    plan = None
    if all(result.plan is not None for result in results):
        plan = PalPlan(jobs=tuple(placements[job.id] for job in instance.jobs))
    checked(outcome, instance, plan, gap, None)
    if any(result.status != "optimal" for result in results):
        outcome.status, outcome.note = "feasible", "a part was stopped by its limit"
    outcome.note = outcome.note or "no bound of its own"
    return outcome


def _in_parts(instance: Any, parts: int, gap: float, limit_s: float) -> list[Any]:
    options = {"gap": gap, "time_limit_s": limit_s / parts}
    return [optsched.solve(part, **options) for part in dealt(instance, parts)]


def dealt(instance: Any, parts: int, seed: int = 0) -> list[PalInstance]:
    """Deal nodes and whole jobs to parts at random; a job goes where it fits.

    Raises
    ------
    ValueError
        If a job does not fit into any part.
    """
    rng = random.Random(seed)
    topology = instance.topology
    nodes = [n for n, domain in enumerate(topology.domains) if domain.gpus]
    rng.shuffle(nodes)
    members = [set(nodes[n::parts]) for n in range(parts)]
    free = [sum(len(topology.domains[n].gpus) for n in part) for part in members]
    jobs: list[list[Any]] = [[] for _ in range(parts)]
    shuffled = rng.sample(instance.jobs, len(instance.jobs))
    for job in sorted(shuffled, key=lambda job: -job.gpus):
        fitting = [n for n in range(parts) if free[n] >= job.gpus]
        if not fitting:
            raise ValueError(f"job '{job.id}' of {job.gpus} GPUs does not fit into a part")
        part = rng.choice(fitting)
        free[part] -= job.gpus
        jobs[part].append(job)
    pairs = [(nodes, own) for nodes, own in zip(members, jobs, strict=True) if own]
    return [_part(instance, nodes, own) for nodes, own in pairs]


def _part(instance: Any, nodes: set[int], jobs: list[Any]) -> PalInstance:
    """Return the instance of some of the nodes, with the domains around them, and some jobs."""
    domains = instance.topology.domains
    parents = {domain.id: domain.parent for domain in domains}
    kept: set[str] = set()
    for n in nodes:
        name = domains[n].id
        while name is not None and name not in kept:
            kept.add(name)
            name = parents[name]
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["jobs"] = [job.model_dump(mode="json", exclude_none=True) for job in jobs]
    document["topology"]["domains"] = [
        entry for entry in document["topology"]["domains"] if entry["id"] in kept
    ]
    gpus = {gpu for n in nodes for gpu in domains[n].gpus}
    profile = document["profile"]
    inside = [n for n, gpu in enumerate(profile["gpus"]) if gpu in gpus]
    profile["gpus"] = [profile["gpus"][n] for n in inside]
    profile["slowdown"] = {
        name: [values[n] for n in inside] for name, values in profile["slowdown"].items()
    }
    return PalInstance.from_document(document)
