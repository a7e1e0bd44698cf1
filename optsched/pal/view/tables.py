"""Plans of PAL as tables and figures: one row for each job, and what they come to."""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING

from optsched.pal.plan import PalPlan
from optsched.pal.verify import feasibility
from optsched.results.result import figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from optsched.pal.instance import Job, PalInstance
    from optsched.results.result import Result

SHOWN = 40  # jobs of a plan in a table for the terminal; of more, the costliest
NODES_WIDTH = 20


def frame(instance: PalInstance, plan: PalPlan) -> pd.DataFrame:
    """Return one row for each job.

    Returns
    -------
    pandas.DataFrame
        Columns: job, gpus (how many), nodes (how many domains of the lowest level), level and
        domain (the lowest one around the GPUs), slowest_gpu, slowdown, weight, cost (in the
        objective's unit; it sums to the objective), moved, gpu_ids. Of a job that is left out,
        gpus is 0, the cost is its reward, and there are neither names nor a slowdown.
    """
    import pandas as pd

    rows = []
    for job, gpus in _placed(instance, plan):
        row: dict[str, object] = {
            "job": job.id,
            "gpus": 0,
            "nodes": 0,
            "level": None,
            "domain": None,
            "slowest_gpu": None,
            "slowdown": float("nan"),
            "weight": job.weight,
            "cost": job.reward or 0.0,
            "moved": False,
            "gpu_ids": gpus,
        }
        if gpus:
            runs = feasibility.performance(instance, job, gpus)
            row |= {
                "gpus": len(gpus),
                "nodes": len(_nodes(instance, gpus)),
                "level": instance.topology.levels[runs.level],
                "domain": _around(instance, gpus[0], runs.level),
                "slowest_gpu": runs.slowest,
                "slowdown": float(runs.slowdown),
                "cost": float(runs.cost),
                "moved": runs.moved,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def summary(instance: PalInstance, result: Result) -> dict[str, str]:
    """Return the figures that go with a plan, as text."""
    plan = result.plan
    assert isinstance(plan, PalPlan)
    placed = [(job, gpus) for job, gpus in _placed(instance, plan) if gpus]
    runs = [feasibility.performance(instance, job, gpus) for job, gpus in placed]
    value = feasibility.objective(instance, plan)
    rows = {objective_name(instance): f"{figure(value)} {objective_unit(instance)}"}
    rows["jobs placed"] = f"{len(placed)} of {len(instance.jobs)}"
    rows["GPUs used"] = _fill(sum(len(gpus) for _, gpus in placed), len(instance.free_gpus))
    if runs:
        counts = Counter(run.level for run in runs)
        rows["locality"] = ", ".join(f"{counts[n]} {_where(instance, n)}" for n in sorted(counts))
        slowdowns = [float(run.slowdown) for run in runs]
        rows["slowdown"] = f"{fmean(slowdowns):.4f} on average, {max(slowdowns):.4f} at most"
    running = sum(bool(job.current) for job in instance.jobs)
    if running:
        rows["jobs moved"] = f"{sum(run.moved for run in runs)} of {running} running"
    return rows | _data_notes(instance)


def _data_notes(instance: PalInstance) -> dict[str, str]:
    """Return what a reader of the figures should know of the data behind them."""
    notes: dict[str, str] = {"profile": instance.profile.kind}
    if instance.profile.kind == "single-run":
        notes["profile"] += ": passing trouble of a run counts as lasting"
    free = set(instance.free_gpus)
    slow = [
        f"{gpu} ({name}: {instance.slowdowns[name][gpu]:.2f})"
        for name in sorted({job.application_class for job in instance.jobs})
        for gpu in instance.profile.outliers(name)
        if gpu in free
    ]
    if slow:
        notes["GPUs above 1.5 x"] = _some(slow, 3)
    if instance.locality_kind == "measured":
        raised = [f"{model} ({', '.join(at)})" for model, at in instance.raised.items()]
        names = _some(raised, 3) if raised else "no value"
        notes["penalties"] = f"measured; the monotone envelope raises {names}"
    return notes


def _where(instance: PalInstance, level: int) -> str:
    """Return in words that the lowest domain around GPUs stands at a level."""
    levels = instance.topology.levels
    is_everything = 0 < level == len(levels) - 1
    return f"across the {levels[level]}" if is_everything else f"within one {levels[level]}"


def headline(instance: PalInstance) -> dict[str, str]:
    """Return in a few words what an instance asks for, by column of a list of instances."""
    demand, free = sum(job.gpus for job in instance.jobs), len(instance.free_gpus)
    return {
        "GPUs": str(free),
        "levels": str(len(instance.topology.levels)),
        "jobs": str(len(instance.jobs)),
        "demand": f"{100 * demand / free:.0f} %",
        "profile": instance.profile.kind,
    }


def decisions(instance: PalInstance, plan: PalPlan) -> list[dict[str, str]]:
    """Return one row for each job; of a large batch, for the jobs that cost most."""
    placed = _placed(instance, plan)
    if len(placed) > SHOWN:
        placed.sort(key=lambda entry: -_cost(instance, *entry))
    rows = [_decision(instance, job, gpus) for job, gpus in placed[:SHOWN]]
    rest = placed[SHOWN:]
    if rest:
        count = sum(len(gpus) for _, gpus in rest)
        first = {"job": f"... and {len(rest)} that cost less", "GPUs": str(count)}
        rows.append(dict.fromkeys(rows[0], "") | first)
    return rows


def _decision(instance: PalInstance, job: Job, gpus: Sequence[str]) -> dict[str, str]:
    row = {"job": job.id, "GPUs": "none", "nodes": "", "level": "", "slowest": "", "slowdown": ""}
    moved = "left out" if job.current else ""
    if gpus:
        runs = feasibility.performance(instance, job, gpus)
        row["GPUs"] = str(len(gpus))
        row["nodes"] = _shortened(_nodes(instance, gpus))
        row["level"] = instance.topology.levels[runs.level]
        row["slowest"] = runs.slowest
        row["slowdown"] = f"{float(runs.slowdown):.4f}"
        moved = "moved" if runs.moved else "stays" if job.current else "new"
    if any(other.current for other in instance.jobs):
        row["running"] = moved
    return row


def _cost(instance: PalInstance, job: Job, gpus: Sequence[str]) -> float:
    return float(feasibility.performance(instance, job, gpus).cost) if gpus else job.reward or 0.0


def _placed(instance: PalInstance, plan: PalPlan) -> list[tuple[Job, tuple[str, ...]]]:
    """Return every job of the instance, in its order, with its GPUs in the topology's order."""
    chosen = {placement.id: placement.gpus for placement in plan.jobs}
    number = {gpu: n for n, gpu in enumerate(instance.topology.gpus)}
    return [
        (job, tuple(sorted(chosen.get(job.id, ()), key=number.__getitem__)))
        for job in instance.jobs
    ]


def _around(instance: PalInstance, gpu: str, level: int) -> str:
    """Return the id of the domain around a GPU at a level."""
    topology = instance.topology
    number = int(topology.ancestors[topology.gpus.index(gpu), level])
    return topology.domains[number].id


def _nodes(instance: PalInstance, gpus: Sequence[str]) -> list[str]:
    """Return the ids of the domains of the lowest level in which GPUs stand."""
    return list(dict.fromkeys(_around(instance, gpu, 0) for gpu in gpus))


def _fill(used: int, free: int) -> str:
    return f"{used} of {free} free ones ({100 * used / free:.1f} %)"


def _some(names: Sequence[str], count: int) -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + more


def _shortened(names: Sequence[str]) -> str:
    """Return names in a few words: the first ones, as many as fit, and the number of the rest."""
    for count in range(len(names), 1, -1):
        more = f", … (+{len(names) - count})" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= NODES_WIDTH:
            return text
    return names[0] if len(names) == 1 else f"{names[0]}, … (+{len(names) - 1})"


def objective_unit(instance: PalInstance) -> str:
    """Return "s" if jobs have a remaining time, else "x", times the median GPU's pace."""
    return "s" if instance.is_timed else "x"


def objective_name(instance: PalInstance) -> str:
    """Return what the objective is called."""
    if instance.is_timed:
        return "weighted time"
    weighted = any(job.weight != 1 for job in instance.jobs)
    return "sum of weighted slowdowns" if weighted else "sum of slowdowns"
