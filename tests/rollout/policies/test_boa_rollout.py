"""Policies of BOA against its theory: closed forms, the bound that nobody beats, and hand cases."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa.instance import BoaInstance
from optsched.rollout import simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.adaptive.power_mean import Choices, Row, best_widths, widths_within
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario, TraceSource
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import US, trace_of
from tests.support.builders.rollout_parts import gone_on
from tests.support.strategies.common import law

FIGURE_1 = "boa/epew-figure1"
SIGMAS = 4.0
BATCHES = 40


def models_of(instance):
    return {
        c.id: {"phases": [p.model_dump(mode="json") for p in c.phases], "rescale_s": c.rescale_s}
        for c in instance.classes
    }


def stream(instance=FIGURE_1, jobs=6000, nodes=400, **fields):
    """A cluster with room for all, and a stream of an instance's classes."""
    options = {"instance": instance, **fields.pop("options", {})}
    document = {
        "name": "stream",
        "nodes": nodes,
        "gpus_per_node": 1,
        "models": models_of(optsched.read(instance)),
        "trace": {"generator": "boa", "jobs": jobs, "options": options},
        "epoch_s": 10.0,
        **fields,
    }
    return Scenario.from_document(document, "stream")


def closed_form(instance, widths):
    """Mean JCT, mean and variance of the GPUs held: Little's law and independent Poisson counts."""
    rate = jobs = mean = variance = 0.0
    for job_class, row in zip(instance.classes, widths, strict=True):
        per_s = job_class.arrival_rate_per_h / 3600
        rate += per_s
        before = 0
        for phase, k in zip(job_class.phases, row, strict=True):
            there = phase.work_gpu_s / speed(phase.speedup, k)
            there += job_class.rescale_s if k != before else 0.0
            jobs, mean = jobs + per_s * there, mean + per_s * there * k
            variance += per_s * there * k * k
            before = k
    return jobs / rate, mean, variance


def speed(speedup, k):
    if speedup.kind == "table":
        return speedup.measured[k]
    if speedup.kind == "power":
        return k**speedup.exponent
    return 1 / (1 - speedup.parallel_fraction + speedup.parallel_fraction / k)


def held(record):
    """Moments and the GPUs held from each on, while jobs still arrive, after a warm-up."""
    at = np.array([epoch.now_us for epoch in record.epochs])
    gpus = np.array([epoch.busy_gpus for epoch in record.epochs])
    last = record.trace.submit_us[-1]
    inside = (at > last * 0.02) & (at <= last)
    return at[inside], gpus[inside]


def time_means(at, values):
    """Time averages over equal batches."""
    span = np.diff(at)
    batch = (at[:-1] - at[0]) * BATCHES // (at[-1] - at[0] + 1)
    return np.array(
        [np.average(values[:-1][batch == b], weights=span[batch == b]) for b in range(BATCHES)]
    )


def assert_agrees(samples, expected):
    """The mean of nearly independent samples is within its confidence interval."""
    error = samples.std(ddof=1) / math.sqrt(len(samples))
    assert abs(samples.mean() - expected) < SIGMAS * error, (samples.mean(), expected, error)
    assert error < 0.1 * expected  # else the check would say nothing


# --- theory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", ["exponential", "deterministic", "pareto"])
@pytest.mark.parametrize(
    ("policy", "widths"),
    [("fixed-width:k=4", [[4], [4]]), ("boa:budget=3,rates=" + FIGURE_1, None)],
)
def test_uncapped_widths_meet_the_closed_form(policy, widths, sizes):
    instance = optsched.read(FIGURE_1).changed({"widths": "integer", "budget_gpus": 3})
    if widths is None:
        plan = optsched.solve(instance, gap=1e-3).plan
        widths = [c.sequences[0].gpus for c in plan.classes]
    jct, mean, variance = closed_form(instance, widths)
    record = simulate(stream(options={"sizes": sizes, "pareto_shape": 3.0}), policy).record
    assert (record.jobs.waiting_us == 0).all()
    times = (record.jobs.end_us - record.trace.submit_us) / US
    assert_agrees(times[: len(times) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1), jct)
    at, gpus = held(record)
    assert_agrees(time_means(at, gpus), mean)
    assert_agrees(time_means(at, (gpus - mean) ** 2), variance)


