"""Jobs that change places: what the engine leaves out where nothing but the place changes."""

import random

import pytest

from optsched.rollout.engine.decision import Decision, InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.rules.decision_rules import Changes
from optsched.rollout.registry import make
from optsched.traces.trace import US
from tests.rollout.test_invariants import fingerprint
from tests.support.builders.any_rollouts import any_rollout
from tests.support.builders.any_shared_rollouts import any_shared_rollout
from tests.support.builders.physics_parts import jobs
from tests.support.builders.rollout_parts import Script, scenario, trace

PLAIN = {"costs": {}, "locality": (), "models": {}, "profile": None, "neighbours": {}}
MOVING = ("random-non-sticky", "packed-non-sticky", "philly:defragment=true")


@pytest.mark.parametrize("name", MOVING)
def test_moves_that_cost_nothing_are_as_moves_of_jobs_that_are_settled_each_time(name):
    moved = 0
    for seed in range(60):
        world, given, _ = any_rollout(seed)
        world = world.changed(PLAIN)
        engine, settling = (
            Engine(world, given, make(name, world, seed), seed, keep_intervals=True)
            for _ in range(2)
        )
        assert engine.world.dispatch.are_moves_free
        settling.world.dispatch.are_moves_free = False
        record = engine.run()
        assert fingerprint(record) == fingerprint(settling.run())
        moved += int(record.jobs.migrations.sum())
    assert moved > 10


def test_of_jobs_that_end_together_the_one_that_was_moved_last_ends_last():
    places = {0: Decision(place={0: [0], 1: [1]}), 10: Decision(place={0: [2]})}
    for is_free in (True, False):
        script = Script(places, every_epoch=True)
        engine = Engine(scenario(1, 4), trace((0, 1, 30), (0, 1, 30)), script, 0)
        engine.world.dispatch.are_moves_free = is_free
        engine.run()
        assert script.calls[-1][-1] == [1, 0]


def test_moves_are_not_free_where_they_may_cost_something():
    for costs in ({"start_s": 1.0}, {"restore_s": 1.0}, {"checkpoint_s": 1.0}):
        world, one = scenario(2, 2, costs=costs), jobs([1], run_s=10)
        assert not Engine(world, one, make("fifo", world), 0).world.dispatch.are_moves_free
    for costs in ({"checkpoint_every_s": 5.0}, {"stop_loses_work": True}):
        world, one = scenario(2, 2, costs=costs), jobs([1], run_s=10)
        assert not Engine(world, one, make("fifo", world), 0).world.dispatch.are_moves_free
    world = scenario(2, 2, locality=(1.0, 2.0))
    assert not Engine(world, one, make("fifo", world), 0).world.dispatch.are_moves_free


@pytest.mark.parametrize("drawn", [any_rollout, any_shared_rollout])
def test_gpus_that_change_hands_at_once_are_as_those_that_are_looked_at_before(drawn):
    for seed in range(40):
        world, given, policy, *_ = drawn(seed)
        engine, careful = (
            Engine(world, given, make(policy, world, seed), seed, keep_intervals=True)
            for _ in range(2)
        )
        careful.world.rules.changes = careful.world.rules.checked
        careful.world.exchange.is_done = None  # is not called
        assert outcome(engine) == outcome(careful)


def outcome(engine):
    try:
        return fingerprint(engine.run())
    except InvalidDecision as error:
        return str(error)


def test_gpus_change_hands_all_or_none():
    draw = random.Random(3)
    kinds = {True: 0, False: 0}
    for _ in range(400):
        world, count = scenario(3, 4), draw.randint(1, 6)
        engine = Engine(world, jobs([1] * count, run_s=1), make("fifo", world), 0)
        state = engine.world.state
        free = draw.sample(range(12), 12)
        for job in range(count):
            gpus = tuple(sorted(free.pop() for _ in range(draw.randint(0, 2))))
            state.attach(job, gpus)
        before = (list(state.jobs_on), list(state.free_of), state.busy_gpus)
        named = draw.sample(range(count), draw.randint(1, count))
        stops, moving = named[: (cut := draw.randint(0, len(named)))], named[cut:]
        places = []
        for job in moving:
            old = state.gpus_of[job]
            new = tuple(sorted(draw.choices(range(12), k=draw.randint(1, 3))))
            places.append((job, new, new, old))
        wanted = [gpu for _, new, _, _ in places for gpu in new]
        staying = [job for job in range(count) if job not in named]
        held = [gpu for job in staying for gpu in state.gpus_of[job]]
        fits = len({*wanted, *held}) == len(wanted) + len(held)
        assert engine.world.exchange.is_done(Changes(stops, places, [], False)) == fits
        kinds[fits] += 1
        if fits:
            after = {gpu: job for job, new, _, _ in places for gpu in new}
            after |= {gpu: job for job in staying for gpu in state.gpus_of[job]}
            owners = [(after[gpu],) if gpu in after else () for gpu in range(12)]
            free_of = [sum(not owners[4 * node + gpu] for gpu in range(4)) for node in range(3)]
            assert (state.jobs_on, state.free_of, state.busy_gpus) == (owners, free_of, len(after))
        else:
            assert (state.jobs_on, state.free_of, state.busy_gpus) == before
    assert min(kinds.values()) > 50


def test_the_rule_that_is_told_is_the_first_that_is_broken():
    """A job that gets a GPU twice is too wide as well; only the exchange would see that."""
    world = scenario(1, 4)
    engine = Engine(world, jobs([1, 1], run_s=10), make("fifo", world), 0)
    engine.step()
    for place, rule in (({0: (2, 2)}, "repeated-gpu"), ({0: (2,), 1: (2,)}, "overcommit")):
        with pytest.raises(InvalidDecision, match=rf"^{rule}: "):
            engine.world.apply(Decision(place=place))


def test_on_shared_gpus_jobs_that_are_moved_come_before_those_that_start():
    world = scenario(1, 4, sharing={"max_jobs_per_gpu": 2})
    script = Script({0: Decision(place={0: [0]}), 10: Decision(place={1: [1], 0: [1]})}, True)
    engine = Engine(world, trace((0, 1, 50), (0, 1, 50)), script, 0)
    while engine.now_us < 10 * US:
        engine.step()
    state = engine.world.state
    assert (state.jobs_on, state.free_of, state.busy_gpus) == ([(), (0, 1), (), ()], [3], 1)


def test_no_job_is_twice_on_a_shared_gpu():
    world = scenario(1, 4, sharing={"max_jobs_per_gpu": 2})
    engine = Engine(world, trace((0, 2, 50)), Script({}), 0)
    engine.step()
    with pytest.raises(InvalidDecision, match=r"^repeated-gpu: "):
        engine.world.apply(Decision(place={0: (3, 3)}))
    assert engine.world.state.jobs_on == [()] * 4
