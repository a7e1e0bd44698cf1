"""The room of EaCO: its nouns, methods and judge, as the rest of optsched sees them."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from optsched.eaco.exact.memory import memory
from optsched.eaco.instance import EacoInstance
from optsched.eaco.plan import EacoCertificate, EacoPlan
from optsched.eaco.plausibility import doubts
from optsched.eaco.verify import certificate as proof
from optsched.eaco.verify import feasibility
from optsched.eaco.view.figures import performance
from optsched.eaco.view.tables import decisions, frame
from optsched.registry import Method, Problem
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from optsched.eaco.view.figures import Figures
    from optsched.results.result import Result
    from optsched.solving import Search

EACO = "EaCO, arXiv 2412.08294"
GAVEL = "Gavel's policies, stanford-futuredata/gavel @c4fa4009"

ORIGINS = {
    "measured": "measured",
    "larger": "from larger measured groups",
    "pairs": "from measured pairs",
    "utilisation": "by the formula for utilisations",
}


def summary(instance: EacoInstance, result: Result) -> dict[str, str]:
    """Return the figures that go with a plan, as text."""
    plan = result.plan
    assert isinstance(plan, EacoPlan)
    runs = performance(instance, plan)
    value = feasibility.objective(instance, plan)
    rows = {objective_name(instance): f"{figure(value)} {objective_unit(instance)}"}
    if instance.objective != "run-to-completion" or instance.unit != "kWh":
        rows["energy"] = f"{figure(runs.energy_kwh)} kWh until all jobs end"
    if runs.alone_kwh > 0:
        saved = 1 - runs.energy_kwh / runs.alone_kwh
        rows["saving"] = f"{100 * saved:.1f} % of {figure(runs.alone_kwh)} kWh on exclusive GPUs"
    sizes = Counter(len(group.jobs) for group in plan.groups)
    shared = ", ".join(f"{sizes[n]} of {_count(n, 'job')}" for n in sorted(sizes))
    rows["groups"] = f"{len(plan.groups)}: {shared}" if sizes else "none"
    woken = f", {runs.woken} of them woken" if runs.woken else ""
    rows["nodes used"] = f"{runs.nodes_on} of {sum(n.count for n in instance.nodes)}{woken}"
    if instance.power_cap_w is not None:
        cap = f"the cap is {figure(instance.power_cap_w)} W"
        rows["power"] = f"{figure(runs.power_w)} W at most, {cap}"
    return rows | _job_notes(instance, plan, runs) | _data_notes(instance, runs)


def _job_notes(instance: EacoInstance, plan: EacoPlan, runs: Figures) -> dict[str, str]:
    """Return what becomes of the jobs."""
    notes = {}
    jobs = [job for group in runs.groups for job in group.jobs]
    if jobs:
        slowdowns = [job.slowdown for job in jobs]
        notes["slowdown"] = f"{fmean(slowdowns):.4f} on average, {max(slowdowns):.4f} at most"
    if plan.waiting:
        notes["jobs waiting"] = f"{len(plan.waiting)}: {_some(plan.waiting, 3)}"
    if instance.running:
        moved = sum(job.is_moved for job in jobs)
        notes["jobs moved"] = f"{moved} of {len(instance.location_of)} running"
    if any(job.deadline_s is not None for job in instance.jobs):
        due = "due at the earliest end that they can have alone"
        late = f"{len(runs.late)}: {_some(runs.late, 3)}, {due}"
        notes["late jobs"] = late if runs.late else "none"
    return notes


def _data_notes(instance: EacoInstance, runs: Figures) -> dict[str, str]:
    """Return what a reader of the figures should know of the interference behind them."""
    notes = {}
    counts = Counter(group.origin for group in runs.groups if group.origin != "alone")
    if counts:
        listed = ", ".join(f"{counts[key]} {text}" for key, text in ORIGINS.items() if counts[key])
        notes["interference"] = f"{_count(sum(counts.values()), 'shared group')}: {listed}"
    repairs = [repair for rates in instance.rates.values() for repair in rates.repairs]
    if repairs:
        more = f", and {len(repairs) - 1} more" if len(repairs) > 1 else ""
        notes["repairs"] = f"{repairs[0]}{more}"
    found = list(doubts(instance))
    if found:
        notes["warning"] = "; ".join(found)
    return notes


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(names: Sequence[str], count: int) -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + more


def headline(instance: EacoInstance) -> dict[str, str]:
    """Return in a few words what an instance asks for, by column of a list of instances."""
    known = len(instance.interference.groups)
    return {
        "jobs": str(len(instance.jobs)),
        "nodes": str(sum(nodes.count for nodes in instance.nodes)),
        "per GPU": str(instance.max_jobs_per_gpu),
        "objective": instance.objective,
        "measured": f"{known} groups" if known else "none",
    }


def objective_unit(instance: EacoInstance) -> str:
    """Return "kWh", "USD" or "g CO2"; kWh and hours weighted for equation (1) of the paper."""
    return instance.unit


def objective_name(instance: EacoInstance) -> str:
    """Return what the objective is called."""
    if instance.objective == "eaco":
        return "weighted energy and time"
    noun = {"kWh": "energy", "USD": "cost", "g CO2": "carbon"}[instance.unit]
    return noun if instance.objective == "run-to-completion" else f"{noun} of the epoch"


def gap_scale(instance: EacoInstance) -> float:
    """Return what an epoch costs at most; in it energy and credits for work may cancel."""
    if instance.objective != "epoch":
        return 0.0
    gpus = {gpu.id: gpu.power.peak_w for gpu in instance.gpu_types}
    watts = sum(n.count * (n.gpus * gpus[n.gpu] + n.power.base_w) for n in instance.nodes)
    price = instance.price_usd_per_kwh or instance.carbon_g_per_kwh or 1.0
    return watts * (instance.epoch_s or 0.0) / 3.6e6 * price


def certify(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Certify a bound for any plan, or that there is none; None if time does not suffice."""
    from optsched.eaco.exact import solver as exact

    return exact.certify(instance, search)


