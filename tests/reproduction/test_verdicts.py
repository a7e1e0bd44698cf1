"""Verdicts: the rule again in fractions, its laws, and examples by hand."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from optsched.reproduction.estimates import Estimate
from optsched.reproduction.verdicts import Basis, Published, Verdict, printed, verdict
from tests.support.strategies.common import law

VALUES = st.integers(-40, 40).map(float)
REAL = st.sampled_from([Basis.AUTHORS, Basis.TABLES])
STAND_INS = st.sampled_from([Basis.GENERATED, Basis.FITTED])


@st.composite
def estimates(draw):
    low, value, high = sorted(draw(st.tuples(VALUES, VALUES, VALUES)))
    return Estimate(value, low, high, 3)


@st.composite
def figures(draw):
    return Published(*sorted(draw(st.tuples(VALUES, VALUES) | VALUES.map(lambda x: (x, x)))))


def by_the_book(published, ours):
    """The rule of the issue in words, in exact arithmetic."""
    least, most, low, value, high = map(Fraction, (*published[:2], ours.low, ours.value, ours.high))
    tenth = Fraction(1, 10)
    if not (high < least or low > most):
        return Verdict.REPRODUCED
    if low >= least - tenth * abs(least) and high <= most + tenth * abs(most):
        return Verdict.REPRODUCED
    if (least > 0 and low <= 0) or (most < 0 and high >= 0):
        return Verdict.REFUTED
    if least <= 0 <= most:
        return Verdict.SMALLER if value < least else Verdict.LARGER
    return Verdict.SMALLER if abs(value) < min(abs(least), abs(most)) else Verdict.LARGER


@law(200)
@given(figures(), estimates(), REAL)
@example(printed(-42), Estimate(-38, -38, -38, 1), Basis.AUTHORS)
@example(printed(0), Estimate(0, 0, 0, 1), Basis.AUTHORS)
def test_the_rule(published, ours, basis):
    assert verdict(published, ours, basis) is by_the_book(published, ours)


@law(100)
@given(figures(), estimates(), REAL)
def test_signs_and_units_change_nothing(published, ours, basis):
    said = verdict(published, ours, basis)
    mirrored = Published(-published.high, -published.low)
    other = Estimate(-ours.value, -ours.high, -ours.low, ours.seeds)
    if published.sign:
        assert verdict(mirrored, other, basis) is said
    scaled = Estimate(*(4 * x for x in ours[:3]), ours.seeds)
    assert verdict(Published(4 * published.low, 4 * published.high), scaled, basis) is said


@law(100)
@given(figures(), estimates(), STAND_INS, REAL)
def test_stand_ins_are_at_most_consistent(published, ours, stand_in, real):
    said = verdict(published, ours, real)
    expected = Verdict.CONSISTENT if said is Verdict.REPRODUCED else said
    assert verdict(published, ours, stand_in) is expected


@law(50)
@given(figures(), st.none() | estimates(), st.sampled_from(Basis))
def test_nothing_is_said_of_a_setting_that_is_not_published(published, ours, basis):
    assert verdict(published, ours, basis, is_setting_published=False) is Verdict.UNPUBLISHED
    for is_known in (True, False):
        assert verdict(None, ours, basis, is_known) is Verdict.NO_FIGURE
    assert verdict(published, None, basis) is Verdict.NO_FIGURE


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (-40, -45, -35, "reproduced"),  # holds it
        (-39, -40, -38, "reproduced"),  # within 10 %
        (-37, -38, -36, "smaller"),
        (-52, -53, -50, "larger"),
        (-1, -3, 1, "refuted"),
        (5, 4, 6, "refuted"),
        (-37, -41, 1, "refuted"),
    ],
)
def test_examples_of_a_published_saving(value, low, high, said):
    assert verdict(printed(-42), Estimate(value, low, high, 8), Basis.AUTHORS) == said