def phased(budget=14.0):
    """Two classes with phases, of which one rescales."""
    tables = [(1.0, 1.6, 2.0), (1.0, 1.9, 3.4), (1.0, 1.95, 3.8)]
    speedups = [{"kind": "table", "gpus": [1, 2, 4], "speedup": list(row)} for row in tables]
    return {
        "schema": "optsched/boa/1",
        "name": "boa/phased",
        "budget_gpus": budget,
        "classes": [
            {
                "id": "a",
                "arrival_rate_per_h": 36.0,
                "rescale_s": 20.0,
                "phases": [
                    {"work_gpu_s": w, "speedup": speedups[n]} for n, w in enumerate((200, 300, 500))
                ],
            },
            {
                "id": "b",
                "arrival_rate_per_h": 18.0,
                "phases": [
                    {"work_gpu_s": w, "speedup": speedups[n]} for w, n in ((90, 1), (60, 0))
                ],
            },
        ],
    }


@pytest.fixture(scope="module")
def phased_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("boa") / "phased.json"
    path.write_text(json.dumps(phased()))
    return str(path)


def test_phases_and_rescaling_meet_the_closed_form(phased_file):
    instance = optsched.read(phased_file)
    plan = optsched.solve(instance).plan
    widths = [c.sequences[0].gpus for c in plan.classes]
    assert len(set(widths[0])) > 1  # the width changes on the way
    figures = optsched.boa.performance(instance, plan)
    jct, mean, variance = closed_form(instance, widths)
    assert (figures.mean_jct_s, figures.mean_gpus) == pytest.approx((jct, mean))
    record = simulate(stream(phased_file), f"boa:rates={phased_file},budget=14,gap=0.000001").record
    assert (record.jobs.waiting_us == 0).all()
    changes = sum(a != b for a, b in itertools.pairwise(widths[0]))
    models = np.array(record.trace.model)
    assert (record.jobs.rescales[models == "a"] == changes).all()
    times = (record.jobs.end_us - record.trace.submit_us) / US
    assert_agrees(times.reshape(BATCHES, -1).mean(axis=1), jct)
    at, gpus = held(record)
    assert_agrees(time_means(at, gpus), mean)
    assert_agrees(time_means(at, (gpus - mean) ** 2), variance)


def test_rented_gpus_are_those_held_if_nodes_come_at_once():
    record = simulate(stream(jobs=800, rented={"provision_s": 0}), "fixed-width:k=3").record
    assert record.spent_gpu_us == record.busy_gpu_us > 0
    assert (record.jobs.waiting_us == 0).all()


def least_mean_jct(record, gpu_us):
    """The least mean JCT of all schedules of these very jobs with so much GPU time (lemma 1)."""
    trace, instance = record.trace, optsched.read(FIGURE_1)
    models = np.array(trace.model)
    classes = []
    for job_class in instance.classes:
        chosen = models == job_class.id
        work = trace.run_us[chosen].sum() / US / chosen.sum()
        phase = job_class.phases[0].model_dump(mode="json") | {"work_gpu_s": work}
        entry = {"id": job_class.id, "arrival_rate_per_h": float(chosen.sum()), "phases": [phase]}
        classes.append(entry)
    document = {"schema": "optsched/boa/1", "name": "boa/sample", "classes": classes}
    document |= {"budget_gpus": gpu_us * (1 + 1e-9) / US / 3600, "widths": "continuous"}
    return optsched.solve(BoaInstance.from_document(document, "sample")).objective


