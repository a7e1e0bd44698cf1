"""Policies that share GPUs: EaCO's four jobs, the fluid bound, tolerances, gangs and moves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoPlan, Group, fluid
from optsched.eaco.greedy.rules import BY_NAME
from optsched.instance import InstanceError
from optsched.rollout import simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.eaco_adapter import EacoInstanceParts
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.generators.registry import generate
from optsched.traces.trace import US, trace_of
from optsched.verification import check
from tests.support.builders.rollout_parts import gone_on
from tests.support.strategies.common import law

MODELS = ("AlexNet", "ResNet-18", "ResNet-50", "VGG-16")
WORK_S = 127827.0
GREEDY = tuple(BY_NAME)
EQUATION_1 = "eaco:programs=5,objective=eaco"


def paper(nodes=4, **fields):
    """A cluster with the figures of EaCO's tables."""
    return read_scenario("eaco-28").changed({"nodes": nodes, **fields})


def tolerant(slowdown):
    """Its measured groups only, for users who bear a slowdown."""
    told = {f"models.{name}.max_slowdown": slowdown for name in MODELS}
    return paper(**told, **{"sharing.interference.fallback": "none"})


def four_jobs(models=MODELS):
    columns = {"submit_s": [0.0] * 4, "gpus": [8] * 4, "run_s": [WORK_S] * 4, "model": models}
    return trace_of("four", "", columns)


def energy(scenario, policy, trace=None):
    return simulate(scenario, policy, trace=trace).metrics["energy_kwh"]


# --- the paper's four jobs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slowdown", "kwh"), [(1.03, 161.67), (1.04, 111.77), (1.1, 111.77), (1.25, 93.66)]
)
def test_the_exact_policy_finds_the_best_groups_of_the_paper(slowdown, kwh):
    """As docs/math/eaco.md, Golden values; of equal works, so that groups end together."""
    assert energy(tolerant(slowdown), "eaco:gap=0.000001", four_jobs()) == pytest.approx(kwh, 2e-4)


def test_greedy_policies_on_the_four_jobs():
    outcomes = {name: energy(tolerant(1.1), name, four_jobs()) for name in GREEDY}
    assert outcomes["fifo-exclusive"] == pytest.approx(161.67, 2e-4)
    assert outcomes["fifo-packed"] == outcomes["random-pairs"] == outcomes["least-utilised"]
    assert outcomes["fifo-packed"] == outcomes["fifo-exclusive"]  # there are GPUs for all
    assert min(outcomes.values()) >= 111.77 * (1 - 2e-4)
    assert outcomes["eaco-greedy"] == pytest.approx(111.77, 2e-4)
    # In the other order ResNet-18, then AlexNet join VGG-16, the busiest, and ResNet-50 is alone.
    turned = energy(tolerant(1.1), "eaco-greedy", four_jobs(MODELS[::-1]))
    assert turned == pytest.approx(113.42, 2e-4)


@pytest.mark.parametrize("option", ["utilisation_threshold", "memory_threshold"])
def test_the_thresholds_of_eacos_rule_could_not_be_set(option):
    scenario = tolerant(1.1).changed({"sharing.memory_gb": 1000.0})
    told = {f"models.{name}.memory_gb": 300.0 for name in MODELS}
    scenario = scenario.changed(told)
    closed = energy(scenario, f"eaco-greedy:{option}=0", four_jobs())
    assert closed == energy(scenario, "fifo-exclusive", four_jobs())
    assert energy(scenario, f"eaco-greedy:{option}=1", four_jobs()) < closed
    with pytest.raises(ValueError, match=f"no option '{option}'"):
        make(f"best-fit-memory:{option}=0.5", scenario)


@pytest.mark.parametrize(("weight", "kwh"), [(1.0, 93.66), (0.0, 161.67)])
def test_equation_one_weighs_energy_and_time(weight, kwh):
    policy = f"eaco:objective=eaco,energy_weight={weight},gap=0.000001"
    assert energy(tolerant(1.25), policy, four_jobs()) == pytest.approx(kwh, 2e-4)


# --- streams ----------------------------------------------------------------------------------


def bound_kwh(scenario, trace):
    """The fluid bound (O3): work of a model is one lump, in as many jobs as may share a GPU."""
    frame = EacoInstanceParts(scenario, Cluster(scenario))
    job, most = frame.template.jobs[0], scenario.sharing.max_jobs_per_gpu
    models = np.array(trace.model)
    jobs = [
        job.model_copy(
            update={
                "id": f"{name}.{n}",
                "type": name,
                "gpus": 8,
                "work_s": trace.run_us[models == name].sum() / US / most,
                "max_slowdown": scenario.models[name].max_slowdown,
            }
        )
        for name in sorted(set(trace.model))
        for n in range(most)
    ]
    return fluid(frame.template.model_copy(update={"jobs": tuple(jobs)})).bound_kwh


