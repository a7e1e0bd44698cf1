"""The exact methods of BOA: Lagrangian dual, gap closing, certificate (Geoffrion, 1974)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from optsched.boa.arrays import (
    Arrays,
    Choice,
    arrays,
    priced_total,
    surely_within,
    to_plan,
    widths_of,
)
from optsched.boa.exact import continuous
from optsched.boa.exact.continuous import infeasible, nearest_below
from optsched.boa.exact.gap_closing import Closed, close
from optsched.boa.exact.lagrangian_dual import LIMIT_TOLERANCE, Dual, maximise, respond
from optsched.boa.exact.mixed_widths import offer_mixture
from optsched.boa.instance import BoaInstance
from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from optsched.search import Infeasible
from optsched.solving import SolverDisagreement
from optsched.verification import ROUNDING, relative_gap

if TYPE_CHECKING:
    from optsched.search import Search

# What is subtracted for each phase, relative to the sum, from a bound that rests on sums of floats,
# so that exact arithmetic confirms it: a few roundings.
SAFETY = 1e-15
VALUE_TOLERANCE = 1e-10  # rounding that matters, relative to the value
# The verifier compares exactly, and so keeps some more labels than floats did; it follows so many
# times theirs, and these.
LABELS_MORE, LABELS_LEAST = 2, 10_000
# Why a gap stays open where the method is through with all else.
ROUNDED = "what is left of it is the rounding of floats"
# Figures of two solvers that differ by more than this, relatively, contradict each other.
DISAGREEMENT = 1e-6


def exact(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Solve to proven optimality: by the price alone, or by the price and labels for integers.

    Source: EPEW'24 problem (3); docs/math/boa.md, Lagrangian dual and Gap closing.
    """
    search.gave_up = ROUNDED
    if instance.widths != "integer":
        return certify(instance, search)
    problem, dual = _dual(instance, search)
    idle = _idle_widths(instance, dual.price)
    best: list[Choice] = []  # is offered at the end: a whole check takes as long as the search

    def accept(chosen: Choice) -> bool:
        if not surely_within(problem, chosen):
            return search.offer(_plan(instance, problem, chosen, idle))
        best[:] = [min([chosen, *best], key=lambda candidate: candidate.value)]
        return True

    search.certificate = certificate(instance, dual.price, problem)
    try:
        closed = close(problem, dual, search.gap, accept, search.out_of_time)
    finally:
        for chosen in best:
            search.offer(_plan(instance, problem, chosen, idle))
    search.gave_up = closed.gave_up or ROUNDED
    if closed.best is None:
        return search.certificate
    return enumerated(instance, search.certificate, closed)


def certify(instance: BoaInstance, search: Search, problem: Arrays | None = None) -> BoaCertificate:
    """Certify the price's bound, for any plan; offer the plan that comes with the price.

    Parameters
    ----------
    problem
        The arrays of the instance, if they are at hand and its widths are not continuous.

    Raises
    ------
    Infeasible
        If not even the least use keeps within the limit.
    """
    if instance.widths == "continuous":
        return certificate(instance, continuous.solve(instance, search))
    problem, dual = _dual(instance, search, problem)
    idle = _idle_widths(instance, dual.price)
    if instance.widths == "mixed":
        widths = partial(_widths, instance, problem, idle)
        offer_mixture(instance, search, problem, dual, widths)
    else:
        search.offer(_plan(instance, problem, dual.within, idle))
    return certificate(instance, dual.price, problem)


def proven_mixture(search: Search, problem: Arrays) -> tuple[BoaPlan, BoaCertificate] | None:
    """Return the optimal plan of mixed widths and its certificate, if rounding leaves no gap."""
    instance = search.instance
    assert isinstance(instance, BoaInstance)
    try:
        proof_of_plan = certify(instance, search, problem)
    except Infeasible:
        return None
    gap = relative_gap(search.objective, proof_of_plan.bound)
    if not isinstance(search.plan, BoaPlan) or gap is None or gap > ROUNDING:
        return None
    return search.plan, proof_of_plan


def prove_integer(instance: BoaInstance, search: Search, value: float) -> BoaCertificate:
    """Certify a lower bound that another solver claims, as far as it is true; offer no plan.

    Whatever lies below the claim is enumerated, as if a plan of that value were known. For mixed
    widths the price alone proves the optimum.

    Parameters
    ----------
    value
        A claimed lower bound on the objective, in its unit.

    Raises
    ------
    SolverDisagreement
        If a plan lies below the claim by more than a solver's tolerances.
    """
    problem, dual = _dual(instance, search)
    if instance.widths == "mixed":
        return certificate(instance, dual.price, problem)
    divisor = float(feasibility.objective_divisor(instance))
    claim = dual.within._replace(value=max(value * divisor, dual.bound))
    idle = _idle_widths(instance, dual.price)

    def accept(chosen: Choice) -> bool:
        if chosen is claim:
            return True
        return not feasibility.violations(instance, _plan(instance, problem, chosen, idle))

    closed = close(problem, dual._replace(within=claim), 0.0, accept, search.out_of_time)
    if closed.best is not None and closed.best.value < claim.value * (1 - DISAGREEMENT):
        raise SolverDisagreement(
            f"{instance.name}: the lower bound {value!r} is claimed, "
            f"but a plan has {closed.best.value / divisor!r}"
        )
    return enumerated(instance, certificate(instance, dual.price, problem), closed)


