"""The verifier of EaCO: whole multiples of powers of two, each rounded to a side that is named."""

from __future__ import annotations

from fractions import Fraction


def floor_at(value: float | Fraction, bits: int) -> int:
    """Return a number as a multiple of 2**-bits, rounded down."""
    exact = Fraction(value)
    return (exact.numerator << bits) // exact.denominator


def ceil_at(value: float | Fraction, bits: int) -> int:
    """Return a number as a multiple of 2**-bits, rounded up."""
    return -floor_at(-Fraction(value), bits)


def bits_for(size: float | Fraction, significant: int) -> int:
    """Return the bits behind the point that give a positive number so many significant ones.

    At least so many for numbers above 1, too, and for 0: large numbers are not made coarser.
    """
    exact = Fraction(size)
    magnitude = exact.numerator.bit_length() - exact.denominator.bit_length()
    return significant + max(0, -magnitude if exact else 0)
