"""Certificates from Lagrangian values (Geoffrion 1974): the methods' own exact figures of them.

Totals are multiples of 2**-192, of which each term is rounded down as `BoaCertificate.priced_total`
says; the verifier adds them up by code of its own. Free phases look at the options that floats
cannot rule out, classes with rescaling at all paths over phases x options (docs/math/boa.md,
Rescaling).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.arrays import BoaArrays, arrays
from optsched.boa.exact.lagrangian_dual import priced_rounding
from optsched.boa.instance import Amdahl, Power, Table
from optsched.boa.options import OFFER_STEP, exact_option, exact_start, options_of
from optsched.boa.plan import BoaCertificate
from optsched.boa.settings import SETTINGS
from optsched.boa.verify.feasibility import (
    SCALE,
    SCALE_BITS,
    limit,
    limit_divisor,
    objective_divisor,
)
from optsched.search import Infeasible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.boa.instance import BoaInstance, JobClass, Phase, Speedup
    from optsched.boa.options import Ratio


def certificate(
    instance: BoaInstance, price: float, problem: BoaArrays | None = None
) -> BoaCertificate:
    """Write the certificate of a price, its exact priced total, and the bound that follows.

    Parameters
    ----------
    problem
        The arrays of the instance, if they are at hand.
    """
    exact_price = Fraction(price)
    total = priced_total(instance, exact_price, problem)
    value = Fraction(total, SCALE * exact_price.denominator) - exact_price * limit(instance)
    bound = max(nearest_below(value / objective_divisor(instance)), 0.0)
    priced = str(total // exact_price.denominator)
    return BoaCertificate(kind="price", price=price, priced_total=priced, bound=bound, labels=0)


def enumerated(
    instance: BoaInstance, of_price: BoaCertificate, value: float, labels: int
) -> BoaCertificate:
    """Raise the bound of a price's certificate to one on the value, that labels in floats gave."""
    phases = sum(len(job_class.phases) for job_class in instance.classes)
    rounding = priced_rounding(phases, value + of_price.price * float(limit(instance)))
    # Where it is more than this, labels were kept up to as much beyond the value.
    rounding = min(rounding, SETTINGS.value_tolerance * value)
    bound = (value - rounding) / float(objective_divisor(instance))
    if bound <= (of_price.bound or 0.0):
        return of_price
    most = SETTINGS.verified_labels * labels + SETTINGS.least_verified_labels
    return of_price.model_copy(update={"bound": bound, "labels": most})


def infeasible(instance: BoaInstance) -> Infeasible:
    """Return the proof that not even the least use keeps within the limit, with that use."""
    least = least_use(instance)
    evidence = BoaCertificate(
        kind="least",
        priced_total=str(math.floor(least * SCALE)),
        least=nearest_below(least / limit_divisor(instance)),
        labels=0,
    )
    shown = -nearest_below(-least / limit_divisor(instance))  # enough, as a new limit
    if instance.target_mean_jct_s is not None:
        target = f"{instance.target_mean_jct_s!r} s"
        text = f"no plan reaches a mean JCT of {target}; the least is {shown!r} s"
        return Infeasible(text, evidence)
    unit = instance.rent_unit
    text = f"the budget of {float(limit(instance))!r} {unit} is below the least possible"
    text += f" cost of {shown!r} {unit}"
    if instance.price_usd_per_gpu_h is not None:
        cost = -nearest_below(-least * Fraction(instance.price_usd_per_gpu_h))
        text += f" ({cost!r} USD/h)"
    return Infeasible(text, evidence)


