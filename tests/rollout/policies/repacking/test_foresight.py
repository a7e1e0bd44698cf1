"""Foresight and its quick schedule: equal to lists without places, slow GPUs, jobs to come."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.clairvoyant.hindsight import Listed
from optsched.rollout.policies.foresight.local_search import improved
from optsched.rollout.policies.foresight.quick_schedule import GangWorks, QuickSchedule
from optsched.rollout.policies.list_schedule import GangTimes, list_schedule
from optsched.rollout.policies.repacking.lookahead import EXPONENTS
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.registry import make
from optsched.traces.trace import US
from tests.rollout.policies.rounds.test_kept_rounds import busy_traces, rolled_out, still_scenarios
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

ROWS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 30)), min_size=1, max_size=8
)


def quick(rows, slowdowns, *, in_rounds=True, kinds=None, size=1):
    """The quick schedule of jobs as (release, width, work), and of places of so many GPUs."""
    release, width, work = zip(*rows, strict=True)
    kinds = kinds or [0] * len(rows)
    places = [slowdowns[kind] for kind in kinds]
    gangs = GangWorks(release, work, width, kinds, [1.0] * len(rows), places, [size] * len(rows))
    return QuickSchedule(gangs, size * len(slowdowns[0]), in_rounds)


def ends_s(world, jobs, policy):
    """When each job ends."""
    made = make(policy, world) if isinstance(policy, str) else policy
    return (Engine(world, jobs, made, 0).run().jobs.end_us / US).tolist()


@law(200)
@given(ROWS, st.randoms(use_true_random=False), st.booleans(), st.sampled_from([1, 2]))
def test_on_equal_gpus_it_is_the_schedule_without_places(rows, draws, in_rounds, slowdown):
    order = list(range(len(rows)))
    draws.shuffle(order)
    release, width, work = zip(*rows, strict=True)
    known = list_schedule(GangTimes(release, [slowdown * w for w in work], width), order, 4)
    schedule = quick(rows, [[float(slowdown)] * 4], in_rounds=in_rounds)
    assert schedule.total(order) == sum(known)


@law(200)
@given(ROWS, st.data())
def test_a_search_that_ends_early_tells_whether_a_list_is_worse(rows, data):
    kinds = data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    schedule = quick(rows, [[1.0, 1.0, 1.5, 3.0], [0.9, 1.0, 1.1, 1.2]], kinds=kinds)
    order = data.draw(st.permutations(range(len(rows))))
    total = schedule.total(order)
    most = data.draw(st.integers(0, 2 * int(total)))
    found = schedule.total(order, most)
    assert found == total if total <= most else found > most


@law(200)
@given(ROWS, st.randoms(use_true_random=False), st.booleans(), st.integers(0, 2))
def test_where_no_gang_waits_the_total_and_the_search_are_those_of_the_simulation(
    rows, draws, in_rounds, more
):
    gpus = sum(width for _, width, _ in rows) + more
    rows = [(release, width, work * 1.1) for release, width, work in rows]
    known = quick(rows, [[1.3] * gpus], in_rounds=in_rounds)
    simulated = quick(rows, [[1.3] * gpus], in_rounds=in_rounds)
    simulated.known_total = None
    lists = [draws.sample(range(len(rows)), len(rows)) for _ in range(2)]
    total = simulated.total(lists[0])
    assert known.total(lists[0]) == pytest.approx(total, rel=1e-9)
    assert known.total(lists[1]) == known.total(lists[0])
    assert simulated.total(lists[1], total) == total
    seed = draws.randrange(100)
    found = [improved(each, lists, 9, random.Random(seed)) for each in (known, simulated)]
    assert found[0] == found[1]


@law(100)
@given(ROWS, st.randoms(use_true_random=False))
def test_faster_gpus_never_hold_a_lone_gang_longer(rows, draws):
    slow = sorted(draws.uniform(1, 3) for _ in range(4))
    fast = [value * 0.8 for value in slow]
    for n in range(len(rows)):
        assert quick(rows, [fast]).alone[n] <= quick(rows, [slow]).alone[n]


def test_slow_gpus_by_hand():
    one_each = [(0, 1, 10), (0, 1, 10)]
    assert quick(one_each, [[1.0, 2.0]]).total([0, 1]) == 10 + 15  # the second moves after 10
    assert quick([(0, 2, 10)], [[1.0, 2.0]]).total([0]) == 20
    kinds = [[1.0, 2.0], [1.0, 3.0]]
    # The GPU that the first kind leaves is the slow one of one half, as far as anybody knows.
    assert quick(one_each, kinds, kinds=[0, 1]).total([0, 1]) == 10 + (10 + 7)
    assert quick(one_each, kinds, kinds=[0, 1]).total([1, 0]) == 10 + (10 + 7)
    # On two nodes of two the first gang has the fast one.
    pairs = [(0, 2, 10), (0, 2, 10)]
    assert quick(pairs, [[1.0, 2.0]], size=2).total([0, 1]) == 10 + 15
    assert quick(pairs, [[1.0, 1.0, 2.0, 2.0]]).total([1, 0]) == 10 + 15
    assert quick([(0, 1, 2.5)], [[1.0]]).total([0]) == 3
    assert quick([(0, 1, 2.5)], [[1.0]], in_rounds=False).total([0]) == 2.5


@law(40)
@given(ROWS, st.booleans())
def test_where_all_jobs_are_there_it_is_no_worse_than_the_lists_it_begins_with(rows, in_rounds):
    """One node, equal GPUs, nobody to come: the simulation is right, and the best list stays."""
    rounds = {"epoch_s": 7, "decide_on": [], "finish_at_epochs": True} if in_rounds else {}
    world, jobs = scenario(1, 4, **rounds), trace(*((0, *row[1:]) for row in rows))
    found = sum(ends_s(world, jobs, "foresight:expects_s=0,simulated=30"))
    for power in EXPONENTS:
        unit = 7 if in_rounds else 1
        keys = [-(-run // unit) * width**power for _, width, run in rows]
        order = sorted(range(len(rows)), key=keys.__getitem__)
        listed = Rounds("listed", Listed(order), Repacking(), backfill=True)
        assert found <= sum(ends_s(world, jobs, listed)) + 1e-5


def test_who_expects_jobs_to_come_gives_way_to_the_wide_one_now():
    """At 10 s: a gang of 2 for 11 s, or first what is left of one GPU's job, as if nobody came."""
    world, jobs = scenario(1, 2), trace((0, 1, 20), (10, 2, 11))
    assert ends_s(world, jobs, "foresight:expects_s=0") == [20, 31]
    assert ends_s(world, jobs, "foresight:expects_s=15") == [31, 21]


