"""Binning: exact and geometric bins are bounds with a guarantee; K-means bins are PAL's."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from optsched.cluster.binning import (
    exact,
    geometric,
    kmeans_as_released,
    kmeans_by_silhouette,
)
from optsched.cluster.kmeans import best_clusters
from tests.support.strategies.common import law

DATA = Path(__file__).parents[3] / "shared" / "data" / "pal"
KMEANS = [kmeans_as_released, kmeans_by_silhouette]


def near_powers(epsilon):
    """Floats at and beside powers of 1 + epsilon, where rounding decides the bin."""
    exponents = st.integers(-60, 60).map(lambda n: (1 + epsilon) ** n)
    steps = st.integers(-3, 3)
    return st.builds(lambda power, step: power + step * math.ulp(power), exponents, steps)


EPSILONS = st.one_of(st.sampled_from([0.01, 0.1, 0.5, 1.0, 1e-3, 1e-6, 1e-9]), st.floats(1e-9, 1.0))
NORMAL = st.one_of(st.floats(0.9, 1.2), st.sampled_from([0.5, 0.9, 1.0, 1.1, 1.5, 3.5]))
WIDE = st.floats(1e-9, 1e12)


@st.composite
def cases(draw):
    """Slowdowns of some GPUs and an epsilon."""
    epsilon = draw(EPSILONS)
    values = st.one_of(NORMAL, WIDE, near_powers(epsilon))
    gpus = draw(st.lists(values, min_size=1, max_size=12))
    return [min(max(value, 1e-9), 1e12) for value in gpus], epsilon


def ways(epsilon):
    return [exact, lambda slowdown: geometric(slowdown, epsilon)]


def spread_out(slowdown, epsilon):
    """More than one bin, so that values are powers of 1 + epsilon."""
    return max(slowdown) > (1 + epsilon) * (1 + 1e-12) * min(slowdown)


@given(cases())
def test_bins_are_well_formed_and_keep_the_order(case):
    slowdown, epsilon = case
    for way in ways(epsilon):
        binned = way(slowdown)
        assert binned.index.dtype == np.intp
        assert binned.index.shape == (len(slowdown),)
        assert (np.diff(binned.values) > 0).all()
        assert set(binned.index) == set(range(len(binned.values)))
        order = np.argsort(slowdown, kind="stable")
        assert (np.diff(binned.index[order]) >= 0).all()
        assert (binned.scores == binned.values[binned.index]).all()


def test_exact_bins_are_the_distinct_values():
    binned = exact([1.5, 0.9, 1.0, 0.9])
    assert binned.values.tolist() == [0.9, 1.0, 1.5]
    assert binned.index.tolist() == [2, 0, 1, 0]
    assert binned.guarantee == 1


@law(2000)
@given(cases())
@example(([1.0, 1.01, 1.01 * 1.01, 1.01**3, 2.0], 0.01))
@example(([1e-9, 1e12, 0.1, 0.1 * (1 + 1e-9)], 1e-9))
@example(([1.0, math.nextafter(1.0, 2), math.nextafter(1.0, 0), 3.0], 1e-9))
@example(([1.0, math.nextafter(2.0, 3)], 1.0))
def test_the_geometric_guarantee_holds_exactly(case):
    """In rational arithmetic, and as floats are multiplied; epsilon as given and as reported."""
    slowdown, epsilon = case
    binned = geometric(slowdown, epsilon)
    assert binned.guarantee == 1 + epsilon
    for value, score in zip(slowdown, binned.scores.tolist(), strict=True):
        assert value <= score <= (1 + epsilon) * value
        assert Fraction(score) <= (1 + Fraction(epsilon)) * Fraction(value)
        assert Fraction(score) <= Fraction(binned.guarantee) * Fraction(value)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1, 0.5, 1.0])
def test_powers_are_their_own_values_and_their_neighbours_are_bounded(epsilon):
    """A logarithm or a power rounded the wrong way shows here."""
    exponents = np.arange(-29 if epsilon == 1 else -50, 39 if epsilon == 1 else 61)
    powers = (1 + epsilon) ** exponents.astype(float)
    assert (geometric(powers, epsilon).scores == powers).all()
    for step in (-2, -1, 1, 2):
        beside = powers + step * np.spacing(powers)
        for value, score in zip(beside, geometric(beside, epsilon).scores, strict=True):
            assert value <= score
            assert Fraction(score) <= (1 + Fraction(epsilon)) * Fraction(value)


@given(cases())
def test_geometric_values_are_the_powers_that_the_formula_names(case):
    slowdown, epsilon = case
    assume(spread_out(slowdown, epsilon))
    for value, score in zip(slowdown, geometric(slowdown, epsilon).scores, strict=True):
        exponent = math.log(value) / math.log(1 + epsilon)
        nearest = round(exponent)
        slack = 1e-12 * abs(exponent) + 1e-15 / epsilon  # of rounding in the line above
        at_a_power = abs(exponent - nearest) <= slack
        powers = {nearest, nearest + 1} if at_a_power else {math.ceil(exponent)}
        assert any(score == pytest.approx((1 + epsilon) ** n, rel=1e-12) for n in powers)


@given(st.floats(1e-9, 1e11), EPSILONS, st.lists(st.floats(0, 1), max_size=8))
def test_a_class_with_less_spread_than_epsilon_has_one_bin(least, epsilon, places):
    slowdown = [least, *(least * (1 + place * epsilon * 0.99999) for place in places)]
    assume(max(slowdown) < least * (1 + epsilon) * (1 - 1e-14))
    binned = geometric(slowdown, epsilon)
    assert binned.values.tolist() == [max(slowdown)]


def test_a_class_with_more_spread_than_epsilon_has_several_bins():
    assert len(geometric([0.999, 1.001], 0.01).values) == 1
    assert len(geometric([0.999, 1.0091], 0.01).values) == 2


@law(2000)
@given(cases(), st.data())
def test_raising_a_slowdown_never_lowers_its_value(case, data):
    slowdown, epsilon = case
    n = data.draw(st.integers(0, len(slowdown) - 1))
    raised = data.draw(st.one_of(st.just(math.nextafter(slowdown[n], 1e13)), WIDE, NORMAL))
    assume(slowdown[n] <= raised <= 1e12)
    after = [*slowdown[:n], raised, *slowdown[n + 1 :]]
    for way in ways(epsilon):
        before_scores, after_scores = way(slowdown).scores, way(after).scores
        assert after_scores[n] >= before_scores[n]
        if way is exact or (spread_out(slowdown, epsilon) and spread_out(after, epsilon)):
            others = np.arange(len(slowdown)) != n
            assert (after_scores[others] == before_scores[others]).all()


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_gpus_does_not_matter(case, shuffler):
    slowdown, epsilon = case
    order = list(range(len(slowdown)))
    shuffler.shuffle(order)
    for way in ways(epsilon):
        before, after = way(slowdown), way([slowdown[n] for n in order])
        assert after.values.tolist() == before.values.tolist()
        assert after.index.tolist() == before.index[order].tolist()


@given(st.lists(NORMAL, min_size=1, max_size=12), st.integers(-20, 20))
def test_a_power_of_two_scales_exact_bins(slowdown, exponent):
    before, after = exact(slowdown), exact(np.ldexp(slowdown, exponent))
    assert (after.values == np.ldexp(before.values, exponent)).all()
    assert (after.index == before.index).all()


@given(st.lists(NORMAL, min_size=1, max_size=12), st.integers(-20, 20))
def test_epsilon_1_doubles_so_a_power_of_two_scales_geometric_bins(slowdown, exponent):
    before, after = geometric(slowdown, 1.0), geometric(np.ldexp(slowdown, exponent), 1.0)
    assert after.values == pytest.approx(np.ldexp(before.values, exponent), rel=1e-12)
    assert (after.index == before.index).all()


@pytest.mark.parametrize("way", [exact, lambda v: geometric(v, 0.01), *KMEANS])
@pytest.mark.parametrize(
    ("slowdown", "text"),
    [
        ([], "found shape"),
        ([[1.0]], "found shape"),
        ([1.0, 0.0], "GPU number 1 must be between"),
        ([-1.0], "GPU number 0"),
        ([1.0, 1.0, float("nan")], "GPU number 2"),
        ([float("inf")], "GPU number 0"),
        ([1e-10], "found 1e-10"),
    ],
)
def test_bad_slowdowns_are_refused(way, slowdown, text):
    with pytest.raises(ValueError, match=text):
        way(slowdown)


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1e-10, 1.5, float("nan"), float("inf")])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be between"):
        geometric([1.0, 2.0], epsilon)


def test_bins_cannot_be_changed():
    binned = exact([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        binned.values[0] = 3
    with pytest.raises(AttributeError):
        binned.guarantee = 2.0


def three_groups(outliers=()):
    groups = [0.95 + 0.001 * np.arange(8), 1 + 0.001 * np.arange(8), 1.05 + 0.001 * np.arange(8)]
    return np.concatenate([*groups, np.array(outliers, dtype=float)])


def test_kmeans_as_released_takes_two_clusters_and_one_per_outlier():
    assert len(kmeans_as_released(three_groups()).values) == 2
    assert len(kmeans_as_released(three_groups([2.0])).values) == 3


def test_kmeans_by_silhouette_finds_the_groups():
    plain = kmeans_by_silhouette(three_groups())
    assert plain.index.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    centres = np.array([0.9535, 1.0035, 1.0535])
    assert plain.values == pytest.approx(centres / 1.0035)
    assert kmeans_by_silhouette(three_groups([2.0])).index.tolist()[-1] == 3


def test_an_outlier_is_measured_by_the_sample_deviation_of_all_gpus():
    """The last GPU lies 3.01, then 2.96 deviations above the mean (3.10 of the population)."""
    assert len(kmeans_as_released([1.0, 1.001] * 5 + [9.0]).values) == 3
    assert len(kmeans_as_released([0.94, 1.06] * 5 + [2.0]).values) == 2


def test_of_equal_silhouettes_the_first_is_taken():
    """As the released code means to: `index(max(...))`."""
    assert best_clusters({2: 0.5, 3: 0.75, 4: 0.75}) == 3


def test_kmeans_values_are_no_bounds():
    """Half of a cluster is slower than its centre: nothing may be claimed, and nothing is."""
    binned = kmeans_as_released(three_groups())
    assert binned.guarantee is None
    assert (binned.scores < three_groups()).any()


@pytest.mark.parametrize("way", KMEANS)
@pytest.mark.parametrize("slowdown", [[1.0], [1.0] * 5, [1.0, 2.0], [1.0, 1.0, 1.0 + 2e-16, 1.5]])
def test_kmeans_bears_few_and_equal_gpus(way, slowdown):
    binned = way(slowdown)
    assert len(binned.values) <= len(set(slowdown))
    assert binned.index.shape == (len(slowdown),)
    assert binned.index[0] == 0


@pytest.mark.parametrize("way", KMEANS)
@law(200, is_costly=True)
@given(slowdown=st.lists(NORMAL, min_size=1, max_size=12), exponent=st.integers(-8, 8))
def test_kmeans_is_deterministic_and_relative(way, slowdown, exponent):
    before, again = way(slowdown), way(slowdown)
    assert again.values.tobytes() == before.values.tobytes()
    assert again.index.tobytes() == before.index.tobytes()
    scaled = way(np.ldexp(slowdown, exponent))
    assert scaled.values.tobytes() == before.values.tobytes()
    assert scaled.index.tobytes() == before.index.tobytes()


@pytest.mark.parametrize("gpus", [64, 256])
@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_kmeans_as_released_gives_the_released_bins(gpus, name):
    path = DATA / f"artifact_sim_profile_{gpus}gpu_seed42.csv"
    if not path.exists():
        pytest.skip("the measured files are not part of the project: ../shared/data/pal")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    binned = kmeans_as_released([float(row[f"V_{name}"]) for row in rows])
    released = [float(row[f"bin_{name}"]) for row in rows]
    assert binned.scores == pytest.approx(released, abs=2e-6)
    assert len(binned.values) == len(set(released))
