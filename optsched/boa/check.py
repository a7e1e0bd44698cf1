"""The judge of BOA: the rules of a plan, and its exact figures; `proof.py` judges bounds.

Integers and fractions only, no tolerances; it shares no code with the methods. Quantities are
enclosed between multiples of 2**-192; only where such an enclosure cannot decide are the exact
fractions added up.
"""

from __future__ import annotations

from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.instance import Amdahl, BoaInstance, JobClass, Speedup, Table
from optsched.check import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.plan import BoaPlan, WidthSequence

SCALE_BITS = 192
SCALE = 1 << SCALE_BITS
_DECIMAL = Context(prec=60)
_DECIMAL_ERROR = Fraction(1, 10**58)  # relative; `decimal` promises 10**-59


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: BoaInstance, plan: BoaPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    broken = list(_structure(instance, plan))
    return broken or list(_limits(instance, plan))


def _structure(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    known = {c.id: c for c in instance.classes}
    planned = Counter(c.id for c in plan.classes)
    for name in planned:
        if name not in known:
            yield BrokenRule("known-class", f"the instance has no class '{name}'")
        if planned[name] > 1:
            yield BrokenRule("one-plan-per-class", f"class '{name}' is planned more than once")
    for name in known:
        if name not in planned:
            yield BrokenRule("every-class", f"class '{name}' has no plan")
    for class_plan in plan.classes:
        if class_plan.id in known:
            yield from _sequences(instance, known[class_plan.id], class_plan.sequences)


def _sequences(
    instance: BoaInstance, job_class: JobClass, sequences: tuple[WidthSequence, ...]
) -> Iterator[BrokenRule]:
    where = f"class '{job_class.id}'"
    if instance.widths == "integer" and len(sequences) > 1:
        text = f"{where} has {len(sequences)} width sequences; widths 'integer' allow one"
        yield BrokenRule("one-width-per-phase", text)
    for sequence in sequences:
        if sequence.share < 0:
            yield BrokenRule("share-not-negative", f"{where}: share {sequence.share}")
        if len(sequence.gpus) != len(job_class.phases):
            count = len(job_class.phases)
            text = f"{where} has {count} phases, but {len(sequence.gpus)} widths are given"
            yield BrokenRule("one-width-per-phase", text)
            continue
        for e, (phase, gpus) in enumerate(zip(job_class.phases, sequence.gpus, strict=True)):
            fault = _width_fault(phase.speedup, gpus, instance.widths == "continuous")
            if fault:
                yield BrokenRule("allowed-width", f"{where}, phase {e}: {gpus} GPUs, but {fault}")
    total = sum((Fraction(sequence.share) for sequence in sequences), Fraction(0))
    if total != 1:
        yield BrokenRule("shares-sum-to-one", f"{where}: the shares sum to {float(total)!r}")


def _width_fault(speedup: Speedup, gpus: float, continuous: bool) -> str | None:
    known = speedup.measured if isinstance(speedup, Table) else speedup.widths
    if gpus in known:
        return None
    widths = speedup.widths
    if not continuous:
        listed = f"from {widths[0]} to {widths[-1]}" if isinstance(widths, range) else f"{widths}"
        return f"only the widths {listed} are possible"
    if widths[0] <= gpus <= widths[-1]:
        return None
    return f"widths from {widths[0]} to {widths[-1]} are possible"


def _limits(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    terms = used(instance, plan)
    if _at_most(terms, limit(instance)):
        return
    amount = Fraction(sum(term.above() for term in terms), SCALE)
    if instance.budget is not None:
        text = f"the plan rents {float(amount)!r} GPUs on average, the budget is "
        yield BrokenRule("budget", text + repr(float(instance.budget)))
    else:
        text = f"the mean JCT is {float(amount / instance.arrival_rate_per_s)!r} s, the target "
        yield BrokenRule("target", text + f"{instance.target_mean_jct_s!r} s")


def _at_most(terms: list[Enclosed], limit: Fraction) -> bool:
    """Decide whether the sum of the enclosed terms is surely at most the limit."""
    room = rounded_down(limit)
    if sum(term.above() for term in terms) <= room:
        return True
    if sum(term.below() for term in terms) > room:
        return False
    return sum((Fraction(*term.high) for term in terms), Fraction(0)) <= limit


# --- exact figures of a plan ------------------------------------------------------------------

Ratio = tuple[int, int]  # numerator and denominator; fractions would be reduced at every step


class Enclosed(NamedTuple):
    """A quantity between two rational numbers."""

    low: Ratio
    high: Ratio

    def below(self) -> int:
        """Return the multiple of 2**-192 at or below its lower end."""
        return (self.low[0] << SCALE_BITS) // self.low[1]

    def above(self) -> int:
        """Return the multiple of 2**-192 at or above its upper end."""
        return -((-self.high[0] << SCALE_BITS) // self.high[1])

    def middle(self) -> int:
        """Return the multiple of 2**-192 at or below the middle."""
        (a, b), (c, d) = self
        return (a * d + c * b << SCALE_BITS) // (2 * b * d)


class Term(NamedTuple):
    """Mean jobs in one phase, or rescaling for it, and the GPUs that each of them holds."""

    gpus: Ratio
    jobs: Enclosed

    def held(self) -> Enclosed:
        """Return the mean GPUs that the jobs hold."""
        (top, bottom), ((a, b), (c, d)) = self.gpus, self.jobs
        return Enclosed((a * top, b * bottom), (c * top, d * bottom))


class Performance(NamedTuple):
    """Figures of a plan, each the float nearest to the exact value.

    With Poisson arrivals the rented GPUs have the given variance (EPEW'24: classes are M/G/infinity
    tandems, insensitive to the distribution of sizes).
    """

    mean_jct_s: float
    mean_gpus: float
    mean_jobs: float
    variance_gpus: float


def performance(instance: BoaInstance, plan: BoaPlan) -> Performance:
    """Return the figures of a plan that breaks no rule of structure.

    Source: EPEW'24 lemmas 2 and 3: E[T] = (1/lambda) sum rho/s, cost = sum rho k/s.
    """
    jobs = gpus = variance = 0
    for term in _plan_terms(instance, plan):
        middle, (top, bottom) = term.jobs.middle(), term.gpus
        jobs += middle
        gpus += middle * top // bottom
        variance += middle * top**2 // bottom**2
    return Performance(
        mean_jct_s=float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s),
        mean_gpus=float(Fraction(gpus, SCALE)),
        mean_jobs=float(Fraction(jobs, SCALE)),
        variance_gpus=float(Fraction(variance, SCALE)),
    )


def objective(instance: BoaInstance, plan: BoaPlan) -> float:
    """Return mean JCT in seconds, or mean GPUs where the JCT is the target."""
    figures = performance(instance, plan)
    return figures.mean_jct_s if instance.target_mean_jct_s is None else figures.mean_gpus


def used(instance: BoaInstance, plan: BoaPlan) -> list[Enclosed]:
    """Return what the classes of a plan use of the limited resource, term by term."""
    terms = _plan_terms(instance, plan)
    return [term.jobs for term in terms] if instance.budget is None else [t.held() for t in terms]


def _plan_terms(instance: BoaInstance, plan: BoaPlan) -> Iterator[Term]:
    classes = {c.id: c for c in instance.classes}
    for class_plan in plan.classes:
        job_class = classes[class_plan.id]
        arriving, hour = job_class.arrival_rate_per_h.as_integer_ratio()
        top, bottom = job_class.rescale_s.as_integer_ratio()
        for sequence in class_plan.sequences:
            share, whole = sequence.share.as_integer_ratio()
            jobs, per = arriving * share, 3600 * hour * whole
            rescaling = jobs * top, per * bottom
            before = None
            for phase, width in zip(job_class.phases, sequence.gpus, strict=True):
                gpus = width.as_integer_ratio()
                work, unit = phase.work_gpu_s.as_integer_ratio()
                low, high = speedup_ratios(phase.speedup, width)
                most = jobs * work * low[1], per * unit * low[0]
                least = most if low is high else (jobs * work * high[1], per * unit * high[0])
                yield Term(gpus, Enclosed(least, most))
                if gpus != before and rescaling[0]:
                    yield Term(gpus, Enclosed(rescaling, rescaling))
                before = gpus


def speedup_ratios(speedup: Speedup, gpus: float) -> tuple[Ratio, Ratio]:
    """Return ratios below and above the speedup at a width."""
    if isinstance(speedup, Table) and gpus in speedup.measured:
        return (speedup.measured[int(gpus)].as_integer_ratio(),) * 2
    low, high = speedup_enclosure(speedup, Fraction(gpus))
    return low.as_integer_ratio(), high.as_integer_ratio()


def speedup_enclosure(speedup: Speedup, gpus: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above the speedup at a width (equal where it is rational).

    Parameters
    ----------
    gpus
        A width within the range of the curve; between measured widths a table is interpolated.
    """
    if isinstance(speedup, Table):
        return (_interpolated(speedup, gpus),) * 2
    if isinstance(speedup, Amdahl):
        fraction = Fraction(speedup.parallel_fraction)
        value = 1 / (1 - fraction + fraction / gpus)
        return value, value
    return _power_enclosure(gpus, Fraction(speedup.exponent))


def _interpolated(table: Table, gpus: Fraction) -> Fraction:
    if gpus in table.measured:
        return Fraction(table.measured[int(gpus)])
    points = list(table.measured.items())
    above = next(n for n, (k, _) in enumerate(points) if k > gpus)
    (k0, s0), (k1, s1) = points[above - 1], points[above]
    return Fraction(s0) + (gpus - k0) * (Fraction(s1) - Fraction(s0)) / (k1 - k0)


def _power_enclosure(base: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose base ** exponent for a base >= 1 and an exponent in [0, 1]."""
    root = _root(base, exponent.denominator)
    if root is not None:
        return root**exponent.numerator, root**exponent.numerator
    quotient = _DECIMAL.divide(Decimal(base.numerator), Decimal(base.denominator))
    power = _DECIMAL.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    value = Fraction(_DECIMAL.power(quotient, power))
    # Relative errors: of the quotient, of the exponent times ln(base), and of the power itself.
    error = _DECIMAL_ERROR * (3 + base.numerator.bit_length())
    return max(Fraction(1), value * (1 - error)), value * (1 + error)


def _root(base: Fraction, degree: int) -> Fraction | None:
    """Return the root of a rational number where it is rational; the degree is a power of two."""
    if base == 1:
        return base
    while degree > 1:
        roots = isqrt(base.numerator), isqrt(base.denominator)
        if (roots[0] ** 2, roots[1] ** 2) != (base.numerator, base.denominator):
            return None
        base, degree = Fraction(*roots), degree // 2
    return base


def rounded_down(value: Fraction) -> int:
    """Return the multiple of 2**-192 at or below a value."""
    return (value.numerator << SCALE_BITS) // value.denominator


# --- what is limited, and what the objective is ---------------------------------------------


def limit(instance: BoaInstance) -> Fraction:
    """Return the limit on the use: GPUs, or jobs in the system where the JCT is the target."""
    if instance.budget is not None:
        return instance.budget
    return Fraction(instance.target_mean_jct_s or 0) * instance.arrival_rate_per_s


def objective_divisor(instance: BoaInstance) -> Fraction:
    """Return what the value is divided by to give the objective: lambda for JCT (Little's law)."""
    return instance.arrival_rate_per_s if instance.budget is not None else Fraction(1)


def limit_divisor(instance: BoaInstance) -> Fraction:
    """Return what the use is divided by to give the limited resource in the instance's unit."""
    return Fraction(1) if instance.budget is not None else instance.arrival_rate_per_s
