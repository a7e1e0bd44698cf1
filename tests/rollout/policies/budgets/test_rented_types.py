"""Rented nodes of several GPU types: rents and bills by hand, faults, options, and policies."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.documents.faults import InstanceError
from optsched.rollout.engine.decision import Decision, InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.budgets.priced_widths import (
    Work,
    WorkOnTypes,
    priced_plan,
)
from optsched.rollout.policies.width_curves import Curve
from optsched.rollout.policy_options import OptionError
from optsched.rollout.registry import make
from optsched.rollout.results.billing.budgets import allowance
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from tests.support.builders.rollout_parts import Script, gone_on, scenario, trace
from tests.support.strategies.common import law

NODES = [
    {"count": 3, "gpus": 2, "gpu_type": "slow", "usd_per_gpu_h": 0.5},
    {"count": 2, "gpus": 4, "gpu_type": "fast", "usd_per_gpu_h": 3.0},
]
MODELS = {"rigid": {"gpu_speeds": {"slow": 1.0, "fast": 2.5}}}
RENTED = {"rented": {"provision_s": 10.0}, "models": MODELS}
WORLD = scenario(NODES, None, **RENTED)
POLICIES = [
    *("boa", "boa-budgeted", "one-width-per-class", "fixed-width:k=4,gpu_type=t4", "equi"),
    *("pollux-autoscaling", "pollux-autoscaling:gpu_type=rtx-2080ti", "sia", "sia:gpus=20"),
    *("boa:widths=mixed", "boa:rates=history", "boa-budgeted:rates=history,budget=25"),
]


def run(decisions, rows, world=WORLD, **columns):
    return Engine(world, trace(*rows, **columns), Script(decisions, every_epoch=True), 0).run()


# --- rents and bills --------------------------------------------------------------------------


def test_a_bill_by_hand():
    """A fast node from 0 to 50 s, two slow ones from 20 s on; the last event is at 110 s."""
    decisions = {
        0: Decision(rent={"fast": 1}),
        10: Decision(place={0: (6, 7)}),
        20: Decision(rent={"slow": 2}),
        50: Decision(rent={"fast": 0}),
        60: Decision(place={1: (0,)}),
    }
    rows = [(0, 2, 100), (0, 1, 50)]  # 100 s on slow GPUs, 40 s on fast ones
    record = run(decisions, rows, model=["rigid"] * 2)
    assert (record.jobs.end_us / 1e6).tolist() == [50.0, 110.0]
    usd = (50 * 4 * 3.0 + (110 - 20) * 2 * 2 * 0.5) / 3600
    assert record.billed_usd == pytest.approx(usd, rel=1e-12)
    assert record.spent_gpu_us == (50 * 4 + 90 * 4) * 10**6


def test_types_that_are_not_named_stay_and_nodes_with_jobs_are_kept():
    decisions = {
        0: Decision(rent={"fast": 1, "slow": 3}),
        10: Decision(place={0: (6,)}),
        20: Decision(rent={"fast": 0}),
        30: Decision(rent={"slow": 1}),
    }
    record = run(decisions, [(0, 1, 100)], model=["rigid"])
    rented = {row.now_us // 10**6: row.rented_nodes for row in record.epochs}
    assert [rented[second] for second in (0, 20, 30)] == [4, 4, 2]


@pytest.mark.parametrize(
    ("rent", "text"),
    [
        (2, "expected nodes by type"),
        ({"slow": 4}, "4 nodes of type 'slow': there are 3"),
        ({"slow": -1}, "-1 nodes of type 'slow'"),
        ({"other": 1}, "1 nodes of type 'other': there are 0"),
    ],
)
def test_rents_that_cannot_be(rent, text):
    with pytest.raises(InvalidDecision, match=text):
        run({0: Decision(rent=rent)}, [(0, 1, 100)], model=["rigid"])


def test_nodes_by_type_are_refused_where_all_gpus_are_alike():
    world = scenario(2, 2, rented={})
    with pytest.raises(InvalidDecision, match="expected a number"):
        run({0: Decision(rent={"gpu": 1})}, [(0, 1, 100)], world)


# --- bad input --------------------------------------------------------------------------------

FAULTS = {
    "a price of 0": (("nodes", 0, "usd_per_gpu_h"), 0, "nodes[0].usd_per_gpu_h: "),
    "a price below 0": (("nodes", 1, "usd_per_gpu_h"), -2, "nodes[1].usd_per_gpu_h: "),
    "no price": (("nodes", 1, "usd_per_gpu_h"), None, "nodes[1].usd_per_gpu_h: missing"),
    "a type of two prices": (
        ("nodes", 1, "gpu_type"), "slow",
        "nodes[1].usd_per_gpu_h: 3.0: GPUs of a type have one price",
    ),
    "a budget below the cheapest node": (
        ("budget_usd_per_h",), 0.9,
        "budget_usd_per_h: 0.9 USD: less than the cheapest node, which costs 1 an hour",
    ),
    "GPUs as a budget": (("budget_gpus",), 4, "budget_gpus: GPUs of several types have no common"),
    "nodes at the start": (("rented", "at_start"), 1, "rented.at_start: of which type"),
    "one price for all": (("price_usd_per_gpu_h",), 1.0, "price_usd_per_gpu_h: GPUs of several"),
    "a type that no model runs on": (
        ("models", "rigid", "gpu_speeds"), {"slow": 1.0}, "nodes[1].gpu_type: no model runs on"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_bad_input_is_told_with_its_path(name):
    path, value, text = FAULTS[name]
    document = json.loads(WORLD.to_json())
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(InstanceError) as caught:
        Scenario.from_document(document)
    assert any(fault.startswith(text) for fault in caught.value.faults), caught.value.faults


def faulty(*nodes, **parts):
    Scenario.from_document(json.loads(scenario(*nodes, **parts).to_json()))


def test_a_node_larger_than_the_budget_is_told_with_its_path():
    with pytest.raises(InstanceError, match=r"budget_gpus: 3.0 GPUs: less than the smallest node"):
        faulty(2, 4, rented={}, budget_gpus=3.0)
    with pytest.raises(InstanceError, match="budget_usd_per_h: needs prices"):
        faulty(2, 4, rented={}, budget_usd_per_h=3.0)
    with pytest.raises(InstanceError, match="usd_per_gpu_h: all GPUs are of one type"):
        faulty([{"count": 2, "gpus": 4, "usd_per_gpu_h": 1.0}], None)


@pytest.mark.parametrize(
    ("policy", "world", "text"),
    [
        ("sia:gpu_type=fats", WORLD, "no node has \"fats\"; did you mean 'fast'"),
        ("equi:gpu_type=fast", scenario(2, 2), "rented nodes of several types have it"),
        ("sia:gpus=15", WORLD, "must be at most 14"),
        ("sia:gpus=9,gpu_type=fast", WORLD, "must be at most 8"),
    ],
)
def test_options_of_types_are_checked(policy, world, text):
    with pytest.raises(OptionError, match=text):
        make(policy, world)


def test_policies_that_know_no_rented_types_are_refused():
    make("sia", WORLD)
    for name in ("marginal-greedy", "gavel", "fifo", "efficiency-threshold"):
        with pytest.raises(ValueError, match="knows no GPU types of rented nodes"):
            make(name, WORLD)
    for name in ("boa", "boa-budgeted", "fixed-width"):
        with pytest.raises(ValueError, match="knows no GPU types, and"):
            make(name, scenario(NODES, None, models=MODELS))


# --- options at a price -----------------------------------------------------------------------


@st.composite
def works(draw):
    """Jobs of up to three phases on up to two types."""
    count = draw(st.integers(1, 3))
    numbers = st.integers(1, 60).map(lambda n: n / 8)
    phases = []
    for _ in range(count):
        own = {}
        for name in sorted(draw(st.sets(st.sampled_from("ab"), min_size=1))):
            gpus = tuple(sorted(draw(st.sets(st.sampled_from([1, 2, 4]), min_size=1))))
            own[name] = Curve(gpus, tuple(draw(numbers) for _ in gpus))
        phases.append(own)
    amounts = tuple(draw(numbers) for _ in range(count))
    lost = draw(st.sampled_from([0.0, 3.0])), draw(st.sampled_from([0.0, 20.0]))
    return WorkOnTypes(amounts, phases, *lost, {"a": 0.5, "b": draw(numbers)}, {"a": 2, "b": 1})


def priced(work, options, price):
    """Time plus price times money of a sequence of options."""
    total, held, rent = 0.0, None, 0.0
    for amount, own, (name, gpus) in zip(work.works_s, work.curves, options, strict=True):
        takes = amount / own[name].speed_at(gpus) + work.rescale_s * ((name, gpus) != held)
        now = work.rent((name, gpus))
        same = held is not None and held[0] == name
        more = max(now - rent, 0.0) if same else now
        total += takes * (1 + price * now) + price * work.provision_s * more
        held, rent = (name, gpus), now
    return total


@law(200)
@given(works(), st.sampled_from([0.0, 0.01, 0.5, 20.0]))
def test_a_plan_of_options_is_the_best_of_all_sequences(work, price):
    plan, chosen, held = priced_plan(work, price), [], 0
    for phase in range(len(work.works_s)):
        held = plan.width(phase, held)
        chosen.append(held)
    sequences = itertools.product(
        *([(name, k) for name, curve in own.items() for k in curve.gpus] for own in work.curves)
    )
    best = min(priced(work, options, price) for options in sequences)
    assert plan.cost[0, 0] == pytest.approx(best, rel=1e-9)
    assert priced(work, chosen, price) == pytest.approx(best, rel=1e-9)
    assert plan.seconds[0, 0] + price * plan.gpu_s[0, 0] == pytest.approx(best, rel=1e-9)


@law(100)
@given(works(), st.sampled_from([0.01, 0.5, 20.0]))
def test_one_type_at_a_price_of_one_is_the_plan_of_widths(work, price):
    curves = [next(iter(own.values())) for own in work.curves]
    lost = work.rescale_s, work.provision_s
    one = priced_plan(Work(work.works_s, curves, *lost, 2, 1.05), price)
    typed = [{"a": curve} for curve in curves]
    told = priced_plan(WorkOnTypes(work.works_s, typed, *lost, {"a": 1.0}, {"a": 2}, 1.05), price)
    assert [k if k == 0 else k[1] for k in told.widths] == [*one.widths]
    assert (told.best == one.best).all()
    assert (told.gpu_s == one.gpu_s).all()


@law(100)
@given(works(), st.sampled_from([0.01, 0.5, 20.0]))
def test_a_further_type_never_costs_more(work, price):
    fewer = [{name: own[name] for name in list(own)[:1]} for own in work.curves]
    before = priced_plan(work._replace(curves=fewer), price).cost[0, 0]
    assert priced_plan(work, price).cost[0, 0] <= before * (1 + 1e-12)


# --- policies ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloud():
    return read_scenario("rented-types").changed({"trace.jobs": 12})


def checked_to_go_on(world, policy):
    """The record of a rollout, which is the same if it is cut at every fortieth step."""
    jobs = jobs_of(world)

    def begun():
        return Engine(world, jobs, make(policy, world), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 40 == 0:
            engine = gone_on(engine, begun())
    assert (engine.record().jobs.end_us == whole.jobs.end_us).all()
    assert engine.record().billed_usd == whole.billed_usd
    return whole


@pytest.mark.parametrize("policy", POLICIES)
def test_all_jobs_end_and_a_rollout_goes_on_from_plain_data(cloud, policy):
    whole = checked_to_go_on(cloud, policy)
    assert (whole.jobs.outcome == 0).all()
    assert whole.billed_usd > 0


def test_a_policy_of_one_type_rents_no_other(cloud):
    of_node = cloud.node_types
    for policy in ("sia:gpu_type=t4,gpus=24", "pollux-autoscaling:gpu_type=t4"):
        record = simulate(cloud, policy, keep_intervals=True).record
        sizes = np.repeat(np.arange(len(of_node)), cloud.node_sizes)
        used = {of_node[sizes[gpu]] for _, _, _, gpus in record.intervals for gpu in gpus}
        assert used == {"t4"}
        assert record.billed_usd == pytest.approx(record.spent_gpu_us / 3.6e9 * 0.53, rel=1e-12)


def test_dear_money_buys_the_options_of_least_use_and_cheap_money_the_fastest(cloud):
    """The last of money: least cost per work; without a limit: least time, whatever it costs."""
    least = simulate(cloud, "boa:budget=1").metrics
    most = simulate(cloud, "boa:budget=500").metrics
    assert least["cost_usd"] < 0.5 * most["cost_usd"]
    assert most["jct_mean_s"] < 0.5 * least["jct_mean_s"]


def test_a_budget_in_usd_is_kept(cloud):
    world = cloud.changed({"trace.jobs": 120})
    for budget in (30, 60):
        record = simulate(world, f"boa-budgeted:budget={budget}", seed=1).record
        allowed = allowance(world, record.trace).gpu_hours(budget)
        assert record.billed_usd <= 1.01 * allowed


def test_a_price_for_good_gives_every_job_the_same_option_whatever_was_billed(cloud):
    world = cloud.changed({"trace.jobs": 40})
    record = simulate(world, "boa-budgeted:price=2.0", keep_intervals=True).record
    of_node = world.node_types
    node_of = np.repeat(np.arange(len(of_node)), world.node_sizes)
    options = {}
    for job, _, _, gpus in record.intervals:
        where = of_node[node_of[gpus[0]]], len(gpus)
        options.setdefault(record.trace.model[job], set()).add(where)
    assert len(options) > 2
    assert all(len(each) == 1 for each in options.values())
