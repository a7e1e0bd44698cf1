"""The problem BOA: its data, methods and verifier, as the rest of optsched sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from optsched.boa.exact.memory import memory
from optsched.boa.instance import BoaInstance
from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from optsched.boa.view.tables import (
    decisions,
    frame,
    headline,
    objective_name,
    objective_unit,
    summary,
)
from optsched.documents.faults import InstanceError
from optsched.registry import Method, Problem
from optsched.search import Search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


EPEW = "EPEW'24, arXiv 2406.15560"


def certify(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Certify the price's bound for any plan."""
    from optsched.boa.exact import solver as exact

    return exact.certify(instance, search)


def at_once(
    instance: BoaInstance, path: str, values: Sequence[float]
) -> list[tuple[BoaPlan, BoaCertificate] | None] | None:
    """Return the optimal plan and its certificate at every budget, for mixed widths.

    Only where rescaling is free, so that arrays of phases and widths can stand for all budgets, and
    up to `SETTINGS.at_once` phases times budgets; None otherwise, for these are solved faster in
    several processes. None stands also for a single budget that the price does not settle: at or
    below the least possible.
    """
    from optsched.boa.arrays import arrays
    from optsched.boa.exact import solver as exact

    rescaled = any(instance.charges_starts(c) and c.arrival_rate_per_h for c in instance.classes)
    if path != "budget_gpus" or instance.widths != "mixed" or rescaled:
        return None
    if sum(len(c.phases) for c in instance.classes) * len(values) > SETTINGS.at_once:
        return None
    try:
        for budget in (values[0], values[-1]):  # what lies in between is valid too
            instance.changed({path: budget})
    except InstanceError:
        return None
    problem = arrays(instance)
    proven: list[tuple[BoaPlan, BoaCertificate] | None] = []
    for budget in values:
        search = Search(instance.model_copy(update={path: float(budget)}))
        proven.append(exact.proven_mixture(search, replace(problem, limit=float(budget))))
    return proven


def plot(instance: BoaInstance, plan: BoaPlan, ax: Axes | None = None) -> Axes:
    """Draw the widths; see `optsched.boa.view.plot.plot`."""
    from optsched.boa.view.plot import plot as draw

    return draw(instance, plan, ax)


def greedy_s(instance: BoaInstance) -> float:
    """Return about how many CPU seconds a greedy method takes: some microseconds an option."""
    return 7e-6 * sum(map(instance.option_count, instance.classes))


def _greedy(
    name: str, summary: str, source: str, effort: int = 1, module: str = "greedy.methods"
) -> Method:
    entry = f"optsched.boa.{module}:{name.replace('-', '_')}"
    return Method(name, "greedy", summary, source, entry, effort)


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
    _greedy(
        "class-width",
        "one width per class, the best of all",
        EPEW,
        module="exact.one_width_per_class",
    ),
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
