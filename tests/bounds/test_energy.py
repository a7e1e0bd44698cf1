"""Bounds of energy: never above a rollout, tight where theory says so, and a bill that holds."""

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.bounds.verify.groups import Groups, job_types
from optsched.eaco.interference import GroupRates
from optsched.rollout.engine.decision import InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.results.metrics import metrics
from optsched.rollout.settings import SETTINGS
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import Failure
from optsched.verification import Violation
from tests.bounds.test_laws import Unruly, is_bounded
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import scenarios, traces

ALL = Schedules()
BORNE = Schedules(within_slowdowns=True)
NODE = {"base_w": 400, "sleep_w": 40}
RATES = st.sampled_from([0.001, 0.3, 0.5, 0.8, 0.95, 1.0])


@pytest.fixture(autouse=True)
def _short_idle(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "idle_epochs", 30)


def gpu(bare_w=30.0, context_w=36.0, peak_w=300.0, **curve):
    parts = {"curve": curve} if curve else {}
    return {"bare_w": bare_w, "context_w": context_w, "peak_w": peak_w, **parts}


def group(types, rates, **watts):
    return {"types": list(types), "rates": rates, **watts}


def world(groups=(), *, nodes=1, gpus=1, most=2, idle="sleep", node=None, models="abc", **parts):
    power = {"gpu": gpu(0.0, 50.0, 250.0), "node": node or {"base_w": 0}, "idle_nodes": idle}
    table = {"groups": list(groups), "fallback": "none"}
    models = {name: {"utilisation": 0.5, "max_slowdown": 1.25} for name in models}
    parts = {"power": power, "models": models, **parts}
    sharing = {"max_jobs_per_gpu": most, "interference": table}
    return scenario(nodes, gpus, sharing=sharing, **parts)


def kwh(scene, jobs, schedules=ALL):
    found = bound_of(scene, jobs, schedules)
    verify_bounds(scene, jobs, found)
    return found.energy_kwh


def joules(scene, jobs, schedules=ALL):
    return pytest.approx(kwh(scene, jobs, schedules) * 3.6e6, rel=1e-6)


class Fitting(Unruly):
    """Leaves out what does not fit together."""

    def decide(self, view):
        decision = super().decide(view)
        while decision.place or decision.pre_run:
            try:
                self.world.rules.checked(decision)
            except InvalidDecision:
                key = "place" if decision.place else "pre_run"
                fewer = dict(list(getattr(decision, key).items())[:-1])
                decision = replace(decision, **{key: fewer})
            else:
                break
        return decision


# --- known values --------------------------------------------------------------------------------


def test_a_job_alone_takes_its_watts_for_its_time():
    assert joules(world(), trace((0, 1, 100), model=["a"])) == 150 * 100


def test_jobs_that_share_take_the_watts_of_their_group():
    """Two equal works at rate 0.8: 125 s at 200 W, instead of 200 s at 150 W."""
    pair = group("ab", [0.8, 0.8], gpu_power_w=200)
    jobs = trace((0, 1, 100), (0, 1, 100), model=["a", "b"])
    assert joules(world([pair]), jobs) == 200 * 125
    assert joules(world(), jobs) == 2 * 150 * 100
    slow = group("ab", [0.5, 0.5], gpu_power_w=400)
    assert joules(world([slow]), jobs) == 2 * 150 * 100


def test_groups_that_users_do_not_bear_are_in_one_class_alone():
    pair = group("ab", [0.79, 0.79], gpu_power_w=150)
    jobs = trace((0, 1, 79), (0, 1, 79), model=["a", "b"])
    assert joules(world([pair]), jobs) == 150 * 100
    assert joules(world([pair]), jobs, BORNE) == 2 * 150 * 79
    assert joules(world([group("ab", [0.8, 0.8], gpu_power_w=150)]), jobs, BORNE) == 150 * 79 / 0.8


def test_idle_nodes_draw_until_the_last_job_ends():
    on = {"idle": "on", "node": {"base_w": 400}, "nodes": 2, "most": 1}
    assert joules(world(**on), trace((10, 1, 100), model=["a"])) == 2 * 400 * 100 + 150 * 100
    asleep = on | {"idle": "sleep", "node": NODE}
    assert joules(world(**asleep), trace((10, 1, 100), model=["a"])) == 2 * 40 * 100 + 510 * 100
    down = [{"nodes": [1], "from_s": 1, "to_s": 2, "kind": "drain"}]
    told = joules(world(**asleep, downtime=down), trace((10, 1, 100), model=["a"]))
    assert told == 40 * 100 + 510 * 100


