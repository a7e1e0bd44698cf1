"""What a measured figure says of a published one: one function, one rule for all claims."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from optsched.reproduction.estimates import Estimate

NEAR = 0.1
"""Share of the published figure within which an interval agrees with it."""


class Basis(StrEnum):
    """What a figure of ours rests on."""

    GENERATED = "generated"
    FITTED = "fitted"
    AUTHORS = "authors' file"
    TABLES = "published tables"

    @property
    def is_real(self) -> bool:
        """Whether it is what the authors measured, and no stand-in for it."""
        return self in (Basis.AUTHORS, Basis.TABLES)


class Verdict(StrEnum):
    """What is said of a claim; `verdict` has the rule."""

    REPRODUCED = "reproduced"
    CONSISTENT = "consistent"
    SMALLER = "smaller"
    LARGER = "larger"
    REFUTED = "refuted"
    UNPUBLISHED = "setting unpublished"
    NO_FIGURE = "no figure at hand"


class Published(NamedTuple):
    """A published figure; from `low` to `high` where a range is given.

    Attributes
    ----------
    note
        How it is known, if it is not printed, such as "digitised".
    """

    low: float
    high: float
    note: str = ""

    @property
    def least(self) -> float:
        """The smaller of the sizes at the two ends, signs aside."""
        return min(abs(self.low), abs(self.high))

    @property
    def sign(self) -> int:
        """Which way it points: 1 or -1; 0 where the range holds 0."""
        return (self.low > 0) - (self.high < 0)


def printed(value: float, note: str = "") -> Published:
    """Return one published figure."""
    return Published(value, value, note)


def verdict(
    published: Published | None,
    ours: Estimate | None,
    basis: Basis,
    is_setting_published: bool = True,
) -> Verdict:
    """Return what ours says of a published figure.

    Parameters
    ----------
    ours
        None where nothing was measured.
    basis
        On stand-ins for the authors' data agreement is at most `consistent`.
    is_setting_published
        Whether what the figure was measured in is known; if not, nothing is said of it.

    Returns
    -------
    Verdict
        `reproduced` if our 95 % interval holds the published figure or lies within 10 % of it;
        `refuted` if ours points the other way, or its interval holds 0; else `smaller` or `larger`.
    """
    if published is None:
        return Verdict.NO_FIGURE
    if not is_setting_published:
        return Verdict.UNPUBLISHED
    if ours is None:
        return Verdict.NO_FIGURE
    if agrees(published, ours):
        return Verdict.REPRODUCED if basis.is_real else Verdict.CONSISTENT
    if published.sign:
        if ours.low * published.sign <= 0 or ours.high * published.sign <= 0:
            return Verdict.REFUTED
        return Verdict.SMALLER if abs(ours.value) < published.least else Verdict.LARGER
    return Verdict.SMALLER if ours.value < published.low else Verdict.LARGER


def agrees(published: Published, ours: Estimate) -> bool:
    """Return whether an interval holds the published figure or lies within 10 % of it."""
    if ours.low <= published.high and ours.high >= published.low:
        return True
    low = published.low - NEAR * abs(published.low)
    high = published.high + NEAR * abs(published.high)
    return low <= ours.low and ours.high <= high
