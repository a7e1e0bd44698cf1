"""heSRPT, SmartFill and Whittle's index against closed forms, brute force and numerical optima."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from optsched.rollout.policies.malleable.fills import Filling
from optsched.rollout.policies.malleable.optimal_shares import (
    hesrpt_shares,
    smartfill_shares,
    smartfill_weights,
    whittle_gains,
)
from optsched.rollout.policies.malleable.whole_gpus import filled_in_order
from tests.support.strategies.common import law

EXPONENTS = st.floats(0.05, 0.95)


@st.composite
def concave(draw, most=8):
    """Speeds at 0, 1, ..., most GPUs: 0 at first, ascending, concave; of some steps the same."""
    steps = draw(st.lists(st.sampled_from([0.05, 0.3, 0.5, 1.0]), min_size=1, max_size=most))
    return np.concatenate([[0.0], np.cumsum(sorted(steps, reverse=True))])


# --- heSRPT -----------------------------------------------------------------------------------


def test_shares_of_hesrpt_by_hand():
    assert hesrpt_shares(2, 0.5).tolist() == [0.25, 0.75]
    assert hesrpt_shares(3, 0.5) == pytest.approx([1 / 9, 3 / 9, 5 / 9])
    assert hesrpt_shares(4, 0.75) == pytest.approx(np.diff([0, 1, 16, 81, 256]) / 256)
    assert hesrpt_shares(1, 0.3).tolist() == [1.0]
    assert hesrpt_shares(0, 0.3).tolist() == []


@law(500)
@given(st.integers(1, 200), EXPONENTS)
def test_shares_of_hesrpt_are_all_of_one_and_more_for_shorter_jobs(jobs, exponent):
    shares = hesrpt_shares(jobs, exponent)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    assert (np.diff(shares) >= -1e-12).all()
    if jobs > 1:  # what the others are given among themselves does not depend on the shortest
        rest = shares[:-1] / max(1 - shares[-1], 1e-300)
        assert rest == pytest.approx(hesrpt_shares(jobs - 1, exponent), abs=1e-9)


def flow_time(work, exponent, shares_by_count):
    """Total flow time of jobs on one GPU's worth, shared between ends of jobs as told."""
    left, total = np.array(work, dtype=float), 0.0
    active = np.arange(len(work))
    while len(active):
        rates = np.array(shares_by_count(active)) ** exponent
        with np.errstate(divide="ignore"):
            step = (left[active] / rates).min()
        total += step * len(active)
        left[active] -= rates * step
        active = active[left[active] > 1e-12 * max(work)]
    return total


@law(60, is_costly=True)
@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=3), st.floats(0.2, 0.9))
def test_hesrpt_is_optimal_for_jobs_of_one_exponent(work, exponent):
    """No other shares between two ends of jobs, of any subset, do better."""
    work = sorted(work, reverse=True)
    best = flow_time(work, exponent, lambda active: hesrpt_shares(len(active), exponent))
    ranks = range(len(work))
    subsets = [each for n in ranks for each in itertools.combinations(ranks, n + 1)]
    where = {s: i * len(work) for i, s in enumerate(subsets)}

    def cost(free):
        def shares(active):
            begin = where[tuple(active.tolist())]
            weights = np.exp(np.clip(free[begin : begin + len(active)], -30, 30))
            return weights / weights.sum()

        return flow_time(work, exponent, shares)

    rng = np.random.default_rng(1)
    for _ in range(2):
        begin = rng.normal(size=len(subsets) * len(work))
        found = minimize(cost, begin, method="Nelder-Mead", options={"maxfev": 150})
        assert found.fun >= best * (1 - 1e-9)


@law(200)
@given(st.integers(1, 12), EXPONENTS, st.integers(1, 64))
def test_the_value_of_hesrpt_is_its_closed_form(jobs, exponent, gpus):
    """The cost of a unit of work by rank: (k ** c - (k - 1) ** c) ** (1 / c), c = 1 / (1 - p)."""
    c = 1 / (1 - exponent)
    ranks = np.arange(jobs + 1) / jobs
    weights = jobs * np.diff(ranks**c) ** (1 / c) / gpus**exponent
    work = np.sort(np.random.default_rng(jobs).uniform(0.1, 9, jobs))[::-1]
    found = flow_time(work, exponent, lambda active: gpus * hesrpt_shares(len(active), exponent))
    assert found == pytest.approx(weights @ work)