@pytest.mark.parametrize(
    "policy",
    [
        "boa:budget=3", "boa:budget=3,rates=history", "boa:budget=2,widths=mixed",
        "boa:budget=3,placement=best-fit", "boa-budgeted:budget=2",
        "one-width-per-class:budget=2", "fixed-width:k=2", "fixed-width:k=9",
        "efficiency-threshold:theta=0.6", "equi:gpus=4", "fifo-requested:gpus=6", "srpt-k:gpus=4",
        "srpt-k:gpus=4,knee=0.2", "marginal-greedy:gpus=4", "pollux:gpus=4", "sia:gpus=4",
        "hesrpt:gpus=4", "smartfill:gpus=4", "wham:gpus=4",
    ],
)  # fmt: skip
def test_no_policy_beats_the_bound_at_its_own_cost(policy):
    record = simulate(stream(jobs=250, nodes=64, epoch_s=0.5), policy, seed=3).record
    times = record.jobs.end_us - record.trace.submit_us
    held_us = int(record.jobs.allocated_gpu_us.sum())
    assert times.mean() / US >= least_mean_jct(record, held_us) * (1 - 1e-6)
    if policy == "boa:budget=3":  # and BOA is as near to it as whole widths can be
        assert times.mean() / US <= least_mean_jct(record, held_us) * 1.02


# --- a budget of what is billed -----------------------------------------------------------------


def test_what_is_saved_is_given_back():
    """The stream is half as dense as the policy was told, so half of the budget is left over."""
    world = stream(jobs=300, epoch_s=0.5, options={"rate": 0.5})
    told = f"boa-budgeted:budget=2,rates={FIGURE_1}"
    slow, fast = (simulate(world, f"{told},settle_s={s}").record for s in (1e9, 10))
    kept, given_back = (int(r.jobs.allocated_gpu_us.sum()) for r in (slow, fast))
    budget_us = 2 * int(fast.trace.submit_us[-1])
    assert kept < 0.6 * budget_us
    assert 1.2 * kept < given_back <= 1.05 * budget_us


def test_whole_nodes_are_billed_within_the_budget():
    """`boa` counts GPUs held: it is billed 34.3 for a budget of 30, until the last arrival."""
    told = simulate("boa-cloud", "boa-budgeted")
    hours = int(told.record.trace.submit_us[-1]) / US / 3600
    billed = told.metrics["rented_gpu_hours"]
    allowed = billed - told.metrics["over_budget_gpu_h"]  # with the drain of the last jobs
    assert 30 * hours < allowed < 1.1 * 30 * hours
    assert billed <= 1.01 * allowed
    assert told.metrics["jct_mean_s"] < 1150


# --- how jobs start, grow and shrink ----------------------------------------------------------


def small(*jobs, models=("m",), **fields):
    """A rented cluster of 2-GPU nodes, and jobs (submit_s, run_s) on one GPU of width 1, 2 or 4."""
    table = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 2.0, 4.0]}
    flat = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.0, 1.0]}
    phases = [{"work_gpu_s": 1.0, "speedup": speedup} for speedup in (table, flat)]
    document = {
        "name": "small",
        "nodes": 4,
        "gpus_per_node": 2,
        "models": {"m": {"phases": phases[:1], "rescale_s": 2.0}, "p": {"phases": phases}},
        "trace": {"generator": "none", "jobs": 1},
        "epoch_s": 100.0,
        "rented": {"provision_s": 10.0},
        **fields,
    }
    submit, run = zip(*jobs, strict=True)
    columns = {"submit_s": submit, "gpus": [1] * len(jobs), "run_s": run}
    columns["model"] = [models[n % len(models)] for n in range(len(jobs))]
    return Scenario.from_document(document, "small"), trace_of("t", "", columns)


def test_a_job_starts_with_what_is_free_and_grows_when_nodes_come():
    world, trace = small((0.0, 100.0), rented={"provision_s": 10.0, "at_start": 1})
    record = simulate(world, "fixed-width:k=4", trace=trace).record
    # 2 s of starting and 8 s on 2 GPUs (16 done), 2 s of rescaling, then 84 left on 4.
    assert record.jobs.end_us[0] == (10 + 2 + 84 / 4) * US
    assert record.jobs.rescales[0] == 1
    waited = simulate(world, "fixed-width:k=4,partial=false", trace=trace).record
    assert waited.jobs.end_us[0] == (10 + 2 + 100 / 4) * US


