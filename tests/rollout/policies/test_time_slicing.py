"""Gandiva's turns, packing, moves and growing: by hand, and that everybody gets on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of
from tests.support.builders.rollout_parts import gone_on
from tests.support.strategies.common import law

CURVE = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.8, 3.0]}
MODELS = {
    "busy": {"utilisation": 0.9},
    "idle": {"utilisation": 0.2},
    "wide": {"phases": [{"work_gpu_s": 1, "speedup": CURVE}]},
}
RATES = [
    {"types": ["idle", "idle"], "rates": [0.9, 0.9]},
    {"types": ["busy", "idle"], "rates": [0.6, 0.5]},
    {"types": ["busy", "busy"], "rates": [0.5, 0.5]},
]


def world(nodes=1, size=2, jobs_per_gpu=1, **fields):
    sharing = {"max_jobs_per_gpu": jobs_per_gpu, "interference": {"groups": RATES}}
    document = {
        "name": "turns", "nodes": nodes, "gpus_per_node": size, "epoch_s": 60.0, "models": MODELS,
        "trace": {"generator": "none", "jobs": 1}, "sharing": sharing, **fields,
    }  # fmt: skip
    return Scenario.from_document(document, "turns")


def jobs(*rows):
    """Jobs of (submission, GPUs, run time, model)."""
    submit, gpus, run, model = zip(*rows, strict=True)
    return trace_of("t", "", {"submit_s": submit, "gpus": gpus, "run_s": run, "model": model})


def played(scenario, trace, policy="time-slicing"):
    """Return by job its stretches on GPUs: from, to, GPUs; in seconds."""
    record = Engine(scenario, trace, make(policy, scenario), 0, keep_intervals=True).run()
    assert (record.jobs.outcome == 0).all()
    stretches = [[] for _ in range(len(trace))]
    for job, start, end, gpus in sorted(record.intervals, key=lambda row: row[1]):
        stretches[job].append((start / US, end / US, tuple(gpus)))
    return stretches


# --- turns ------------------------------------------------------------------------------------


def test_two_jobs_take_turns_of_a_minute():
    first, second = played(world(), jobs((0, 2, 150, ""), (0, 2, 90, "")))
    assert first == [(0, 60, (0, 1)), (120, 180, (0, 1)), (210, 240, (0, 1))]
    assert second == [(60, 120, (0, 1)), (180, 210, (0, 1))]


def test_a_turn_may_be_of_many_epochs():
    first, second = played(
        world(), jobs((0, 2, 200, ""), (0, 2, 30, "")), "time-slicing:quantum_s=150"
    )
    assert first == [(0, 180, (0, 1)), (210, 230, (0, 1))]
    assert second == [(180, 210, (0, 1))]


def test_a_turn_is_long_enough_to_get_on_beside_the_start():
    """Every start takes 100 s, longer than epoch and quantum: turns are of 180 s."""
    costs = {"start_s": 100.0, "restore_s": 100.0}
    first, second = played(world(costs=costs), jobs((0, 2, 150, ""), (0, 2, 70, "")))
    assert [(a, b) for a, b, _ in first] == [(0, 180), (350, 520)]
    assert [(a, b) for a, b, _ in second] == [(180, 350)]


def test_nobody_passes_a_gang_at_the_head_of_the_line():
    """Two small jobs run, a gang comes, then two more: the gang has the second turn."""
    small = [(0, 1, 600, "")] * 2
    first, _, gang, *late = played(world(), jobs(*small, (1, 2, 60, ""), *[(2, 1, 60, "")] * 2))
    assert first[0][:2] == (0, 60)
    assert gang == [(60, 120, (0, 1))]
    assert [row[0][:2] for row in late] == [(120, 180), (120, 180)]


def test_who_runs_goes_on_where_nobody_needs_its_gpus():
    first, second, third = played(
        world(1, 4), jobs((0, 2, 300, ""), (0, 2, 300, ""), (1, 2, 60, ""))
    )
    assert third == [(60, 120, (0, 1))]
    assert second == [(0, 300, (2, 3))]
    assert first == [(0, 60, (0, 1)), (120, 360, (0, 1))]


@st.composite
def overloaded(draw):
    """A small cluster and more jobs than it can run at once, of all kinds."""
    nodes, size = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 4]))
    costs = draw(st.sampled_from([{}, {"start_s": 30.0, "restore_s": 70.0, "checkpoint_s": 5.0}]))
    scenario = world(nodes, size, draw(st.integers(1, 3)), costs=costs)
    rows = []
    for _ in range(draw(st.integers(1, 9))):
        gpus = draw(st.integers(1, nodes * size))
        model = draw(st.sampled_from(["", "busy", "idle", "wide"]))
        rows.append((draw(st.integers(0, 400)), gpus, draw(st.integers(1, 900)), model))
    return scenario, jobs(*sorted(rows))


@law(300)
@given(overloaded())
def test_everybody_has_a_turn_before_anybody_has_had_many(case):
    """A wait is at most a turn of each other job, which ends at an epoch."""
    scenario, trace = case
    costs = scenario.costs
    turn = 60 + max(costs.start_s, costs.restore_s) + costs.checkpoint_s + scenario.epoch_s
    for job, stretches in enumerate(played(scenario, trace)):
        since = trace.submit_us[job] / US
        for start, end, gpus in stretches:
            assert start - since <= turn * len(trace) + scenario.epoch_s
            assert len(gpus) >= trace.gpus[job]
            since = end


@law(40)
@given(overloaded())
def test_a_rollout_goes_on_from_what_was_kept(case):
    scenario, trace = case

    def begun():
        return Engine(scenario, trace, make("time-slicing", scenario), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 4 == 0:
            engine = gone_on(engine, begun())
    assert (engine.record().jobs.end_us == whole.jobs.end_us).all()


def test_work_that_is_lost_at_each_stop_is_refused():
    with pytest.raises(ValueError, match="its jobs would get nowhere"):
        make("time-slicing", world(costs={"stop_loses_work": True}))


# --- packing ----------------------------------------------------------------------------------


def test_jobs_are_packed_where_that_gets_more_done_than_turns():
    """Two idle ones 1.8; a busy one beside an idle one 1.1; two busy ones 1: they take turns."""
    idle = played(world(1, 1, 2), jobs((0, 1, 90, "idle"), (0, 1, 90, "idle")))
    assert idle == [[(0, 100, (0,))], [(0, 100, (0,))]]
    mixed = played(world(1, 1, 2), jobs((0, 1, 60, "busy"), (0, 1, 50, "idle")))
    assert mixed == [[(0, 100, (0,))], [(0, 100, (0,))]]
    busy = played(world(1, 1, 2), jobs((0, 1, 120, "busy"), (0, 1, 60, "busy")))
    assert busy == [[(0, 60, (0,)), (120, 180, (0,))], [(60, 120, (0,))]]


def test_nobody_is_packed_while_there_are_gpus():
    one, other = played(world(1, 2, 2), jobs((0, 1, 90, "idle"), (0, 1, 90, "idle")))
    assert (one, other) == ([(0, 90, (0,))], [(0, 90, (1,))])


def test_the_least_busy_jobs_are_packed_first():
    """Of two that run the idle one takes the idle one of those that wait; then they are two."""
    rows = [(0, 1, 600, "busy"), (0, 1, 600, "idle"), (1, 1, 60, "busy"), (1, 1, 60, "idle")]
    busy, idle, late, guest = played(world(1, 2, 2), jobs(*rows))
    assert guest[0][2] == idle[0][2]
    assert late[0][2] in (busy[0][2], idle[0][2])


def test_packed_jobs_part_when_there_is_room():
    """For 60 s at a rate of 0.9; by then the second is done, and its GPU is the guest's."""
    rows = [(0, 1, 600, "idle"), (0, 1, 50, ""), (0, 1, 600, "idle")]
    host, _, guest = played(world(1, 2, 2), jobs(*rows))
    assert host == [(0, 606, (0,))]
    assert guest == [(0, 60, (0,)), (60, 606, (1,))]


