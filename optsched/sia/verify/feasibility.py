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
    chosen = []
    for job, options in zip(instance.jobs, instance.options, strict=True):
        by_group = {(option.type, option.gpus): option for option in options}
        chosen.append(by_group[taken[job.id]])
    return chosen


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
    options = dict(zip(known, instance.options, strict=True))
    for row in plan.jobs:
        if row.id not in known:
            continue
        job = known[row.id]
        if (row.type, row.gpus) in {(option.type, option.gpus) for option in options[row.id]}:
            continue
        if not job.preemptible:
            assert job.current is not None
            text = f"is not preemptible and has {job.current.gpus} GPUs of '{job.current.type}'"
            yield BrokenRule("preemptible", f"job {shown(row.id)} {text}")
        elif row.type is None and row.gpus == 0:
            yield BrokenRule("must-run", f"job {shown(row.id)} must run, but it waits")
        else:
            text = f"{row.gpus} GPUs of {shown(row.type)} are no configuration of job"
            yield BrokenRule("configuration", f"{text} {shown(row.id)}")


def _capacity_faults(instance: SiaInstance, plan: SiaPlan) -> Iterator[BrokenRule]:
    for name, taken in used(plan).items():
        if taken > instance.gpus.get(name, 0):
            text = f"{taken} GPUs of type {shown(name)} are taken, of {instance.gpus.get(name, 0)}"
            yield BrokenRule("capacity", text)
