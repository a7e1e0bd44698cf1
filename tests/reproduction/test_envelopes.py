"""Curves of time against cost: laws against every mixture of two points."""

from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.reproduction.envelopes import at_cost, lower_hull
from tests.support.strategies.common import law

POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), max_size=8)


@law(200)
@given(POINTS, st.integers(0, 25))
def test_nothing_that_mixes_two_points_is_below(points, cost):
    """The least time of mixtures that cost no more, each of two points."""
    best = [
        min(a[1], b[1]) if max(a[0], b[0]) <= cost
        else a[1] if a[0] == b[0]
        else a[1] + (b[1] - a[1]) * (min(cost, b[0]) - a[0]) / (b[0] - a[0])
        for a, b in combinations_with_replacement(sorted(points), 2)
        if a[0] <= cost
    ]  # fmt: skip
    alone = [y for x, y in points if x <= cost]
    found = at_cost(points, cost)
    assert (found is None) == (not alone)
    if alone:
        assert found == pytest.approx(min(best))


@law(100)
@given(POINTS)
def test_a_hull_falls_and_bends_one_way(points):
    hull = lower_hull(points)
    assert set(hull) <= set(points)
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(hull)]
    assert all(slope < 0 for slope in slopes)
    assert slopes == sorted(slopes)
    assert lower_hull(hull) == hull
