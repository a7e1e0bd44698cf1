"""Why a round of Sia has no plan, and which GPUs its jobs compete for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.explanation.explanation import Lever, Price, Remedy, Rule
from optsched.sia.instance import SiaInstance
from optsched.sia.plan import SiaPlan
from optsched.sia.verify.certificate import Enumeration, Prices
from optsched.sia.verify.feasibility import used

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from optsched.results.result import Result
    from optsched.sia.instance import SiaJob

UNLIMITED = 10_000_000  # GPUs: no plan takes more


def rules(instance: SiaInstance) -> list[Rule]:
    """Return every job that may not wait, and the GPUs of each type."""
    jobs = sorted((job for job in instance.jobs if _may_not_wait(job)), key=_least_gpus)
    listed = [Rule(f"job:{job.id}", _job_text(job)) for job in jobs]
    types = instance.gpus.items()
    return [*listed, *(Rule(f"gpus:{t}", f"there are {n} GPUs of type '{t}'") for t, n in types)]


def without(instance: SiaInstance, dropped: Set[str]) -> SiaInstance | None:
    """Return the instance without some rules: jobs that may wait, types that do not run out."""
    document = _document(instance)
    for job in document["jobs"]:
        if f"job:{job['id']}" in dropped:
            job["preemptible"], job["must_run"] = True, False
    for name in document["gpus"]:
        if f"gpus:{name}" in dropped:
            document["gpus"][name] = UNLIMITED
    changed = SiaInstance.from_document(document, instance.name)
    return changed if any(map(_may_not_wait, changed.jobs)) else None


def remedies(instance: SiaInstance, conflict: Set[str]) -> Iterator[Remedy]:
    """Yield more GPUs of each type that is in the conflict."""
    for name in instance.gpus:
        if f"gpus:{name}" in conflict:
            text = partial(_more_gpus, name)
            yield Remedy(0.0, 1.0, partial(_with_gpus, instance, name), text, is_whole=True)


def _more_gpus(name: str, more: float) -> str:
    return f"{more:.0f} more GPU{'s' if more > 1 else ''} of type '{name}'"


def _with_gpus(instance: SiaInstance, name: str, more: float) -> SiaInstance:
    document = _document(instance)
    document["gpus"][name] += round(more)
    return SiaInstance.from_document(document, instance.name)


def binding(instance: SiaInstance, result: Result) -> Iterator[str]:
    """Yield how many GPUs of each type have a job, and which jobs wait."""
    plan = result.plan
    assert isinstance(plan, SiaPlan)
    taken = used(plan)
    for name, gpus in instance.gpus.items():
        left = "none is left" if taken[name] == gpus else f"{gpus - taken[name]} are left"
        yield f"{taken[name]} of {gpus} GPUs of type '{name}' have a job: {left}"
    waiting = [row.id for row in plan.jobs if row.type is None]
    if waiting:
        more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
        noun = "job waits" if len(waiting) == 1 else "jobs wait"
        yield f"{len(waiting)} {noun}: {', '.join(waiting[:3])}{more}"


def prices(instance: SiaInstance, result: Result) -> Iterator[Price]:
    """Yield what a GPU of each type is worth to the jobs in the first relaxation."""
    found = _first_prices(result)
    if found is None:
        return
    for name, price in zip(instance.gpus, found.prices, strict=True):
        if price > 0:
            note = "what jobs pay for it in the relaxation"
            change = f"the use of a GPU of type '{name}'"
            yield Price(change, price, result.objective_unit, "certificate", note=note)


def levers(instance: SiaInstance, result: Result) -> Iterator[Lever]:
    """Yield one more GPU of each type, and the instance without its limits."""
    for name, gpus in instance.gpus.items():
        if gpus < UNLIMITED:
            more = {**instance.gpus, name: gpus + 1}
            yield Lever(f"1 more GPU of type '{name}'", instance.model_copy(update={"gpus": more}))
    document = _document(instance)
    if any(map(_may_not_wait, instance.jobs)):
        for job in document["jobs"]:
            job["preemptible"], job["must_run"] = True, False
        freed = SiaInstance.from_document(document, instance.name)
        yield Lever("every job may wait", freed)
    if any(job.restart_factor < 1 for job in instance.jobs):
        document = _document(instance)
        for job in document["jobs"]:
            job["restart_factor"] = 1.0
        quick = SiaInstance.from_document(document, instance.name)
        yield Lever("restarts that take no time", quick)


def _document(instance: SiaInstance) -> dict[str, Any]:
    document: dict[str, Any] = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    return document


def _may_not_wait(job: SiaJob) -> bool:
    return job.must_run or not job.preemptible


def _least_gpus(job: SiaJob) -> int:
    if job.current is not None and not job.preemptible:
        return job.current.gpus
    return min(each.gpus for each in job.configurations)


def _job_text(job: SiaJob) -> str:
    if job.current is not None and not job.preemptible:
        return f"job '{job.id}' keeps {job.current.gpus} GPUs of type '{job.current.type}'"
    return f"job '{job.id}' must run, on {_least_gpus(job)} GPUs at least"


def _first_prices(result: Result) -> Prices | None:
    node = next(iter(getattr(result.certificate, "nodes", ())), None)
    if isinstance(node, Enumeration):
        node = next(iter(node.rows), None)
    return node if isinstance(node, Prices) and node.kind == "cost" else None
