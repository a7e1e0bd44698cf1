"""Why a PAL instance has no plan, and which GPUs its jobs compete for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.explanation.explanation import Lever, Price, Remedy, Rule
from optsched.pal.instance import PalInstance
from optsched.pal.plan import Leaf, PalCertificate, PalPlan
from optsched.pal.verify.feasibility import performance

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from optsched.pal.instance import Job
    from optsched.results.result import Result

MOST_SHOWN = 5  # GPUs whose prices are shown
NAMED = 3


def rules(instance: PalInstance) -> list[Rule]:
    """Return every job, what is unavailable, and the hard caps; smaller gangs come first."""
    jobs = sorted(instance.jobs, key=lambda job: (job.highest_level is not None, job.gpus))
    listed = [Rule(f"job:{job.id}", _job_text(job)) for job in jobs]
    taken = [gpu for gpu in instance.unavailable if gpu in set(instance.topology.gpus)]
    if taken:
        text = f"{_count(len(taken), 'GPU')} unavailable: {_some(taken)}"
        listed.append(Rule("unavailable", text))
    for domain in instance.topology.domains:
        if domain.drained:
            text = f"{domain.level} '{domain.id}' is drained"
            listed.append(Rule(f"drained:{domain.id}", text))
    for job in jobs:
        if job.highest_level is not None:
            text = f"job '{job.id}' ({_count(job.gpus, 'GPU')}) must stay within one "
            listed.append(Rule(f"cap:{job.id}", text + job.highest_level))
    return listed


def without(instance: PalInstance, dropped: Set[str]) -> PalInstance | None:
    """Return the instance without some rules; None if no job is left, or none must be placed."""
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["jobs"] = [job for job in document["jobs"] if f"job:{job['id']}" not in dropped]
    if not document["jobs"] or instance.admission != "all":
        return None
    for job in document["jobs"]:
        if f"cap:{job['id']}" in dropped:
            job.pop("highest_level", None)
    if "unavailable" in dropped:
        document["unavailable"] = []
    for domain in document["topology"]["domains"]:
        if f"drained:{domain['id']}" in dropped:
            domain["drained"] = False
    return PalInstance.from_document(document, instance.name)


def remedies(instance: PalInstance, conflict: Set[str]) -> Iterator[Remedy]:
    """Yield more GPUs in the node of the first free one."""
    if instance.free_gpus:
        gpu = instance.free_gpus[0]
        text = partial(_more_gpus, gpu)
        yield Remedy(0.0, 1.0, partial(_with_twins, instance, gpu), text, is_whole=True)


def _more_gpus(gpu: str, more: float) -> str:
    return f"{_count(round(more), 'more GPU')} like '{gpu}', beside it"


def _with_twins(instance: PalInstance, gpu: str, more: float) -> PalInstance:
    for _ in range(round(more)):
        instance = _with_twin(instance, gpu)
    return instance


def binding(instance: PalInstance, result: Result) -> Iterator[str]:
    """Yield how full the cluster is, which jobs are at their hard caps, and which are left out."""
    plan = result.plan
    assert isinstance(plan, PalPlan)
    jobs = {job.id: job for job in instance.jobs}
    used, free = sum(len(p.gpus) for p in plan.jobs), len(instance.free_gpus)
    left = "none is left" if used == free else f"{free - used} are left"
    yield f"{used} of {free} free GPUs have a job: {left}"
    out = [placement.id for placement in plan.jobs if not placement.gpus]
    if out:
        yield f"{_count(len(out), 'job')} left out: {_some(out)}"
    levels, capped = instance.topology.levels, []
    for placement in plan.jobs:
        cap = jobs[placement.id].highest_level
        if cap is None or not placement.gpus:
            continue
        level = performance(instance, jobs[placement.id], placement.gpus).level
        if level == levels.index(cap):
            capped.append(placement.id)
    if capped:
        yield f"{_count(len(capped), 'job')} as wide as their highest_level allows: {_some(capped)}"


def prices(instance: PalInstance, result: Result) -> Iterator[Price]:
    """Yield the most expensive GPUs, and what jobs pay for them in the first relaxation."""
    leaf = _first_prices(result)
    if leaf is None:
        return
    named = sorted(zip(instance.free_gpus, leaf.gpu_prices, strict=True), key=lambda pair: -pair[1])
    for gpu, price in named[:MOST_SHOWN]:
        if price > 0:
            note = "what jobs pay for it in the relaxation"
            yield Price(
                f"the use of GPU '{gpu}'", price, result.objective_unit, "certificate", note=note
            )


def levers(instance: PalInstance, result: Result) -> Iterator[Lever]:
    """Yield a GPU more like the most expensive one, and the instance without its limits."""
    gpu = _most_expensive(instance, result)
    yield Lever(f"1 more GPU like '{gpu}', beside it", _with_twin(instance, gpu))
    limits = ("unavailable", "drained", "cap")
    names = {
        limit: {rule.id for rule in rules(instance) if rule.id.split(":")[0] == limit}
        for limit in limits
    }
    texts = ("no GPU unavailable", "no domain drained", "no hard cap on jobs")
    for limit, text in zip(limits, texts, strict=True):
        freed = _freed(instance, names[limit]) if names[limit] else None
        if freed is not None:
            yield Lever(text, freed)


def _freed(instance: PalInstance, dropped: set[str]) -> PalInstance | None:
    """Return the instance without some rules, whether jobs may be left out or not."""
    must = instance.model_copy(update={"admission": "all"})
    freed = without(must, dropped)
    return None if freed is None else freed.model_copy(update={"admission": instance.admission})


def _most_expensive(instance: PalInstance, result: Result) -> str:
    """Return the GPU of the highest price, or the fastest one of those that are used."""
    leaf = _first_prices(result)
    if leaf is not None and any(leaf.gpu_prices):
        return instance.free_gpus[max(range(len(leaf.gpu_prices)), key=leaf.gpu_prices.__getitem__)]
    assert isinstance(result.plan, PalPlan)
    used = [gpu for placement in result.plan.jobs for gpu in placement.gpus]
    speeds = instance.slowdowns.values()
    return min(used or instance.free_gpus, key=lambda gpu: sum(by_gpu[gpu] for by_gpu in speeds))


def _with_twin(instance: PalInstance, gpu: str) -> PalInstance:
    document: dict[str, Any] = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    twin = f"{gpu}+"
    while twin in instance.topology.gpus or twin in instance.profile.gpus:
        twin += "+"
    for domain in document["topology"]["domains"]:
        if gpu in domain.get("gpus", ()):
            domain["gpus"].append(twin)
    profile = document["profile"]
    number = profile["gpus"].index(gpu)
    profile["gpus"].append(twin)
    for values in profile["slowdown"].values():
        values.append(values[number])
    return PalInstance.from_document(document, instance.name)


def _first_prices(result: Result) -> Leaf | None:
    certificate = result.certificate
    if not isinstance(certificate, PalCertificate) or certificate.kind != "prices":
        return None
    root = next(iter((*certificate.exclusions, *certificate.nodes)))
    return root if isinstance(root, Leaf) else None


def _job_text(job: Job) -> str:
    return f"job '{job.id}' needs {_count(job.gpus, 'GPU')} (admission 'all')"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