def test_a_failed_attempt_is_redone_and_pue_counts_all():
    failures = [[Failure("x", 30_000_000)]]
    jobs = trace((0, 1, 100), model=["a"], failures=failures, status=["passed"])
    assert joules(world(), jobs) == 150 * 130
    assert joules(world(costs={"checkpoint_every_s": 5}), jobs) == 150 * 100
    site = world().changed({"power.pue": 1.5})
    assert joules(site, jobs) == 1.5 * 150 * 130
    assert joules(world(), jobs, Schedules(gives_up=True)) == 150 * 30


def test_without_watts_or_jobs_there_is_no_bound_of_energy():
    assert kwh(scenario(1, 1), trace((0, 1, 5))) is None
    assert kwh(world(), trace()) is None


def test_too_many_kinds_of_jobs_that_share_have_no_bound_of_energy():
    count = 60
    jobs = trace(*[(0, 1, 5)] * count, utilization=[n / 100 for n in range(count)])
    assert kwh(world(most=5), jobs) is None
    assert kwh(world(most=1), jobs) > 0


# --- brute force ---------------------------------------------------------------------------------

TABLE = {
    ("a", "b"): ([0.5, 0.5], 160),
    ("a", "c"): ([1.0, 0.5], 190),
    ("b", "c"): ([1.0, 1.0], 390),
    ("a", "b", "c"): ([0.5, 0.5, 0.5], 150),
}


def least_joules(works):
    """The least energy on one GPU, in steps of a second, over all groups that change at will."""
    groups = [(key, *TABLE[key]) for key in TABLE] + [((name,), [1.0], 150) for name in works]
    start, known = tuple(2 * w for w in works.values()), {}
    names = list(works)

    def search(left):
        if not any(left):
            return 0
        if left not in known:
            options = []
            for key, rates, watts in groups:
                done = dict(zip(key, rates, strict=True))
                if all(left[names.index(n)] for n in key if n in names) and set(key) <= set(names):
                    after = [
                        max(0, x - int(2 * done.get(n, 0)))
                        for n, x in zip(names, left, strict=True)
                    ]
                    options.append(watts + search(tuple(after)))
            known[left] = min(options)
        return known[left]

    return search(start)


@law(40)
@given(st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1))
def test_no_schedule_in_whole_steps_takes_less(works):
    groups = [group(key, rates, gpu_power_w=watts) for key, (rates, watts) in TABLE.items()]
    jobs = trace(*[(0, 1, w) for w in works.values()], model=list(works))
    assert kwh(world(groups, most=3), jobs) * 3.6e6 <= least_joules(works) + 1e-9


# --- laws ----------------------------------------------------------------------------------------


@st.composite
def tables(draw):
    """Measured groups of the types m and e and of one that no trace has; any fallback."""
    keys = [k for n in (2, 3) for k in itertools.combinations_with_replacement(("e", "m", "x"), n)]
    groups = []
    for key in draw(st.lists(st.sampled_from(keys), unique=True, max_size=5)):
        by_type = {name: draw(RATES) for name in sorted(set(key))}
        if draw(st.integers(0, 5)) == 0:
            by_type = dict.fromkeys(by_type, 0.0)
        watts = draw(st.sampled_from([{}, {"gpu_power_w": 20.0}, {"gpu_power_w": 250.0}]))
        groups.append(group(key, [by_type[name] for name in key], **watts))
    fallback = draw(st.sampled_from(["none", "larger", "pairs", "utilisation"]))
    return {
        "groups": groups,
        "fallback": fallback,
        "partner_slowdown": draw(st.sampled_from([0, 0.2])),
    }


@st.composite
def worlds(draw):
    """Scenarios with watts, many of them with jobs that share by measured tables."""
    found = draw(scenarios())
    assume(is_bounded(found))
    curve = draw(st.sampled_from([{}, {"kind": "power-law"}, {"kind": "fan"}]))
    bare = draw(st.sampled_from([0.0, 30.0]))
    power = {
        "gpu": gpu(bare, **curve),
        "node": draw(st.sampled_from([NODE, {"base_w": 0}])),
        "idle_nodes": draw(st.sampled_from(["on", "sleep"])),
        "pue": draw(st.sampled_from([1.0, 1.3])),
    }
    document = found.model_dump(mode="json", by_alias=True) | {"power": power}
    if found.sharing.max_jobs_per_gpu > 1:
        document["sharing"]["interference"] = draw(tables())
        document["models"]["x"] = {}
    return type(found).model_validate(document)


@law(200)
@given(st.data())
def test_no_rollout_takes_less_than_its_bound(data):
    scene = data.draw(worlds())
    jobs = data.draw(traces(scene))
    schedules = data.draw(st.builds(Schedules, trials=st.booleans(), gives_up=st.booleans()))
    policy = Fitting(data.draw(st.integers(0, 999)), data.draw(st.integers(0, 40)), schedules)
    engine = Engine(scene, jobs, policy, 0)
    policy.world = engine.world
    record = engine.run()
    if len(jobs) and min(record.jobs.end_us.tolist()) >= 0:
        assert kwh(scene, jobs, schedules) <= metrics(record)["energy_kwh"]