def test_nodes_are_rented_for_what_jobs_want_and_given_back():
    world, trace = small((0.0, 40.0), (5.0, 40.0))
    record = simulate(world, "fixed-width:k=4", trace=trace).record
    rented = {epoch.now_us // US: epoch.rented_nodes for epoch in record.epochs}
    assert rented == {0: 2, 5: 4, 10: 4, 15: 4, 22: 2, 27: 0}
    assert record.spent_gpu_us == (22 * 4 + 22 * 4) * US


def test_the_width_changes_at_the_end_of_a_phase():
    world, trace = small((0.0, 100.0), models=("p",))
    record = simulate(world, "efficiency-threshold:theta=1", trace=trace).record
    # 50 s of linear speedup on 4 GPUs, then 50 s on the one that is worth having.
    assert record.jobs.end_us[0] == (10 + 50 / 4 + 50) * US
    assert record.jobs.allocated_gpu_us[0] == (50 + 50) * US
    assert record.jobs.rescales[0] == 1
    assert record.spent_gpu_us == (10 + 50 / 4) * US * 4 + 50 * US * 2  # a node is given back


def test_a_full_cluster_is_given_out_in_the_order_of_submission():
    world, trace = small((0.0, 40.0), (0.0, 40.0), (0.0, 40.0), rented=None)
    record = simulate(world, "fixed-width:k=4", trace=trace).record
    assert record.jobs.first_start_us.tolist() == [0, 0, 12 * US]


def test_least_use_is_what_is_left_of_a_budget_that_is_too_small():
    world, trace = small((0.0, 100.0), (1.0, 50.0), models=("p",), rented=None)
    policy = make("boa:budget=0.001,rates=history", world)
    record = simulate(world, policy, trace=trace).record
    solves = [solve for epoch in record.epochs for solve in epoch.solves]
    assert solves
    assert all(solve.fallback and solve.status == "infeasible" for solve in solves)
    assert record.jobs.allocated_gpu_us.sum() == 150 * US


def test_failed_jobs_come_back():
    from optsched.traces.trace import Failure

    world, _ = small((0.0, 1.0))
    columns = {"submit_s": [0.0], "gpus": [1], "run_s": [40.0], "model": ["m"]}
    trace = trace_of("t", "", columns | {"failures": [[Failure("gpu", 5 * US)]]})
    elastic = ("fixed-width:k=2", "boa:budget=4,rates=history", "equi:gpus=4")
    for policy in (*elastic, "pollux:gpus=4", "sia:gpus=4"):
        record = simulate(world, policy, trace=trace).record
        assert record.jobs.failures[0] == 1
        assert record.jobs.outcome[0] == 0


# --- so many GPUs for all ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        "equi",
        "fifo-requested",
        "srpt-k",
        "marginal-greedy",
        "hesrpt",
        "smartfill",
        "wham",
        "gavel",
        "pollux",
        "pollux:placement=pal",
        "sia",
    ],
)
def test_never_more_than_the_gpus_that_are_rented(policy):
    world = stream(jobs=120, nodes=16, epoch_s=0.5, budget_gpus=5.9, rented={"provision_s": 1.0})
    record = simulate(world, policy).record
    assert max(epoch.busy_gpus for epoch in record.epochs) <= 5
    assert {epoch.rented_nodes for epoch in record.epochs} == {5}
    assert (record.jobs.outcome == 0).all()


def widths_at(policy, jobs, world=None):
    """Give jobs of run times (s) to a policy at once; return their widths."""
    scenario, trace = small(*((0.0, run) for run in jobs), rented=None)
    record = simulate(scenario, policy, trace=trace, keep_intervals=True).record
    first = {job: gpus for job, start, _, gpus in reversed(record.intervals) if start == 0}
    return [len(first.get(job, ())) for job in range(len(jobs))]


def test_shares_by_hand():
    assert widths_at("equi:gpus=8", [100, 100, 100]) == [2, 2, 2]
    assert widths_at("equi:gpus=2", [100, 100, 100]) == [1, 1, 0]
    assert widths_at("srpt-k:gpus=7", [100, 50, 70]) == [1, 4, 2]
    assert widths_at("fifo-requested:gpus=2", [100, 50, 70]) == [1, 1, 0]
    # 100/1 - 100/2 = 50 per GPU, then 25 for the next two steps of 2 GPUs: the longest job first.
    assert widths_at("marginal-greedy:gpus=6", [100, 10, 10]) == [4, 1, 1]


