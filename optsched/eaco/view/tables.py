"""Plans of EaCO as tables: one row for each job, or one for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.plan import EacoPlan
from optsched.eaco.view.figures import SHOWN, performance
from optsched.results.result import figure

if TYPE_CHECKING:
    import pandas as pd

    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import Group
    from optsched.eaco.view.figures import GroupFigures, JobFigures


def frame(instance: EacoInstance, plan: EacoPlan) -> pd.DataFrame:
    """Return one row for each job, in the order of the instance.

    Returns
    -------
    pandas.DataFrame
        Columns: job, type, gpus (its gang size), group (number in the plan), nodes, node (the first
        one), gpu (type), level (of power; None for full power), location, shares_with (ids),
        rates_from ("alone", "measured", "larger" groups, "pairs", or "utilisation", by the
        formula), slowdown, run_h (hours until it ends), moved, deadline ("met", "late" if it cannot
        be, "" if it has none), energy_kwh (of the group, in proportion to what each job takes
        alone). Of a job that waits, group is -1, and there are neither places nor figures.
    """
    import pandas as pd

    rows: dict[str, dict[str, object]] = {}
    runs = performance(instance, plan).groups
    for n, (group, figures) in enumerate(zip(plan.groups, runs, strict=True)):
        rows |= _group_rows(instance, n, group, figures)
    jobs = [
        {"job": job.id, "type": job.type, "gpus": job.gpus, **rows.get(job.id, _WAITING)}
        for job in instance.jobs
    ]
    return pd.DataFrame(jobs)


_WAITING: dict[str, object] = {
    "group": -1,
    "nodes": None,
    "node": -1,
    "gpu": None,
    "level": None,
    "location": None,
    "shares_with": (),
    "rates_from": None,
    "slowdown": float("nan"),
    "run_h": float("nan"),
    "moved": False,
    "deadline": "",
    "energy_kwh": float("nan"),
}


def _group_rows(
    instance: EacoInstance, number: int, group: Group, figures: GroupFigures
) -> dict[str, dict[str, object]]:
    """Return the part of a group's rows that depends on the plan, by job."""
    nodes = next(pool for pool in instance.nodes if pool.id == group.nodes)
    deadline = {job.id: job.deadline_s for job in instance.jobs}
    alone = {name: _alone_kwh(instance, group, name) for name in group.jobs}
    rows: dict[str, dict[str, object]] = {}
    for job in figures.jobs:
        met = "late" if job.is_late else "met"
        rows[job.id] = {
            "group": number,
            "nodes": group.nodes,
            "node": group.node,
            "gpu": nodes.gpu,
            "level": group.level,
            "location": group.location,
            "shares_with": tuple(name for name in group.jobs if name != job.id),
            "rates_from": figures.origin,
            "slowdown": job.slowdown,
            "run_h": job.run_s / 3600,
            "moved": job.is_moved,
            "deadline": "" if deadline[job.id] is None else met,
            "energy_kwh": figures.energy_kwh * alone[job.id] / sum(alone.values()),
        }
    return rows


def _alone_kwh(instance: EacoInstance, group: Group, name: str) -> float:
    """Return what a job of a group would take alone on the same GPUs."""
    lonely = group.model_copy(update={"jobs": (name,)})
    return performance(instance, EacoPlan(groups=(lonely,))).groups[0].energy_kwh or 1.0


def decisions(instance: EacoInstance, plan: EacoPlan) -> list[dict[str, str]]:
    """Return one row for each group, and one for the jobs that wait.

    Each job with its slowdown, and what else is to be said of it. Of a large plan, the groups that
    take most energy.
    """
    figures = performance(instance, plan)
    entries = list(zip(plan.groups, figures.groups, strict=True))
    if len(entries) > SHOWN.groups:
        entries.sort(key=lambda entry: -entry[1].energy_kwh)
    rows = [_decision(instance, group, runs) for group, runs in entries[: SHOWN.groups]]
    for key, plain in (("level", {""}), ("rates from", {"", RATES["measured"]})):
        if {row[key] for row in rows} <= plain:
            rows = [{name: row[name] for name in row if name != key} for row in rows]
    rest = entries[SHOWN.groups :]
    if rest:
        kwh = figure(sum(runs.energy_kwh for _, runs in rest))
        more = f"... and {len(rest)} groups that take less"
        rows.append(dict.fromkeys(rows[0], "") | {_JOBS: more, "kWh": kwh})
    if plan.waiting:
        empty = dict.fromkeys(rows[0] if rows else (_JOBS, "nodes", "GPUs", "kWh", "alone"), "")
        rows.append(empty | {_JOBS: ", ".join(plan.waiting), "nodes": "waiting"})
    return rows


_JOBS = "jobs and slowdowns"
RATES = {
    "alone": "",
    "measured": "measured",
    "larger": "larger group",
    "pairs": "pairs",
    "utilisation": "formula",
}


def _decision(instance: EacoInstance, group: Group, runs: GroupFigures) -> dict[str, str]:
    nodes = next(pool for pool in instance.nodes if pool.id == group.nodes)
    gang = next(job.gpus for job in instance.jobs if job.id == group.jobs[0])
    last = group.node + max(1, gang // nodes.gpus) - 1
    numbers = f"{group.node}" if last == group.node else f"{group.node} to {last}"
    return {
        _JOBS: ", ".join(_job(instance, job) for job in runs.jobs),
        "nodes": f"{nodes.id} {numbers}",
        "GPUs": str(gang),
        "level": group.level or "",
        "rates from": RATES[runs.origin],
        "kWh": figure(runs.energy_kwh),
        "alone": figure(runs.alone_kwh),
    }


def _job(instance: EacoInstance, job: JobFigures) -> str:
    """Return a job with its slowdown; of one that runs now whether it is moved."""
    marks = []
    if job.id in instance.location_of:
        marks.append("moved" if job.is_moved else "stays")
    if job.is_late:
        marks.append("late")
    return " ".join([job.id, f"{job.slowdown:.4g}", *marks])
