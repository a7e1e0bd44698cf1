"""The problem EaCO: its nouns, methods and verifier, as the rest of optsched sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.exact.memory import memory
from optsched.eaco.greedy.rules import EACO, RULES
from optsched.eaco.group_figures import JOULES_PER_KWH
from optsched.eaco.instance import EacoInstance
from optsched.eaco.plan import EacoCertificate, EacoPlan
from optsched.eaco.verify import certificate as proof
from optsched.eaco.verify import feasibility
from optsched.eaco.view.summary import headline, objective_name, objective_unit, summary
from optsched.eaco.view.tables import decisions, frame
from optsched.registry import Method, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from optsched.search import Search


def gap_scale(instance: EacoInstance) -> float:
    """Return what an epoch costs at most; in it energy and credits for work may cancel."""
    if instance.objective != "epoch":
        return 0.0
    gpus = {gpu.id: gpu.power.peak_w for gpu in instance.gpu_types}
    watts = sum(n.count * (n.gpus * gpus[n.gpu] + n.power.base_w) for n in instance.nodes)
    price = instance.price_usd_per_kwh or instance.carbon_g_per_kwh or 1.0
    return watts * (instance.epoch_s or 0.0) / JOULES_PER_KWH * price


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
        counts_programs=True,
    )
    yield Method(
        "columns",
        "exact",
        "groups found as prices ask for them, by column generation",
        EACO,
        "optsched.eaco.exact.large_scale:columns",
        counts_programs=True,
    )
    yield Method(
        "milp",
        "exact",
        "the Pyomo formulation of models/eaco.py, solved by HiGHS",
        EACO,
        "optsched.eaco.milp:milp",
    )
    yield from RULES
    yield Method(
        "local-search",
        "greedy",
        "moves and swaps, from the best of the simple rules",
        "optsched",
        "optsched.eaco.greedy.methods:local_search",
        320,
    )


METHODS = tuple(_methods())


def greedy_s(instance: EacoInstance) -> float:
    """Return about how many CPU seconds fifo-exclusive takes."""
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
