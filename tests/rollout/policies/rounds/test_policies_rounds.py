"""Policies in rounds, PAL's among them: examples by hand on a stub view, and laws."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.pal.greedy.rules import BINNINGS
from optsched.registry import loaded
from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.pal_adapter import ExactPlacement
from optsched.rollout.policies.placement_round import Batch, ClusterData
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from tests.support.builders.rollout_parts import gone_on
from tests.support.builders.rollout_stub import StubView, scenario
from tests.support.oracles.pal import bitmask_optimum
from tests.support.strategies.common import law

MODELS = {"slow": {"application_class": "A"}, "calm": {"application_class": "B"}}
STICKY = ["packed-sticky", "random-sticky"]
NON_STICKY = ["packed-non-sticky", "pm-first", "pal-greedy", "pal-multilevel", "pal"]
PREEMPTIVE = ["las", "srtf", "tiresias"]
ALL = [*STICKY, *NON_STICKY, "random-non-sticky", *PREEMPTIVE]


def varied(slow, width=2, calm=None, models=MODELS, **fields):
    """Return a scenario of nodes with slowdowns for class A, by default none for class B."""
    profile = {
        "gpus": [f"g{n}" for n in range(len(slow))],
        "slowdown": {"A": slow, "B": calm or [1.0] * len(slow)},
        "kind": "persistent",
    }
    nodes = len(slow) // width
    return scenario(nodes, width, profile=profile, models=models, locality=(1.0, 1.5), **fields)


def placed(name, world, *jobs):
    """Submit jobs (GPUs, model), let a policy place them, and return their GPUs."""
    view = StubView(world)
    for size, model in jobs:
        view.submit(size, model=model)
    view.step(make(name, world))
    return list(view.held.values())


# --- what each rule does --------------------------------------------------------------------------

TINY = varied([1.2, 1.1, 0.95, 1.0])
THREE = [(1, "slow"), (2, "slow"), (1, "calm")]


def test_the_three_jobs_of_pal_tiny():
    """As the instance pal/tiny says: 3.2 by packing, 3.15 by PAL, and 3.1 at best."""
    assert placed("packed-sticky", TINY, *THREE) == [(0,), (2, 3), (1,)]
    assert placed("pal-greedy:bins=exact", TINY, *THREE) == [(2,), (0, 1), (3,)]
    assert placed("pal", TINY, *THREE) == [(1,), (2, 3), (0,)]


def test_pm_first_ignores_places():
    world = varied([1.0, 2.0, 1.0, 2.0])
    assert placed("pm-first:bins=exact", world, (2, "slow")) == [(0, 2)]
    assert placed("pal-greedy:bins=exact", world, (2, "slow")) == [(0, 2)]  # 1.5 against 2
    dear = varied([1.0, 1.4, 1.0, 1.4])
    assert placed("pm-first:bins=exact", dear, (2, "slow")) == [(0, 2)]
    assert placed("pal-greedy:bins=exact", dear, (2, "slow")) == [(0, 1)]


def test_classes_choose_in_the_order_of_the_profile():
    world = varied([1.0, 2.0, 3.0, 4.0], calm=[1.0, 1.1, 1.2, 1.3])
    for name in ("pm-first:bins=exact", "pal-greedy:bins=exact"):
        assert placed(name, world, (1, "calm"), (1, "slow"), (1, "")) == [(1,), (0,), (2,)]


def test_a_model_has_penalties_of_its_own():
    far = {"application_class": "A", "locality": [1.0, 1.0]}
    world = varied([1.0, 1.4, 1.0, 1.4], models=MODELS | {"far": far})
    assert placed("pal-greedy:bins=exact", world, (2, "slow")) == [(0, 1)]
    assert placed("pal-greedy:bins=exact", world, (2, "far")) == [(0, 2)]


def test_binning_is_the_released_one_by_default():
    world = varied([1.0, 1.01, 2.0, 2.01])
    assert placed("pm-first", world, (1, "slow")) == [(0,)]
    policy, view = make("pm-first", world), StubView(world)
    view.submit(1, model="slow")
    view.step(policy)
    bins = loaded(BINNINGS[policy.placement.rules.row.bins])
    scores = Batch(view, ClusterData(view), [], [], np.ones(4, bool)).world.scores(bins)
    assert len(set(scores["A"].tolist())) == 2
    with pytest.raises(ValueError, match="'bins': expected 'released', 'silhouette' or 'exact'"):
        make("pm-first:bins=beans", world)


# --- rounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*STICKY, *NON_STICKY])
def test_the_longest_prefix_is_placed_and_nothing_behind_it(name):
    world = varied([1.0] * 4)
    view, policy = StubView(world), make(name, world)
    for size in (2, 1, 2, 1):
        view.submit(size, model="slow")
    assert view.step(policy).place.keys() == {0, 1}
    view.finish(0)
    assert view.step(policy).place.keys() >= {2, 3}


def test_backfill_and_quotas():
    world = scenario(2, 2, quotas={"a": 2})
    for name, expected in (("packed-sticky", {0, 3}), ("packed-sticky:backfill=true", {0, 2, 3})):
        view = StubView(world)
        for size, queue in ((1, "a"), (2, "a"), (1, "a"), (1, "b"), (3, "b")):
            view.submit(size, queue=queue)
        assert view.step(make(name, world)).place.keys() == expected


def test_running_jobs_stay_or_are_placed_anew():
    world = scenario(2, 2)
    for name, expected in (("packed-sticky", (2,)), ("packed-non-sticky", (0,))):
        view, policy = StubView(world), make(name, world)
        for size in (2, 1):
            view.submit(size)
        view.step(policy)
        assert view.held == {0: (0, 1), 1: (2,)}
        view.finish(0)
        view.step(policy)
        view.submit(1)
        view.step(policy)
        assert view.held[1] == expected


@pytest.mark.parametrize("name", [*STICKY, *NON_STICKY])
def test_a_round_without_news_changes_nothing(name):
    world = varied([1.3, 1.1, 1.2, 1.0, 1.1, 1.0])
    view, policy = StubView(world), make(name, world)
    for size in (2, 1, 2, 4):
        view.submit(size, model="slow")
    view.step(policy)
    decision = view.step(policy)
    assert (decision.place, decision.stop, decision.solves) == ({}, (), ())


def test_random_non_sticky_draws_again_in_every_round():
    world = scenario(4, 4)
    view, policy = StubView(world), make("random-non-sticky", world, seed=1)
    view.submit(4)
    drawn = [view.step(policy).place.get(0) for _ in range(5)]
    assert len(set(drawn)) > 3
    assert policy.every_epoch


def test_a_shorter_job_stops_a_longer_one():
    world = scenario(1, 4)
    view, policy = StubView(world), make("srtf", world)
    for left in (100, 50):
        view.submit(2, remaining_s=left)
    view.step(policy)
    view.submit(2, remaining_s=10)
    decision = view.step(policy)
    assert (decision.stop, decision.place) == ((0,), {2: (2, 3)})
    view.finish(2)
    assert view.step(policy).place == {0: (2, 3)}


def test_a_running_job_makes_way_in_its_queue():
    world = scenario(2, 4, quotas={"a": 3})
    view, policy = StubView(world), make("las", world)
    view.submit(1, queue="a")
    view.step(policy)
    view.wait(10)
    view.submit(3, queue="a")
    decision = view.step(policy)
    assert (decision.stop, decision.place) == ((0,), {1: (0, 1, 2)})


def test_tiresias_lets_new_jobs_run():
    world = scenario(1, 2)
    view, policy = StubView(world), make("tiresias:thresholds_gpu_s=100", world)
    view.submit(2)
    view.step(policy)
    view.submit(1)
    assert not view.step(policy).place
    view.wait(59)
    assert not view.step(policy).place  # its lease is an epoch
    view.wait(1)
    decision = view.step(policy)
    assert (decision.stop, decision.place) == ((0,), {1: (0,)})


# --- the exact placement --------------------------------------------------------------------------


def test_moves_cost_what_the_scenario_says():
    """Held 1.2 and wanted 1.0: 0.2 x 100 s are worth a move of 10 s, not of 30 s."""
    for restore_s, expected in ((10, (1,)), (30, (0,))):
        world = varied([1.2, 1.0], costs={"restore_s": restore_s}, epoch_s=100)
        view, policy = StubView(world), make("pal", world)
        for model in ("slow", "slow"):
            view.submit(1, model=model)
        view.step(policy)
        view.held = {0: (0,), 1: (1,)}
        view.finish(1)
        view.step(policy)
        assert view.held[0] == expected


def test_remaining_times_as_weights():
    world = varied([1.0, 1.2], width=1)
    for name, expected in (("pal:weights=remaining", [(1,), (0,)]), ("pal", None)):
        view = StubView(world)
        view.submit(1, model="slow", remaining_s=10)
        view.submit(1, model="slow", remaining_s=1000)
        decision = view.step(make(name, world))
        assert expected in (None, list(view.held.values()))
        (solve,) = decision.solves
        assert solve.status == "optimal"
    with pytest.raises(ValueError, match="option 'weights': expected 'equal' or 'remaining'"):
        make("pal:weights=heavy", world)


@given(st.data())
@law(200, is_costly=True)
def test_the_exact_placement_is_optimal_and_never_above_the_greedy_one(data):
    values = st.sampled_from([1.0, 1.1, 1.3, 2.0])
    world = varied(data.draw(st.lists(values, min_size=6, max_size=6)))
    view = StubView(world)
    for size in data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=4)):
        view.submit(size, model=data.draw(st.sampled_from(["slow", "calm", ""])))
    (solve,) = view.step(make("pal:gap=1e-6,programs=1000", world)).solves
    by_default = StubView(world)
    for job in range(len(view.jobs)):
        by_default.submit(view.demand(job), model=view.model(job))
    (few,) = by_default.step(make("pal:gap=1e-6", world)).solves
    placement = make("pal", world).placement
    batch = _batch(view)
    placement.place(batch)
    instance = placement._frame.instance(batch, [None] * len(batch.jobs))
    assert type(instance).from_document(instance.model_dump(by_alias=True)) == instance
    assert solve.objective == pytest.approx(bitmask_optimum(instance), rel=1e-9)
    assert few.bound <= solve.objective * (1 + 1e-9)
    assert few.objective >= solve.objective * (1 - 1e-9)
    is_closed = few.objective - few.bound <= 1e-6 * few.objective
    assert few.status == ("optimal" if is_closed else "feasible")
    for name in ("pal-greedy", "packed-sticky", "pal-multilevel"):
        other = StubView(world)
        for job in range(len(view.jobs)):
            other.submit(view.demand(job), model=view.model(job))
        other.step(make(name, world))
        assert _cost(other) >= few.objective * (1 - 1e-9)


def test_a_tree_that_may_not_grow_leaves_a_plan_that_is_called_optimal_only_if_it_is():
    world = varied([1.0, 2.0, 1.1, 2.0, 1.3, 2.0])
    view = StubView(world)
    for size in (3, 2):
        view.submit(size, model="slow")
    (few,) = view.step(make("pal:gap=1e-6", world)).solves
    placement = make("pal", world).placement
    batch = _batch(view)
    placement.place(batch)
    optimum = bitmask_optimum(placement._frame.instance(batch, [None] * len(batch.jobs)))
    assert few.bound <= optimum <= few.objective
    assert few.status == ("optimal" if few.objective == pytest.approx(few.bound) else "feasible")


def _batch(view):
    world = ClusterData(view)
    jobs = [job for job, gpus in view.held.items() if gpus]
    held = [() for _ in jobs]
    return Batch(view, world, jobs, held, world.usable(view.ready))


def _cost(view):
    world, total = ClusterData(view), 0.0
    for job, gpus in view.held.items():
        if gpus:
            row = world.slowdown[world.class_of(view.model(job))]
            level = view.cluster.level(gpus)
            total += world.penalties(view.model(job))[level] * max(row[gpu] for gpu in gpus)
    return total


def test_equal_jobs_do_not_exchange_gpus():
    world = varied([1.0, 1.0, 1.5, 1.5])
    view = StubView(world)
    for _ in range(3):
        view.submit(1, model="slow")
    view.held = {0: (2,), 1: (1,), 2: (0,)}
    placement = ExactPlacement()
    base = ClusterData(view)
    held = [view.held[job] for job in range(3)]
    batch = Batch(view, base, [0, 1, 2], held, base.usable(view.ready))
    gpus = [tuple(row.tolist()) for row in placement.place(batch).gpus.values()]
    assert gpus[1:] == [(1,), (0,)]


def test_a_round_begins_with_what_the_last_one_left():
    """With an equal job for one that ends, plan and prices of the last round are enough."""
    world = varied([1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 2.3], width=4)
    view, policy = StubView(world), make("pal", world)
    for _ in range(2):
        view.submit(3, model="slow")  # of single GPUs a sort proves as much as prices
    (cold,) = view.step(policy).solves
    assert (cold.status, cold.is_warm) == ("optimal", False)
    view.finish(1)
    view.submit(3, model="slow")
    resumed = make("pal", world)
    resumed.restore(of_json(to_json(policy.state())))
    for chosen in (policy, resumed):
        (warm,) = chosen.decide(view).solves
        assert (warm.status, warm.is_warm) == ("optimal", True)
        assert warm.bound <= warm.objective <= cold.objective * (1 + 1e-3)
    afresh = make("pal:gap=1e-6", world).decide(view).solves[0]
    assert warm.bound <= afresh.objective <= warm.objective * (1 + 1e-9)
    assert warm.objective <= afresh.objective * (1 + 1e-3)


def test_rounds_with_a_running_job_that_moves_for_nothing_were_no_instances():
    world = varied([1.0, 1.0, 1.0, 3.0, 1.0, 3.0, 1.0, 1.0], costs={"restore_s": 0})
    view, policy = StubView(world), make("pal:gap=1e-6,programs=10000,weights=equal", world)
    for _ in range(2):
        view.submit(2, model="slow", remaining_s=50.0)
        view.ready = [False, True, True, False]
        view.wait(360)
        (solve,) = view.step(policy).solves
        assert (solve.status, solve.verified) == ("optimal", True)


@given(data=st.data())
@law(60)
def test_warm_rounds_are_as_good_as_cold_ones(data):
    """Jobs come, end and fail, and nodes too; a pickled policy decides the same."""
    slow = data.draw(st.lists(st.sampled_from([1.0, 1.1, 1.5, 3.0]), min_size=8, max_size=8))
    world = varied(slow, costs={"restore_s": data.draw(st.sampled_from([0, 30]))})
    weights = data.draw(st.sampled_from(["equal", "remaining"]))
    view, policy = StubView(world), make(f"pal:gap=1e-6,programs=10000,weights={weights}", world)
    for _ in range(data.draw(st.integers(2, 4))):
        for job in view.running.tolist():
            fate = data.draw(st.sampled_from(["runs", "runs", "ends", "fails"]))
            if fate != "runs":
                (view.finish if fate == "ends" else view.fail)(job)
        for size in data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=2)):
            left = data.draw(st.sampled_from([50.0, 900.0]))
            view.submit(size, model=data.draw(st.sampled_from(["slow", "calm"])), remaining_s=left)
        busy = {view.cluster.node_of[gpu] for gpus in view.held.values() for gpu in gpus}
        view.ready = [node in busy or data.draw(st.booleans()) for node in range(4)]
        view.wait(360)
        resumed, cold = (pickle.loads(pickle.dumps(policy)) for _ in range(2))
        cold.placement.solver._last = None
        afresh, other, decision = cold.decide(view), resumed.decide(view), view.step(policy)
        assert (other.place, other.stop) == (decision.place, decision.stop)
        for solve, reference in zip(decision.solves, afresh.solves, strict=True):
            assert solve.status == reference.status == "optimal"
            assert solve.objective == pytest.approx(reference.objective, rel=3e-6)
            assert solve.bound <= min(solve.objective, reference.objective * (1 + 1e-9))


def test_a_rollout_of_warm_rounds_goes_on_from_plain_data():
    world = read_scenario("pal-64-persistent").changed({"trace.jobs": 40})
    trace = jobs_of(world)

    def begun():
        return Engine(world, trace, make("pal", world), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 7 == 0:
            engine = gone_on(engine, begun())
    record = engine.record()
    assert (record.jobs.end_us == whole.jobs.end_us).all()
    solves, others = (
        [(solve.objective, solve.bound, solve.is_warm) for e in log.epochs for solve in e.solves]
        for log in (record, whole)
    )
    assert solves == others
    assert 0 < sum(is_warm for _, _, is_warm in solves) < len(solves)
    assert all(bound <= objective for objective, bound, _ in solves)


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
@law(200)
def test_random_days(name, data):
    """The stub refuses GPUs that are in use, torn gangs and broken quotas."""
    slow = [1.0, 1.1, 1.0, 1.3, 2.0, 1.0]
    quotas = data.draw(st.sampled_from([{}, {}, {"a": 3}]))
    world = varied(slow, quotas=quotas)
    view, policy = StubView(world), make(name, world, seed=3)
    for _ in range(data.draw(st.integers(1, 5))):
        for size in data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=3)):
            model = data.draw(st.sampled_from(["slow", "calm", ""]))
            view.submit(size, model=model, queue=data.draw(st.sampled_from("ab")))
        view.wait(360)
        for job in view.running.tolist():
            fate = data.draw(st.sampled_from(["runs", "runs", "ends", "fails"]))
            if fate != "runs":
                (view.finish if fate == "ends" else view.fail)(job)
        before = {job: gpus for job, gpus in view.held.items() if gpus}
        policy = pickle.loads(pickle.dumps(policy))
        view.step(policy)
        if name in STICKY:
            assert all(view.held[job] in (gpus, ()) for job, gpus in before.items())
        waiting = view.pending.tolist()
        if waiting and not quotas and name not in ("las", "srtf"):
            assert view.demand(waiting[0]) > view.free.sum()
