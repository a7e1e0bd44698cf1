"""The exact methods of BOA: Lagrangian dual, gap closing, certificate (Geoffrion, 1974)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from optsched.boa.arrays import (
    BoaArrays,
    WidthChoice,
    arrays,
    options_chosen,
    surely_within,
    to_plan,
)
from optsched.boa.exact.certificate_writer import (
    certificate,
    enumerated,
    infeasible,
    least_use,
)
from optsched.boa.exact.gap_closing import close, rounding_beside
from optsched.boa.exact.lagrangian_dual import Dual, maximise, respond
from optsched.boa.instance import BoaInstance
from optsched.boa.plan import BoaCertificate, BoaPlan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility
from optsched.registry import loaded
from optsched.search import Infeasible
from optsched.verification import ROUNDING, relative_gap

if TYPE_CHECKING:
    from optsched.search import Search

# Why a gap stays open where the method is through with all else.
ROUNDED = "what is left of it is the rounding of floats"
# What widths other than whole ones ask for: the price, or the plan that comes with it.
OTHER_WIDTHS = {
    "continuous": "optsched.boa.exact.continuous:solve",
    "mixed": "optsched.boa.exact.mixed_widths:offer_mixture",
}


def exact(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Solve to proven optimality: by the price alone, or by the price and labels for integers.

    Source: EPEW'24 problem (3); docs/math/boa.md, Lagrangian dual and Gap closing.
    """
    search.gave_up = ROUNDED
    if instance.widths != "integer":
        return certify(instance, search)
    problem, dual = _dual(instance, search)
    idle = _idle_options(instance, dual.price)
    best: list[WidthChoice] = []  # is offered at the end: a whole check takes as long as the search

    def accept(chosen: WidthChoice) -> bool:
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
    if closed.best is None or not closed.is_enumerated:
        return search.certificate
    return enumerated(instance, search.certificate, closed.bound, closed.labels)


def certify(
    instance: BoaInstance, search: Search, problem: BoaArrays | None = None
) -> BoaCertificate:
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
        solve = loaded(OTHER_WIDTHS[instance.widths])
        return certificate(instance, solve(instance, search))
    problem, dual = _dual(instance, search, problem)
    idle = _idle_options(instance, dual.price)
    if instance.widths == "mixed":
        widths = partial(_options, instance, problem, idle)
        offer_mixture = loaded(OTHER_WIDTHS[instance.widths])
        offer_mixture(instance, search, problem, dual, widths)
    else:
        search.offer(_plan(instance, problem, dual.within, idle))
    return certificate(instance, dual.price, problem)


def proven_mixture(search: Search, problem: BoaArrays) -> tuple[BoaPlan, BoaCertificate] | None:
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

    Returns
    -------
    BoaCertificate
        Of the price alone if a plan lies below the claim, by more than a solver's tolerances.
    """
    problem, dual = _dual(instance, search)
    if instance.widths == "mixed":
        return certificate(instance, dual.price, problem)
    divisor = float(feasibility.objective_divisor(instance))
    least = dual.bound - rounding_beside(problem, dual.price, dual.bound)
    claim = dual.within._replace(value=max(value * divisor, least))
    idle = _idle_options(instance, dual.price)

    def accept(chosen: WidthChoice) -> bool:
        if chosen is claim:
            return True
        return not feasibility.violations(instance, _plan(instance, problem, chosen, idle))

    closed = close(problem, dual._replace(within=claim), 0.0, accept, search.out_of_time)
    if closed.best is not None and closed.best.value < claim.value * (1 - SETTINGS.disagreement):
        search.disbelieved = (
            f"HiGHS claims the bound {value!r}, but a plan has {closed.best.value / divisor!r}"
        )
    of_price = certificate(instance, dual.price, problem)
    if search.disbelieved or not closed.is_enumerated:
        return of_price
    return enumerated(instance, of_price, closed.bound, closed.labels)


def _dual(
    instance: BoaInstance, search: Search, problem: BoaArrays | None = None
) -> tuple[BoaArrays, Dual]:
    """Return the arrays and the best price, with a plan `within` that is exactly within the limit.

    The search adds up floats, so its plan may lie a rounding beyond the limit; then the limit is
    moved by a tolerance for the search, and only for it.
    """
    problem = problem or arrays(instance)
    idle = _idle_options(instance, 0.0)
    dual = None
    for tolerance in (0.0, -SETTINGS.limit_tolerance, SETTINGS.limit_tolerance):
        moved = problem.limit * (1 + tolerance)
        shifted = maximise(replace(problem, limit=moved), search.out_of_time)
        if shifted is None:
            continue
        dual = shifted._replace(bound=shifted.bound - shifted.price * (problem.limit - moved))
        if surely_within(problem, dual.within):
            return problem, dual
        if not feasibility.violations(instance, _plan(instance, problem, dual.within, idle)):
            return problem, dual
    if dual is None or least_use(instance) > feasibility.limit(instance):
        raise infeasible(instance)
    cheapest = respond(problem, math.inf)
    return problem, dual._replace(within=cheapest, beyond=cheapest)


# --- from choices to plans --------------------------------------------------------------------


def _idle_options(instance: BoaInstance, price: float) -> list[list[float]]:
    """Return the options of classes in which no job arrives; a price does not ask for rates."""
    rates = [0.0 if job_class.arrival_rate_per_h else 1.0 for job_class in instance.classes]
    if not any(rates):
        return []
    problem = arrays(instance, rates)
    return options_chosen(instance, problem, respond(problem, price))


def _options(
    instance: BoaInstance, problem: BoaArrays, idle: list[list[float]], chosen: WidthChoice
) -> list[list[float]]:
    widths = options_chosen(instance, problem, chosen)
    for i, job_class in enumerate(instance.classes):
        if not job_class.arrival_rate_per_h:
            widths[i] = idle[i]
    return widths


def _plan(
    instance: BoaInstance, problem: BoaArrays, chosen: WidthChoice, idle: list[list[float]]
) -> BoaPlan:
    return to_plan(instance, [(1.0, _options(instance, problem, idle, chosen))])