@pytest.fixture(scope="module")
def stream():
    """Jobs for twelve nodes at a time: too many for eight, few for thirty."""
    fields = {"trace.jobs": 24, "trace.options.rate_per_h": 0.45}
    return {nodes: paper(nodes, **fields) for nodes in (8, 30)}


@pytest.fixture(scope="module")
def records(stream):
    outcomes = {("eaco", 30): simulate(stream[30], "eaco:programs=10")}
    return outcomes | {
        (name, nodes): simulate(scenario, name)
        for nodes, scenario in stream.items()
        for name in GREEDY
    }


def test_no_policy_takes_less_than_the_fluid_bound(records, stream):
    bound = bound_kwh(stream[30], records["eaco-greedy", 30].record.trace)
    outcomes = {key: result.metrics["energy_kwh"] for key, result in records.items()}
    assert min(outcomes.values()) >= bound * (1 - 1e-9)
    assert outcomes["eaco", 30] <= 1.25 * bound
    assert outcomes["fifo-exclusive", 30] >= 1.4 * bound


def test_the_published_pattern_appears(records):
    """With nodes for all only EaCO shares; where they are scarce the others do, too."""
    saved = {
        key: 1
        - result.metrics["energy_kwh"] / records["fifo-exclusive", key[1]].metrics["energy_kwh"]
        for key, result in records.items()
    }
    for name in ("fifo-packed", "random-pairs", "least-utilised"):
        assert saved[name, 30] == 0
        assert 0.02 < saved[name, 8] < saved["eaco-greedy", 8]
    assert saved["eaco-greedy", 30] > 0.25
    assert saved["eaco", 30] > saved["eaco-greedy", 30]
    assert records["fifo-exclusive", 8].metrics["queueing_delay_mean_s"] > 3600
    assert records["eaco-greedy", 8].metrics["queueing_delay_mean_s"] == 0


def test_users_tolerances_are_kept(records):
    for result in records.values():
        jobs, trace = result.record.jobs, result.record.trace
        moves_us = 1.1 * 62 * US * (jobs.migrations + jobs.preemptions)
        assert (jobs.running_us <= 1.1 * trace.run_us + moves_us + 10).all()
        assert (jobs.outcome == 0).all()


def test_only_some_rules_move_jobs(records):
    for (name, _), result in records.items():
        moved = result.metrics["migrations"] + result.metrics["preemptions"]
        if name not in {"fifo-packed", "random-pairs", "longest-first", "eaco"}:
            assert moved == 0, name
    assert records["longest-first", 30].metrics["migrations"] > 0
    solves = [s for epoch in records["eaco", 30].record.epochs for s in epoch.solves]
    assert len(solves) >= 24
    assert all(solve.bound <= solve.objective * (1 + 1e-9) for solve in solves)


def test_the_same_seed_gives_the_same_rollout(stream):
    few = stream[8].changed({"trace.jobs": 12})
    for name, world in (("random-pairs", stream[8]), ("eaco:programs=5", few)):
        first, second = (simulate(world, name, seed=4).record for _ in range(2))
        assert (first.jobs.end_us == second.jobs.end_us).all()


def test_prices_of_the_last_call_prove_many_plans(records):
    """With or without them the plans are proven as well; with them, many without any program."""
    world = records["eaco", 30].record.scenario
    policy = make("eaco", world)
    plan = policy.plan

    def afresh(present):
        policy.solver._last = None
        return plan(present)

    warm = simulate(world, "eaco").record
    policy.plan = afresh
    cold = Engine(world, warm.trace, policy, seed=0).run()
    proven = {}
    for record in (warm, cold):
        solves = [solve for epoch in record.epochs for solve in epoch.solves]
        assert all(solve.objective - solve.bound + 1e-9 >= 0 for solve in solves)
        proven[record is warm] = [solve.gap <= 1e-2 for solve in solves]
        share = sum(solve.is_warm for solve in solves) / len(solves)
        assert share == 0 if record is cold else share > 0.25
    assert np.mean(proven[True]) >= np.mean(proven[False]) - 0.1


