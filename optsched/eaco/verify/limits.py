"""The verifier of EaCO: how finely it rounds, and how much it goes through before it gives up.

Whole multiples of powers of two, each rounded to a side that is named; and a budget of terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class ProofLimits:
    """Limits of the verifier: none of them decides what is proven, only whether it is in time.

    Attributes
    ----------
    bits
        Behind the point of costs and watts, and significant ones of numbers below 1.
    work_bits
        Significant bits of the least work, where all jobs of a group run at one rate.
    terms
        Most terms, some 0.5 to 2 microseconds each: more are given up.
    groups_kept
        Most groups in memory.
    terms_per_group
        Of a group that is looked at, or of one at the prices of a leaf.
    counts_per_term
        Of groups by a rule.
    rows_per_term
        Rows of the reduced-cost filter that take about as long as one group priced exactly.
    options_at_once
        Options whose reduced costs are added up in one go; some 500 bytes each.
    rows
        Groups that the filter looks at in one go; some 100 bytes each.
    usually_kept
        Groups for each set of equal jobs that the filter usually leaves for several leaves.
    cells, few_jobs
        Of the filter's table of what further jobs may add, by memory and by utilisation; for so few
        jobs it is not worth its time.
    block, blocks
        Positions in the order of work that share a table at least, and tables at most.
    multisets
        Of measured types, whose rates are looked at one by one.
    sequences
        Of types, on GPUs whose watts are not affine in utilisation.
    looks
        At single nodes, while gangs are packed.
    gangs
        Most gangs that are packed.
    kept_tables, kept_figures
        Tables that several instances share, and figures of each, that are kept for the next one.
    """

    bits: int = 96
    work_bits: int = 80
    terms: int = 1_000_000_000
    groups_kept: int = 4_000_000
    terms_per_group: int = 10
    counts_per_term: int = 10
    rows_per_term: int = 100
    options_at_once: int = 20_000
    rows: int = 500_000
    usually_kept: int = 100
    cells: tuple[int, int] = (24, 14)
    few_jobs: int = 24
    block: int = 20
    blocks: int = 50
    multisets: int = 3_000
    sequences: int = 2_000
    looks: int = 30_000_000
    gangs: int = 10_000
    kept_tables: int = 4
    kept_figures: int = 100_000


LIMITS = ProofLimits()


# --- directed rounding ------------------------------------------------------------------------


def floor_at(value: float | Fraction, bits: int) -> int:
    """Return a number as a multiple of 2**-bits, rounded down."""
    exact = Fraction(value)
    return (exact.numerator << bits) // exact.denominator


def ceil_at(value: float | Fraction, bits: int) -> int:
    """Return a number as a multiple of 2**-bits, rounded up."""
    return -floor_at(-Fraction(value), bits)


def bits_for(size: float | Fraction, significant: int = LIMITS.bits) -> int:
    """Return the bits behind the point that give a positive number so many significant ones.

    At least so many for numbers above 1, too, and for 0: large numbers are not made coarser.
    """
    exact = Fraction(size)
    magnitude = exact.numerator.bit_length() - exact.denominator.bit_length()
    return significant + max(0, -magnitude if exact else 0)


# --- budget -----------------------------------------------------------------------------------


class TooManyTermsError(Exception):
    """A proof takes more than the verifier goes through."""


class WorkBudget:
    """Terms, additions or the like, and groups in memory that a proof may take.

    Attributes
    ----------
    spent, kept
        So far.
    """

    def __init__(self, terms: int = LIMITS.terms) -> None:
        self.spent = self.kept = 0
        self._terms = terms

    def spend(self, groups: int) -> None:
        """Count groups that are looked at.

        Raises
        ------
        TooManyTermsError
            If they are more than the budget.
        """
        self.spent += LIMITS.terms_per_group * groups
        if self.spent > self._terms:
            raise TooManyTermsError

    def keep(self, groups: int) -> None:
        """Count groups that stay in memory.

        Raises
        ------
        TooManyTermsError
            If they are more than the budget.
        """
        self.kept += groups
        if self.kept > LIMITS.groups_kept:
            raise TooManyTermsError
