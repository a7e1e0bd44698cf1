"""Where nothing but the slowest GPU counts: the smallest gang first (Smith, Naval Research 1956).

With one class, penalties that are the same at every level and jobs of equal cost, jobs take
consecutive GPUs in the order of their slowdown (docs/math/pal.md, sorted slowdowns). What that
proves there is a bound on any plan that places all jobs, and costs a sort.
"""

from __future__ import annotations

from math import fsum, inf
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.plan import PalCertificate, PalPlan, Placement
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.pal.instance import Job, PalInstance
    from optsched.search import Search


def solve_by_sorting(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Offer the smallest gangs on the fastest GPUs; return what is proven if it closes the gap.

    Nothing is done where much more counts than the slowest GPU.
    """
    if not _slowest_counts_most(instance):
        return None
    order = sorted(range(len(instance.jobs)), key=lambda n: _rank(instance, instance.jobs[n]))
    row = instance.slowdowns[instance.jobs[0].application_class]
    gpus, taken = sorted(instance.free_gpus, key=row.__getitem__), 0
    places: dict[int, tuple[str, ...]] = {}
    for n in order:
        size = instance.jobs[n].gpus
        if taken + size > len(gpus):
            return None
        places[n] = tuple(gpus[taken : taken + size])
        taken += size
    jobs = enumerate(instance.jobs)
    search.offer(PalPlan(jobs=tuple(Placement(id=job.id, gpus=places[n]) for n, job in jobs)))
    bound = sorted_bound(instance)
    return sorted_certificate(bound, search) if search.is_closed(bound) else None


def _slowest_counts_most(instance: PalInstance) -> bool:
    """Tell whether waiting jobs of one class pay for their slowest GPU, and little for distance."""
    classes = {job.application_class for job in instance.jobs}
    models = {job.model for job in instance.jobs}
    if len(classes) > 1 or instance.admission != "all":
        return False
    if any(job.current for job in instance.jobs):
        return False
    rows = (instance.penalties[model] for model in models)
    return all(row[-1] <= (1 + SETTINGS.flat_penalties) * row[0] for row in rows)


def _rank(instance: PalInstance, job: Job) -> tuple[int, float]:
    return job.gpus, -_coefficient(instance, job)


def _coefficient(instance: PalInstance, job: Job) -> float:
    """Return the least that a unit of slowdown costs a job."""
    seconds = 1.0 if job.remaining_s is None else job.remaining_s
    return job.weight * seconds * instance.penalties[job.model][0]


# --- the bound --------------------------------------------------------------------------------


def sorted_bound(instance: PalInstance) -> float:
    """Return what sorted slowdowns prove of all plans; minus infinity if that is nothing."""
    if instance.admission != "all":
        return -inf
    classes: dict[str, list[Job]] = {}
    for job in instance.jobs:
        classes.setdefault(job.application_class, []).append(job)
    values = (_bound_of_class(instance, jobs) for jobs in classes.values())
    return fsum(values) * (1 - SETTINGS.rounding)


def _bound_of_class(instance: PalInstance, jobs: Sequence[Job]) -> float:
    """Return the least that jobs of a class cost, as if all free GPUs were theirs."""
    row = instance.slowdowns[jobs[0].application_class]
    slowdowns = np.sort(np.array([row[gpu] for gpu in instance.free_gpus]))
    taken = np.cumsum(np.sort(np.array([job.gpus for job in jobs])))
    if taken[-1] > len(slowdowns):
        return -inf
    coefficients = np.sort(np.array([_coefficient(instance, job) for job in jobs]))[::-1]
    return fsum(coefficients * slowdowns[taken - 1])


def sorted_certificate(bound: float, search: Search) -> PalCertificate:
    """Return the certificate of what sorted slowdowns prove."""
    stated = bound if search.objective is None else min(bound, search.objective)
    return PalCertificate(kind="sorted", bound=stated)


def stronger(instance: PalInstance, search: Search, certificate: PalCertificate) -> PalCertificate:
    """Return a certificate, or that of sorted slowdowns if it proves more."""
    if certificate.bound is None:
        return certificate
    bound = sorted_bound(instance)
    return sorted_certificate(bound, search) if bound > certificate.bound else certificate