@law(100)
@given(st.data())
def test_the_verifier_reads_the_rates_and_watts_that_rollouts_have(data):
    models = {"m": {"utilisation": 0.7}, "e": {"utilisation": 0.5}, "x": {"utilisation": 0.2}}
    curve = data.draw(st.sampled_from([{}, {"kind": "power-law"}, {"kind": "fan"}]))
    power = {"gpu": gpu(**curve), "node": NODE}
    sharing = {"max_jobs_per_gpu": 3, "interference": data.draw(tables())}
    scene = scenario(1, 1, models=models, power=power, sharing=sharing)
    jobs = trace((0, 1, 5), (0, 1, 5), model=["e", "m"])
    types = job_types(scene, jobs)
    groups = Groups(scene, types, within_slowdowns=False)
    utilisation = {name: model["utilisation"] for name, model in models.items()}
    rates = GroupRates(scene.sharing.interference, "", utilisation)
    for size in (1, 2, 3):
        for key in itertools.combinations_with_replacement((0, 1), size):
            found, names = groups.rates(key), [types.names[n] for n in key]
            real = rates.of(names)
            assert (found is not None) == real.is_known
            if found is not None:
                assert {types.names[n]: rate for n, rate in found.items()} == real.by_type
    for each in groups.all():
        assert each.gpu_w == rates.gpu_w([types.names[n] for n in each.types], scene.power.gpu)


@law(15)
@given(st.data())
def test_watts_and_times_scale_it_and_fewer_schedules_never_lower_it(data):
    groups = [group(key, rates, gpu_power_w=watts) for key, (rates, watts) in TABLE.items()]
    rows = data.draw(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30)), min_size=1, max_size=5)
    )
    names, times = zip(*rows, strict=True)
    jobs, longer = (trace(*[(0, 1, k * t) for t in times], model=list(names)) for k in (1, 2))
    scene = world(groups, most=3)
    before = kwh(scene, jobs)
    assert kwh(scene, longer) == pytest.approx(2 * before, rel=1e-9)
    site = scene.changed({"power.pue": 2.0})
    assert kwh(site, jobs) == pytest.approx(2 * before, rel=1e-9)
    assert before <= kwh(scene, jobs, BORNE) * (1 + 1e-6)
    assert kwh(world(groups, most=3, nodes=2), jobs) <= before * (1 + 1e-9)
    assert kwh(world(groups, most=2), jobs) >= before * (1 - 1e-6)


# --- certificates --------------------------------------------------------------------------------


@law(40)
@given(st.lists(st.integers(0, 10**15), min_size=3, max_size=3))
def test_any_prices_prove_something_that_holds(prices):
    groups = [group(key, rates, gpu_power_w=watts) for key, (rates, watts) in TABLE.items()]
    scene = world(groups, most=3)
    jobs = trace((0, 1, 4), (0, 1, 4), (0, 1, 2), model=["a", "b", "c"])
    found = bound_of(scene, jobs, ALL)
    forged = found.model_copy(
        update={"energy": found.energy.model_copy(update={"prices_uw": tuple(prices)})}
    )
    least = least_joules({"a": 4, "b": 4, "c": 2}) / 3.6e6
    stated = forged.model_copy(update={"energy_kwh": least * (1 + 1e-9)})
    with pytest.raises(Violation, match="energy_kwh"):
        verify_bounds(scene, jobs, stated)


@pytest.mark.parametrize("change", [{"energy_kwh": 1e9}, {"energy": None}])
def test_energy_that_is_not_proven_is_refused(change):
    scene, jobs = world(), trace((0, 1, 100), model=["a"])
    with pytest.raises(Violation, match="energy_kwh"):
        verify_bounds(scene, jobs, bound_of(scene, jobs, ALL).model_copy(update=change))


def test_prices_of_another_trace_are_refused():
    scene, jobs = world(), trace((0, 1, 100), model=["a"])
    found = bound_of(scene, jobs, ALL)
    more = found.energy.model_copy(update={"prices_uw": (1, 2)})
    with pytest.raises(Violation, match="one price for each type"):
        verify_bounds(scene, jobs, found.model_copy(update={"energy": more}))


@pytest.mark.parametrize("name", ["eaco-28", "eaco-64"])
def test_bundled_scenarios_have_the_energy_of_the_fluid_schedule(name):
    """4,660 kWh of seed 0, where no user's slowdown is exceeded: as the prototype found."""
    scene = optsched.read_scenario(name)
    assert kwh(scene, jobs_of(scene), BORNE) == pytest.approx(4660.2528, abs=1e-3)
    assert Fraction(kwh(scene, jobs_of(scene))) < 4107
