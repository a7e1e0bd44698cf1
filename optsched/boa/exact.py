"""The exact methods of BOA: the price, what it leaves open, and the certificate."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.boa import check, continuous, proof
from optsched.boa.arrays import (
    Arrays,
    Choice,
    arrays,
    choice,
    complementary,
    to_plan,
    widths_of,
)
from optsched.boa.closing import close
from optsched.boa.plan import BoaCertificate
from optsched.boa.price import HAIR, Dual, maximise, respond
from optsched.solve import Infeasible, SolverDisagreement

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaPlan
    from optsched.solve import Search

# What is subtracted for each phase, relative to the sum, from a bound that rests on sums of floats,
# so that exact arithmetic confirms it: a few roundings.
SAFETY = 1e-15
BLUR = 1e-10  # rounding that matters, relative to the value
FLOORED = 2_000  # phases, up to which greedy plans are looked at where a gap stays open
# Figures of two solvers that differ by more than this, relatively, contradict each other.
DISAGREEMENT = 1e-6


def exact(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Solve to proven optimality: by the price alone, or by the price and labels for integers.

    Source: EPEW'24 problem (3); boa.md 1.4 items 2, 6 and 8.
    """
    if instance.widths == "continuous":
        return certify(instance, search)
    problem, dual = _dual(instance)
    idle = _idle_widths(instance, dual.price)
    if instance.widths == "mixed":
        _offer_mixture(instance, search, problem, dual, idle)
        return certificate(instance, dual.price)

    def accept(chosen: Choice) -> bool:
        return search.offer(_plan(instance, problem, chosen, idle))

    search.certificate = certificate(instance, dual.price)
    search.has_floor = _phases(instance) <= FLOORED  # greedy rules take as long as all of this
    closed = close(problem, dual, search.gap, accept, search.out_of_time)
    if closed.best is None:
        return search.certificate
    return enumerated(instance, search.certificate, closed.bound)


def certify(instance: BoaInstance, search: Search) -> BoaCertificate:
    """Certify the price's bound, for any plan; offer the plan that comes with the price.

    Raises
    ------
    Infeasible
        If not even the least use keeps within the limit.
    """
    if instance.widths == "continuous":
        price = continuous.solve(instance, search)
        if price is None:
            raise _infeasible(instance)
        return certificate(instance, price)
    problem, dual = _dual(instance)
    idle = _idle_widths(instance, dual.price)
    if instance.widths == "mixed":
        _offer_mixture(instance, search, problem, dual, idle)
    else:
        search.offer(_plan(instance, problem, dual.within, idle))
    return certificate(instance, dual.price)


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
    problem, dual = _dual(instance)
    if instance.widths == "mixed":
        return certificate(instance, dual.price)
    divisor = float(check.objective_divisor(instance))
    claim = dual.within._replace(value=max(value * divisor, dual.bound))
    idle = _idle_widths(instance, dual.price)

    def accept(chosen: Choice) -> bool:
        if chosen is claim:
            return True
        return not check.violations(instance, _plan(instance, problem, chosen, idle))

    closed = close(problem, dual._replace(within=claim), 0.0, accept, search.out_of_time)
    if closed.best is not None and closed.best.value < claim.value * (1 - DISAGREEMENT):
        raise SolverDisagreement(
            f"{instance.name}: the lower bound {value!r} is claimed, "
            f"but a plan has {closed.best.value / divisor!r}"
        )
    return enumerated(instance, certificate(instance, dual.price), closed.bound)


