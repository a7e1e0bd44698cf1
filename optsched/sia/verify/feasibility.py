"""The rules of a plan of Sia's round, and its objective: whole numbers, and one rounding."""

from __future__ import annotations

from collections import Counter
from math import fsum
from typing import TYPE_CHECKING

from optsched.documents.faults import nearest, shown
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.sia.instance import RoundOption, SiaInstance
    from optsched.sia.plan import SiaPlan


def violations(instance: SiaInstance, plan: SiaPlan) -> list[BrokenRule]:
    """Return every rule that a plan breaks."""
    return [*_job_faults(instance, plan), *_capacity_faults(instance, plan)]


def used(plan: SiaPlan) -> Counter[str]:
    """Return how many GPUs of each type a plan takes."""
    taken: Counter[str] = Counter()
    for job in plan.jobs:
        if job.type is not None:
            taken[job.type] += job.gpus
    return taken


def chosen_options(instance: SiaInstance, plan: SiaPlan) -> list[RoundOption]:
    """Return the option that each job of the instance takes.

    Raises
    ------
    KeyError
        If a job takes none of its options.
    """
    taken = {job.id: (job.type, job.gpus) for job in plan.jobs}
    by_group = _by_group(instance)
    pairs = zip(instance.jobs, instance.options, strict=True)
    return [by_group[id(options)][taken[job.id]] for job, options in pairs]


def objective(instance: SiaInstance, plan: SiaPlan) -> float:
    """Return the sum of the jobs' costs, rounded once."""
    return fsum(option.cost for option in chosen_options(instance, plan))


def _job_faults(instance: SiaInstance, plan: SiaPlan) -> Iterator[BrokenRule]:
    counts = Counter(job.id for job in plan.jobs)
    known = {job.id: job for job in instance.jobs}
    for name in counts.keys() - known.keys():
        yield BrokenRule("job", f"there is no job {shown(name)}; {nearest(name, list(known))}")
    for name in known:
        if counts[name] != 1:
            yield BrokenRule("job", f"job {shown(name)} is in the plan {counts[name]} times")
    by_group = _by_group(instance)
    groups = {job: by_group[id(own)] for job, own in zip(known, instance.options, strict=True)}
    for row in plan.jobs:
        if row.id not in known or (row.type, row.gpus) in groups[row.id]:
            continue
        job = known[row.id]
        if not job.preemptible:
            assert job.current is not None
            text = f"is not preemptible and has {job.current.gpus} GPUs of '{job.current.type}'"
            yield BrokenRule("preemptible", f"job {shown(row.id)} {text}")
        elif row.type is None and row.gpus == 0:
            yield BrokenRule("must-run", f"job {shown(row.id)} must run, but it waits")
        else:
            text = f"{row.gpus} GPUs of {shown(row.type)} are no configuration of job"
            yield BrokenRule("configuration", f"{text} {shown(row.id)}")


def _by_group(instance: SiaInstance) -> dict[int, dict[tuple[str | None, int], RoundOption]]:
    """Return options by type and GPUs, by the identity of the tuple that jobs share who are alike.

    Of equal ones the last.
    """
    distinct = {id(own): own for own in instance.options}
    return {
        name: {(option.type, option.gpus): option for option in own}
        for name, own in distinct.items()
    }


def _capacity_faults(instance: SiaInstance, plan: SiaPlan) -> Iterator[BrokenRule]:
    for name, taken in used(plan).items():
        if taken > instance.gpus.get(name, 0):
            text = f"{taken} GPUs of type {shown(name)} are taken, of {instance.gpus.get(name, 0)}"
            yield BrokenRule("capacity", text)
