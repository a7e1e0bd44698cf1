"""What is stated of a round, and whether it is so: every field is recomputed, or refused."""

from __future__ import annotations

from math import fsum, inf, isfinite, nextafter
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documents.faults import is_number, shown
from optsched.results.result import Status
from optsched.search import SolverDisagreement
from optsched.sia.arrays import Round
from optsched.sia.verify.certificate import ChoiceCertificate, Prices, prove, violations
from optsched.verification import ROUNDING, BrokenRule, Violation, closed, relative_gap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.sia.arrays import Indices


class Chosen(NamedTuple):
    """What was chosen in a round.

    Attributes
    ----------
    plan
        Shape (jobs,): the option of each job, by its place among its own; None without a plan.
    objective
        Its cost, recomputed from the plan.
    bound
        No plan costs less; None if there is no plan at all, or nothing is proven.
    gap
        (objective - bound) / |objective|, or / `Round.gap_scale` of the plan if that is more;
        None without a plan, or if it is beyond all floats.
    status
        "optimal" within the gap asked for, "feasible", "infeasible" (proven that there is no plan),
        or "error": no plan was found, and it is not proven that there is none.
    certificate
        What proves the bound, for `verify_round`.
    programs
        Linear programs that were solved.
    gap_limit
        The gap asked for, in [0, 1).
    """

    plan: Indices | None
    objective: float | None
    bound: float | None
    gap: float | None
    status: Status
    certificate: ChoiceCertificate
    programs: int
    gap_limit: float


def verify_round(instance: Round, chosen: Chosen) -> None:
    """Check a plan, recompute all figures and the status, and prove the bound exactly.

    The round is checked again, too, and copied, so that what it may have cached counts for nothing.

    Raises
    ------
    Violation
        With everything that is not so; nothing else is raised, whatever is in the two.
    """
    try:
        broken = _contradictions(instance, chosen)
    except Exception as error:  # what is not of the types above may raise anything
        text = f"it cannot be verified: {type(error).__name__}: {error}"
        broken = [BrokenRule("readable", text)]
    if broken:
        raise Violation("parts of the proof", broken)


def _contradictions(given: Round, chosen: Chosen) -> list[BrokenRule]:
    try:
        instance = Round(given.jobs, given.counts, given.cost, given.use, given.capacity)
    except (TypeError, ValueError) as error:
        return [BrokenRule("round", str(error))]
    certificate = ChoiceCertificate.model_validate(chosen.certificate.model_dump(warnings=False))
    broken = [*_type_faults(chosen)]
    if broken:
        return broken
    plan = None if chosen.plan is None else [index(option) for option in chosen.plan]
    broken = [] if plan is None else violations(instance, plan)
    broken += prove(instance, certificate)
    if broken:
        return broken
    expected = _stated(instance, plan, certificate, chosen.gap_limit)
    bound, objective = certificate.bound, expected["objective"]
    if objective is not None and (bound is None or bound > objective):
        return [BrokenRule("bound", f"{bound!r} is proven, but there is a plan of {objective!r}")]
    for name, value in expected.items():
        stated = getattr(chosen, name)
        if stated != value:
            broken.append(BrokenRule(name, f"stated {shown(stated)}, but it is {shown(value)}"))
    return broken


def _type_faults(chosen: Chosen) -> Iterator[BrokenRule]:
    """Yield which fields are not of their types and ranges."""
    for name in ("objective", "bound", "gap"):
        value = getattr(chosen, name)
        if value is not None and not (is_number(value) and isfinite(value)):
            yield BrokenRule(name, f"{shown(value)} is stated, which is no finite number")
    if not (is_number(chosen.gap_limit) and 0 <= chosen.gap_limit < 1):
        yield BrokenRule("gap_limit", f"{shown(chosen.gap_limit)} is not in [0, 1)")
    programs = chosen.programs
    if not isinstance(programs, int) or isinstance(programs, bool) or programs < 0:
        yield BrokenRule("programs", f"{shown(programs)} is no count")
    for option in () if chosen.plan is None else chosen.plan:
        if isinstance(option, bool) or not hasattr(option, "__index__"):
            yield BrokenRule("one-option", f"{shown(option)} is no number of an option")


def _stated(
    instance: Round, plan: list[int] | None, certificate: ChoiceCertificate, allowed: float
) -> dict[str, Any]:
    """Return what a plan and the bound of a certificate come to."""
    bound = certificate.bound
    if plan is None:
        status = Status.INFEASIBLE if bound is None else Status.ERROR
        return {"objective": None, "bound": bound, "gap": None, "status": status}
    objective = instance.objective(plan)
    gap = relative_gap(objective, bound, instance.gap_scale(plan))
    gap = gap if gap is not None and isfinite(gap) else None
    status = Status.OPTIMAL if closed(gap, allowed) else Status.FEASIBLE
    return {"objective": objective, "bound": bound, "gap": gap, "status": status}


def confirmed(
    instance: Round,
    plan: Indices | None,
    certificate: ChoiceCertificate,
    allowed: float,
    programs: int,
) -> Chosen:
    """Return what a solver states, as far as the verifier confirms it.

    A bound that it refuses is lowered by what floats may be off by, and else given up for what the
    cheapest options come to.

    Raises
    ------
    SolverDisagreement
        If a bound contradicts the plan.
    """
    places = None if plan is None else plan.tolist()
    if prove(instance, certificate):
        certificate = next(
            one for one in _weaker(instance, certificate) if not prove(instance, one)
        )
    figures = _stated(instance, places, certificate, allowed)
    bound, objective = certificate.bound, figures["objective"]
    if objective is not None and (bound is None or bound > objective):
        raise SolverDisagreement(f"the plan costs {objective!r}, but the bound is {bound!r}")
    return Chosen(plan, certificate=certificate, programs=programs, gap_limit=allowed, **figures)


def _weaker(instance: Round, certificate: ChoiceCertificate) -> Iterator[ChoiceCertificate]:
    """Yield certificates of lower bounds; the last one is true of every round."""
    if certificate.bound is not None:
        less = certificate.bound - ROUNDING * (1e-3 * abs(certificate.bound))
        yield ChoiceCertificate(bound=less, nodes=certificate.nodes)
    cost, ends = instance.cost.tolist(), (instance.first + instance.counts).tolist()
    least = fsum(min(cost[a:b]) for a, b in zip(instance.first.tolist(), ends, strict=True))
    nothing = Prices(prices=(0.0,) * len(instance.capacity))
    yield ChoiceCertificate(bound=nextafter(least, -inf), nodes=(nothing,))
