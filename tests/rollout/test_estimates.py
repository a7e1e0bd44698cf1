"""What policies are told about run times."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.physics.estimates import Oracle
from optsched.traces.trace import US, Failure
from tests.support.builders.physics_parts import jobs, scenario
from tests.support.strategies.common import law


def oracle(kind, trace, seed=0, **more):
    return Oracle(scenario(estimates={"kind": kind, **more}), trace, seed)


def seconds(told, numbers, done=None):
    return (
        told.remaining_us(numbers, [0.0] * len(numbers) if done is None else done) / US
    ).tolist()


def test_exact_is_the_truth():
    told = oracle("exact", jobs([1, 2, 4], run_s=[10, 20, 40]))
    assert seconds(told, [2, 0]) == [40, 10]
    assert seconds(told, [0, 1], [0.25, 1.0]) == [7.5, 1 / US]
    assert seconds(told, []) == []


def test_none_knows_nothing():
    assert all(map(math.isnan, seconds(oracle("none", jobs([1, 1])), [0, 1])))


def test_noise_is_drawn_once_for_each_job_and_is_lognormal():
    trace = jobs([1] * 20_000, run_s=100)
    told = oracle("noisy", trace, sigma=0.7)
    everything = list(range(20_000))
    first = seconds(told, everything)
    assert seconds(told, everything) == first
    assert seconds(oracle("noisy", trace, sigma=0.7), everything[::-1]) == first[::-1]
    assert seconds(told, [7], [0.5]) == [pytest.approx(first[7] / 2)]
    assert seconds(oracle("noisy", trace, seed=1, sigma=0.7), [0, 1]) != first[:2]
    logs = np.log(np.array(first) / 100)
    assert logs.mean() == pytest.approx(0, abs=0.02)
    assert logs.std() == pytest.approx(0.7, rel=0.02)


def test_noise_without_spread_is_the_truth():
    assert seconds(oracle("noisy", jobs([1], run_s=30), sigma=0), [0]) == [30]


def test_history_narrows_from_all_jobs_to_model_and_queue():
    trace = jobs(
        [1] * 5,
        model=["a", "a", "b", "a", "a"],
        queue=["p", "q", "p", "p", "p"],
        run_s=[10, 30, 50, 20, 80],
    )
    told = oracle("history", trace)
    assert math.isnan(seconds(told, [0])[0])
    told.ended(2)
    assert seconds(told, [0]) == [50]  # of all jobs
    told.ended(1)
    assert seconds(told, [0, 2]) == [30, 50]  # of its model
    told.ended(3)
    assert seconds(told, [0]) == [20]  # of its model and queue
    told.ended(0)
    assert seconds(told, [4]) == [15]
    assert seconds(told, [1]) == [30]
    assert seconds(told, [4], [0.125]) == [5]  # it has run for 10 s
    assert seconds(told, [4], [0.5]) == [1 / US]  # longer than the mean: any time now


def test_history_of_failed_jobs_is_what_they_ran():
    failures = [(Failure("x", 3 * US), Failure("x", 4 * US)), ()]
    trace = jobs([1, 1], run_s=100, status=["failed", "passed"], failures=failures)
    told = oracle("history", trace)
    told.ended(0)
    assert seconds(told, [1]) == [7]


@law(300)
@given(
    st.sampled_from(["exact", "noisy", "history"]),
    st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=6),
    st.data(),
)
def test_estimates_fall_as_work_gets_done_and_stay_positive(kind, runs, data):
    told = oracle(kind, jobs([1] * len(runs), run_s=runs), sigma=10)
    for job in range(len(runs)):
        if data.draw(st.booleans()):
            told.ended(job)
    shares = sorted(data.draw(st.lists(st.floats(0, 1), min_size=2, max_size=5)))
    remaining = told.remaining_us([0] * len(shares), shares)
    again = pickle.loads(pickle.dumps(told)).remaining_us([0] * len(shares), shares)
    assert np.array_equal(remaining, again, equal_nan=True)
    if np.isnan(remaining).any():
        assert kind == "history"
        return
    assert (np.diff(remaining) <= 0).all()
    assert (remaining >= 1).all()
    assert np.isfinite(remaining).all()
