"""Why an EaCO instance has no plan, and what its limits cost."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from optsched.eaco.instance import MOST_JOBS_PER_GPU, EacoInstance
from optsched.eaco.plan import EacoCertificate, EacoPlan, Leaf
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.eaco.view.figures import SHOWN, performance
from optsched.eaco.view.summary import ORIGINS, some
from optsched.explanation.explanation import Lever, Price, Remedy, Rule
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from optsched.eaco.instance import Job
    from optsched.eaco.view.figures import Figures
    from optsched.results.result import Result

NOT_MEASURED = ("larger", "pairs", "utilisation")
CLUSTER = {
    "power_cap_w": "the power cap of {:,.6g} W",
    "utilisation_limit": "groups keep within a utilisation of {:g}",
    "memory_headroom": "groups leave a share of {:g} of a GPU's memory free",
    "max_jobs_per_gpu": "at most {} jobs share a GPU",
}


def rules(instance: EacoInstance) -> list[Rule]:
    """Return the jobs that must not wait, what they bear, and the limits of the whole cluster."""
    must = sorted((job for job in instance.jobs if _must(job)), key=lambda job: job.gpus)
    figures = ExactFigures(instance)
    listed = [Rule(f"job:{job.id}", _job_text(job)) for job in must]
    for job in must:
        due = figures.due_s(job)
        if due is not None and job.deadline_s is not None:
            text = f"job '{job.id}' must end within {float(due):,.6g} s"
            if due > Fraction(job.deadline_s):
                text += f", the earliest end alone: not in {job.deadline_s:,.6g} s, its deadline"
            listed.append(Rule(f"deadline_s:{job.id}", text))
        if job.max_slowdown is not None:
            text = f"job '{job.id}' bears a slowdown of {job.max_slowdown:g}"
            listed.append(Rule(f"max_slowdown:{job.id}", text))
    return listed + _cluster_rules(instance)


def _cluster_rules(instance: EacoInstance) -> list[Rule]:
    off = {"memory_headroom": 0.0, "max_jobs_per_gpu": MOST_JOBS_PER_GPU}
    values = {key: getattr(instance, key) for key in CLUSTER}
    given = {key: value for key, value in values.items() if value != off.get(key)}
    return [Rule(key, CLUSTER[key].format(value)) for key, value in given.items()]


def without(instance: EacoInstance, dropped: Set[str]) -> EacoInstance | None:
    """Return the jobs that must not wait, without some rules; None if no job is left."""
    document = _document(instance)
    kept = {job.id for job in instance.jobs if _must(job) and f"job:{job.id}" not in dropped}
    if not kept and "power_cap_w" in dropped:
        return None
    if kept:
        _keep_jobs(document, kept)
    else:  # one job that may wait stands for none
        _keep_jobs(document, {instance.jobs[0].id})
        document["objective"] = "run-to-completion"
        document["jobs"][0]["waiting_penalty_kwh"] = 1.0
    for job in document["jobs"]:
        for key in ("deadline_s", "max_slowdown"):
            if f"{key}:{job['id']}" in dropped:
                job.pop(key, None)
    for key in dropped & set(CLUSTER):
        document.pop(key, None)
    if "max_jobs_per_gpu" in dropped:
        document["max_jobs_per_gpu"] = MOST_JOBS_PER_GPU
    return EacoInstance.from_document(document, instance.name)


def _keep_jobs(document: dict[str, Any], kept: set[str]) -> None:
    document["jobs"] = [job for job in document["jobs"] if job["id"] in kept]
    places = document.get("running", ())
    for place in places:
        place["jobs"] = [name for name in place["jobs"] if name in kept]
    document["running"] = [place for place in places if place["jobs"]]


def binding(instance: EacoInstance, result: Result) -> Iterator[str]:
    """Yield which limits the plan comes near: nodes, watts, tolerances and when jobs are due."""
    assert isinstance(result.plan, EacoPlan)
    runs = performance(instance, result.plan)
    count = sum(nodes.count for nodes in instance.nodes)
    left = "none is left" if runs.nodes_on == count else f"{count - runs.nodes_on} are left"
    yield f"{runs.nodes_on} of {count} nodes are used: {left}"
    cap = instance.power_cap_w
    if cap is not None:  # whether more of it would help is told by the prices, not by what is drawn
        share = f"{100 * runs.power_w / cap:.1f} %" if cap > 0 else "all"
        drawn = f"{figure(runs.power_w)} W are drawn at most"
        yield f"{drawn}, {share} of the power cap of {figure(cap)} W"
    at_limit = _at_limit(instance, runs)
    for text, names in at_limit.items():
        if names:
            yield f"{text}: {some(names, SHOWN.names)}"
    if result.plan.waiting:
        yield f"jobs that wait: {some(result.plan.waiting, SHOWN.names)}"
    for origin in NOT_MEASURED:
        groups = [" + ".join(job.id for job in g.jobs) for g in runs.groups if g.origin == origin]
        if groups:
            yield f"groups whose rates are {ORIGINS[origin]}: {some(groups, SHOWN.names)}"


def _at_limit(instance: EacoInstance, runs: Figures) -> dict[str, list[str]]:
    jobs = {job.id: job for job in instance.jobs}
    slow, near, late = [], [], []
    for job in (job for group in runs.groups for job in group.jobs):
        most = jobs[job.id].max_slowdown
        if most is not None and job.slowdown > 1 and job.slowdown >= SHOWN.near * most:
            slow.append(job.id)
        if job.is_late:
            late.append(f"{job.id} in {job.due_s:,.6g} s")
        elif job.due_s is not None and job.latest_s >= SHOWN.near * job.due_s:
            near.append(job.id)
    return {
        "jobs within 1 % of the slowdown that they bear": slow,
        "jobs within 1 % of their deadlines": near,
        "late jobs, each due at the earliest end that it can have alone": late,
    }


def prices(instance: EacoInstance, result: Result) -> Iterator[Price]:
    """Yield the prices of GPUs and watts in the relaxation that begins the proof."""
    certificate = result.certificate
    if not isinstance(certificate, EacoCertificate) or certificate.kind != "prices":
        return
    root = certificate.nodes[0]
    first = root.prices if isinstance(root, Leaf) else certificate.everywhere
    if first is None:
        return
    unit, note = result.objective_unit, "what groups pay for it in the relaxation"
    for nodes, price in zip(instance.nodes, first.gpus, strict=True):
        if price > 0:
            yield Price(f"the use of a GPU of '{nodes.id}'", price, unit, "certificate", note=note)
    if first.watt > 0:
        yield Price("the use of a watt", first.watt, unit, "certificate", note=note)


def levers(instance: EacoInstance, result: Result) -> Iterator[Lever]:
    """Yield one more node of each kind, and limits that are one per cent higher."""
    for n, nodes in enumerate(instance.nodes[: SHOWN.nodes]):
        document = _document(instance)
        document["nodes"][n]["count"] += 1
        yield _lever(f"1 more node of '{nodes.id}' ({_gpus(nodes.gpus)})", document)
    for key, text in (("max_slowdown", "tolerance of slowdowns"), ("deadline_s", "deadlines")):
        document = _document(instance)
        held = [job for job in document["jobs"] if job.get(key, 0) > 0]
        for job in held:
            job[key] *= SHOWN.more
        if held:
            yield _lever(f"1 % more: {text}", document)
    if instance.power_cap_w is not None:
        higher = _document(instance) | {"power_cap_w": SHOWN.more * instance.power_cap_w}
        yield _lever("1 % more: power cap", higher)
    if instance.max_jobs_per_gpu < MOST_JOBS_PER_GPU:
        more = _document(instance) | {"max_jobs_per_gpu": instance.max_jobs_per_gpu + 1}
        yield _lever("1 more job per GPU", more)


def remedies(instance: EacoInstance, conflict: Set[str]) -> Iterator[Remedy]:
    """Yield the power cap, where it is in the conflict, and one more node of each kind."""
    cap = instance.power_cap_w
    if cap is not None and "power_cap_w" in conflict:
        step = max(0.05 * cap, 1.0)
        yield Remedy(cap, step, partial(_capped, instance), "a power cap of {:,.6g} W".format)
    if conflict == {"power_cap_w"}:
        return
    for n, nodes in enumerate(instance.nodes[: SHOWN.nodes]):
        text = partial(_more_nodes, nodes.id)
        yield Remedy(0.0, 1.0, partial(_with_nodes, instance, n), text, is_whole=True)


def _capped(instance: EacoInstance, cap_w: float) -> EacoInstance:
    return EacoInstance.from_document(_document(instance) | {"power_cap_w": cap_w}, instance.name)


def _with_nodes(instance: EacoInstance, number: int, more: float) -> EacoInstance:
    document = _document(instance)
    document["nodes"][number]["count"] += round(more)
    return EacoInstance.from_document(document, instance.name)


def _more_nodes(name: str, more: float) -> str:
    return f"{more:.0f} more node{'s' if more > 1 else ''} of '{name}'"


def _document(instance: EacoInstance) -> dict[str, Any]:
    return instance.model_dump(mode="json", by_alias=True, exclude_none=True)


def _lever(text: str, document: dict[str, Any]) -> Lever:
    changed = EacoInstance.from_document(document, text)
    return Lever(text, changed, partial(_unmeasured, changed))


def _unmeasured(instance: EacoInstance, result: Result) -> str:
    """Tell on how many groups without a measurement a plan rests."""
    assert isinstance(result.plan, EacoPlan)
    runs = performance(instance, result.plan)
    counts = Counter(group.origin for group in runs.groups)
    told = [(counts[origin], ORIGINS[origin]) for origin in NOT_MEASURED if counts[origin]]
    return ", ".join(f"{n} group{'s' if n > 1 else ''} {origin}" for n, origin in told)


def _must(job: Job) -> bool:
    return job.waiting_penalty_kwh is None


def _job_text(job: Job) -> str:
    return f"job '{job.id}' ({_gpus(job.gpus)}) must not wait"


def _gpus(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number} GPUs"