def test_without_packing_they_take_turns():
    rows = jobs((0, 1, 120, "idle"), (0, 1, 60, "idle"))
    first, second = played(world(1, 1, 2), rows, "time-slicing:packing=false")
    assert (first[0][1], second[0][0]) == (60, 60)


# --- moves, growing ---------------------------------------------------------------------------


def test_a_gang_moves_together_when_others_have_left():
    """Two nodes of two: at 50 s one GPU of each is free, at 90 s the other of the first node."""
    rows = jobs((0, 1, 90, ""), (0, 1, 50, ""), (0, 1, 650, ""), (1, 2, 600, ""))
    *_, gang = played(world(2, 2), rows)
    assert [(a, b, len({gpu // 2 for gpu in gpus})) for a, b, gpus in gang] == [
        (50, 120, 2),
        (120, 650, 1),
    ]
    *_, stays = played(world(2, 2), rows, "time-slicing:migration=no")
    assert [(a, b) for a, b, _ in stays] == [(50, 650)]


def test_a_job_grows_into_its_node_and_shrinks_when_others_wait():
    """It grows at 60 s from one GPU to four; at 100 s another one asks for three of them."""
    grown, other = played(world(1, 4), jobs((0, 1, 1000, "wide"), (100, 3, 20, "")))
    assert [len(gpus) for *_, gpus in grown] == [1, 4, 1, 4]
    assert grown[1][0] == 60
    assert grown[2][0] == 100 == other[0][0]
    assert grown[3][0] >= 160
    still = played(world(1, 4), jobs((0, 1, 100, "wide")), "time-slicing:growing=no")
    assert still == [[(0, 100, (0,))]]
