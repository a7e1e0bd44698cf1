"""EaCO's algorithm 1 to its end: what is tried, seen, undone, and not tried again."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.sharing.learnt_rates import LearntRates
from optsched.rollout.policies.sharing.watches import Watches
from optsched.rollout.registry import make
from tests.support.builders import shared_gpu_worlds
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.builders.shared_gpu_worlds import held, world
from tests.support.strategies.common import law

POLICY = "eaco-trials:training_epoch_s=20"


def rolled(where, jobs, policy=POLICY):
    return shared_gpu_worlds.rolled(where, jobs, policy)


def test_a_pair_that_breaks_a_tolerance_is_seen_and_undone_at_an_epoch():
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    record = rolled(world(0.4), jobs)
    (first,) = held(record, 0)
    # They run at 0.4, so that 20 s of work are done after 50 s; then the first has 80 s to go.
    assert first == (0.0, 130.0, (0,))
    assert held(record, 1) == [(0.0, 50.0, (0,)), (130.0, 210.0, (0,))]


def test_what_was_seen_is_not_tried_again():
    jobs = trace((0, 1, 100), (0, 1, 100), (200, 1, 50), model=["a", "b", "a"])
    record = rolled(world(0.4), jobs)
    assert sum(map(int, record.jobs.preemptions)) == 1
    assert held(record, 2)[0][0] == 210.0


def test_a_pair_that_holds_stays():
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    record = rolled(world(0.8), jobs)
    assert [held(record, job) for job in (0, 1)] == [[(0.0, 125.0, (0,))]] * 2


def test_overhead_of_the_newcomer_is_not_taken_for_interference():
    """It starts for 30 s, in which it makes no progress: at 0.8 of its speed the pair holds."""
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    record = rolled(world(0.8, costs={"start_s": 30.0}), jobs)
    assert sum(map(int, record.jobs.preemptions)) == 0


def test_a_deadline_that_is_in_danger_parts_them():
    jobs = trace(
        (0, 1, 100), (0, 1, 100), model=["a", "b"], deadline_s=[150.0, np.nan]
    )  # the first would end at 250 s
    record = rolled(world(0.4, tolerance=None), jobs)
    assert held(record, 0)[-1][1] == 130.0
    assert len(held(record, 1)) == 2


def test_a_job_may_join_a_part_of_a_gang():
    jobs = trace((0, 4, 100), (0, 1, 20), model=["a", "b"])
    record = rolled(world(0.9, gpus=4), jobs)
    assert held(record, 1)[0][:2] == (0.0, pytest.approx(20 / 0.9, abs=1e-5))
    assert held(record, 1)[0][2] == (0,)


def test_who_leaves_goes_to_the_next_candidate():
    jobs = trace((0, 1, 200), (0, 1, 100), model=["a", "b"])
    record = rolled(world(0.4, gpus=2), jobs)
    assert held(record, 1) == [(0.0, 50.0, (0,)), (50.0, 130.0, (1,))]


def test_unseen_groups_are_predicted_from_those_that_were_seen():
    rates = LearntRates(world(0.4, most=3), "formula")
    formula = rates.of(("a", "b"))["a"]
    assert formula == pytest.approx(1 / 1.02)
    rates.note(("b", "a"), "a", 0.5)
    assert rates.of(("a", "b")) == {"a": 0.5, "b": pytest.approx(formula)}
    rates.note(("a", "b"), "a", 0.7)
    assert rates.of(("a", "b"))["a"] == pytest.approx(0.6)
    for pair in (("a", "a"), ("b", "b")):
        rates.note(pair, pair[0], 0.5)
    assert rates.of(("a", "a", "b"))["a"] == pytest.approx(0.5 * 0.6)


def test_the_history_begins_with_what_is_told_if_that_is_asked_for():
    told = LearntRates(world(0.4), "told")
    assert told.of(("a", "b")) == {"a": 0.4, "b": 0.4}
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    record = rolled(world(0.4), jobs, POLICY + ",begins_with=told")
    assert held(record, 1)[0][0] == 100.0


def test_what_does_not_fit_is_never_tried():
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    assert held(rolled(world(0.0), jobs), 1)[0][0] == 100.0


RATES = st.sampled_from([0.3, 0.55, 0.7, 0.95, 1.0])
MODELS = ["a", "b", "c"]


@law(60)
@given(st.data())
def test_where_the_truth_is_told_nothing_is_undone(data):
    """Each pair is measured; what three of them do is what the pairs say."""
    pairs = itertools.combinations_with_replacement(MODELS, 2)
    groups = [
        {"types": pair, "rates": [rate, rate if pair[0] == pair[1] else data.draw(RATES)]}
        for pair in pairs
        for rate in [data.draw(RATES)]
    ]
    tolerances = st.sampled_from([None, 1.0, 1.5, 2.0])
    where = scenario(
        nodes=data.draw(st.integers(1, 2)),
        gpus_per_node=2,
        models={
            name: {"utilisation": 0.3, "max_slowdown": data.draw(tolerances)} for name in MODELS
        },
        sharing={"max_jobs_per_gpu": 3, "interference": {"groups": groups}},
    )
    row = st.tuples(st.integers(0, 90), st.integers(1, 2), st.sampled_from([15, 60, 200]))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    names = [data.draw(st.sampled_from(MODELS)) for _ in rows]
    record = rolled(where, trace(*rows, model=names), POLICY + ",begins_with=told")
    assert not record.jobs.preemptions.any()
    assert not record.jobs.migrations.any()
    assert (record.jobs.end_us >= 0).all()


def test_a_company_that_a_job_left_is_watched_anew_once_a_start_would_be_over():
    """Though the watch of those that were there before would have gone on for longer."""
    where = scenario(1, 1, costs={"start_s": 30.0})
    view = SimpleNamespace(now_us=0, done_us=lambda jobs: np.zeros(len(jobs)))
    watches = Watches(where, 1000.0)
    watches.begin(view, "a", [1, 2, 3])
    view.now_us, nothing = 30_000_000, {1: 0, 2: 0, 3: 0}
    assert not watches.seen(view, "a", [1, 2, 3], nothing)
    assert watches.earliest_us(view, "a", [1, 2, 3], nothing) == 1030_000_000
    view.now_us, some = 35_000_000, {1: 5_000_000, 2: 4_000_000, 3: 5_000_000}
    assert not watches.seen(view, "a", [1, 2, 3], some)
    assert watches.earliest_us(view, "a", [1, 2, 3], some) == 1031_000_000
    view.now_us = 40_000_000
    assert not watches.seen(view, "a", [1, 2], nothing)
    assert watches.earliest_us(view, "a", [1, 2], nothing) == view.now_us + 20_000_000
    view.now_us = 60_000_000
    assert not watches.seen(view, "a", [1, 2], {1: 5, 2: 6})
    assert watches.of["a"] == (60_000_000, True, {1: 5, 2: 6})


def test_history_and_trials_are_plain_data():
    where = world(0.4)
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    policy = make(POLICY, where, 0)
    engine = Engine(where, jobs, policy, 0)
    for _ in range(4):
        engine.step()
    assert policy.trials
    other = make(POLICY, where, 0)
    other.restore(of_json(to_json(policy.state())))
    assert other.state() == policy.state()
    assert other.every_epoch
