"""The verifier of BOA, second part: whether a certificate proves its bound.

For any price the Lagrangian value is a lower bound on the objective of every plan within the limit;
for integer widths an enumeration of what the price leaves open makes it sharp. All of it is done in
integers and fractions, and shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, isqrt, nextafter
from typing import TYPE_CHECKING

from optsched.boa.instance import BoaInstance, JobClass, Phase, Power, Speedup, Table
from optsched.boa.verify.feasibility import (
    SCALE,
    figure_faults,
    limit,
    limit_divisor,
    number,
    objective_divisor,
    rounded_down,
)
from optsched.boa.verify.label_setting import MAX_LABELS, counterexample
from optsched.boa.verify.options import Source, sources
from optsched.boa.verify.phase_graphs import PriceWeights, least_total, lightest
from optsched.boa.verify.speedup_bounds import speedup_enclosure
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.boa.plan import BoaCertificate


MAX_TERMS = 300_000_000  # more would take some ten minutes, and are refused
POWER_TERMS = 20  # that a width of a power law counts as: each is a logarithm of 60 digits


def terms(instance: BoaInstance, certificate: BoaCertificate) -> int:
    """Return about how many terms `prove` adds up: of widths at the price, then of partial plans.

    Counted from sizes, and from what the certificate says of its labels, of which no more are
    followed. A term takes one to three microseconds.
    """
    work = _terms_at_price(instance)
    if instance.widths != "integer" or certificate.kind == "least" or certificate.labels == 0:
        return work
    labels = MAX_LABELS if certificate.labels is None else min(certificate.labels, MAX_LABELS)
    return work + _terms_of_nodes(instance, instance.classes) + labels


def _terms_at_price(instance: BoaInstance) -> int:
    """Return how many widths the price alone asks for: of laws two, where starts are free."""
    charged: list[JobClass] = []
    free: list[JobClass] = []
    for c in instance.classes:
        is_charged = instance.widths != "continuous" and instance.charges_starts(c)
        (charged if is_charged else free).append(c)
    found = (s for c in free for phase in c.phases for s in sources(instance, c, phase))
    return sum(map(_terms_of_lightest, found)) + _terms_of_nodes(instance, charged)


def _terms_of_lightest(source: Source) -> int:
    if isinstance(source.speedup, Table):
        return len(source.speedup.gpus)
    widths = len(source.speedup.widths) if source.is_interrupted else 2
    return widths * _terms_of(source.speedup)


def _terms_of_nodes(instance: BoaInstance, classes: Iterable[JobClass]) -> int:
    found = (s for c in classes for phase in c.phases for s in sources(instance, c, phase))
    return sum(_terms_of(source.speedup) * len(source.speedup.widths) for source in found)


def _terms_of(speedup: Speedup) -> int:
    return POWER_TERMS if isinstance(speedup, Power) else 1


def prove(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states.

    For any price the Lagrangian value (least priced total minus price times limit) is a lower bound
    on the objective of every plan within the limit. For integer widths it is sharpened: all partial
    plans whose priced completion stays below the stated bound are enumerated, and none of them may
    end within the limit and below the bound.
    """
    broken = [*figure_faults(instance), *_stated_faults(certificate)]
    if broken:
        return broken
    work = _terms_at_price(instance)
    if work > MAX_TERMS:
        return [BrokenRule("work", f"{work:,} widths would have to be looked at")]
    if certificate.kind == "least":
        return _prove_least(instance, certificate)
    return _prove_price(instance, certificate)


def _stated_faults(certificate: BoaCertificate) -> Iterator[BrokenRule]:
    """Yield what makes the figures of a certificate no numbers that can be verified."""
    stated = {"price": certificate.price, "bound": certificate.bound, "least": certificate.least}
    for name, figure in stated.items():
        if figure is not None and not isfinite(figure):
            yield BrokenRule(name, f"{figure!r} is stated, which is not finite")
    if certificate.price < 0:
        yield BrokenRule("price", f"{certificate.price!r} is stated, which is negative")