def certificate(instance: BoaInstance, price: float) -> BoaCertificate:
    """Write the certificate of a price, its exact priced total, and the bound that follows."""
    exact_price = Fraction(price)
    total = proof.priced_total(instance, exact_price)
    value = Fraction(total, check.SCALE * exact_price.denominator)
    value -= exact_price * check.limit(instance)
    bound = max(_rounded_down(value / check.objective_divisor(instance)), 0.0)
    priced = str(total // exact_price.denominator)
    return BoaCertificate(kind="price", price=price, priced_total=priced, bound=bound)


def enumerated(instance: BoaInstance, of_price: BoaCertificate, value: float) -> BoaCertificate:
    """Raise the bound of a price's certificate to one on the value, found by labels in floats.

    Where the price is so steep that rounding could blur the bound, the judge decides on it.
    """
    rounding = SAFETY * (_phases(instance) + 10)
    rounding *= value + of_price.price * float(check.limit(instance))
    divisor = float(check.objective_divisor(instance))
    safe = _raised(of_price, (value - rounding) / divisor)
    if rounding <= BLUR * value:
        return safe
    sharp = _raised(of_price, value * (1 - BLUR) / divisor)
    return safe if proof.prove(instance, sharp) else sharp


def _phases(instance: BoaInstance) -> int:
    return sum(len(job_class.phases) for job_class in instance.classes)


def _raised(of_price: BoaCertificate, bound: float) -> BoaCertificate:
    return of_price.model_copy(update={"bound": max(of_price.bound or 0.0, bound)})


def _dual(instance: BoaInstance) -> tuple[Arrays, Dual]:
    """Return the arrays and the best price, with a plan `within` that is exactly within the limit.

    The search adds up floats, so its plan may lie a rounding beyond the limit; then the limit is
    moved by a hair for the search, and only for it.
    """
    problem = arrays(instance)
    idle = _idle_widths(instance, 0.0)
    dual = None
    for hair in (0.0, -HAIR, HAIR):
        moved = problem.limit * (1 + hair)
        found = maximise(replace(problem, limit=moved))
        if found is None:
            continue
        dual = found._replace(bound=found.bound - found.price * (problem.limit - moved))
        if not check.violations(instance, _plan(instance, problem, dual.within, idle)):
            return problem, dual
    if dual is None or proof.least_use(instance) > check.limit(instance):
        raise _infeasible(instance)
    cheapest = respond(problem, math.inf)
    return problem, dual._replace(within=cheapest, beyond=cheapest)


def _infeasible(instance: BoaInstance) -> Infeasible:
    least = proof.least_use(instance)
    figure = _rounded_down(least / check.limit_divisor(instance))
    evidence = BoaCertificate(
        kind="least", priced_total=str(math.floor(least * check.SCALE)), least=figure
    )
    shown = -_rounded_down(-least / check.limit_divisor(instance))  # enough, as a new limit
    if instance.target_mean_jct_s is not None:
        target = f"{instance.target_mean_jct_s!r} s"
        text = f"no plan reaches a mean JCT of {target}; the least is {shown!r} s"
        return Infeasible(text, evidence)
    text = f"the budget of {float(check.limit(instance))!r} GPUs is below the least possible cost"
    text += f" of {shown!r} GPUs"
    if instance.price_usd_per_gpu_h is not None:
        cost = -_rounded_down(-least * Fraction(instance.price_usd_per_gpu_h))
        text += f" ({cost!r} USD/h)"
    return Infeasible(text, evidence)


def _rounded_down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


# --- from choices to plans --------------------------------------------------------------------


def _idle_widths(instance: BoaInstance, price: float) -> list[list[float]]:
    """Return the widths of classes in which no job arrives; a price does not ask for rates."""
    rates = [0.0 if job_class.arrival_rate_per_h else 1.0 for job_class in instance.classes]
    if not any(rates):
        return []
    problem = arrays(instance, rates)
    return widths_of(instance, problem, respond(problem, price))


def _widths(
    instance: BoaInstance, problem: Arrays, chosen: Choice, idle: list[list[float]]
) -> list[list[float]]:
    widths = widths_of(instance, problem, chosen)
    for i, job_class in enumerate(instance.classes):
        if not job_class.arrival_rate_per_h:
            widths[i] = idle[i]
    return widths


def _plan(
    instance: BoaInstance, problem: Arrays, chosen: Choice, idle: list[list[float]]
) -> BoaPlan:
    return to_plan(instance, [(1.0, _widths(instance, problem, chosen, idle))])


def _offer_mixture(
    instance: BoaInstance, search: Search, problem: Arrays, dual: Dual, idle: list[list[float]]
) -> None:
    """Offer the mixture that uses up the limit: one class or free phase splits its jobs.

    All plans between `within` and `beyond` have the same priced value, so they are moved from one
    to the other part by part, and the part that would cross the limit is split (boa.md 1.4 item 6).
    """
    below, above = _neighbours(problem, dual)
    low = _widths(instance, problem, below, idle)
    high = _widths(instance, problem, above, idle)
    room, span = problem.limit - below.use, above.use - below.use
    share = min(1.0, room / span) if span > 0 else 0.0
    for step in continuous.STEPS_BACK:
        upper, lower = complementary(max(0.0, share - step))
        if search.offer(to_plan(instance, [(lower, low), (upper, high)])):
            return
    search.offer(_plan(instance, problem, dual.within, idle))


def _neighbours(problem: Arrays, dual: Dual) -> tuple[Choice, Choice]:
    """Return two choices beside the limit that differ in one class or free phase only."""
    below = dual.within
    for part in range(len(below.columns) + len(below.paths)):
        above = _moved(problem, below, dual.beyond, part)
        if above.use > problem.limit * (1 - HAIR):
            return below, above
        if above.value < below.value:
            below = above
    return below, below


def _moved(problem: Arrays, source: Choice, target: Choice, part: int) -> Choice:
    """Replace one group's column or one chain's path by that of another choice."""
    count = len(source.columns)
    if part < count:
        if source.columns[part] == target.columns[part]:
            return source
        columns = source.columns.copy()
        columns[part] = target.columns[part]
        return choice(problem, columns, source.paths)
    paths = list(source.paths)
    paths[part - count] = target.paths[part - count]
    return choice(problem, source.columns, tuple(paths))
