"""Nodes with GPUs of several types: speeds by hand, rules, faults, and what policies do there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.bounds.schedules import UnknownPhysics, refuse_unknown_physics
from optsched.documents.faults import InstanceError
from optsched.instance import read
from optsched.rollout.engine.decision import Decision, InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import ENTRIES, make
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from tests.support.builders.rollout_parts import Script, scenario, trace
from tests.support.builders.rollout_stub import ElasticView
from tests.support.strategies.common import law

NODES = [
    {"count": 2, "gpus": 2, "gpu_type": "slow"},
    {"count": 1, "gpus": 4, "gpu_type": "fast"},
]


def by_type(**curves):
    """Speedups at 1, 2, ... GPUs of each type."""
    told = [
        {"gpu_type": name, "speedup": {"kind": "table", "gpus": gpus, "speedup": speed}}
        for name, (gpus, speed) in curves.items()
    ]
    return {"work_gpu_s": 60.0, "speedup": {"kind": "by-type", "curves": told}}


PHASE = by_type(slow=([1, 2, 4], [1.0, 1.5, 2.0]), fast=([1, 2], [4.0, 6.0]))
MODELS = {
    "e": {"phases": [PHASE]},
    "rigid": {"gpu_speeds": {"slow": 1.0, "fast": 2.5}},
    "picky": {"gpu_speeds": {"slow": 3.0}},
}
WORLD = scenario(NODES, None, models=MODELS)


def ends(world, rows, decisions, **columns):
    """When jobs end, in seconds, and what they lost to slow GPUs, in GPU-seconds."""
    record = Engine(world, trace(*rows, **columns), Script(decisions), 0).run()
    jobs = record.jobs
    return (jobs.end_us / 1e6).tolist(), (jobs.slow_gpu_loss_gpu_us / 1e6).tolist()


# --- physics ----------------------------------------------------------------------------------


def test_speeds_by_hand():
    """Run times are of one slow GPU; a fast one is 4 times as fast, two fast ones 6 times."""
    rows = [(0, 1, 120), (0, 1, 120), (0, 1, 120), (0, 2, 100)]
    place = {0: (0,), 1: (4,), 2: (5, 6), 3: (2, 3)}
    done, lost = ends(WORLD, rows, {0: Decision(place=place)}, model=["e", "e", "e", "rigid"])
    assert done == [120.0, 30.0, 20.0, 100.0]
    # On two fast GPUs 40 GPU-s were held: 10 lost as two are 1.5 times as fast, 90 gained by type.
    assert lost == [0.0, -90.0, -90.0, 0.0]


def test_times_are_told_of_the_reference_type():
    """The same jobs, told of one fast GPU: a quarter of the time."""
    world = WORLD.changed({"reference_gpu_type": "fast", "models.picky.gpu_speeds": {"fast": 1.0}})
    rows, models = [(0, 1, 30), (0, 1, 30), (0, 2, 40)], ["e", "e", "rigid"]
    decision = Decision(place={0: (0,), 1: (4, 5), 2: (2, 3)})
    done, lost = ends(world, rows, {0: decision}, model=models)
    assert done == [120.0, 20.0, 100.0]
    assert lost == [90.0, 0.0, 120.0]


@law(60)
@given(st.data())
def test_which_type_is_the_reference_changes_nothing_but_how_times_are_told(data):
    speeds = {"slow": 1.0, "fast": data.draw(st.sampled_from([2.0, 4.0, 8.0]))}
    world = scenario(NODES, None, models={"m": {"gpu_speeds": speeds}})
    rows = [
        (data.draw(st.integers(0, 90)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 99)))
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    rows = sorted(rows)
    told = [(at, gpus, run / speeds["fast"]) for at, gpus, run in rows]
    other = world.changed({"reference_gpu_type": "fast"})
    for name in ("equi", "sia"):
        first = Engine(world, trace(*rows, model=["m"] * len(rows)), make(name, world), 0).run()
        second = Engine(other, trace(*told, model=["m"] * len(rows)), make(name, other), 0).run()
        assert np.abs(first.jobs.end_us - second.jobs.end_us).max() <= 3
        assert first.jobs.allocated_gpu_us.sum() == pytest.approx(
            second.jobs.allocated_gpu_us.sum(), abs=20
        )


@pytest.mark.parametrize("name", ["equi", "pollux", "sia", "fifo", "boa", "srtf"])
def test_one_type_with_a_name_is_as_none(name):
    curve = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 6}
    plain = {"e": {"phases": [{"work_gpu_s": 60.0, "speedup": curve}]}}
    named = {"kind": "by-type", "curves": [{"gpu_type": "a", "speedup": curve}]}
    typed = {"e": {"phases": [{"work_gpu_s": 60.0, "speedup": named}]}}
    worlds = [
        scenario([{"count": 2, "gpus": 4}], None, models=plain),
        scenario([{"count": 2, "gpus": 4, "gpu_type": "a"}], None, models=typed),
    ]
    rows = [(3 * n, 1 + n % 3, 40 + 7 * n) for n in range(12)]
    jobs = trace(*rows, model=["e", ""] * 6)
    records = [Engine(w, jobs, make(name, w), 0, keep_intervals=True).run() for w in worlds]
    assert records[0].intervals == records[1].intervals
    assert records[0].jobs.end_us.tolist() == records[1].jobs.end_us.tolist()


# --- rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "gpus", "rule"),
    [
        ("e", (3, 4), "gpu-type"),
        ("rigid", (3, 4), "gpu-type"),
        ("picky", (4, 5), "gpu-type"),
        ("e", (4, 5, 6, 7), "gang-size"),  # four are a width of slow GPUs only
        ("rigid", (4,), "gang-size"),
    ],
)
def test_gangs_that_are_refused(model, gpus, rule):
    engine = Engine(
        WORLD, trace((0, 2, 9), model=[model]), Script({0: Decision(place={0: gpus})}), 0
    )
    with pytest.raises(InvalidDecision, match=f"^{rule}: "):
        engine.run()


def test_a_trial_is_on_a_type_that_the_model_has():
    decision = Decision(pre_run={0: (4,)}, pre_run_us=5)
    engine = Engine(WORLD, trace((0, 2, 9), model=["picky"]), Script({0: decision}), 0)
    with pytest.raises(InvalidDecision, match=r"^gpu-type: .*'fast', on which 'picky' cannot run"):
        engine.run()


def test_gangs_larger_than_any_type_are_named():
    world = scenario([*NODES, NODES[1]], None, models=MODELS)
    for gpus, model, most in ((9, "", 8), (5, "picky", 4)):
        with pytest.raises(ValueError, match=f"{gpus} GPUs, but it can have {most} of one type"):
            jobs_of(world, trace((0, gpus, 9), model=[model]), 0)


DOCUMENT = {
    "schema": "optsched/scenario/1", "nodes": NODES, "models": MODELS, "epoch_s": 10,
    "trace": {"generator": "none", "jobs": 1},
}  # fmt: skip
TABLE = {"kind": "table", "gpus": [1], "speedup": [1.0]}
FAULTS = {
    "one group names its type": (
        {"nodes": [NODES[0], {"count": 1, "gpus": 4}]}, "nodes[1].gpu_type: missing",
    ),
    "unknown reference": (
        {"reference_gpu_type": "fats"}, 'reference_gpu_type: no node has GPUs of type "fats"; did',
    ),
    "unknown type of a curve": (
        {"models": {"e": {"phases": [by_type(slow=([1], [1]), fats=([1], [1]))]}}},
        "models.e.phases[0].speedup.curves[1].gpu_type: no node has GPUs of type \"fats\"; did",
    ),
    "unknown type of a speed": (
        {"models": {"m": {"gpu_speeds": {"slow": 1, "fats": 2}}}},
        "models.m.gpu_speeds.fats: no node has GPUs of type \"fats\"; did you mean 'fast'",
    ),
    "a speed of 0": (
        {"models": {"m": {"gpu_speeds": {"slow": 0}}}}, "models.m.gpu_speeds.slow: ",
    ),
    "a type that no model runs on": (
        {"models": {"m": {"gpu_speeds": {"slow": 1}}}},
        'nodes[1].gpu_type: no model runs on "fast"',
    ),
    "a model without the reference": (
        {"models": {"m": {"gpu_speeds": {"fast": 1}}, "n": {}}},
        'models.m.gpu_speeds: run times are told of type "slow" (reference_gpu_type), which it',
    ),
    "a curve too many": (
        {"models": {"e": {"phases": [{"work_gpu_s": 1, "speedup": {"kind": "by-type", "curves": [
            {"gpu_type": "slow", "speedup": TABLE}, {"gpu_type": "slow", "speedup": TABLE}]}}]}}},
        'models.e.phases[0].speedup.curves[1].gpu_type: "slow" has a curve already',
    ),
    "phases of unlike types": (
        {"models": {"e": {"phases": [PHASE, by_type(slow=([1], [1]))]}}},
        "models.e.phases[1].speedup.curves: all phases of a model have the same types; the first",
    ),
    "one phase by type": (
        {"models": {"e": {"phases": [PHASE, {"work_gpu_s": 1, "speedup": TABLE}]}}},
        "models.e.phases[1].speedup.kind: expected 'by-type'",
    ),
    "two ways to tell speeds": (
        {"models": {"e": {"phases": [PHASE], "gpu_speeds": {"slow": 1, "fast": 1}}}},
        "models.e.gpu_speeds: cannot stand beside speedups by type",
    ),
    "batches": (
        {"models": {"e": {"phases": [PHASE], "batches": {"batch_size": 8, "noise_scale": [1]}}}},
        "models.e.batches: cannot stand beside speedups by type",
    ),
    "a curve wider than its type": (
        {"models": {"e": {"phases": [by_type(slow=([1], [1]), fast=([5], [1]))]}}},
        "models.e.phases[0].speedup.curves[1].speedup.gpus: needs 5 GPUs at least, but",
    ),
    "speeds without types": (
        {"nodes": [{"count": 1, "gpus": 4}], "models": {"m": {"gpu_speeds": {"slow": 1}}}},
        "models.m.gpu_speeds: the nodes have no gpu_type",
    ),
    "curves without types": (
        {"nodes": [{"count": 1, "gpus": 4}], "models": {"e": {"phases": [PHASE]}}},
        "models.e.phases[0].speedup.kind: 'by-type' is for",
    ),
    "rented": ({"rented": {}}, "nodes[0].usd_per_gpu_h: missing: rented nodes of several GPU"),
    "a budget": ({"budget_gpus": 3}, "budget_gpus: GPUs of several types have no common budget"),
    "sharing": ({"sharing": {"max_jobs_per_gpu": 2}}, "sharing.max_jobs_per_gpu: must be 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_said_with_its_path(name):
    change, text = FAULTS[name]
    with pytest.raises(InstanceError) as caught:
        Scenario.from_document(DOCUMENT | change)
    assert any(fault.startswith(text) for fault in caught.value.faults), caught.value.faults


JUNK = st.sampled_from([None, 0, -1, "x", [], {}, [1], {"gpu_type": 3}, 2.5, True])
PATHS = [("nodes",), ("nodes", 0), ("nodes", 0, "gpu_type"), ("reference_gpu_type",), ("models",),
         ("models", "e"), ("models", "e", "phases"), ("models", "e", "phases", 0),
         ("models", "e", "phases", 0, "speedup"), ("models", "e", "phases", 0, "speedup", "curves"),
         ("models", "e", "phases", 0, "speedup", "curves", 0),
         ("models", "e", "phases", 0, "speedup", "curves", 0, "speedup"),
         ("models", "e", "gpu_speeds"), ("models", "rigid", "gpu_speeds", "slow"),
         ("sharing",)]  # fmt: skip


def replaced(part, path, junk):
    if not path:
        return junk
    first, *rest = path
    if isinstance(part, list):
        return [replaced(v, rest, junk) if n == first else v for n, v in enumerate(part)]
    return {**part, first: replaced(part.get(first, {}), rest, junk)}


@law(150)
@given(st.sampled_from(PATHS), JUNK)
def test_wrong_types_of_fields_are_faults_and_no_crash(path, junk):
    assert faults_of(replaced(DOCUMENT, path, junk)) != ()


def faults_of(document):
    """The faults of a scenario that is refused, None if it is read."""
    try:
        Scenario.from_document(document)
    except InstanceError as error:
        return error.faults
    return None


# --- policies ---------------------------------------------------------------------------------


def types_of(view):
    """What each job holds: a letter for the type of each GPU."""
    names = view.cluster.types.of_node
    return ["".join(names[view.cluster.node_of[g]][0] for g in gpus) for gpus in view.held.values()]


def test_sia_gives_each_job_its_type():
    """Costs of "e": 1 slow 1, 2 slow 0.82, 1 fast 0.5, 2 fast 0.41; of "picky" at least 1."""
    view, policy = ElasticView(WORLD), make("sia:growth=null", WORLD)
    for name in ("picky", "e", "e", "e"):
        view.submit(1, model=name)
    (solve,) = view.step(policy).solves
    assert sorted(types_of(view)) == ["f", "f", "ff", "s"]  # which "e" has two makes no difference
    assert solve.objective == pytest.approx(1 + 0.5 + 0.5 + 0.41)
    view.finish(3)
    view.step(policy)  # at an age of 0 restarts cost nothing
    assert types_of(view) == ["s", "ff", "ff"]


def test_sia_moves_a_job_to_another_type_of_the_same_width():
    view, policy = ElasticView(WORLD), make("sia", WORLD)
    jobs = [view.submit(4, model="") for _ in range(2)]
    fast = [view.submit(4, model="rigid") for _ in range(1)]
    view.step(policy)
    assert sorted(map(len, types_of(view))) == [0, 4, 4]
    view.finish(*[job for job in jobs if job in view.held])
    view.step(policy)
    assert types_of(view) == ["ffff"], fast


def test_equal_shares_are_placed_on_the_fastest_type_with_room():
    view, policy = ElasticView(WORLD), make("equi", WORLD)
    for _ in range(4):
        view.submit(1, model="e")
    view.step(policy)
    assert types_of(view) == ["ff", "ff", "ss", "ss"]
    view.submit(3, model="rigid")  # no type has room for it: it waits, nobody is torn apart
    view.step(policy)
    held = types_of(view)
    assert all(len({*kinds}) <= 1 for kinds in held)


def test_policies_that_know_no_types_are_refused():
    for entry in ENTRIES:
        if entry.knows_types:
            make(entry.name, WORLD)
        else:
            with pytest.raises(ValueError, match=f"policy '{entry.name}': it knows no GPU types"):
                make(entry.name, WORLD)


@pytest.mark.parametrize(
    ("policy", "text"),
    [("equi:gpus=3", "'gpus': those of slow, fast differ"), ("sia:placement=pal", "'placement'")],
)
def test_options_that_know_no_types_are_refused(policy, text):
    with pytest.raises(ValueError, match=text):
        make(policy, WORLD)


def test_no_bound_is_known_where_types_differ():
    with pytest.raises(UnknownPhysics, match=r"models\[rigid\]\.gpu_speeds"):
        refuse_unknown_physics(WORLD)


# --- the bundled scenario ---------------------------------------------------------------------


def test_the_bundled_scenario_has_the_curves_of_the_instance():
    world, instance = read_scenario("three-types"), read("boa/three-types")
    assert {c.id: c.phases for c in instance.classes} == {
        name: model.phases for name, model in world.models.items()
    }
    sizes = {"t4": 24, "rtx-2080ti": 24, "a100": 16}  # as in Sia's cluster
    held = {g.gpu_type: g.count * g.gpus for g in world.nodes}
    assert held == sizes


def test_sia_is_ahead_where_types_differ():
    told = {name: simulate("three-types", name).metrics for name in ("equi", "pollux", "sia")}
    assert told["sia"]["jct_mean_s"] < 0.85 * min(
        told["equi"]["jct_mean_s"], told["pollux"]["jct_mean_s"]
    )
    assert all(row["unfinished"] == 0 for row in told.values())