def test_jobs_that_came_long_ago_are_forgotten():
    world, jobs = scenario(1, 2), trace(*((100 * n, 1, 30) for n in range(20)))
    policy = make("foresight:expects_s=250", world)
    Engine(world, jobs, policy, 0).run()
    assert len(policy.order.snapshot()["_first_us"]) <= 3


@law(40)
@given(st.data())
def test_a_rollout_that_was_cut_short_ends_in_the_same_bytes(data):
    world = data.draw(still_scenarios())
    jobs = data.draw(busy_traces(world))
    text = data.draw(
        st.sampled_from(["foresight:simulated=30", "foresight:simulated=30,expects_s=20"])
    )
    cut = rolled_out(world, jobs, text, data.draw(st.integers(0, 30)))
    assert cut == rolled_out(world, jobs, text)


@pytest.mark.parametrize("kind", ["none", "too many"])
def test_where_times_are_unknown_or_jobs_too_many_it_is_wsrpt(kind):
    world = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
    if kind == "none":
        world, options = world.changed({"estimates": {"kind": "none"}}), "stay=0.3"
    else:
        options = "stay=0.3,most_jobs=1"
    one = optsched.simulate(world, f"foresight:{options}").record
    other = optsched.simulate(world, "wsrpt").record
    assert (one.jobs.end_us == other.jobs.end_us).all()
