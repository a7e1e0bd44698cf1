"""Longest remaining first: who comes first, and makespans that are the least."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from tests.rollout.policies.repacking.test_wsrpt import ends_s
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law


def test_the_longest_remaining_comes_first_by_time_or_by_gpu_time():
    world = scenario(1, 4, epoch_s=100.0)
    jobs = trace((0, 1, 40), (0, 4, 20))
    assert ends_s(world, jobs, "lrpt") == [40.0, 60.0]
    assert ends_s(world, jobs, "lrpt:width_exponent=1") == [60.0, 20.0]


def test_it_is_asked_at_every_epoch_for_others_become_longest_while_one_runs():
    world = scenario(1, 1, epoch_s=1.0)
    ends = ends_s(world, trace((0, 1, 6), (0, 1, 4)), "lrpt")
    assert max(ends) == 10.0
    assert min(ends) >= 9.0  # one alone from the first to the last would end after 6


def test_a_running_job_stays_for_as_long_as_it_counts_for_more():
    world = scenario(1, 1, epoch_s=1.0)
    jobs = trace((0, 1, 6), (0, 1, 5))
    record = Engine(world, jobs, make("lrpt:stay=1", world), 0).run()
    assert sorted(record.jobs.preemptions.tolist()) == [0, 1]  # at 2 s of the first are left


def test_jobs_of_unknown_times_are_not_stopped_for_others():
    world = scenario(1, 1, epoch_s=1.0, estimates={"kind": "none"})
    assert ends_s(world, trace((0, 1, 40), (3, 1, 90)), "lrpt") == [40.0, 130.0]


@law(60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.just(1), st.integers(1, 9)), min_size=1, max_size=6)
)
def test_single_gpus_end_within_an_epoch_for_each_job_of_the_least_makespan(rows):
    """Muntz and Coffman: without epochs, at the least; the bound is tight for jobs of one GPU."""
    world, jobs = scenario(1, 2, epoch_s=0.25), trace(*rows)
    found = metrics(Engine(world, jobs, make("lrpt", world), 0).run())
    bound = bound_of(world, jobs, Schedules()).makespan_s
    assert bound <= found["makespan_s"]
    if len({submit for submit, _, _ in rows}) == 1:
        assert found["makespan_s"] <= bound + 0.25 * len(rows)


@pytest.mark.parametrize("option", ["width_exponent=3", "stay=-1", "horizon_s=0"])
def test_options_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match=option.partition("=")[0]):
        make(f"lrpt:{option}", scenario(1, 1))