# --- SmartFill --------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.2, 0.5, 0.8])
def test_smartfill_is_hesrpt_where_speeds_are_powers(exponent):
    grains = 20_000  # of GPUs: so finely divided, curves are as good as smooth
    speed = np.arange(grains + 1) ** exponent
    found = smartfill_shares([speed] * 4, grains) / grains
    assert found == pytest.approx(hesrpt_shares(4, exponent), abs=2e-3)
    c = 1 / (1 - exponent)
    closed = np.diff(np.arange(5.0) ** c) ** (1 / c) / grains**exponent
    assert smartfill_weights([speed] * 4, grains) == pytest.approx(closed, rel=1e-3)


def test_smartfill_by_hand():
    linear = np.arange(5.0)
    assert smartfill_shares([linear, linear, linear], 4).tolist() == [0, 0, 4]
    assert smartfill_weights([linear, linear, linear], 4) == [0.25, 0.5, 0.75]
    flat = np.array([0.0, 1.0])  # one GPU is all that a job can use
    assert smartfill_shares([flat, flat], 4).tolist() == [1, 1]
    assert smartfill_weights([flat, flat], 1) == [1.0, 2.0]
    assert smartfill_shares([flat, flat], 1).tolist() == [0, 1]
    assert smartfill_shares([], 4).tolist() == []
    assert smartfill_shares([np.array([0.0, 1.0, 1.0 + 1e-14])], 2).tolist() == [1]  # adds nothing


def least_flow(work, speed, gpus, memory):
    """Least total flow time by brute force: all whole widths, kept from one end to the next."""
    key = tuple(sorted(round(x, 9) for x in work if x > 1e-9))
    if not key:
        return 0.0
    if key not in memory:
        options = []
        for widths in itertools.product(range(len(speed)), repeat=len(key)):
            if sum(widths) > gpus or not any(widths):
                continue
            rates = [speed[k] for k in widths]
            step = min(x / r for x, r in zip(key, rates, strict=True) if r)
            rest = [x - r * step for x, r in zip(key, rates, strict=True)]
            options.append(step * len(key) + least_flow(rest, speed, gpus, memory))
        memory[key] = min(options)
    return memory[key]


@law(100, is_costly=True)
@given(concave(4), st.integers(1, 4), st.lists(st.floats(0.1, 9), min_size=1, max_size=3))
def test_no_whole_widths_do_better_than_the_weights_of_smartfill_say(speed, gpus, work):
    """The bound is reached where jobs do end in the order of their work; never beaten."""
    speed, work = speed[: gpus + 1], sorted(work, reverse=True)
    bound = np.dot(smartfill_weights([speed] * len(work), gpus), work)
    assert least_flow(work, speed, gpus, {}) >= bound * (1 - 1e-6)


@law(300)
@given(concave(), st.integers(1, 10), st.lists(st.floats(0.1, 9), min_size=1, max_size=6))
def test_smartfill_costs_what_its_weights_say(speed, gpus, work):
    """Followed to the end, jobs end in the order of their work, at the least cost."""
    left, total = np.array(sorted(work, reverse=True)), 0.0
    speeds = [speed[: gpus + 1]] * len(left)
    bound = np.dot(smartfill_weights(speeds, gpus), left)
    while len(left):
        shares = smartfill_shares(speeds[: len(left)], gpus)
        assert (np.diff(shares) >= 0).all()
        rates = speeds[0][shares]
        step = left[-1] / rates[-1]
        total += step * len(left)
        left = (left - rates * step)[:-1]
        assert (left >= -1e-9).all()
    assert total == pytest.approx(bound)


@law(300)
@given(st.lists(concave(), min_size=1, max_size=6), st.integers(1, 12), st.floats(0.01, 100))
def test_shares_of_smartfill_are_feasible_and_know_no_unit_of_work(speeds, gpus, factor):
    speeds = [speed[: gpus + 1] for speed in speeds]
    shares = smartfill_shares(speeds, gpus)
    assert shares.sum() <= gpus
    assert all(0 <= k < len(speed) for k, speed in zip(shares, speeds, strict=True))
    if sum(len(speed) - 1 for speed in speeds) >= gpus:
        assert shares.sum() == gpus
    weights = smartfill_weights(speeds, gpus)
    value = sum(w * s[k] for w, s, k in zip(weights, speeds, shares, strict=True))
    assert value == pytest.approx(len(speeds))  # the cost falls as fast as jobs are there
    scaled = smartfill_weights([factor * speed for speed in speeds], gpus)
    assert scaled == pytest.approx([weight / factor for weight in weights])