def certificate(
    instance: BoaInstance, price: float, problem: Arrays | None = None
) -> BoaCertificate:
    """Write the certificate of a price, its exact priced total, and the bound that follows."""
    exact_price, total, rescaled = Fraction(price), 0, instance
    if problem is not None:
        total = priced_total(instance, problem, exact_price)
        rescaled = instance.model_copy(
            update={"classes": tuple(c for c in instance.classes if c.rescale_s)}
        )
    total += proof.priced_total(rescaled, exact_price)
    value = Fraction(total, feasibility.SCALE * exact_price.denominator)
    value -= exact_price * feasibility.limit(instance)
    bound = max(nearest_below(value / feasibility.objective_divisor(instance)), 0.0)
    priced = str(total // exact_price.denominator)
    return BoaCertificate(kind="price", price=price, priced_total=priced, bound=bound, labels=0)


def enumerated(instance: BoaInstance, of_price: BoaCertificate, closed: Closed) -> BoaCertificate:
    """Raise the bound of a price's certificate to one on the value, that labels in floats gave.

    Where the price is so steep that rounding could spoil the bound, the verifier decides on it.
    """
    value = closed.bound
    rounding = SAFETY * (_phases(instance) + 10)
    rounding *= value + of_price.price * float(feasibility.limit(instance))
    divisor = float(feasibility.objective_divisor(instance))
    safe = _raised(of_price, (value - rounding) / divisor, closed.labels)
    if rounding <= VALUE_TOLERANCE * value:
        return safe
    sharp = _raised(of_price, value * (1 - VALUE_TOLERANCE) / divisor, closed.labels)
    return safe if proof.prove(instance, sharp) else sharp


def _phases(instance: BoaInstance) -> int:
    return sum(len(job_class.phases) for job_class in instance.classes)


def _raised(of_price: BoaCertificate, bound: float, labels: int) -> BoaCertificate:
    if bound <= (of_price.bound or 0.0):
        return of_price
    most = LABELS_MORE * labels + LABELS_LEAST
    return of_price.model_copy(update={"bound": bound, "labels": most})


def _dual(
    instance: BoaInstance, search: Search, problem: Arrays | None = None
) -> tuple[Arrays, Dual]:
    """Return the arrays and the best price, with a plan `within` that is exactly within the limit.

    The search adds up floats, so its plan may lie a rounding beyond the limit; then the limit is
    moved by a tolerance for the search, and only for it.
    """
    problem = problem or arrays(instance)
    idle = _idle_widths(instance, 0.0)
    dual = None
    for tolerance in (0.0, -LIMIT_TOLERANCE, LIMIT_TOLERANCE):
        moved = problem.limit * (1 + tolerance)
        shifted = maximise(replace(problem, limit=moved), search.out_of_time)
        if shifted is None:
            continue
        dual = shifted._replace(bound=shifted.bound - shifted.price * (problem.limit - moved))
        if surely_within(problem, dual.within):
            return problem, dual
        if not feasibility.violations(instance, _plan(instance, problem, dual.within, idle)):
            return problem, dual
    if dual is None or proof.least_use(instance) > feasibility.limit(instance):
        raise infeasible(instance)
    cheapest = respond(problem, math.inf)
    return problem, dual._replace(within=cheapest, beyond=cheapest)


# --- from choices to plans --------------------------------------------------------------------


def _idle_widths(instance: BoaInstance, price: float) -> list[list[float]]:
    """Return the widths of classes in which no job arrives; a price does not ask for rates."""
    rates = [0.0 if job_class.arrival_rate_per_h else 1.0 for job_class in instance.classes]
    if not any(rates):
        return []
    problem = arrays(instance, rates)
    return widths_of(instance, problem, respond(problem, price))


def _widths(
    instance: BoaInstance, problem: Arrays, idle: list[list[float]], chosen: Choice
) -> list[list[float]]:
    widths = widths_of(instance, problem, chosen)
    for i, job_class in enumerate(instance.classes):
        if not job_class.arrival_rate_per_h:
            widths[i] = idle[i]
    return widths


def _plan(
    instance: BoaInstance, problem: Arrays, chosen: Choice, idle: list[list[float]]
) -> BoaPlan:
    return to_plan(instance, [(1.0, _widths(instance, problem, idle, chosen))])
