"""An elastic job with the cluster to itself: its earliest end is that of the best widths of all."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.bounds.attempts import Attempts
from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules, moves_matter
from optsched.bounds.verify.bounds import verify_bounds
from optsched.rollout.engine.decision import Decision
from optsched.rollout.engine.engine import Engine
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

WIDTHS = (1, 2, 4)
FIXED = Schedules(moves=False)


class Following:
    """Has a job on so many of the first GPUs in each of its phases."""

    name, every_epoch = "following", True

    def __init__(self, widths):
        self.widths = widths

    def decide(self, view):
        width = self.width(min(view.phase(0), len(self.widths) - 1))
        return Decision(place={job: range(width) for job in (*view.pending, *view.running)})

    def width(self, phase):
        return self.widths[phase]


class Restless(Following):
    """Changes its mind now and then within a phase, too; seldom enough to get on."""

    def __init__(self, seed, phases):
        super().__init__([1] * phases)
        self.random, self.now = random.Random(seed), 1

    def width(self, phase):
        if self.random.random() < 0.1:
            self.now = self.random.choice(WIDTHS)
        return self.now


def world(tables, rescale_s):
    phases = [
        {"work_gpu_s": 1.0, "speedup": {"kind": "table", "gpus": list(WIDTHS), "speedup": table}}
        for table in tables
    ]
    models = {"e": {"phases": phases, "rescale_s": rescale_s}}
    return scenario(1, 4, models=models, epoch_s=1.0)


def ends(scene, jobs, policy):
    return Engine(scene, jobs, policy, 0).run().jobs.end_us.tolist()[0] / 1e6


TABLES = st.lists(
    st.tuples(st.just(1.0), *[st.sampled_from([0.5, 0.9, 1.3, 2.0, 3.1])] * 2).map(list),
    min_size=1,
    max_size=4,
)


@law(40)
@given(TABLES, st.sampled_from([0.5, 3.0, 20.0]), st.integers(1, 90), st.integers(0, 99))
def test_its_earliest_end_is_the_least_over_all_widths_of_its_phases(
    tables, rescale_s, run_s, seed
):
    scene, jobs = world(tables, rescale_s), trace((0, 1, run_s), model=["e"])
    found = bound_of(scene, jobs, FIXED)
    verify_bounds(scene, jobs, found)
    sequences = itertools.product(WIDTHS, repeat=len(tables))
    least = min(ends(scene, jobs, Following(widths)) for widths in sequences)
    assert least * (1 - 1e-9) - 1e-5 <= found.jct_mean_s <= least
    assert found.makespan_s <= least
    assert found.jct_mean_s <= ends(scene, jobs, Restless(seed, len(tables)))


def test_a_start_costs_its_overhead_where_no_move_can_cut_it_short():
    scene, jobs = world([[1.0, 2.0, 2.0]], 7.0), trace((0, 1, 100), model=["e"])
    assert bound_of(scene, jobs, FIXED).jct_mean_s == pytest.approx(57.0, abs=1e-5)
    assert bound_of(scene, jobs, Schedules()).jct_mean_s == pytest.approx(50.0, abs=1e-5)


def test_rigid_jobs_restart_at_what_a_restart_costs_where_none_is_moved():
    costs = {"start_s": 9.0, "restore_s": 5.0}
    scene, jobs = scenario(1, 1, costs=costs | {"checkpoint_s": 0.0}), trace((0, 1, 100))
    assert bound_of(scene, jobs, FIXED).jct_mean_s == bound_of(scene, jobs, Schedules()).jct_mean_s
    models = {"m": {"rescale_s": 20.0}}
    own, jobs = scenario(1, 1, costs=costs, models=models), trace((0, 1, 100), model=["m"])
    assert bound_of(own, jobs, FIXED).jct_mean_s == 120.0
    assert bound_of(own, jobs, Schedules()).jct_mean_s == 105.0


def test_overheads_raise_the_bound_of_boa_cloud_by_a_tenth():
    """Jobs of some ten minutes start for 50 s, which schedules that move jobs could cut short."""
    few = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 30})
    free, fixed = optsched.bound(few), optsched.bound(few, schedules=FIXED)
    assert 1.08 < fixed.jct_mean_s / free.jct_mean_s < 1.15


def test_comparisons_take_the_class_without_moves_where_no_job_was_moved():
    few = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 20})
    (row,) = optsched.compare(few, ["boa"]).bounded().bounds
    assert "no moves to as many other GPUs" in row.schedules
    assert row.jct_mean_s_bound == optsched.bound(few, schedules=FIXED).jct_mean_s


SECONDS = st.sampled_from([0.0, 1.0, 4.0])


@law(60)
@given(SECONDS, SECONDS, SECONDS, st.none() | SECONDS, st.booleans())
def test_moves_matter_where_they_cut_an_overhead_short_and_nowhere_else(
    start_s, restore_s, checkpoint_s, rescale_s, is_elastic
):
    costs = {"start_s": start_s, "restore_s": restore_s, "checkpoint_s": checkpoint_s}
    phases = world([[1.0, 1.5, 2.0]], 0.0).models["e"].phases if is_elastic else ()
    models = {"e": {"phases": phases, "rescale_s": rescale_s}}
    scene = scenario(1, 4, costs=costs | {"checkpoint_every_s": 9.0}, models=models)
    model = scene.models["e"]
    free, fixed = (Attempts(scene, Schedules(moves=moves)) for moves in (True, False))
    for each in (model, None):
        least, own = free.overheads(each), fixed.overheads(each)
        assert all(a <= b for a, b in zip(least, own, strict=True))
        if each is None or not moves_matter(scene):
            assert least == own
    if free.overheads(model)[1] != fixed.overheads(model)[1]:
        assert moves_matter(scene)