@pytest.mark.parametrize(
    "policy", ["eaco:programs=5", "eaco:patience_s=60", "random-pairs", "fifo-packed"]
)
def test_a_rollout_goes_on_from_plain_data(policy):
    world, trace = gangs(), gang_trace(16)

    def begun():
        return Engine(world, trace, make(policy, world), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 7 == 0:
            engine = gone_on(engine, begun())
    assert (engine.record().jobs.end_us == whole.jobs.end_us).all()


def test_streams_of_equal_gangs_have_models():
    told = {"models": "a:3,b", "gpus": 8, "mean_run_s": 50.0}
    trace, plain = (generate("poisson", 400, 5, **options) for options in (told, {"gpus": 8}))
    assert trace.model.count("a") == 300
    assert set(trace.model) == {"a", "b"}
    assert set(plain.model) == {""}
    assert (trace.submit_us == plain.submit_us).all()
    with pytest.raises(InstanceError, match="expected name:weight"):
        generate("poisson", 4, models="a:-1")


# --- gangs, memory, other models --------------------------------------------------------------


def gangs(nodes=3, **fields):
    document = {
        "name": "gangs",
        "nodes": nodes,
        "gpus_per_node": 4,
        "models": {
            "calm": {"utilisation": 0.3, "memory_gb": 8, "max_slowdown": 1.2},
            "busy": {"utilisation": 0.9, "memory_gb": 12, "max_slowdown": 1.5},
        },
        "sharing": {"max_jobs_per_gpu": 3, "memory_gb": 32},
        "power": {
            "gpu": {"bare_w": 30, "context_w": 40, "peak_w": 300},
            "node": {"base_w": 500, "sleep_w": 20},
            "idle_nodes": "sleep",
        },
        "costs": {"restore_s": 60},
        "trace": {"generator": "none", "jobs": 1},
        **fields,
    }
    return Scenario.from_document(document, "gangs")


def gang_trace(count=40, seed=1, sizes=(1, 1, 2, 4, 8)):
    rng = np.random.default_rng(seed)
    columns = {
        "submit_s": np.sort(rng.integers(0, 20_000, count)).astype(float),
        "gpus": rng.choice(sizes, count),
        "run_s": rng.integers(100, 9000, count).astype(float),
        "model": rng.choice(["calm", "busy", "unknown"], count).tolist(),
    }
    return trace_of("gangs", "", columns)


@pytest.mark.parametrize("idle", ["on", "sleep"])
@pytest.mark.parametrize(
    "policy", [*GREEDY, "eaco:programs=5", "eaco:programs=5,objective=epoch", EQUATION_1]
)
def test_gangs_of_all_sizes_find_their_places(policy, idle):
    """The engine checks every decision: memory, limits, gangs, GPUs that are not taken."""
    world = gangs().changed({"power.idle_nodes": idle})
    trace = gang_trace(12 if "eaco:" in policy else 40)
    assert (simulate(world, policy, trace=trace).record.jobs.outcome == 0).all()


@pytest.mark.parametrize("policy", [*GREEDY, "eaco:programs=5", EQUATION_1])
def test_deadlines_that_cannot_be_met_stop_no_policy(policy):
    """Late before they come, late as they run, and in time: with few GPUs, and moves that cost."""
    trace = gang_trace(20, sizes=(1, 2, 4))
    rng = np.random.default_rng(2)
    allowed = trace.run_us * rng.choice([0.5, 1.0, 1.01, 1.3], len(trace.run_us))
    trace = replace(trace, deadline_us=trace.submit_us + allowed.astype(np.int64))
    assert (simulate(gangs(nodes=2), policy, trace=trace).record.jobs.outcome == 0).all()


class _View:
    """Two jobs that share GPU 0, with 1,000 s to do."""

    running, now_us = np.array([0, 1]), 10 * US

    def __init__(self, deadlines_s):
        self.deadlines_s = deadlines_s

    def remaining_us(self, jobs):
        return np.full(len(jobs), 1000.0 * US)

    def gpus_of(self, job):
        return (0,)

    def demand(self, job):
        return 1

    def model(self, job):
        return "busy"

    def deadline_us(self, job):
        return int(self.deadlines_s[job] * US)


@pytest.mark.parametrize("deadlines_s", [(5.0, 6.0), (1500.0, 1010.0), (1e6, 1e6)])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_group_whose_jobs_became_late_may_stay(deadlines_s, nodes):
    """Each would be due at its end alone, where one only can stay: no plan, on full nodes."""
    world = gangs(nodes=nodes, gpus_per_node=1)
    present = EacoInstanceParts(world, Cluster(world)).present(
        _View(deadlines_s), [0, 1], {0: None, 1: None}
    )
    stay = EacoPlan(groups=(Group(jobs=("0", "1"), nodes="nodes", node=0, location="at-0"),))
    check(present.instance, stay)
    plan, _ = make("eaco", world).plan(present)
    check(present.instance, plan)


def test_fifo_exclusive_is_first_in_first_out():
    trace = gang_trace(sizes=(4,))
    shared = simulate(gangs(), "fifo-exclusive", trace=trace).record
    plain = simulate(gangs(), "fifo", trace=trace).record
    assert (shared.jobs.end_us == plain.jobs.end_us).all()


@pytest.mark.parametrize("policy", [*GREEDY, "eaco:programs=5"])
def test_a_gang_waited_though_two_nodes_had_room_for_it_together(policy):
    """Two nodes with three GPUs free each: six start at once, as under fifo; and twelve can."""
    told = {"models.busy.max_slowdown": 1.0, "models.calm.max_slowdown": 1.0}
    world = gangs(nodes=2, gpus_per_node=8).changed(told)
    columns = {"submit_s": [0.0, 0.0, 5.0, 6.0], "gpus": [5, 5, 6, 12], "run_s": [1000.0] * 4,
               "model": ["busy", "calm", "busy", "calm"]}  # fmt: skip
    jobs = simulate(world, policy, trace=trace_of("t", "", columns)).record.jobs
    assert (jobs.first_start_us[:3] / US).tolist() == [0.0, 0.0, 5.0]
    assert jobs.first_start_us[3] / US >= 1000.0
    assert (jobs.outcome == 0).all()


@pytest.mark.parametrize(
    ("policy", "other"),
    [("fifo-exclusive", "fifo"), ("fifo-packed", "fifo"), ("least-utilised", "fifo")]
    + [(name, "fifo:backfill=true") for name in ("eaco-greedy", "best-fit-memory")],
)
@law(40)
@given(data=st.data())
def test_gangs_start_as_under_fifo_where_nothing_is_shared(policy, other, data):
    """Gangs of all sizes, across nodes too; where distance costs nothing, any GPUs will do."""
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True))
    trace = gang_trace(25, data.draw(st.integers(0, 99)), sizes)
    world = gangs(sharing={"max_jobs_per_gpu": 1, "memory_gb": 32})
    first, second = (simulate(world, name, trace=trace).record.jobs for name in (policy, other))
    assert (first.first_start_us == second.first_start_us).all()
    assert (first.end_us == second.end_us).all()