def _prove_price(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Prove the bound of a price."""
    price = Fraction(certificate.price)
    total, unit = priced_total(instance, price), SCALE * price.denominator
    broken = []
    if str(total // price.denominator) != certificate.priced_total:
        text = f"is {total // price.denominator} at the price {certificate.price!r}, not as stated"
        broken.append(BrokenRule("priced-total", text))
    if certificate.least is not None:
        broken.append(BrokenRule("least", "a price proves a bound, and no least use"))
    if certificate.bound is None:
        return [*broken, BrokenRule("bound", "the certificate states none")]
    stated = Fraction(certificate.bound) * objective_divisor(instance)
    lagrangian = Fraction(total, unit) - price * limit(instance)
    if stated <= max(lagrangian, Fraction(0)):  # no plan has fewer than no jobs or GPUs
        return broken
    proven = number(lagrangian / objective_divisor(instance))
    text = f"the price proves only {proven}, {certificate.bound!r} is stated"
    if instance.widths != "integer":
        return [*broken, BrokenRule("bound", text)]
    work = terms(instance, certificate)
    if work > MAX_TERMS:
        text += f"; {work:,} terms would have to be followed for more"
        return [*broken, BrokenRule("bound", text)]
    of_labels = MAX_LABELS if certificate.labels is None else certificate.labels
    reason = counterexample(instance, price, total, (limit(instance), stated), of_labels)
    if reason:
        broken.append(BrokenRule("bound", f"{text}; {reason}"))
    return broken


def _prove_least(instance: BoaInstance, certificate: BoaCertificate) -> list[BrokenRule]:
    """Prove that no plan keeps within the limit."""
    least = least_use(instance)
    if str(rounded_down(least)) != certificate.priced_total:
        return [
            BrokenRule("priced-total", f"the least use is {rounded_down(least)}, not as stated")
        ]
    if least <= limit(instance):
        text = f"a plan within the limit may exist: the least use is {number(least)}"
        return [BrokenRule("infeasible", text)]
    stated, figure = certificate.least, least / limit_divisor(instance)
    if stated is None or not _is_float_below(stated, figure):
        text = f"the least use is {number(figure)}, {stated!r} is stated"
        return [BrokenRule("infeasible", text)]
    if certificate.bound is not None or certificate.price:
        return [BrokenRule("infeasible", "a proof that no plan exists has no price and no bound")]
    return []


def _is_float_below(stated: float, figure: Fraction) -> bool:
    """Tell whether a float is the greatest at or below a figure."""
    following = nextafter(stated, inf)
    return Fraction(stated) <= figure and (following == inf or figure < Fraction(following))


def priced_total(instance: BoaInstance, price: Fraction) -> int:
    """Return the least priced total over all plans, rounded down.

    Parameters
    ----------
    price
        Price of one unit of the limited resource; its denominator must be a power of two.

    Returns
    -------
    int
        A multiple of 2**-192 / price.denominator.
    """
    if instance.widths == "continuous":
        return sum(
            _least_priced_share(c, phase, instance.budget is not None, price)
            for c in instance.classes
            for phase in c.phases
        )
    return least_total(instance, PriceWeights(price.denominator, price.numerator))


def least_use(instance: BoaInstance) -> Fraction:
    """Return a lower bound on the use of every plan, sharp to 2**-192 for each term."""
    if instance.widths == "continuous":
        jobs, gpus = (1, 0) if instance.budget is None else (0, 1)
        shares = (
            rounded_down(_least_share(c, phase, jobs, gpus))
            for c in instance.classes
            for phase in c.phases
        )
        return Fraction(sum(shares), SCALE)
    return Fraction(least_total(instance, PriceWeights(0, 1)), SCALE)


# --- continuous widths ------------------------------------------------------------------------


def _least_priced_share(
    job_class: JobClass, phase: Phase, gpus_limited: bool, price: Fraction
) -> int:
    jobs, gpus = (Fraction(1), price) if gpus_limited else (price, Fraction(1))
    least = _least_share(job_class, phase, jobs, gpus)
    scaled = least * SCALE * price.denominator
    return scaled.numerator // scaled.denominator


def _least_share(
    job_class: JobClass, phase: Phase, jobs: Fraction | int, gpus: Fraction | int
) -> Fraction:
    """Return a lower bound on rho * min over k of (jobs + gpus * k) / s(k), over real widths k."""
    rho = Fraction(job_class.arrival_rate_per_h) / 3600 * Fraction(phase.work_gpu_s)
    return rho * _least_ratio(phase.curve, Fraction(jobs), Fraction(gpus))


def _least_ratio(speedup: Speedup, a: Fraction, c: Fraction) -> Fraction:
    """Return a lower bound on min over k of (a + c k) / s(k)."""
    first, last = Fraction(speedup.widths[0]), Fraction(speedup.widths[-1])

    def at(k: Fraction) -> Fraction:
        return (a + c * k) / speedup_enclosure(speedup, k)[1]

    if isinstance(speedup, Table):  # linear pieces: the ratio is monotone on each
        weights = PriceWeights(a.numerator * c.denominator, c.numerator * a.denominator)
        return min(at(Fraction(k)) for k, _ in lightest(speedup, weights))
    if isinstance(speedup, Power):
        alpha = Fraction(speedup.exponent)
        if alpha == 1 or c == 0:
            return at(last)
        return at(min(max(a * alpha / (c * (1 - alpha)), first), last))
    f = Fraction(speedup.parallel_fraction)
    if f == 1 or c == 0:
        return at(last)
    square = a * f / (c * (1 - f))
    if square <= first**2:
        return at(first)
    if square >= last**2:
        return at(last)
    root = Fraction(isqrt(int(a * f * c * (1 - f) * SCALE**2)), SCALE)
    return a * (1 - f) + c * f + 2 * root
