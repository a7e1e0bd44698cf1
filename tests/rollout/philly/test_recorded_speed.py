"""Busy shares that were recorded of jobs that had been slowed: told back to what they are alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.instance import InstanceError
from tests.rollout.engine.test_accounts import rolled
from tests.support.builders.physics_parts import jobs
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

SPREAD = {"servers": {"counts": [1, 2], "speed": [1.0, 0.8]}}
ONE, TWO = [0, 1, 2, 3], [0, 1, 8, 9]


def record(where, share, recorded=None):
    world = scenario(2, 8, spread=SPREAD, recorded_speed=recorded)
    return rolled(world, jobs([4], run_s=3600, utilization=share), where)


def busy(where, share, recorded=None):
    made = record(where, share, recorded).jobs
    return made.effective_gpu_us[0] / made.allocated_gpu_us[0]


def at(speed):
    return {"counts": [1, 4], "speed": [1.0, speed]}


def test_a_share_recorded_on_two_servers_is_seen_again_on_two_servers():
    assert busy(TWO, 0.5, at(0.8)) == pytest.approx(0.5)
    assert busy(ONE, 0.5, at(0.8)) == pytest.approx(0.625)


@law(20)
@given(st.floats(0, 1), st.floats(0.1, 1))
def test_recorded_speeds_change_what_gpus_compute_and_nothing_else(share, speed):
    told, plain = record(TWO, share, at(speed)), record(TWO, share)
    assert (told.jobs.end_us == plain.jobs.end_us).all()
    assert (told.jobs.useful_gpu_us == plain.jobs.useful_gpu_us).all()
    effective = told.jobs.effective_gpu_us[0]
    assert plain.jobs.effective_gpu_us[0] <= effective <= told.jobs.allocated_gpu_us[0]


def test_a_ladder_of_recorded_speeds_that_rises_is_a_fault():
    with pytest.raises((InstanceError, ValueError), match="must not rise"):
        scenario(2, 8, recorded_speed={"counts": [1, 2, 4], "speed": [1.0, 0.7, 0.8]})