@law(500)
@given(
    st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=3), min_size=1, max_size=4),
    st.integers(0, 8),
)
def test_best_widths_are_the_best(costs, gpus):
    rows = [Row((0, 1, 2, 4)[: len(c) + 1], (100.0, *map(float, c))) for c in costs]
    every = itertools.product(*(zip(row.gpus, row.cost, strict=True) for row in rows))
    least = min(sum(c for _, c in chosen) for chosen in every if sum(k for k, _ in chosen) <= gpus)
    best = best_widths(rows, gpus)
    widths = best.widths(gpus)
    assert sum(widths) <= gpus
    assert sum(r.cost[r.gpus.index(k)] for r, k in zip(rows, widths, strict=True)) == least
    assert best.value[gpus] == least


@law(1000)
@given(
    st.lists(
        st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 7.0]), min_size=1, max_size=8),
        max_size=9,
    ),
    st.integers(0, 40),
)
def test_widths_within_so_many_gpus_are_those_of_the_whole_table(costs, gpus):
    rows = [Row((0, 1, 2, 3, 5, 8, 13, 14, 30)[: len(c) + 1], (10.0, *c)) for c in costs]
    widths = np.array([width for row in rows for width in row.gpus], np.int64)
    each = np.array([cost for row in rows for cost in row.cost])
    choices = Choices(widths, each, np.array([len(row.gpus) for row in rows], np.int64))
    assert widths_within(choices, gpus) == best_widths(rows, gpus).widths(gpus)


def test_pollux_scales_with_the_load():
    options = {"rented": {"provision_s": 1.0}, "epoch_s": 0.5}
    few = simulate(stream(jobs=150, nodes=40, **options), "pollux-autoscaling:rounds=3")
    busy = {"options": {"rate": 4.0}, **options}
    many = simulate(stream(jobs=600, nodes=40, **busy), "pollux-autoscaling:rounds=3")
    assert many.metrics["rented_gpus_mean"] > 2 * few.metrics["rented_gpus_mean"]
    high = simulate(
        stream(jobs=150, nodes=40, **options), "pollux-autoscaling:rounds=3,low=0.8,high=0.9"
    )
    assert high.metrics["rented_gpus_mean"] < few.metrics["rented_gpus_mean"]


def test_placements_keep_widths_but_not_gpus():
    worlds = stream(jobs=100, nodes=30, budget_gpus=4)
    ends = {
        name: simulate(worlds, f"boa:placement={name}").record.jobs.end_us.tolist()
        for name in ("lowest", "best-fit", "pal")
    }
    assert ends["lowest"] == ends["best-fit"] == ends["pal"]


