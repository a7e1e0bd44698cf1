"""Plans of Sia's round as tables and figures: one row for each job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.results.result import figure
from optsched.sia.plan import SiaPlan
from optsched.sia.verify import feasibility

if TYPE_CHECKING:
    import pandas as pd

    from optsched.results.result import Result
    from optsched.sia.instance import RoundOption, SiaInstance, SiaJob

SHOWN = 40  # jobs of a plan in a table for the terminal; of more, the costliest


def frame(instance: SiaInstance, plan: SiaPlan) -> pd.DataFrame:
    """Return one row for each job.

    Returns
    -------
    pandas.DataFrame
        Columns: job, type (None for a job that waits), gpus, goodput (0 for one that waits), ratio
        (of the goodput to the job's least), cost (they sum to the objective), restarts (whether a
        running job gets another configuration).
    """
    import pandas as pd

    rows = []
    for job, option in _chosen(instance, plan):
        goodput = _goodput(job, option)
        ratio = goodput / min(each.goodput for each in job.configurations)
        shown = (job.id, option.type, option.gpus, goodput, ratio, option.cost)
        rows.append((*shown, _change(job, option) == "restarts"))
    columns = ["job", "type", "gpus", "goodput", "ratio", "cost", "restarts"]
    return pd.DataFrame(rows, columns=columns)


def summary(instance: SiaInstance, result: Result) -> dict[str, str]:
    """Return the figures that go with a plan, as text."""
    plan = result.plan
    assert isinstance(plan, SiaPlan)
    chosen, used = _chosen(instance, plan), feasibility.used(plan)
    runs = sum(option.type is not None for _, option in chosen)
    rows = {objective_name(instance): figure(feasibility.objective(instance, plan))}
    rows["jobs that run"] = f"{runs} of {len(chosen)}"
    rows["GPUs used"] = ", ".join(f"{used[t]} of {n} {t}" for t, n in instance.gpus.items())
    changes = [_change(job, option) for job, option in chosen if job.current is not None]
    if changes:
        counts = f"{changes.count('keeps')} keep their GPUs, {changes.count('restarts')} restart"
        rows["running jobs"] = f"{counts}, {changes.count('stops')} stop"
    return rows


def headline(instance: SiaInstance) -> dict[str, str]:
    """Return in a few words what an instance asks for, by column of a list of instances."""
    return {
        "GPUs": " + ".join(f"{gpus} {name}" for name, gpus in instance.gpus.items()),
        "jobs": str(len(instance.jobs)),
        "configurations": str(sum(len(job.configurations) for job in instance.jobs)),
        "running": str(sum(job.current is not None for job in instance.jobs)),
    }


def decisions(instance: SiaInstance, plan: SiaPlan) -> list[dict[str, str]]:
    """Return one row for each job; of many, for the jobs that cost most."""
    chosen = _chosen(instance, plan)
    if len(chosen) > SHOWN:
        chosen.sort(key=lambda pair: -pair[1].cost)
    rows = [_decision(job, option) for job, option in chosen[:SHOWN]]
    rest = chosen[SHOWN:]
    if rest:
        gpus = sum(option.gpus for _, option in rest)
        first = {"job": f"... and {len(rest)} that cost less", "GPUs": str(gpus)}
        rows.append(dict.fromkeys(rows[0], "") | first)
    return rows


def objective_unit(instance: SiaInstance) -> str:
    """Return the unit: costs are powers of ratios, 1 for a job's least goodput."""
    return "cost"


def objective_name(instance: SiaInstance) -> str:
    """Return what the objective is called."""
    return "total cost"


def _chosen(instance: SiaInstance, plan: SiaPlan) -> list[tuple[SiaJob, RoundOption]]:
    return list(zip(instance.jobs, feasibility.chosen_options(instance, plan), strict=True))


def _goodput(job: SiaJob, option: RoundOption) -> float:
    for each in job.configurations:
        if (each.type, each.gpus) == (option.type, option.gpus):
            return each.goodput
    return 0.0


def _change(job: SiaJob, option: RoundOption) -> str:
    if job.current is None:
        return "waits" if option.type is None else "starts"
    if option.type is None:
        return "stops"
    is_kept = (option.type, option.gpus) == (job.current.type, job.current.gpus)
    return "keeps" if is_kept else "restarts"


def _decision(job: SiaJob, option: RoundOption) -> dict[str, str]:
    goodput = _goodput(job, option)
    return {
        "job": job.id,
        "type": option.type or "none",
        "GPUs": str(option.gpus),
        "goodput": f"{goodput:,.4g}" if option.type else "",
        "cost": f"{option.cost:.2f}",
        "now": _change(job, option),
    }
