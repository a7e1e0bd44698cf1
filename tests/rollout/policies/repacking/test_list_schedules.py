"""Lists without places: equal to the engine where places and costs do not count; the lookahead."""

import random

from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.clairvoyant.hindsight import Listed
from optsched.rollout.policies.clairvoyant.list_search import ListSearch
from optsched.rollout.policies.foresight.local_search import neighbour
from optsched.rollout.policies.list_schedule import GangTimes, list_schedule
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.registry import make
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 30)), min_size=1, max_size=8
)


def listed(order):
    return Rounds("listed", Listed(order), Repacking(), backfill=True)


@law(200)
@given(ROWS, st.randoms(use_true_random=False), st.booleans())
def test_ends_are_the_engines_on_one_node(rows, draws, in_rounds):
    """One node, equal GPUs, moves for free: who runs is all that counts."""
    rounds = {"epoch_s": 7, "decide_on": [], "finish_at_epochs": True} if in_rounds else {}
    world, jobs = scenario(1, 4, **rounds), trace(*sorted(rows))
    order = list(range(len(rows)))
    draws.shuffle(order)
    record = Engine(world, jobs, listed(order), 0).run()
    search = ListSearch(record, moves=0)
    unit = 7_000_000 if in_rounds else 1
    ends = [end * unit for end in list_schedule(search.gangs, order, 4)]
    assert ends == record.jobs.end_us.tolist()
    assert search.total(order) * unit == sum(ends)


def test_by_hand():
    gangs = GangTimes([0, 0, 2], [4, 3, 1], [2, 1, 2])
    assert list_schedule(gangs, [0, 1, 2], 2) == [4, 7, 8]
    assert list_schedule(gangs, [2, 1, 0], 2) == [8, 4, 3]
    assert list_schedule(gangs, [0, 1, 2], 3) == [4, 3, 5]


@law(100)
@given(ROWS, st.integers(0, 99))
def test_a_search_keeps_all_jobs_and_never_ends_worse(rows, seed):
    world, jobs = scenario(1, 4), trace(*sorted(rows))
    record = Engine(world, jobs, make("fifo", world), 0).run()
    search, order = ListSearch(record, moves=20), list(range(len(rows)))
    found = search.improved([order, order[::-1]], random.Random(seed))
    assert sorted(found) == order
    assert search.total(found) <= min(search.total(order), search.total(order[::-1]))


@given(st.integers(2, 50), st.integers(0, 99))
def test_a_neighbour_differs_by_the_place_of_one_job(count, seed):
    moved = neighbour(range(count), random.Random(seed))
    rests = [[job for job in moved if job != one] for one in range(count)]
    assert sorted(moved) == list(range(count))
    assert any(rest == sorted(rest) for rest in rests)


def test_looking_ahead_chooses_the_order_by_which_the_jobs_at_hand_end_soonest():
    """Eight GPUs for 10 s, or first eight jobs of one GPU for 12 s: by GPU-time these are first."""
    world = scenario(1, 8)
    jobs = trace((0, 8, 10), *((0, 1, 12) for _ in range(8)))
    ends = Engine(world, jobs, make("wsrpt-lookahead", world), 0).run().jobs.end_us / 1e6
    assert ends.tolist() == [22, *[12] * 8]
    jobs = trace((0, 8, 1), *((0, 1, 12) for _ in range(8)))
    ends = Engine(world, jobs, make("wsrpt-lookahead", world), 0).run().jobs.end_us / 1e6
    assert ends.tolist() == [1, *[13] * 8]


def test_who_is_told_nothing_or_too_much_is_wsrpt():
    for changes, options in (({"estimates": {"kind": "none"}}, ""), ({}, ",most_jobs=1")):
        world = optsched.read_scenario("philly-small").changed({"trace.jobs": 40, **changes})
        one = optsched.simulate(world, f"wsrpt-lookahead:stay=0.3{options}").record
        other = optsched.simulate(world, "wsrpt").record
        assert (one.jobs.end_us == other.jobs.end_us).all()
