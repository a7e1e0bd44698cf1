"""Hindsight: never worse than what takes part, the best list of all in small cases, same bytes."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.clairvoyant.alpha_points import alpha_order, relaxed_schedule
from optsched.rollout.policies.clairvoyant.hindsight import RIVALS, Listed
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from tests.rollout.policies.rounds.test_kept_rounds import busy_traces, rolled_out, still_scenarios
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

FEW = "hindsight:evaluations=14"


def value(world, jobs, policy):
    """How many jobs do not end, and the mean JCT of those that do."""
    found = metrics(Engine(world, jobs, policy, 0).run())
    return found["unfinished"], found["jct_mean_s"] or 0.0


@law(40)
@given(st.data())
def test_none_of_those_that_take_part_is_better_nor_is_any_list_it_begins_with(data):
    world = data.draw(still_scenarios())
    jobs = data.draw(busy_traces(world))
    found = value(world, jobs, make(FEW, world))
    for name in RIVALS:
        assert found <= value(world, jobs, make(name, world))
    pieces = relaxed_schedule(jobs, world.gpus)
    for alpha in (0.25, 1.0):
        assert found <= value(world, jobs, listed(alpha_order(pieces, alpha)))


def listed(order):
    """A policy that runs a list, as hindsight does."""
    return Rounds("listed", Listed(order), Repacking(), backfill=True)


@law(40)
@given(st.data())
def test_a_rollout_that_was_cut_short_ends_in_the_same_bytes(data):
    world = data.draw(still_scenarios())
    jobs = data.draw(busy_traces(world))
    cut = rolled_out(world, jobs, FEW, data.draw(st.integers(0, 30)))
    assert cut == rolled_out(world, jobs, FEW)


TIMES = st.sampled_from([0, 0, 3, 10, 17])


@law(10)
@given(st.lists(st.tuples(TIMES, st.integers(1, 2), st.integers(1, 30)), min_size=1, max_size=4))
def test_with_evaluations_enough_no_list_is_better(rows):
    world, jobs = scenario(1, 2), trace(*sorted(rows))
    best = min(value(world, jobs, listed(order)) for order in permutations(range(len(rows))))
    assert value(world, jobs, make("hindsight:evaluations=150", world)) <= best


def test_alpha_points_on_one_gpu_are_those_of_the_preemptive_schedule():
    jobs = trace((0, 1, 10), (2, 1, 3), (3, 1, 20))
    pieces = relaxed_schedule(jobs, 1)
    us = [[(a / 1e6, b / 1e6, w) for a, b, w in parts] for parts in pieces]
    assert us[0] == [(0, 2, 1), (5, 13, 1)]
    assert us[1] == [(2, 3, 1), (3, 5, 1)]
    assert us[2] == [(13, 33, 1)]
    assert alpha_order(pieces, 0.1) == [0, 1, 2]
    assert alpha_order(pieces, 1.0) == [1, 0, 2]


@pytest.mark.parametrize("name", ["eaco-64", "boa-cloud"])
def test_where_gpus_are_shared_or_rented_it_takes_what_does_so(name):
    import optsched

    world = optsched.read_scenario(name).changed({"trace.jobs": 6})
    found = optsched.simulate(world, "hindsight:evaluations=9").metrics
    rivals = ("boa",) if name == "boa-cloud" else ("fifo-packed", "wsrpt")
    assert found["unfinished"] == 0
    others = [optsched.simulate(world, rival).metrics["jct_mean_s"] for rival in rivals]
    if name != "boa-cloud":  # there what a policy spends counts, too
        assert found["jct_mean_s"] <= min(others)
