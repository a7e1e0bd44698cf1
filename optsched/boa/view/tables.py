"""Plans of BOA as tables, and the texts that go with them."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.verify import feasibility
from optsched.boa.verify.options import sources
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
        Columns: class, phase, share (of the jobs), offer (if there are several), gpus, speedup
        (with interruptions), seconds (mean time in the phase, without rescaling).
    """
    import pandas as pd

    classes = {c.id: c for c in instance.classes}
    rows = []
    for class_plan in plan.classes:
        for e, phase in enumerate(classes[class_plan.id].phases):
            shares: dict[tuple[str, float], float] = {}
            for sequence in class_plan.sequences:
                option = sequence.offers[e] if sequence.offers else "", sequence.gpus[e]
                shares[option] = shares.get(option, 0.0) + sequence.share
            found = sources(instance, classes[class_plan.id], phase)
            of_offer = {source.offer.id if source.offer else "": source for source in found}
            for (offer, k), share in sorted(shares.items()):
                top, bottom = of_offer[offer].speeds(k)[0]
                speedup = float(Fraction(top, bottom))
                seconds = phase.work_gpu_s / speedup
                rows.append((class_plan.id, e, share, offer, k, speedup, seconds))
    columns = ["class", "phase", "share", "offer", "gpus", "speedup", "seconds"]
    table = pd.DataFrame(rows, columns=columns)
    return table if instance.offers is not None else table.drop(columns="offer")


def summary(instance: BoaInstance, result: Result) -> dict[str, str]:
    """Return the figures that go with a plan, as text."""
    plan = result.plan
    assert isinstance(plan, BoaPlan)
    figures = feasibility.performance(instance, plan)
    rows = {}
    if instance.budget is not None:
        rows["budget"] = f"{float(instance.budget):,.6g} {instance.rent_unit}"
        if instance.offers is None and instance.budget_usd_per_h is not None:
            rows["budget"] += f" ({instance.budget_usd_per_h:,.6g} USD/h)"
    else:
        rows["target"] = f"{instance.target_mean_jct_s:,.6g} s mean JCT"
    rows["mean JCT"] = f"{figure(figures.mean_jct_s)} s"
    deviation = figures.variance_gpus**0.5
    rented = f"{figure(figures.mean_gpus)} on average, standard deviation {deviation:,.2f}"
    if instance.price_usd_per_gpu_h is not None:
        rented += f", {figure(figures.mean_gpus * instance.price_usd_per_gpu_h)} USD/h"
    if instance.offers is not None:
        rented += f", {figure(figures.mean_rent)} USD/h"
    rows["GPUs rented"] = rented
    rows["jobs in system"] = f"{figure(figures.mean_jobs)} on average"
    certificate = result.certificate
    if isinstance(certificate, BoaCertificate):
        one = "GPU" if instance.offers is None else instance.rent_unit
        unit = f"jobs per {one}" if instance.budget is not None else f"{instance.rent_unit} per job"
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
    if instance.offers is not None:
        limit += f", {len(instance.offers)} offers"
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
            if sequence.offers is None:
                rows.append(row | {"GPUs x phases, in order": _runs(sequence.gpus)})
            else:
                pairs = tuple(zip(sequence.gpus, sequence.offers, strict=True))
                rows.append(row | {"GPUs of offer x phases, in order": _offered_runs(pairs)})
    return rows


def _runs(gpus: tuple[float, ...]) -> str:
    runs = [(k, len(list(run))) for k, run in groupby(gpus)]
    return ", ".join(f"{k:.7g} x {count}" for k, count in runs)


def _offered_runs(pairs: tuple[tuple[float, str], ...]) -> str:
    runs = [(pair, len(list(run))) for pair, run in groupby(pairs)]
    return ", ".join(f"{k:.7g} of {offer} x {count}" for (k, offer), count in runs)


def objective_unit(instance: BoaInstance) -> str:
    """Return "s" for a mean JCT, or the unit of rent where that is the target."""
    return "s" if instance.target_mean_jct_s is None else instance.rent_unit


def objective_name(instance: BoaInstance) -> str:
    """Return what the objective is called: the mean JCT, or the rent where that is the target."""
    if instance.target_mean_jct_s is None:
        return "mean JCT"
    return "mean number of GPUs" if instance.offers is None else "mean rent"
