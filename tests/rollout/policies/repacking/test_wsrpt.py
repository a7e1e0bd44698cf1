"""Weighted shortest remaining processing time, and placements that move gangs where it pays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.traces.trace import US
from tests.rollout.policies.rounds.test_kept_rounds import busy_traces, rolled_out, still_scenarios
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law


def ends_s(world, jobs, policy):
    """When each job ends."""
    return (Engine(world, jobs, make(policy, world), 0).run().jobs.end_us / US).tolist()


@law(100)
@given(st.data())
def test_it_need_not_be_called_when_nothing_has_happened(data):
    world = data.draw(still_scenarios())
    jobs = data.draw(busy_traces(world))
    text = data.draw(st.sampled_from(["wsrpt", "wsrpt:stay=0,backfill=false", "wsrpt:stay=1"]))
    often = make(text, world)
    often.every_epoch = True
    one = Engine(world, jobs, make(text, world), 0).run()
    other = Engine(world, jobs, often, 0).run()
    assert one.jobs.end_us.tolist() == other.jobs.end_us.tolist()


@pytest.mark.parametrize("policy", ["wsrpt", "lrpt"])
@law(100)
@given(st.data())
def test_a_rollout_that_was_cut_short_ends_in_the_same_bytes(policy, data):
    world = data.draw(still_scenarios())
    jobs = data.draw(busy_traces(world))
    cut = rolled_out(world, jobs, policy, data.draw(st.integers(0, 30)))
    assert cut == rolled_out(world, jobs, policy)


def test_on_equal_gpus_of_one_node_it_is_srtf_or_srsf():
    world = scenario(1, 4)
    jobs = trace((0, 1, 30), (0, 4, 20), (0, 2, 25))  # by time 1, 2, 0; by GPU-time 0, 2, 1
    assert ends_s(world, jobs, "wsrpt:width_exponent=0") == [50.0, 20.0, 45.0]
    assert ends_s(world, jobs, "wsrpt:width_exponent=1") == [30.0, 50.0, 25.0]


def test_a_job_that_runs_is_stopped_for_a_much_shorter_one_only():
    world = scenario(1, 1)
    jobs = trace((0, 1, 30), (10, 1, 15))  # 20 s are left of the first
    assert ends_s(world, jobs, "wsrpt:stay=0") == [45.0, 25.0]
    assert ends_s(world, jobs, "wsrpt:stay=0.3") == [30.0, 45.0]


def test_a_gang_moves_away_from_a_neighbour_where_that_pays():
    """Two gangs of 2 stand on one node when a job on the other one ends."""
    rows = ((0, 3, 10), (0, 2, 100), (0, 2, 100))
    for restore_s, moves in ((0.0, 1), (1.0, 1), (1000.0, 0)):
        world = scenario(2, 4, neighbours={"shared_server": 0.5}, costs={"restore_s": restore_s})
        record = Engine(world, trace(*rows), make("wsrpt", world), 0).run()
        assert metrics(record)["migrations"] == moves


def test_a_gang_that_waits_goes_where_it_has_no_neighbour():
    world = scenario(2, 4, neighbours={"shared_server": 0.5})
    jobs = trace((0, 2, 10), (0, 2, 10), (0, 1, 10))
    assert ends_s(world, jobs, "wsrpt") == [10.0, 10.0, 10.0]
    assert ends_s(world, jobs, "srtf") == [20.0, 20.0, 10.0]


@pytest.mark.parametrize("kind", ["none", "history"])
def test_jobs_of_unknown_times_keep_their_gpus(kind):
    world = scenario(1, 2, estimates={"kind": kind})
    record = Engine(world, trace((0, 2, 30), (1, 1, 5), (2, 1, 5)), make("wsrpt", world), 0).run()
    assert metrics(record)["preemptions"] == 0


def test_who_runs_behind_a_gang_that_may_not_be_overtaken_is_stopped_though_it_does_not_fit():
    world = scenario(1, 4)
    jobs = trace((0, 3, 10), (0, 1, 100), (5, 2, 30))
    options = "width_exponent=0,stay=0"
    assert ends_s(world, jobs, f"wsrpt:{options}") == [10.0, 100.0, 40.0]
    assert ends_s(world, jobs, f"wsrpt:{options},backfill=false") == [10.0, 105.0, 40.0]


def test_a_gang_that_lost_its_work_by_a_move_stands_where_it_stood_at_its_start():
    """At 10 s one of 95 s moves and has 100 s again: so at 11 s that of 97 s comes before it."""
    costs = {"stop_loses_work": True}
    world = scenario(2, 4, neighbours={"shared_server": 0.5}, costs=costs)
    jobs = trace((0, 3, 10), (0, 2, 100), (0, 2, 100), (9, 5, 99), (11, 5, 97))
    policy = make("wsrpt:width_exponent=0,stay=0", world)
    record = Engine(world, jobs, policy, 0).run()
    assert record.jobs.migrations.tolist() == [0, 0, 1, 0, 0]
    assert record.jobs.preemptions.tolist() == [0, 0, 1, 0, 0]