def test_smartfill_leaves_a_job_alone_that_has_no_width_within_the_gpus():
    none, flat = np.zeros(1), np.array([0.0, 1.0])
    assert smartfill_weights([none, flat, none, flat], 1) == [0.0, 1.0, 0.0, 2.0]
    assert smartfill_shares([none, flat, none, flat], 1).tolist() == [0, 0, 0, 1]


@law(200)
@given(st.lists(concave(), min_size=1, max_size=3), st.data())
def test_fills_that_are_kept_from_call_to_call_are_those_made_anew(speeds, data):
    for gpus in data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=3)):
        known = [speed[: gpus + 1] for speed in speeds]
        filling = Filling(known, gpus)
        for _ in range(3):
            jobs = data.draw(st.lists(st.sampled_from(range(len(known))), max_size=6))
            rows = [known[n] for n in jobs]
            weights = smartfill_weights(rows, gpus)
            assert filling.weights(jobs) == weights
            shares = filling.shares(np.array(jobs, dtype=np.int64)).tolist()
            assert shares == (one_by_one(rows, weights, gpus) if jobs else [])


def one_by_one(speeds, weights, gpus):
    """GPUs of each job if all gains are looked at; of those as large, the last job's come first."""
    gains = [w * np.diff(speed) for w, speed in zip(weights, speeds, strict=True)][::-1]
    every = np.concatenate(gains)
    every = (every / every.max(initial=1e-300)).round(12)
    return filled_in_order(every, list(map(len, gains)), gpus)[::-1].tolist()


@law(100)
@given(st.integers(0, 1 << 30), st.integers(1, 300))
def test_gains_of_many_jobs_far_from_the_last_one_need_no_look(seed, gpus):
    """Of curves that bend everywhere; with room for some of the jobs, all that they can use."""
    draw = np.random.default_rng(seed)
    widths = np.arange(draw.integers(1, min(gpus, 64), endpoint=True) + 1)
    known = [widths / (1 - part + part * widths) for part in draw.uniform(0.01, 0.4, 3)]
    filling, order = Filling(known, gpus), []
    for _ in range(20):
        order.insert(draw.integers(0, len(order), endpoint=True), draw.integers(0, 3))
        rows = [known[n] for n in order]
        weights = smartfill_weights(rows, gpus)
        assert filling.weights(order) == weights
        shares = filling.shares(np.array(order, dtype=np.int64)).tolist()
        assert shares == one_by_one(rows, weights, gpus)


def test_sums_of_fills_are_taken_one_by_one():
    """In the order of GPUs, so that results are the same whatever numpy does elsewhere."""
    draw = np.random.default_rng(0)
    for count in [*range(40), 1000, 2488]:
        gains = draw.exponential(size=count + 1) ** 3
        for each in (gains[1:], gains[:0:-1]):
            total = 0.0
            for gain in each.tolist():
                total -= gain
            assert np.subtract.reduce(each, initial=0.0) == total


# --- Whittle's index --------------------------------------------------------------------------


@law(500)
@given(concave(), st.floats(1e-3, 1e3))
def test_the_index_gives_the_best_width_at_every_price(speed, price):
    k = np.arange(1, len(speed))
    cost = (1 + price * k) / speed[1:]
    gains = whittle_gains(speed)
    assert (np.diff(gains[np.isfinite(gains)]) <= 1e-9 * gains[np.isfinite(gains)][:-1]).all()
    chosen = int((gains > price).sum())
    assert cost[chosen - 1] <= cost.min() * (1 + 1e-9)


def test_the_index_by_hand():
    # Figure 1 of EPEW: at price mu the width of sqrt(k) is 1 / mu, that of the relaxation
    root = np.sqrt(np.arange(101.0))
    assert int((whittle_gains(root) > 1 / 20).sum()) == pytest.approx(20, abs=1)
    assert whittle_gains(np.array([0.0, 1.0, 1.6])).tolist() == [np.inf, pytest.approx(1.5)]
