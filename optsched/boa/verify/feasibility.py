"""The verifier of BOA: the rules of a plan, and its exact figures; bounds in `certificate.py`.

Integers and fractions only, no tolerances; it shares no code with the methods. Quantities are
enclosed between multiples of 2**-192; only where such an enclosure cannot decide are the exact
fractions added up.
"""

from __future__ import annotations

import operator
from collections import Counter
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.instance import BoaInstance, JobClass, Power, Speedup, Table
from optsched.boa.verify.speedup_bounds import Ratio, speedup_ratios
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.plan import BoaPlan, WidthSequence

SCALE_BITS = 192
SCALE = 1 << SCALE_BITS


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: BoaInstance, plan: BoaPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    broken = list(figure_faults(instance)) or list(_structure(instance, plan))
    return broken or list(_limits(instance, plan))


def figure_faults(instance: BoaInstance) -> Iterator[BrokenRule]:
    """Yield figures of an instance for which no rounding is known to go the right way.

    None in an instance that was validated; but a verifier takes nobody's word for that.
    """
    numbers = True
    for job_class in instance.classes:
        figures = [job_class.arrival_rate_per_h, job_class.rescale_s]
        figures += [phase.work_gpu_s for phase in job_class.phases]
        sound = all(0 <= figure < inf for figure in figures)
        if not (sound and all(_is_curve(phase.speedup) for phase in job_class.phases)):
            numbers = False
            text = f"class '{job_class.id}' has figures that are no rates, times or speedups"
            yield BrokenRule("figures", text)
    limits = [instance.budget_gpus, instance.budget_usd_per_h, instance.price_usd_per_gpu_h]
    given = [figure for figure in (*limits, instance.target_mean_jct_s) if figure is not None]
    if not all(0 < figure < inf for figure in given):
        yield BrokenRule("limit", f"{given} has figures that are no positive numbers")
    twice = len(instance.classes) - len({job_class.id for job_class in instance.classes})
    if twice or (numbers and not instance.arrival_rate_per_s > 0):
        yield BrokenRule("classes", "need ids of their own, and one a positive arrival rate")


def _is_curve(speedup: Speedup) -> bool:
    """Tell whether widths and speedups are what the roundings below rest on."""
    if isinstance(speedup, Table):
        gpus = speedup.gpus
        if not 0 < len(gpus) == len(speedup.speedup):
            return False
        ascend = gpus[0] >= 1 and all(map(operator.le, gpus, gpus[1:]))
        return ascend and all(0 < value < inf for value in speedup.speedup)
    share = speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction
    return 0 <= share <= 1 and speedup.max_gpus >= 1


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
            speedup = phase.speedup
            if gpus in (speedup.measured if isinstance(speedup, Table) else speedup.widths):
                continue
            fault = _width_fault(speedup, gpus, instance.widths == "continuous")
            if fault:
                yield BrokenRule("allowed-width", f"{where}, phase {e}: {gpus} GPUs, but {fault}")
    if len(sequences) == 1 and sequences[0].share == 1:
        return
    total = sum((Fraction(sequence.share) for sequence in sequences), Fraction(0))
    if total != 1:
        yield BrokenRule("shares-sum-to-one", f"{where}: the shares sum to {number(total)}")


def _width_fault(speedup: Speedup, gpus: float, continuous: bool) -> str | None:
    """Tell why a width that is not among the whole ones is not possible, if it is not."""
    widths = speedup.widths
    if not continuous:
        listed = f"from {widths[0]} to {widths[-1]}" if isinstance(widths, range) else f"{widths}"
        return f"only the widths {listed} are possible"
    if widths[0] <= gpus <= widths[-1]:
        return None
    return f"widths from {widths[0]} to {widths[-1]} are possible"


def _limits(instance: BoaInstance, plan: BoaPlan) -> Iterator[BrokenRule]:
    amount, most = used(instance, plan), limit(instance)
    most_used = rounded_down(most)
    if amount.above <= most_used or (
        amount.below <= most_used and _exactly_used(instance, plan) <= most
    ):
        return
    amount_used = Fraction(amount.above, SCALE)
    if instance.budget is not None:
        text = f"the plan rents {number(amount_used)} GPUs on average, the budget is "
        yield BrokenRule("budget", text + number(instance.budget))
    else:
        text = f"the mean JCT is {number(amount_used / instance.arrival_rate_per_s)} s, "
        yield BrokenRule("target", text + f"the target {instance.target_mean_jct_s!r} s")


