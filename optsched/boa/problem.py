"""The room of BOA: its nouns, methods and judge, as the rest of optsched sees them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from optsched.boa.exact.memory import memory
from optsched.boa.instance import BoaInstance
from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from optsched.boa.verify.speedup_bounds import speedup_enclosure
from optsched.documents.faults import InstanceError
from optsched.registry import Method, Problem
from optsched.results.result import figure
from optsched.solving import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from optsched.results.result import Result

AT_ONCE = 200_000  # phases times budgets, a few seconds
EPEW = "EPEW'24, arXiv 2406.15560"


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


def certify(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Certify the price's bound for any plan."""
    from optsched.boa.exact import solver as exact

    return exact.certify(instance, search)


def at_once(
    instance: BoaInstance, path: str, values: Sequence[float]
) -> list[tuple[BoaPlan, BoaCertificate] | None] | None:
    """Return the optimal plan and its certificate at every budget, for mixed widths.

    Only where rescaling is free, so that arrays of phases and widths can stand for all budgets, and
    up to `AT_ONCE` phases times budgets; None otherwise, for these are solved faster in several
    processes. None stands also for a single budget that the price does not settle: at or below the
    least possible.
    """
    from optsched.boa.arrays import arrays
    from optsched.boa.exact import solver as exact

    rescaled = any(c.rescale_s and c.arrival_rate_per_h for c in instance.classes)
    if path != "budget_gpus" or instance.widths != "mixed" or rescaled:
        return None
    if sum(len(c.phases) for c in instance.classes) * len(values) > AT_ONCE:
        return None
    try:
        for budget in (values[0], values[-1]):  # what lies in between is valid too
            instance.changed({path: budget})
    except InstanceError:
        return None
    problem = arrays(instance)
    found: list[tuple[BoaPlan, BoaCertificate] | None] = []
    for budget in values:
        search = Search(instance.model_copy(update={path: float(budget)}))
        found.append(exact.proven_mixture(search, replace(problem, limit=float(budget))))
    return found


def plot(instance: BoaInstance, plan: BoaPlan, ax: Axes | None = None) -> Axes:
    """Draw the widths; see `optsched.boa.view.plot.plot`."""
    from optsched.boa.view.plot import plot as draw

    return draw(instance, plan, ax)


def greedy_s(instance: BoaInstance) -> float:
    """Return about how many CPU seconds a greedy method takes: some microseconds a width."""
    phases = (phase for job_class in instance.classes for phase in job_class.phases)
    return 7e-6 * sum(len(phase.speedup.widths) for phase in phases)


def _greedy(name: str, summary: str, source: str, effort: int = 1) -> Method:
    function = name.replace("-", "_")
    return Method(
        name, "greedy", summary, source, f"optsched.boa.greedy.methods:{function}", effort
    )


METHODS = (
    Method(
        "exact",
        "exact",
        "price of a GPU, closed forms, and labels for integer widths",
        EPEW,
        "optsched.boa.exact.solver:exact",
    ),
    Method(
        "milp",
        "exact",
        "the Pyomo formulation of models/boa.py, solved by HiGHS",
        EPEW,
        "optsched.boa.milp:milp",
    ),
    _greedy("same-k", "the same width for every job", "policy 'dummy' of the BOA authors' code"),
    _greedy("class-width", "one width per class, the best of all", EPEW),
    _greedy("equal-share", "an equal share for every job that can use it", "mean field of EQUI"),
    _greedy("marginal", "GPUs to the largest drop in a job's time per GPU", "Optimus, EuroSys'18"),
    _greedy("efficiency", "largest width of at least a given efficiency", "common practice"),
    _greedy("pollux-like", "power mean of speedups, p = -1", "Pollux, OSDI'21"),
    _greedy("sia-like", "normalised goodput, p = -0.5", "Sia, SOSP'23"),
    _greedy(
        "boa-published",
        "hull, nearest width, 1 % shrink, random groupings",
        "BOA Constrictor's code, arXiv 2602.01404",
        effort=30,
    ),
)

PROBLEM = Problem(
    name="boa",
    title="BOA: how many GPUs to rent for each job within a budget",
    instance=BoaInstance,
    plan=BoaPlan,
    certificate=BoaCertificate,
    methods=METHODS,
    specification="optsched.models.boa",
    reasons="optsched.boa.view.explain",
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
    plot=plot,
    memory=memory,
    at_once=at_once,
)
