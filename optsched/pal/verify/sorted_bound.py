"""Verifier of PAL: what sorted slowdowns prove of all plans that place all jobs.

Order the jobs of a class by their slowest GPUs. The first k of them hold, together, as many GPUs as
the k smallest gangs at least, and all of these are up to the k-th job's slowest one; so that is no
faster than the GPU of that rank. Each job pays for its slowest GPU, times what a unit of slowdown
costs it at least; the pairing that costs least has the greatest of these with the fastest GPUs
(rearrangement inequality). Classes are taken one by one, as if all free GPUs were theirs.

Fractions and integers only, and no code shared with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from optsched.pal.verify.costs import PlacementTerms, scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.pal.instance import Job, PalInstance


def least(instance: PalInstance) -> int | None:
    """Return a lower bound on the cost of every plan that leaves no job out.

    Returns
    -------
    int | None
        In multiples of 2**-192, rounded down; None if a class needs more GPUs than there are, so
        that there is no such plan.
    """
    classes: dict[str, list[Job]] = {}
    for job in instance.jobs:
        classes.setdefault(job.application_class, []).append(job)
    total = 0
    for name, jobs in classes.items():
        slowdowns = sorted(instance.slowdowns[name][gpu] for gpu in instance.free_gpus)
        ranks = list(accumulate(sorted(job.gpus for job in jobs)))
        if ranks[-1] > len(slowdowns):
            return None
        total += _paired(instance, jobs, [slowdowns[rank - 1] for rank in ranks])
    return total


def _paired(instance: PalInstance, jobs: Sequence[Job], ascending: Sequence[float]) -> int:
    """Return the least cost of jobs that have these slowest GPUs, in whatever order."""
    lines: dict[PlacementTerms, tuple[Fraction, Fraction]] = {}
    of_jobs = [_cheapest_terms(instance, job) for job in jobs]
    for terms in of_jobs:
        if terms not in lines:
            base = terms._replace(slowest=0.0).cost()
            lines[terms] = terms.cost() - base, base
    descending = sorted((lines[terms] for terms in of_jobs), reverse=True)
    pairs = zip(descending, ascending, strict=True)
    return sum(scaled(base + slope * Fraction(slowest)) for (slope, base), slowest in pairs)


def _cheapest_terms(instance: PalInstance, job: Job) -> PlacementTerms:
    """Return the terms of a job at slowdown 1 and the least penalty; a restart would only add."""
    terms = PlacementTerms.of(instance, job, 0, 1.0, is_moved=False)
    return terms._replace(penalty=min(instance.penalties[job.model]))