def plot(instance: EacoInstance, plan: EacoPlan, ax: Axes | None = None) -> Axes:
    """Draw the groups over time; see `optsched.eaco.view.plot.plot`."""
    from optsched.eaco.view.plot import plot as draw

    return draw(instance, plan, ax)


def _methods() -> Iterator[Method]:
    yield Method(
        "exact",
        "exact",
        "all groups, set partitioning with fixing by reduced costs",
        EACO,
        "optsched.eaco.exact.solver:exact",
    )
    yield Method(
        "columns",
        "exact",
        "groups found as prices ask for them, by column generation",
        EACO,
        "optsched.eaco.exact.large_scale:columns",
    )
    yield Method(
        "milp",
        "exact",
        "the Pyomo formulation of models/eaco.py, solved by HiGHS",
        EACO,
        "optsched.eaco.milp:milp",
    )
    for name, text, source, effort in GREEDY:
        entry = f"optsched.eaco.greedy.methods:{name.replace('-', '_')}"
        yield Method(name, "greedy", text, source, entry, effort)


GREEDY = (
    ("fifo", "GPUs of its own for every job, in order", f"{GAVEL}, fifo; EaCO's default", 1),
    ("fifo-packed", "pairs of the greatest sum of rates, if GPUs run out", f"{GAVEL}, fifo", 1),
    ("gandiva-gavel", "random pairs, if GPUs run out", f"{GAVEL}, gandiva", 1),
    ("gandiva", "least busy job on the least busy GPUs, if they run out", "Gandiva, OSDI'18", 1),
    ("eaco-greedy", "the busiest GPUs where every tolerance holds", EACO, 7),
    ("best-fit", "the GPUs where least memory is left", "common practice", 32),
    ("best-delta-energy", "where the objective rises least", "common practice", 30),
    ("lucid-like", "pairs whose labels sum to at most 2", "Lucid, ASPLOS'23", 72),
    ("longest-first", "jobs that end together, the longest first", "optsched", 18),
    ("local-search", "moves and swaps, from the best of the simple rules", "optsched", 320),
)
"""Name, summary, source and effort: CPU time on 300 jobs, four of which share, beside fifo's."""

METHODS = tuple(_methods())


def greedy_s(instance: EacoInstance) -> float:
    """Return about how many CPU seconds fifo takes."""
    return 9e-7 * len(instance.jobs) ** 2


PROBLEM = Problem(
    name="eaco",
    title="EaCO: which jobs share GPUs",
    instance=EacoInstance,
    plan=EacoPlan,
    certificate=EacoCertificate,
    methods=METHODS,
    specification="optsched.models.eaco",
    reasons="optsched.eaco.view.explain",
    objective_unit=objective_unit,
    objective_name=objective_name,
    violations=feasibility.violations,
    objective=feasibility.objective,
    certify=certify,
    prove=proof.prove,
    proof_terms=proof.terms,
    greedy_s=greedy_s,
    frame=frame,
    summary=summary,
    headline=headline,
    decisions=decisions,
    memory=memory,
    gap_scale=gap_scale,
    plot=plot,
)
