"""Figures over seeds: by hand."""

import math

import pytest

from optsched.reproduction.claim import Claim, row_of
from optsched.reproduction.claims import boa
from optsched.reproduction.estimates import Estimate, change, estimate, in_common, level
from optsched.reproduction.studies import Measured
from optsched.reproduction.texts import exact_text
from optsched.reproduction.verdicts import Basis


def draws(*pairs):
    return [{"a": {"x": one}, "b": {"x": other}} for one, other in pairs]


def test_a_change_is_the_geometric_mean_of_ratios():
    found = estimate(change("a", "b", "x"), draws((1.0, 2.0), (8.0, 1.0)))
    assert found.value == pytest.approx(100 * (math.sqrt(0.5 * 8) - 1))
    assert found.low == pytest.approx(-50)
    assert found.high == pytest.approx(700)
    assert found.seeds == 2


def test_one_seed_and_equal_seeds_have_no_interval():
    assert estimate(level("a", "x", 10), draws((0.3, 1))) == Estimate(3.0, 3.0, 3.0, 1)
    same = estimate(level("a", "x"), draws(*[(0.1, 1)] * 7))
    assert same == Estimate(0.1, 0.1, 0.1, 7)


def test_seeds_without_the_figure_are_left_out_and_counted():
    found = estimate(change("a", "b", "x"), draws((1.0, 2.0), (None, 1.0), (0.0, 1.0)))
    assert found.seeds == 1
    assert found.value == pytest.approx(-50)
    assert estimate(level("a", "y"), draws((1.0, 2.0))) is None
    assert estimate(level("c", "x"), draws((1.0, 2.0))) is None


def test_the_exact_method_was_shown_beside_ours_of_other_seeds():
    """Ours over three seeds, the exact method over one: ours of that seed is told, too."""
    ours, exact = level("greedy", "x"), level("exact", "x")
    claim = Claim(
        "key", "pal", "where", "what", "s", None, "setting", study="pal", ours=ours, exact=exact
    )
    draws = [
        {"greedy": {"x": 1.0}, "exact": {"x": 4.0}},
        {"greedy": {"x": 2.0}},
        {"greedy": {"x": 6.0}},
    ]
    row = row_of(claim, Basis.GENERATED, draws)
    assert (row.ours.value, row.exact.value, row.beside_exact.value) == (3.0, 4.0, 1.0)
    assert row.record()["exact_seeds"] == 1
    assert exact_text(3, 4.0, 1, 1.0) == "4.00 (1 seed; ours there 1.00)"
    assert exact_text(1, 4.0, 1, 1.0) == "4.00"
    assert exact_text(3, None, 0, None) == ""


def test_pictures_are_of_the_seeds_that_all_policies_have():
    """A policy on one seed stood beside another on three, whose jobs took more time anyway."""
    points = {cell: {"cost_usd": 1.0 + n, "jct_mean_s": 9.0 - n, "unfinished": 0}
              for n, cell in enumerate(boa.LARGE_SWEEPS["boa"])}  # fmt: skip
    other = {"sia:gpus=120": {"cost_usd": 2.0, "jct_mean_s": 7.0, "unfinished": 0}}
    dear = {cell: told | {"jct_mean_s": 1e6} for cell, told in points.items()}
    alone, both = (
        next(iter(boa.drawings(Measured({"boa-large": draws}, {}, {}))))
        for draws in ({0: points | other}, {0: points | other, 1: dear})
    )
    assert both.rows == alone.rows
    assert in_common([points, dear], [*points, "never measured"]) == [points, dear]