# --- exact figures of a plan ------------------------------------------------------------------

# The GPUs that a job holds in one phase, or while it rescales for it; then at least, and at most,
# the mean jobs there: the same object where that is rational. Plain tuples, for there are many.
Term = tuple[Ratio, Ratio, Ratio]


class Enclosed(NamedTuple):
    """Multiples of 2**-192 at or below, and at or above, a quantity."""

    below: int
    above: int


class BoaPerformance(NamedTuple):
    """Figures of a plan, each the float nearest to the exact value.

    With Poisson arrivals the rented GPUs have the given variance (EPEW'24: classes are M/G/infinity
    tandems, insensitive to the distribution of sizes).
    """

    mean_jct_s: float
    mean_gpus: float
    mean_jobs: float
    variance_gpus: float


def performance(instance: BoaInstance, plan: BoaPlan) -> BoaPerformance:
    """Return the figures of a plan that breaks no rule of structure (EPEW'24, lemmas 2 and 3).

    Examples
    --------
    >>> import optsched
    >>> hand = optsched.read("boa/hand")
    >>> optsched.boa.performance(hand, optsched.solve(hand).plan).mean_gpus
    2.3026315789473686
    """
    jobs = gpus = variance = 0
    for (top, bottom), least, most in _terms(instance, plan):
        middle = _middle(least, most)
        jobs += middle
        gpus += middle * top // bottom
        variance += middle * top**2 // bottom**2
    return BoaPerformance(
        mean_jct_s=float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s),
        mean_gpus=float(Fraction(gpus, SCALE)),
        mean_jobs=float(Fraction(jobs, SCALE)),
        variance_gpus=float(Fraction(variance, SCALE)),
    )


def objective(instance: BoaInstance, plan: BoaPlan) -> float:
    """Return mean JCT in seconds, or mean GPUs where the JCT is the target."""
    if instance.budget is None:
        return performance(instance, plan).mean_gpus
    middles = [_middle(least, most) for _, least, most in _terms(instance, plan)]
    ends = (sum(middles), sum(middles) + len(middles))  # each was rounded down by less than a unit
    low, high = (float(Fraction(jobs, SCALE) / instance.arrival_rate_per_s) for jobs in ends)
    if low == high:
        return low
    halves = (Fraction(*least) + Fraction(*most) for _, least, most in _terms(instance, plan))
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
    gpus_limited = instance.budget is not None
    for (top, bottom), least, most in _terms(instance, plan):
        if not gpus_limited:
            yield least, most
            continue
        held = most[0] * top, most[1] * bottom
        yield held if least is most else (least[0] * top, least[1] * bottom), held


def _terms(instance: BoaInstance, plan: BoaPlan) -> Iterator[Term]:
    classes = {c.id: c for c in instance.classes}
    for class_plan in plan.classes:
        job_class = classes[class_plan.id]
        arriving, hour = job_class.arrival_rate_per_h.as_integer_ratio()
        lost, second = job_class.rescale_s.as_integer_ratio()
        for sequence in class_plan.sequences:
            share, whole = sequence.share.as_integer_ratio()
            jobs, per = arriving * share, 3600 * hour * whole
            rescaling = jobs * lost, per * second
            before = None
            for phase, width in zip(job_class.phases, sequence.gpus, strict=True):
                gpus = width.as_integer_ratio()
                work, unit = phase.work_gpu_s.as_integer_ratio()
                low, high = speedup_ratios(phase.speedup, width)
                work, unit = jobs * work, per * unit
                least = most = work * low[1], unit * low[0]
                if high is not low:
                    least = work * high[1], unit * high[0]
                yield gpus, least, most
                if rescaling[0] and width != before:
                    yield gpus, rescaling, rescaling
                before = width


def rounded_down(value: Fraction) -> int:
    """Return the multiple of 2**-192 at or below a value."""
    return (value.numerator << SCALE_BITS) // value.denominator


def number(value: Fraction) -> str:
    """Write a value as the nearest float, for messages; also one beyond all floats."""
    try:
        return repr(float(value))
    except OverflowError:
        return (
            f"{'-' if value < 0 else ''}10**{len(str(abs(value.numerator // value.denominator)))}"
        )


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
