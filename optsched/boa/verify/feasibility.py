"""The verifier of BOA: the rules of a plan, and its exact figures; bounds in `certificate.py`.

Integers and fractions only, no tolerances; it shares no code with the methods. Quantities are
enclosed between multiples of 2**-192; only where such an enclosure cannot decide are the exact
fractions added up.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.verify.options import Source, sources
from optsched.boa.verify.speedup_bounds import Ratio
from optsched.boa.verify.structure import figure_faults as figure_faults
from optsched.boa.verify.structure import number as number
from optsched.boa.verify.structure import structure_faults
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.instance import BoaInstance, JobClass, Phase
    from optsched.boa.plan import BoaPlan

SCALE_BITS = 192
SCALE = 1 << SCALE_BITS


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: BoaInstance, plan: BoaPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    broken = list(figure_faults(instance)) or list(structure_faults(instance, plan))
    return broken or list(_limits(instance, plan))


def _limits(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    amount, most = used(instance, plan), limit(instance)
    most_used = rounded_down(most)
    if amount.above <= most_used or (
        amount.below <= most_used and _exactly_used(instance, plan) <= most
    ):
        return
    amount_used = Fraction(amount.above, SCALE)
    if instance.budget is not None:
        unit = instance.rent_unit
        text = f"the plan rents {number(amount_used)} {unit} on average, the budget is "
        yield BrokenRule("budget", text + number(instance.budget))
    else:
        text = f"the mean JCT is {number(amount_used / instance.arrival_rate_per_s)} s, "
        yield BrokenRule("target", text + f"the target {instance.target_mean_jct_s!r} s")


# --- exact figures of a plan ------------------------------------------------------------------

# The GPUs that a job holds in one phase, or while it starts there, and their rent; then at
# least, and at most, the mean jobs there: the same object where that is rational. Plain tuples, for
# there are many.
Term = tuple[Ratio, Ratio, Ratio, Ratio]


class Enclosed(NamedTuple):
    """Multiples of 2**-192 at or below, and at or above, a quantity."""

    below: int
    above: int


class BoaPerformance(NamedTuple):
    """Figures of a plan, each the float nearest to the exact value.

    With Poisson arrivals the rented GPUs have the given variance (EPEW'24: classes are M/G/infinity
    tandems, insensitive to the distribution of sizes). The rent is in `BoaInstance.rent_unit`: mean
    GPUs once more, or with offers USD/h.
    """

    mean_jct_s: float
    mean_gpus: float
    mean_jobs: float
    variance_gpus: float
    mean_rent: float


def performance(instance: BoaInstance, plan: BoaPlan) -> BoaPerformance:
    """Return the figures of a plan that breaks no rule of structure (EPEW'24, lemmas 2 and 3).

    Examples
    --------
    >>> import optsched
    >>> hand = optsched.read("boa/hand")
    >>> optsched.boa.performance(hand, optsched.solve(hand).plan).mean_gpus
    2.3026315789473686
    """
    jobs = gpus = variance = rented = 0
    for (top, bottom), rent, least, most in _terms(instance, plan):
        middle = _middle(least, most)
        jobs += middle
        gpus += middle * top // bottom
        variance += middle * top**2 // bottom**2
        rented += middle * rent[0] // rent[1]
    rented += sum((top << SCALE_BITS) // bottom for top, bottom in _paid_idle(instance, plan))
    return BoaPerformance(
        mean_jct_s=float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s),
        mean_gpus=float(Fraction(gpus, SCALE)),
        mean_jobs=float(Fraction(jobs, SCALE)),
        variance_gpus=float(Fraction(variance, SCALE)),
        mean_rent=float(Fraction(rented, SCALE)),
    )


def objective(instance: BoaInstance, plan: BoaPlan) -> float:
    """Return mean JCT in seconds, or the mean rent where the JCT is the target."""
    if instance.budget is None:
        return performance(instance, plan).mean_rent
    middles = [_middle(least, most) for _, _, least, most in _terms(instance, plan)]
    ends = (sum(middles), sum(middles) + len(middles))  # each was rounded down by less than a unit
    low, high = (float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s) for jobs in ends)
    if low == high:
        return low
    halves = (Fraction(*least) + Fraction(*most) for _, _, least, most in _terms(instance, plan))
    return float(sum(halves, Fraction(0)) / 2 / instance.arrival_rate_per_s)  # as at a tie


def _middle(least: Ratio, most: Ratio) -> int:
    """Return the multiple of 2**-192 at or below the middle of two ratios."""
    (a, b), (c, d) = least, most
    if least is most:
        return (a << SCALE_BITS) // b
    return (a * d + c * b << SCALE_BITS) // (2 * b * d)


def used(instance: BoaInstance, plan: BoaPlan) -> Enclosed:
    """Return what a plan uses of the limited resource; classes may be missing from it."""
    below = above = 0
    for least, most in _used_terms(instance, plan):
        count, rest = divmod(least[0] << SCALE_BITS, least[1])
        below += count
        above += count + (rest > 0) if least is most else -((-most[0] << SCALE_BITS) // most[1])
    return Enclosed(below, above)


def _exactly_used(instance: BoaInstance, plan: BoaPlan) -> Fraction:
    """Return what a plan uses at most, without rounding: slow, for no denominator is common."""
    return sum((Fraction(*most) for _, most in _used_terms(instance, plan)), Fraction(0))


def _used_terms(instance: BoaInstance, plan: BoaPlan) -> Iterator[tuple[Ratio, Ratio]]:
    """Yield what each term uses of the limited resource, at least and at most."""
    rent_limited = instance.budget is not None
    for _, (top, bottom), least, most in _terms(instance, plan):
        if not rent_limited:
            yield least, most
            continue
        held = most[0] * top, most[1] * bottom
        yield held if least is most else (least[0] * top, least[1] * bottom), held
    if rent_limited:
        yield from ((idle, idle) for idle in _paid_idle(instance, plan))


def _terms(instance: BoaInstance, plan: BoaPlan) -> Iterator[Term]:
    for (jobs, per), phase, source, width, starts in _runs(instance, plan):
        gpus, rent = width.as_integer_ratio(), source.rent(width)
        work, unit = phase.work_gpu_s.as_integer_ratio()
        low, high = source.speeds(width)
        work, unit = jobs * work, per * unit
        least = most = work * low[1], unit * low[0]
        if high is not low:
            least = work * high[1], unit * high[0]
        yield gpus, rent, least, most
        lost, second = source.start().lost if starts else (0, 1)
        if jobs * lost:
            start = jobs * lost, per * second
            yield gpus, rent, start, start


def _paid_idle(instance: BoaInstance, plan: BoaPlan) -> Iterator[Ratio]:
    """Yield the mean rent of nodes beside what jobs take there, start by start."""
    if not any(offer.charges_starts for offer in instance.offers or ()):
        return
    for (jobs, per), _, source, width, starts in _runs(instance, plan):
        (paid, second), (top, bottom) = source.start().paid, source.rent(width)
        if starts and paid:
            yield jobs * paid * top, per * second * bottom


def _runs(
    instance: BoaInstance, plan: BoaPlan
) -> Iterator[tuple[Ratio, Phase, Source, float, bool]]:
    """Yield jobs per second, phase, where it runs, width, and whether it starts there."""
    classes = {c.id: c for c in instance.classes}
    for class_plan in plan.classes:
        job_class = classes[class_plan.id]
        arriving, hour = job_class.arrival_rate_per_h.as_integer_ratio()
        for sequence in class_plan.sequences:
            share, whole = sequence.share.as_integer_ratio()
            jobs = arriving * share, 3600 * hour * whole
            before: tuple[str | None, float] | None = None
            offers = sequence.offers or (None,) * len(sequence.gpus)
            options = zip(offers, sequence.gpus, strict=True)
            for phase, (offer, width) in zip(job_class.phases, options, strict=True):
                source = _source(instance, job_class, phase, offer)
                yield jobs, phase, source, width, (offer, width) != before
                before = offer, width


def _source(instance: BoaInstance, job_class: JobClass, phase: Phase, offer: str | None) -> Source:
    """Return where a phase runs by the id of an offer that is known to have its type."""
    found = sources(instance, job_class, phase)
    if offer is None:
        return found[0]
    return next(s for s in found if s.offer is not None and s.offer.id == offer)


def rounded_down(value: Fraction) -> int:
    """Return the multiple of 2**-192 at or below a value."""
    return (value.numerator << SCALE_BITS) // value.denominator


# --- what is limited, and what the objective is ---------------------------------------------


def limit(instance: BoaInstance) -> Fraction:
    """Return the limit on the use: rent, or jobs in the system where the JCT is the target."""
    if instance.budget is not None:
        return instance.budget
    return Fraction(instance.target_mean_jct_s or 0) * instance.arrival_rate_per_s


def objective_divisor(instance: BoaInstance) -> Fraction:
    """Return what the value is divided by to give the objective: lambda for JCT (Little's law)."""
    return instance.arrival_rate_per_s if instance.budget is not None else Fraction(1)


def limit_divisor(instance: BoaInstance) -> Fraction:
    """Return what the use is divided by to give the limited resource in the instance's unit."""
    return Fraction(1) if instance.budget is not None else instance.arrival_rate_per_s
