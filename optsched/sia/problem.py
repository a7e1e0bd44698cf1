"""The problem Sia: its data, methods and verifier, as the rest of optsched sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.registry import Method, Problem
from optsched.sia.arrays import knapsack
from optsched.sia.instance import SiaInstance
from optsched.sia.memory import memory
from optsched.sia.plan import SiaPlan
from optsched.sia.verify import certificate as proof
from optsched.sia.verify import feasibility
from optsched.sia.verify.certificate import ChoiceCertificate
from optsched.sia.view.tables import (
    decisions,
    frame,
    headline,
    objective_name,
    objective_unit,
    summary,
)

if TYPE_CHECKING:
    from optsched.search import Search
    from optsched.verification import BrokenRule

SOSP23 = "Sia, SOSP'23"
SOLVER, GREEDY = "optsched.sia.solver", "optsched.sia.greedy.methods"


def certify(instance: SiaInstance, search: Search) -> ChoiceCertificate:
    """Certify a bound for any plan by prices, or that there is none."""
    from optsched.sia import solver

    return solver.certify(instance, search)


def prove(instance: SiaInstance, certificate: ChoiceCertificate) -> list[BrokenRule]:
    """Return every reason why a certificate does not prove what it states."""
    return proof.prove(knapsack(instance), certificate)


def proof_terms(instance: SiaInstance, certificate: ChoiceCertificate) -> int:
    """Return how many options are priced: in each leaf, and for each row of an enumeration.

    Partial plans that an enumeration goes through cannot be counted beforehand; the verifier gives
    up after `optsched.sia.verify.enumeration.MOST_SUMS`.
    """
    rows = sum(len(getattr(node, "rows", (node,))) for node in certificate.nodes)
    return rows * sum(map(len, instance.options)) * len(instance.gpus)


def greedy_s(instance: SiaInstance) -> float:
    """Return about how many CPU seconds a greedy rule takes: some microseconds an option."""
    return 3e-6 * sum(len(job.configurations) for job in instance.jobs)


METHODS = (
    Method(
        "exact",
        "exact",
        "branch and bound on the linear program, begun with the last round's basis",
        SOSP23,
        f"{SOLVER}:exact",
        counts_programs=True,
    ),
    Method(
        "milp",
        "exact",
        "the Pyomo formulation of models/sia.py, solved by HiGHS",
        SOSP23,
        "optsched.sia.milp:milp",
    ),
    Method(
        "in-order",
        "greedy",
        "one job after the other takes what costs least",
        "common practice",
        f"{GREEDY}:in_order",
    ),
    Method(
        "largest-gain-first",
        "greedy",
        "the same, jobs that gain most first",
        "common practice",
        f"{GREEDY}:largest_gain_first",
    ),
    Method(
        "keep-current",
        "greedy",
        "running jobs keep their GPUs, the others as in-order",
        "common practice",
        f"{GREEDY}:keep_current",
    ),
    Method(
        "goodput-per-gpu",
        "greedy",
        "the change that saves most per GPU, again and again",
        "marginal gains, as in Optimus, EuroSys'18",
        f"{GREEDY}:goodput_per_gpu",
        effort=3,
    ),
    Method(
        "lp-rounding",
        "greedy",
        "the linear relaxation, split jobs take what fits",
        "Sinha and Zoltners, Operations Research 1979",
        f"{SOLVER}:lp_rounding",
        effort=10,
    ),
)

PROBLEM = Problem(
    name="sia",
    title="Sia: which type of GPUs, and how many, for each job in a round",
    instance=SiaInstance,
    plan=SiaPlan,
    certificate=ChoiceCertificate,
    methods=METHODS,
    specification="optsched.models.sia",
    reasons="optsched.sia.view.explain",
    objective_unit=objective_unit,
    objective_name=objective_name,
    violations=feasibility.violations,
    objective=feasibility.objective,
    certify=certify,
    prove=prove,
    proof_terms=proof_terms,
    greedy_s=greedy_s,
    frame=frame,
    summary=summary,
    headline=headline,
    decisions=decisions,
    memory=memory,
)
