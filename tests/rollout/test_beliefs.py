"""Beliefs: policies are told of errors, physics know the truth, each error is drawn by itself."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.boa.speedup_curves import curve
from optsched.documents.faults import InstanceError
from optsched.rollout import simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.beliefs import believed
from optsched.rollout.policies.budgets.arrival_rates import Stream, with_errors
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.scenario_parts import Beliefs
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import scenarios, traces

PROFILE = {"gpus": ["a"], "slowdown": {"A": [1.0]}, "kind": "persistent"}
SIGMAS = st.sampled_from([0.0, 0.0, 0.1, 1.0, 10.0])
BELIEFS = st.builds(
    Beliefs, speedups=SIGMAS, slowdowns=SIGMAS, interference=SIGMAS, arrivals=SIGMAS, works=SIGMAS
)


@law(60)
@given(scenarios(types=None), BELIEFS, st.integers(0, 3))
def test_what_is_believed_is_a_scenario(world, beliefs, seed):
    told = believed(world.model_copy(update={"beliefs": beliefs}), seed)
    assert Scenario.from_document(json.loads(told.to_json())) == told
    assert told.gpus == world.gpus
    for name, model in world.models.items():
        for true, other in zip(model.phases, told.models[name].phases, strict=True):
            assert other.work_gpu_s == true.work_gpu_s
            for was, now in zip(true.curves, other.curves, strict=True):
                assert tuple(now.widths) == tuple(was.widths)
                assert all(math.isfinite(speed) and speed > 0 for speed in curve(now)[1])


@law(40)
@given(scenarios(types=None), BELIEFS, st.integers(0, 3))
def test_each_error_is_drawn_by_itself(world, beliefs, seed):
    """So that with one kind of error more or less the others stay as they are."""

    def told(**changes):
        chosen = beliefs.model_copy(update=changes)
        return believed(world.model_copy(update={"beliefs": chosen}), seed)

    whole = told()
    assert told(slowdowns=0.0, interference=0.0).models == whole.models
    assert told(speedups=0.0, interference=0.0).profile == whole.profile
    assert told(speedups=0.0, slowdowns=0.0).sharing == whole.sharing
    if beliefs.speedups == 0:
        assert whole.models == world.models
    if beliefs.slowdowns == 0:
        assert whole.profile == world.profile
    if beliefs.interference == 0:
        assert whole.sharing == world.sharing


@given(scenarios())
def test_without_errors_the_truth_is_told(world):
    assert believed(world, 0) is world


@law(40)
@given(st.data())
def test_physics_know_the_truth(data):
    """A policy that asks for nothing but places is as before, whatever is believed."""
    world = data.draw(scenarios(plain=True))
    jobs = data.draw(traces(world))
    other = world.model_copy(update={"beliefs": data.draw(BELIEFS)})
    records = [
        Engine(where, jobs, make("fifo", where, 0), 0, keep_intervals=True).run()
        for where in (world, other)
    ]
    assert sorted(records[0].intervals) == sorted(records[1].intervals)
    assert records[0].energy_j == records[1].energy_j


def test_measured_groups_have_errors_but_what_does_not_fit_does_not():
    groups = [
        {"types": ["a", "b"], "rates": [0.5, 0.25]},
        {"types": ["a"], "rates": [1.0]},
        {"types": ["b", "b"], "rates": [0.0, 0.0]},
    ]
    world = read_scenario("philly-small").changed(
        {
            "models": {"a": {}, "b": {}},
            "sharing": {"max_jobs_per_gpu": 2, "interference": {"groups": groups}},
            "beliefs.interference": 0.7,
        }
    )
    pair, alone, misfit = believed(world, 3).sharing.interference.groups
    assert all(0 < rate < 1 for rate in pair.rates)
    assert pair.rates != (0.5, 0.25)
    assert alone.rates == (1.0,)
    assert misfit.rates == (0.0, 0.0)
    assert believed(world, 3) == believed(world, 3)
    assert believed(world, 4) != believed(world, 3)


def test_a_profile_of_another_time_is_told_in_place_of_the_true_one():
    world = read_scenario("pal-64").changed({"trace.jobs": 60})
    true = world.profile
    turned = true.model_copy(
        update={"slowdown": {name: values[::-1] for name, values in true.slowdown.items()}}
    )
    stale = world.changed({"beliefs.profile": json.loads(turned.to_json())})
    assert believed(stale, 0).profile == turned
    assert believed(stale, 0).beliefs == Beliefs()
    fresh, misled = (
        simulate(where, "pal-greedy").metrics["jct_mean_s"] for where in (world, stale)
    )
    assert misled != fresh


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"slowdowns": -1}, "beliefs.slowdowns"),
        ({"speedups": "much"}, "beliefs.speedups"),
        (
            {"profile": {"gpus": ["a"], "slowdown": {"A": [1.0]}, "kind": "persistent"}},
            "no profile",
        ),
    ],
)
def test_bad_beliefs_are_named(told, fault):
    with pytest.raises(InstanceError, match=fault.replace(".", r"\.")):
        read_scenario("philly-small").changed({"beliefs": told})


def test_a_told_profile_has_the_classes_of_the_true_one():
    told = {"gpus": [f"g{n}" for n in range(64)], "slowdown": {"Z": [1.0] * 64}}
    with pytest.raises(InstanceError, match=r"beliefs\.profile.*"):
        read_scenario("pal-64").changed({"beliefs": {"profile": told | {"kind": "persistent"}}})


def test_rates_and_works_of_streams_have_errors_of_their_own():
    streams = {("a", 0): Stream(2.0, (3.0, 6.0)), ("b", 4): Stream(5.0, (1.0,))}
    assert with_errors(streams, Beliefs(), 0) == streams
    rates = with_errors(streams, Beliefs(arrivals=0.5), 0)
    works = with_errors(streams, Beliefs(works=0.5), 0)
    both = with_errors(streams, Beliefs(arrivals=0.5, works=0.5), 0)
    for key, stream in streams.items():
        assert rates[key].works_s == stream.works_s
        assert rates[key].rate_per_h != stream.rate_per_h
        assert works[key].rate_per_h == stream.rate_per_h
        ratios = [
            told / true for told, true in zip(works[key].works_s, stream.works_s, strict=True)
        ]
        assert ratios == pytest.approx([ratios[0]] * len(ratios))
        assert both[key] == Stream(rates[key].rate_per_h, works[key].works_s)


def test_boa_is_misled_by_wrong_speedups_and_rates():
    world = read_scenario("boa-cloud").changed({"trace.jobs": 30})
    wrong = world.changed({"beliefs": {"speedups": 0.5, "arrivals": 0.5, "works": 0.5}})
    known, misled = (simulate(where, "boa").metrics for where in (world, wrong))
    assert misled["unfinished"] == 0
    assert misled["jct_mean_s"] != known["jct_mean_s"]
