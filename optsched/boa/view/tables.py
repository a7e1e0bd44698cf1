"""Plans of BOA as tables, and the texts that go with them."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.verify import feasibility
from optsched.boa.verify.speedup_bounds import speedup_enclosure
from optsched.results.result import figure

if TYPE_CHECKING:
    import pandas as pd

    from optsched.boa.instance import BoaInstance
    from optsched.results.result import Result


def frame(instance: BoaInstance, plan: BoaPlan) -> pd.DataFrame:
    """Return one row for each class, phase and width that is used.

    Returns
    -------
    pandas.DataFrame
        Columns: class, phase, share (of the jobs), gpus, speedup, seconds (mean time in the phase,
        without rescaling).
    """
    import pandas as pd

    classes = {c.id: c for c in instance.classes}
    rows = []
    for class_plan in plan.classes:
        for e, phase in enumerate(classes[class_plan.id].phases):
            shares: dict[float, float] = {}
            for sequence in class_plan.sequences:
                k = sequence.gpus[e]
                shares[k] = shares.get(k, 0.0) + sequence.share
            for k, share in sorted(shares.items()):
                speedup = float(speedup_enclosure(phase.speedup, Fraction(k))[0])
                seconds = phase.work_gpu_s / speedup
                rows.append((class_plan.id, e, share, k, speedup, seconds))
    columns = ["class", "phase", "share", "gpus", "speedup", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def summary(instance: BoaInstance, result: Result) -> dict[str, str]:
    """Return the figures that go with a plan, as text."""
    plan = result.plan
    assert isinstance(plan, BoaPlan)
    figures = feasibility.performance(instance, plan)
    rows = {}
    if instance.budget is not None:
        rows["budget"] = f"{float(instance.budget):,.6g} GPUs"
        if instance.budget_usd_per_h is not None:
            rows["budget"] += f" ({instance.budget_usd_per_h:,.6g} USD/h)"
    else:
        rows["target"] = f"{instance.target_mean_jct_s:,.6g} s mean JCT"
    rows["mean JCT"] = f"{figure(figures.mean_jct_s)} s"
    deviation = figures.variance_gpus**0.5
    rented = f"{figure(figures.mean_gpus)} on average, standard deviation {deviation:,.2f}"
    if instance.price_usd_per_gpu_h is not None:
        rented += f", {figure(figures.mean_gpus * instance.price_usd_per_gpu_h)} USD/h"
    rows["GPUs rented"] = rented
    rows["jobs in system"] = f"{figure(figures.mean_jobs)} on average"
    certificate = result.certificate
    if isinstance(certificate, BoaCertificate):
        unit = "jobs per GPU" if instance.budget is not None else "GPUs per job"
        rows["price mu"] = f"{certificate.price:.6g} {unit}"
    return rows


def headline(instance: BoaInstance) -> dict[str, str]:
    """Return in a few words what an instance asks for, by column of a list of instances."""
    if instance.target_mean_jct_s is not None:
        limit = f"JCT {instance.target_mean_jct_s:,.6g} s"
    elif instance.budget_usd_per_h is not None:
        limit = f"{instance.budget_usd_per_h:,.6g} USD/h"
    else:
        limit = f"{instance.budget_gpus:,.6g} GPUs"
    phases = sum(len(job_class.phases) for job_class in instance.classes)
    return {
        "limit": limit,
        "widths": instance.widths,
        "classes": str(len(instance.classes)),
        "phases": str(phases),
    }


def decisions(instance: BoaInstance, plan: BoaPlan) -> list[dict[str, str]]:
    """Return one row for each class and share of its jobs, its phases as runs of equal width."""
    mixed = any(len(class_plan.sequences) > 1 for class_plan in plan.classes)
    rows = []
    for class_plan in plan.classes:
        for sequence in sorted(class_plan.sequences, key=lambda s: -s.share):
            row = {"class": class_plan.id}
            if mixed:
                row["jobs"] = f"{100 * sequence.share:.4g} %"
            rows.append(row | {"GPUs x phases, in order": _runs(sequence.gpus)})
    return rows


def _runs(gpus: tuple[float, ...]) -> str:
    runs = [(k, len(list(run))) for k, run in groupby(gpus)]
    return ", ".join(f"{k:.7g} x {count}" for k, count in runs)


def objective_unit(instance: BoaInstance) -> str:
    """Return "s" for a mean JCT, or "GPUs" where that is the target."""
    return "s" if instance.target_mean_jct_s is None else "GPUs"


def objective_name(instance: BoaInstance) -> str:
    """Return what the objective is called: the mean JCT, or the GPUs where that is the target."""
    return "mean JCT" if instance.target_mean_jct_s is None else "mean number of GPUs"
