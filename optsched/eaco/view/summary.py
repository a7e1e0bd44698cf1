"""Instances and results of EaCO in a few lines."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from optsched.eaco.plan import EacoPlan
from optsched.eaco.plausibility import doubts
from optsched.eaco.verify import feasibility
from optsched.eaco.view.figures import SHOWN, performance
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.view.figures import Figures
    from optsched.results.result import Result

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
        notes["jobs waiting"] = f"{len(plan.waiting)}: {some(plan.waiting, SHOWN.names)}"
    if instance.running:
        moved = sum(job.is_moved for job in jobs)
        notes["jobs moved"] = f"{moved} of {len(instance.location_of)} running"
    if any(job.deadline_s is not None for job in instance.jobs):
        due = "due at the earliest end that they can have alone"
        late = f"{len(runs.late)}: {some(runs.late, SHOWN.names)}, {due}"
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
    warnings = list(doubts(instance))
    if warnings:
        notes["warning"] = "; ".join(warnings)
    return notes


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], count: int) -> str:
    """Return the first of some names, and how many more there are."""
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
