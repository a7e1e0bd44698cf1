"""The problem PAL: its data, methods and verifier, as the rest of optsched sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.exact.memory import memory
from optsched.pal.greedy.rules import RULES, SC24
from optsched.pal.instance import PalInstance
from optsched.pal.plan import PalCertificate, PalPlan
from optsched.pal.settings import SETTINGS
from optsched.pal.verify import certificate as proof
from optsched.pal.verify import feasibility
from optsched.pal.view.tables import (
    decisions,
    frame,
    headline,
    objective_name,
    objective_unit,
    summary,
)
from optsched.registry import Method, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from optsched.search import Search


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify a bound for any plan, or that there is none; of large clusters without prices."""
    from optsched.pal.exact import solver as exact
    from optsched.pal.exact.smallest_first import stronger
    from optsched.pal.greedy import fast_fallback

    is_large = len(instance.free_gpus) > SETTINGS.large_gpus
    certificate = fast_fallback.certify(instance, search) if is_large else None
    certificate = certificate or exact.certify(instance, search)
    return None if certificate is None else stronger(instance, search, certificate)


def plot(instance: PalInstance, plan: PalPlan, ax: Axes | None = None) -> Axes:
    """Draw the topology with the jobs on it; see `optsched.pal.view.plot.plot`."""
    from optsched.pal.view.plot import plot as draw

    return draw(instance, plan, ax)


def _methods() -> Iterator[Method]:
    yield Method(
        "exact",
        "exact",
        "type chains by HiGHS, rounding, branch and bound with prices",
        SC24,
        "optsched.pal.decomposition.solver:by_size",
        counts_programs=True,
    )
    yield Method(
        "milp",
        "exact",
        "the Pyomo formulation of models/pal.py, solved by HiGHS",
        SC24,
        "optsched.pal.milp:milp",
    )
    yield Method(
        "decomposition",
        "exact",
        "large clusters: parts by themselves, a bound by prices for the whole",
        "optsched; parts as in POP, SOSP'21",
        "optsched.pal.decomposition.solver:by_blocks",
    )
    yield Method(
        "node-classes",
        "exact",
        "many nodes of few classes: patterns of a node, a bound by aggregated nodes",
        "optsched; patterns as in cutting stock, Gilmore and Gomory 1961",
        "optsched.pal.node_classes.solver:by_node_class",
    )
    yield from RULES


METHODS = tuple(_methods())


def greedy_s(instance: PalInstance) -> float:
    """Return about how many CPU seconds packed-sticky takes."""
    return 1.6e-7 * len(instance.free_gpus) * len(instance.jobs)


PROBLEM = Problem(
    name="pal",
    title="PAL: which GPUs for each job",
    instance=PalInstance,
    plan=PalPlan,
    certificate=PalCertificate,
    methods=METHODS,
    specification="optsched.models.pal",
    reasons="optsched.pal.view.explain",
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
    plot=plot,
)
