"""The verifier's enclosure of a speedup: rational numbers below and above it."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from optsched.boa.instance import Amdahl, Table

if TYPE_CHECKING:
    from optsched.boa.instance import Speedup

Ratio = tuple[int, int]  # numerator and denominator; fractions would be reduced at every step

_DECIMAL = Context(prec=60)
_DECIMAL_ERROR = Fraction(1, 10**58)  # relative; `decimal` promises 10**-59


def speedup_ratios(speedup: Speedup, gpus: float) -> tuple[Ratio, Ratio]:
    """Return ratios below and above the speedup at a width."""
    if isinstance(speedup, Table):
        measured = speedup.measured
        if gpus in measured:
            ratio = measured[int(gpus)].as_integer_ratio()
            return ratio, ratio
    elif isinstance(speedup, Amdahl):
        part, whole = speedup.parallel_fraction.as_integer_ratio()
        top, bottom = gpus.as_integer_ratio()
        ratio = whole * top, (whole - part) * top + part * bottom
        return ratio, ratio
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