def nearest_below(value: Fraction) -> float:
    """Return the greatest float at or below a value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


# --- exact totals -----------------------------------------------------------------------------


def priced_total(instance: BoaInstance, price: Fraction, problem: BoaArrays | None = None) -> int:
    """Return the least priced total of all plans, a multiple of 2**-192 / price.denominator."""
    return _total(instance, price.denominator, price.numerator, problem)


def least_use(instance: BoaInstance) -> Fraction:
    """Return a lower bound on the use of every plan, sharp to 2**-192 for each term."""
    return Fraction(_total(instance, 0, 1, None), SCALE)


def _total(instance: BoaInstance, of_value: int, of_use: int, problem: BoaArrays | None) -> int:
    """Return the least sum of value and use, so many times each, as a multiple of 2**-192."""
    pair = (of_value, of_use) if instance.budget is not None else (of_use, of_value)
    if instance.widths == "continuous":
        unit = of_value or 1
        jobs, gpus = (Fraction(weight, unit) for weight in pair)
        least = (_least_real(c, p, jobs, gpus) for c in instance.classes for p in c.phases)
        return sum(math.floor(share * SCALE * unit) for share in least)
    problem = problem or arrays(instance)
    price = of_use / of_value if of_value else math.inf
    charged = (c for c in instance.classes if _is_charged(instance, c))
    total = sum(_least_path(instance, c, *pair) for c in charged)
    floats, members = problem.groups.priced(price), problem.groups.members
    least_floats = floats.min(axis=1, keepdims=True)
    rows, columns = np.nonzero(floats <= least_floats * (1 + SETTINGS.float_tolerance))
    least_of: dict[int, int] = {}
    near = rows.tolist(), members[rows].tolist(), problem.groups.options[rows, columns].tolist()
    for row, (i, e), option in zip(*near, strict=True):
        job_class = instance.classes[i]
        if _is_charged(instance, job_class):
            continue
        phase = job_class.phases[e]
        rent, speedup = _option(instance, job_class, phase, int(option))
        weight = _weight(_jobs(job_class, phase.work_gpu_s), rent, speedup, *pair)
        least_of[row] = min(least_of.get(row, weight), weight)
    return total + sum(least_of.values())


def _is_charged(instance: BoaInstance, job_class: JobClass) -> bool:
    """Tell whether starts count, so that phases are not free of each other."""
    return bool(instance.charges_starts(job_class) and job_class.arrival_rate_per_h)


def _least_path(instance: BoaInstance, job_class: JobClass, of_jobs: int, of_rent: int) -> int:
    """Return the least weight of a path through a class' phases, forwards from the first."""

    @cache
    def start_at(offer: int, rent: Ratio) -> int:
        lost, paid = exact_start(instance, job_class, offer * OFFER_STEP)
        idle = _weight(_jobs(job_class, paid), rent, (1, 1), 0, of_rent)
        return idle + _weight(_jobs(job_class, lost), rent, (1, 1), of_jobs, of_rent)

    ends: dict[int, int] = {}  # by the option that a path ends at
    least = 0
    for phase in job_class.phases:
        jobs, before, ends = _jobs(job_class, phase.work_gpu_s), ends, {}
        for option in _options(instance, job_class, phase):
            rent, speedup = _option(instance, job_class, phase, option)
            start = least + start_at(option // OFFER_STEP, rent)
            weight = _weight(jobs, rent, speedup, of_jobs, of_rent)
            ends[option] = weight + min(start, before.get(option, start))
        least = min(ends.values())
    return least


def _options(instance: BoaInstance, job_class: JobClass, phase: Phase) -> Iterable[int]:
    if instance.offers is None:
        return phase.curve.widths
    return map(int, options_of(instance, job_class, phase).options)


def _option(
    instance: BoaInstance, job_class: JobClass, phase: Phase, option: int
) -> tuple[Ratio, Ratio]:
    """Return the rent of an option, and a ratio at or above the speedup, with interruptions."""
    if instance.offers is None:
        return (option, 1), _speedup(phase.curve, option)
    curve, gpus, rent, kept = exact_option(instance, job_class, phase, option)
    over, under = _speedup(curve.speedup, gpus)
    return rent, (over * kept[0], under * kept[1])


def _jobs(job_class: JobClass, seconds: Fraction | float) -> Ratio:
    """Return the mean jobs in what takes a job so many seconds."""
    arriving, hour = job_class.arrival_rate_per_h.as_integer_ratio()
    over, under = seconds.as_integer_ratio()
    return arriving * over, 3600 * hour * under


def _weight(jobs: Ratio, rent: Ratio, speedup: Ratio, of_jobs: int, of_rent: int) -> int:
    """Return the weight of jobs at an option and of the rent for them, each rounded down."""
    scaled, unit = jobs[0] * speedup[1] << SCALE_BITS, jobs[1] * speedup[0]
    weight = of_jobs * (scaled // unit)
    return weight + of_rent * (rent[0] * scaled // (rent[1] * unit)) if of_rent else weight


def _least_real(job_class: JobClass, phase: Phase, jobs: Fraction, gpus: Fraction) -> Fraction:
    """Return the least load * (jobs + gpus k) / s(k) of a phase over real widths k, from below."""
    load, speedup = Fraction(*_jobs(job_class, phase.work_gpu_s)), phase.curve
    if isinstance(speedup, Table):  # linear pieces: the ratio is monotone on each
        return load * min((jobs + gpus * k) / Fraction(s) for k, s in speedup.measured.items())
    share, best = Fraction(_share(speedup)), Fraction(speedup.max_gpus)
    if share < 1 and gpus:
        ratio = jobs * share / (gpus * (1 - share))
        if isinstance(speedup, Amdahl) and 1 < ratio < best**2:  # at its root: rational but for it
            root = math.isqrt(int(jobs * share * gpus * (1 - share) * SCALE**2))
            return load * (jobs * (1 - share) + gpus * share + 2 * Fraction(root, SCALE))
        best = min(max(ratio, Fraction(1)), best)
    over, under = _speedup(speedup, best)
    return load * (jobs + gpus * best) * under / over


def _share(speedup: Amdahl | Power) -> float:
    return speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction


def _speedup(speedup: Speedup, k: Fraction | int) -> Ratio:
    """Return a ratio at or above the speedup at a width; of a table, one that was measured."""
    if isinstance(speedup, Table):
        return speedup.measured[int(k)].as_integer_ratio()
    part, whole = _share(speedup).as_integer_ratio()
    top, bottom = k.as_integer_ratio()
    if isinstance(speedup, Amdahl):
        return whole * top, (whole - part) * top + part * bottom
    return _power(top, bottom, part, whole)


def _power(top: int, bottom: int, part: int, whole: int) -> Ratio:
    """Return (top / bottom) ** (part / whole), exactly where rational; else 60 digits and a bit.

    `whole` is a power of two; the error is that of the quotient, of the exponent times the
    logarithm, and of the power.
    """
    roots = [(top, bottom)]
    while 2 ** (len(roots) - 1) < whole:
        root = math.isqrt(roots[-1][0]), math.isqrt(roots[-1][1])
        if (root[0] ** 2, root[1] ** 2) != roots[-1]:
            break
        roots.append(root)
    else:
        return roots[-1][0] ** part, roots[-1][1] ** part
    digits = Context(prec=60)
    base = digits.divide(Decimal(top), Decimal(bottom))
    power = Fraction(digits.power(base, digits.divide(Decimal(part), Decimal(whole))))
    return (power * (1 + Fraction(3 + top.bit_length(), 10**58))).as_integer_ratio()