@pytest.mark.parametrize("policy", [*GREEDY, "eaco:programs=5", EQUATION_1])
@law(4)
@given(seed=st.integers(0, 99))
def test_gangs_of_any_size_find_their_places_whatever_is_closed(policy, seed):
    """The engine checks every decision."""
    downtime = [
        {"nodes": [0], "from_s": 3000, "to_s": 9000, "kind": "drain"},
        {"nodes": [1], "from_s": 7000, "to_s": 8000, "kind": "outage"},
    ]
    trace = gang_trace(14, seed, sizes=(1, 2, 3, 5, 6, 8, 10))
    record = simulate(gangs(downtime=downtime), policy, trace=trace).record
    assert (record.jobs.outcome == 0).all()


def test_a_window_leaves_later_jobs_waiting():
    scenario = gangs(nodes=8)
    columns = {"submit_s": [0.0] * 6, "gpus": [4] * 6, "run_s": [500.0] * 6, "model": ["busy"] * 6}
    trace = trace_of("t", "", columns)
    record = simulate(scenario, "best-fit-memory:window=2", trace=trace).record
    starts = record.jobs.first_start_us
    assert (starts[:2] == 0).all()
    assert (starts[2:4] > 0).all()
    assert (starts[4:] > starts[2]).all()


def test_worlds_that_do_not_suit():
    with pytest.raises(ValueError, match="does not rent nodes"):
        make("eaco-greedy", gangs(rented={"provision_s": 1}))
    with pytest.raises(ValueError, match="option 'waiting_kwh': expected greater than 0"):
        make("sharing-scores:waiting_kwh=0", gangs())
    with pytest.raises(ValueError, match="expected 'run-to-completion', 'epoch' or 'eaco'"):
        make("eaco:objective=money", gangs())


@pytest.mark.parametrize("name", ["eaco", "eaco-greedy", "fifo-exclusive", "lucid-ordered"])
def test_unlike_nodes_are_refused_before_the_first_event(name):
    world = read_scenario("eaco-28").changed(
        {"nodes": [{"count": 1, "gpus": 2}, {"count": 1, "gpus": 4}], "gpus_per_node": None}
    )
    with pytest.raises(ValueError, match=f"'{name}': it needs equal nodes"):
        make(name, world, 0)
