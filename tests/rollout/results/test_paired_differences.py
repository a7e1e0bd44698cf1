"""Paired differences of policies: by seed, by drawn trace, and by blocks of one trace's jobs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.results.intervals import (
    block_length,
    block_sums,
    bootstrapped,
    difference_of_means,
    mean,
    percentiles,
)
from optsched.rollout.settings import SETTINGS
from tests.support.builders.small_rollouts import scenario, trace
from tests.support.strategies.common import law

VALUES = st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=12).map(np.array)
SMALL = optsched.read_scenario("philly-small").changed({"trace.jobs": 60})


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "resamples", 499)


# --- laws of intervals ------------------------------------------------------------------------


@law(200)
@given(VALUES)
def test_an_interval_holds_the_mean_and_lies_within_the_values(values):
    low, high = bootstrapped((values,), mean)
    slack = 1e-9 * np.abs(values).max()
    assert values.min() - slack <= low <= values.mean() + slack
    assert values.mean() - slack <= high <= values.max() + slack


@law(100)
@given(st.lists(st.integers(-99, 99), min_size=2, max_size=15), st.integers(-1000, 1000))
def test_values_that_are_moved_move_their_interval(values, by):
    here = np.array(values, dtype=float)  # whole, so that equal means are equal to the last bit
    one, other = bootstrapped((here,), mean), bootstrapped((here + by,), mean)
    assert np.array(other) == pytest.approx(np.array(one) + by, rel=1e-6, abs=1e-3)


@given(st.floats(-1e4, 1e4), st.integers(2, 9))
def test_the_same_number_many_times_has_an_interval_of_no_width(value, count):
    assert bootstrapped((np.full(count, value),), mean) == pytest.approx((value, value))


def test_what_cannot_be_resampled_has_none():
    for values in ([], [1.0], [1.0, np.nan]):
        assert bootstrapped((np.array(values),), mean) is None
        assert percentiles(np.array(values)) is None


@law(100)
@given(st.lists(st.floats(0, 1e6) | st.just(np.nan), min_size=1, max_size=40), st.integers(1, 9))
def test_blocks_lose_no_job(values, block):
    total, count = block_sums(np.array(values), block)
    told = [value for value in values if value == value]
    assert len(total) == len(count) == -(-len(values) // block)
    assert count.sum() == len(told)
    assert total.sum() == pytest.approx(sum(told))
    for n in range(len(total)):
        inside = [v for v in values[n * block : (n + 1) * block] if v == v]
        assert (total[n], count[n]) == (pytest.approx(sum(inside)), len(inside))


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        low, high = bootstrapped((rng.exponential(10, 30),), mean)
        held += low <= 10 <= high
    assert 0.88 <= held / 200 <= 0.98


def test_blocks_see_that_neighbours_are_alike_and_single_jobs_do_not():
    """Waves of 20 alike jobs: of 400 jobs there are but 20 independent figures."""
    rng, blocks, single = np.random.default_rng(6), 0, 0
    for _ in range(100):
        jobs = np.repeat(rng.normal(0, 1, 20), 20)
        zero = np.zeros(400)
        for length in (1, block_length(400)):
            sums = (*block_sums(jobs, length), *block_sums(zero, length))
            low, high = bootstrapped(sums, difference_of_means)
            blocks += (low <= 0 <= high) * (length > 1)
            single += (low <= 0 <= high) * (length == 1)
    assert blocks >= 85
    assert single <= 50


# --- comparisons ------------------------------------------------------------------------------


def test_differences_are_taken_seed_by_seed():
    compared = optsched.compare(SMALL, ["fifo", "srtf"], seeds=[0, 4, 7])
    told = compared.differences().loc[("srtf", "jct_mean_s")]
    runs = compared.runs().set_index(["policy", "seed"])["jct_mean_s"]
    found = [runs["srtf", seed] - runs["fifo", seed] for seed in (0, 4, 7)]
    assert told["difference"] == pytest.approx(np.mean(found))
    assert told["value"] - told["base"] == pytest.approx(np.mean(found))
    assert min(found) <= told["low"] <= told["difference"] <= told["high"] <= max(found)
    assert told["over"] == "3 seeds"
    assert set(compared.frame()["seeds"]) == {3}
    assert "fewer than 10" in compared.basis


def test_pairing_tells_apart_what_two_intervals_do_not():
    """Seeds differ by far more than policies do, and all seeds say the same of the policies."""
    compared = optsched.compare(SMALL, ["srtf", "las"], seeds=5)
    frame, told = compared.frame(), compared.differences().loc[("las", "jct_mean_s")]
    width = frame["jct_mean_s_high"] - frame["jct_mean_s_low"]
    assert told["high"] - told["low"] < 0.5 * width.min()


def test_one_trace_has_intervals_over_blocks_of_its_jobs():
    one = optsched.simulate(SMALL, "fifo").record.trace
    compared = optsched.compare(SMALL, ["fifo", "srtf"], trace=one, seeds=3)
    table = compared.differences()
    told = table.loc[("srtf", "jct_mean_s")]
    assert told["over"] == "8 blocks of 8 jobs"
    assert told["low"] < told["difference"] < told["high"]
    assert np.isnan(table.loc[("srtf", "utilization"), "low"])
    assert table.loc[("srtf", "utilization"), "over"] == ""
    assert "Means over" not in compared.basis
    assert (
        "95 % intervals of differences are over 8 blocks of 8 jobs of one trace" in compared.basis
    )
    assert len(compared.runs()) == 2
    assert set(compared.frame()["seeds"]) == {1}
    alone = optsched.compare(SMALL, ["fifo", "srtf"], trace=one).differences()
    assert alone.equals(table)


def test_a_policy_that_does_the_same_differs_by_nothing():
    compared = optsched.compare(SMALL, ["fifo", "fifo:backfill=false"])
    table = compared.differences()
    assert (table["difference"] == 0).all()
    assert table.loc[("fifo:backfill=false", "jct_mean_s"), ["low", "high"]].tolist() == [0, 0]


def test_traces_drawn_in_blocks_have_the_middle_of_their_differences():
    compared = optsched.compare(scenario(), ["fifo", "las"], trace=trace(40), seeds=8, resample=5)
    told = compared.differences().loc[("las", "jct_mean_s")]
    runs = compared.runs().set_index(["policy", "seed"])["jct_mean_s"]
    found = [runs["las", seed] - runs["fifo", seed] for seed in range(8)]
    assert (told["low"], told["high"]) == pytest.approx(np.percentile(found, [2.5, 97.5]))
    assert told["over"] == "8 traces"


def test_one_policy_differs_from_nothing():
    compared = optsched.compare(SMALL, ["fifo"])
    assert len(compared.differences()) == 0
    assert compared.basis == ""


def test_an_own_policy_object_stands_beside_those_of_the_registry():
    """It was an AttributeError: compare took names only."""

    class Lifo:
        name = "lifo"

        def decide(self, view):
            free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
            place = {}
            for job in reversed(view.pending.tolist()):
                width = view.demand(job)
                if width <= len(free):
                    place[job], free = tuple(sorted(free[:width])), free[width:]
            return optsched.rollout.Decision(place=place)

    compared = optsched.compare(SMALL, ["fifo", Lifo()], seeds=[2, 5])
    assert compared.runs()["policy"].tolist() == ["fifo", "fifo", "lifo", "lifo"]
    assert compared.runs()["seed"].tolist() == [2, 5, 2, 5]
    assert ("lifo", "jct_mean_s") in compared.differences().index