@pytest.mark.parametrize(
    "policy",
    [
        "boa:widths=mixed", "boa:rates=history,placement=pal", "boa-budgeted:sizes=estimates",
        "boa-budgeted:rates=history", "efficiency-threshold", "fixed-width", "equi",
        "marginal-greedy", "srpt-k", "pollux", "pollux-autoscaling:rounds=2", "sia",
        "hesrpt", "smartfill", "wham",
    ],
)  # fmt: skip
def test_a_rollout_goes_on_from_plain_data(policy):
    world = stream(jobs=40, nodes=20, epoch_s=0.5, budget_gpus=4.0, rented={"provision_s": 0.7})
    trace = jobs_of(world)

    def begun():
        return Engine(world, trace, make(policy, world), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 10 == 0:
            engine = gone_on(engine, begun())
    record = engine.record()
    assert (record.jobs.end_us == whole.jobs.end_us).all()
    assert record.spent_gpu_us == whole.spent_gpu_us


def test_the_bundled_cloud():
    world = read_scenario("boa-cloud").changed({"trace.jobs": 15})
    outcomes = {policy: simulate(world, policy) for policy in world.policies}
    for policy, result in outcomes.items():
        assert result.metrics["passed"] == 15, policy
        assert result.metrics["rented_gpu_hours"] >= result.metrics["gpu_hours"], policy
    best = outcomes["boa"].metrics
    wide = outcomes["equi"].metrics
    assert best["jct_mean_s"] < wide["jct_mean_s"]
    assert best["rented_gpu_hours"] < wide["rented_gpu_hours"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("boa:budget=-1", "option 'budget': expected greater than 0, found -1"),
        ("boa:method=same", "option 'method': expected exact, "),
        ("boa:widths=real", "option 'widths': expected 'integer' or 'mixed', found \"real\""),
        ("fixed-width:k=0", "option 'k': must be at least 1, found 0"),
        ("fixed-width:k=2.5", "option 'k': expected a whole number, found 2.5"),
        ("fixed-width:placement=left", "option 'placement': expected 'lowest', 'best-fit' or"),
        ("efficiency-threshold:theta=2", "option 'theta': must be at most 1, found 2"),
        ("equi:gpus=0", "option 'gpus': must be at least 1, found 0"),
        ("equi:gpus=401", "option 'gpus': must be at most 400, found 401"),
        ("srpt-k:knee=-1", "option 'knee': must be at least 0, found -1"),
        ("pollux-autoscaling:low=0.9", "expected 0 < low < high, found 0.9 and 0.65$"),
        ("pollux:low=0.2", "there is no option 'low'; known: gpus, placement, growth, gpu_type"),
        ("sia:power=0.5", "option 'power': expected less than 0, found 0.5"),
        ("sia:wait=0", "option 'wait': expected greater than 0, found 0"),
        ("sia:restart_s=-1", "option 'restart_s': expected greater than 0, found -1"),
        ("sia:gap=2", "option 'gap': expected less than 1, found 2"),
        ("boa-budgeted:settle_s=0", "option 'settle_s': expected greater than 0, found 0"),
        ("boa-budgeted:advance_s=-1", "option 'advance_s': expected greater than 0, found -1"),
        ("boa-budgeted:budget=2,sizes=all", "option 'sizes': expected 'observed', 'mean' or"),
        ("boa:bugdet=3", "there is no option 'bugdet'; did you mean 'budget'\\? known: placement,"),
        ("boa:budget=3,rates=pal/tiny", "is no instance of BOA"),
        ("boa:budget=3,rates=boa/hand", "phases there, not as many in the scenario"),
    ],
)
def test_options_are_checked(policy, words):
    with pytest.raises(ValueError, match=words):
        simulate(stream(jobs=5), policy)


# --- the trace that is run ------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["boa", "boa-budgeted", "one-width-per-class"])
def test_a_trace_object_is_planned_for_as_its_source_is(policy, tmp_path):
    """The scenario's own trace has other rates; a policy that read it broke its budget."""
    world = stream(jobs=60, nodes=40, epoch_s=0.5, budget_gpus=6.0)
    source = TraceSource(generator="boa", jobs=80, options={"instance": FIGURE_1, "rate": 0.3})
    given = {"source": source, "object": jobs_of(world, source)}
    for kind, trace in given.items():
        simulate(world, policy, trace=trace, output=tmp_path / kind)
    for name in ("jobs.csv", "epochs.csv"):
        told, same = ((tmp_path / kind / name).read_bytes() for kind in given)
        assert told == same
    own = simulate(world, policy).record
    other = simulate(world, policy, trace=given["object"]).record
    if policy == "boa-budgeted":  # no solver is called
        return
    assert [e.solves[0].objective for e in own.epochs[:1]] != [
        e.solves[0].objective for e in other.epochs[:1]
    ]


@pytest.mark.parametrize("sizes", ["observed", "mean", "estimates"])
def test_of_classes_that_nobody_has_seen_the_declared_works_are_taken(sizes):
    """The first jobs come before the history is first looked at."""
    world = read_scenario("boa-cloud").changed({"trace.jobs": 15})
    policy = f"boa-budgeted:rates=history,sizes={sizes},every_s=1000000"
    assert simulate(world, policy).metrics["unfinished"] == 0
