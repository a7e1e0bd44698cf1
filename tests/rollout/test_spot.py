"""Spot nodes in rollouts: taken away and replaced, work lost, bills, and what policies choose."""

import math

import numpy as np
import pytest

import optsched
from optsched.boa import JobClass
from optsched.boa.options import exact_terms
from optsched.bounds.schedules import UnknownPhysics
from optsched.rollout import Scenario, simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.state import OFF, READY, STARTING
from optsched.rollout.policies.budgets.spot_speeds import SpotSpeeds
from optsched.rollout.policies.width_curves import Curves
from optsched.rollout.prices.markets import offers
from optsched.rollout.prices.node_rates import node_rates
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from tests.rollout.policies.budgets.test_rented_types import checked_to_go_on

NAME = "spot-types"
POLICIES = (
    "boa", "boa-budgeted", "boa-budgeted:price=0.5", "one-width-per-class", "equi", "pollux",
    "fixed-width:k=8,gpu_type=t4-spot", "pollux-autoscaling:gpu_type=a100-spot", "sia:gpus=12",
)  # fmt: skip


def changed(scenario, group, **fields):
    """The scenario with other fields of the groups of nodes that `group` names: all, or on spot."""
    nodes = [g.model_dump(exclude_none=True) for g in scenario.nodes]
    for node in nodes:
        if group == "all" or node["market"] == "spot":
            node |= fields
    return scenario.changed({"nodes": nodes})


@pytest.fixture(scope="module")
def stormy():
    """Twelve jobs; a spot node is taken away every quarter of an hour."""
    small = read_scenario(NAME).changed({"trace.jobs": 12, "retries": {"delay_s": 30.0}})
    return changed(small, "spot", interruptions_per_node_h=4.0)


class Books:
    """What a rollout is seen to do, moment by moment, apart from its own accounts."""

    def __init__(self, engine):
        self.engine, world = engine, engine.world
        self.rates = node_rates(engine.scenario)
        self.bill = self.ready_node_us = self.struck = 0
        self.losses, fleet, strike = [], world.fleet, world.dispatch.strike
        replace = fleet.replace

        def replaced(node, now):
            assert world.state.free_of[node] == world.cluster.size[node]
            assert world.cluster.types.of_node[node].endswith("-spot")
            self.losses.append((now, node))
            replace(node, now)
            assert world.state.node_state[node] == STARTING

        def struck(job, now):
            self.struck += 1
            strike(job, now)

        fleet.replace, world.dispatch.strike = replaced, struck

    def run(self):
        engine, state = self.engine, self.engine.world.state
        before, now = bytes(state.node_state), 0
        while engine.step():
            span = engine.now_us - now
            paid = sum(r for r, status in zip(self.rates, before, strict=True) if status != OFF)
            self.bill += paid * span
            spot = engine.world.cluster.types.of_node
            self.ready_node_us += span * sum(
                status == READY and spot[node].endswith("-spot")
                for node, status in enumerate(before)
            )
            before, now = bytes(state.node_state), engine.now_us
        return engine.record()


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_lost_twice_and_bills_are_the_sum_over_nodes(stormy, policy):
    engine = Engine(stormy, jobs_of(stormy), make(policy, stormy), seed=0, keep_intervals=True)
    books = Books(engine)
    record = books.run()
    jobs = record.jobs
    assert (jobs.outcome == 0).all()
    assert jobs.outages.sum() == books.struck
    assert record.billed_usd * 3600 * 1e15 == pytest.approx(books.bill, rel=1e-12)
    parts = ("useful", "width_loss", "slow_gpu_loss", "distance_loss", "neighbour_loss",
             "sharing_loss", "redone", "pre_run", "overhead")  # fmt: skip
    total = sum(getattr(jobs, f"{part}_gpu_us") for part in parts)
    assert (total == jobs.allocated_gpu_us).all()
    widest = np.zeros(len(jobs.end_us))
    for job, _, _, gpus in record.intervals:
        widest[job] = max(widest[job], len(gpus))
    every_us = stormy.costs.checkpoint_every_s * 1e6
    assert (jobs.redone_gpu_us <= jobs.outages * widest * (every_us + 1)).all()
    assert (jobs.redone_gpu_us[jobs.outages == 0] == 0).all()
    done = [sum(e - s for j, s, e, _ in record.intervals if j == job) for job in range(len(widest))]
    assert done == jobs.running_us.tolist()


def test_no_job_is_on_a_node_while_it_is_replaced(stormy):
    policy = "fixed-width:k=8,gpu_type=t4-spot"
    engine = Engine(stormy, jobs_of(stormy), make(policy, stormy), seed=0, keep_intervals=True)
    books = Books(engine)
    record, node_of = books.run(), engine.world.cluster.node_of
    wait_us = round(stormy.rented.provision_s * 1e6)
    assert len(books.losses) >= 5
    for now, node in books.losses:
        for _, start, end, gpus in record.intervals:
            if node in {node_of[gpu] for gpu in gpus}:
                assert end <= now or start >= now + wait_us


def test_nodes_are_taken_away_as_often_as_the_rate_says():
    """Over the hours that spot nodes are ready: a Poisson number, within four deviations."""
    world = read_scenario(NAME).changed({"trace.jobs": 60})
    lost, expected = 0, 0.0
    for seed in range(3):
        policy = make("fixed-width:k=4,gpu_type=rtx-2080ti-spot", world)
        books = Books(Engine(world, jobs_of(world, None, seed), policy, seed=seed))
        books.run()
        lost += len(books.losses)
        expected += books.ready_node_us / 3.6e9 * 0.1
    assert expected > 5
    assert abs(lost - expected) <= 4 * math.sqrt(expected)


@pytest.mark.parametrize("policy", ["boa", "boa-budgeted", "equi"])
def test_a_rollout_with_interruptions_goes_on_from_plain_data(stormy, policy):
    checked_to_go_on(stormy, policy)


def test_the_same_seed_is_interrupted_at_the_same_moments(stormy):
    policy = "fixed-width:k=8,gpu_type=t4-spot"
    one, same, other = (simulate(stormy, policy, seed=s).record.jobs for s in (1, 1, 2))
    assert (one.end_us == same.end_us).all()
    assert not np.array_equal(one.outages, other.outages)


# --- what policies choose -------------------------------------------------------------------------


def pools_used(scenario, policy):
    record = simulate(scenario, policy, keep_intervals=True).record
    sizes = np.repeat(np.arange(len(scenario.node_types)), scenario.node_sizes)
    return {scenario.node_types[sizes[gpu]] for *_, gpus in record.intervals for gpu in gpus}


@pytest.mark.parametrize("policy", ["boa", "boa-budgeted", "one-width-per-class"])
def test_the_cheaper_market_is_taken_and_the_one_that_eats_time_is_not(policy):
    small = read_scenario(NAME).changed({"trace.jobs": 12})
    calm = changed(small, "spot", interruptions_per_node_h=0.0)
    assert all(pool.endswith("-spot") for pool in pools_used(calm, policy))
    prices = {"t4": 0.53, "rtx-2080ti": 0.4, "a100": 4.1}
    nodes = [g.model_dump(exclude_none=True) for g in small.nodes]
    for node in nodes:  # for a hundredth less, and five interruptions an hour
        if node["market"] == "spot":
            node |= {"usd_per_gpu_h": 0.99 * prices[node["gpu_type"]],
                     "interruptions_per_node_h": 5.0}  # fmt: skip
    dear = small.changed({"nodes": nodes})
    assert not any(pool.endswith("-spot") for pool in pools_used(dear, policy))


def test_mean_speeds_on_spot_are_those_of_the_instance():
    world = read_scenario(NAME)
    curves = Curves(world)
    speeds, [plain] = SpotSpeeds(world, curves), curves.by_type("bert", 1)
    [slower] = speeds.by_type("bert", 1)
    job_class = JobClass.model_construct(checkpoint_s=600.0, rescale_s=120.0)
    for pool, offer in offers(world).items():
        for gpus, speed in zip(*slower[pool], strict=True):
            top, bottom = exact_terms(job_class, offer, gpus)[1]
            assert speed == plain[pool].speed_at(gpus) * top / bottom
    assert slower["t4"] == plain["t4"]
    assert slower["t4-spot"].speed[-1] < plain["t4-spot"].speed[-1]


def test_a_type_on_spot_is_as_fast_as_on_demand():
    """The same jobs on either market, without interruptions and on one type: the same times."""
    calm = changed(read_scenario(NAME).changed({"trace.jobs": 12}), "spot",
                   interruptions_per_node_h=0.0)  # fmt: skip
    own, spot = (simulate(calm, f"fixed-width:k=4,gpu_type=t4{m}") for m in ("", "-spot"))
    assert (own.record.jobs.end_us == spot.record.jobs.end_us).all()
    ratio = own.metrics["cost_usd"] / spot.metrics["cost_usd"]
    assert ratio == pytest.approx(0.53 / 0.18, rel=1e-9)


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"costs": {}}, "costs.checkpoint_every_s: missing: jobs on spot nodes"),
        ({"costs": {"checkpoint_every_s": 36_001.0}}, "interruptions_per_node_h: eats all work"),
        ({"rented": None}, "nodes[3].interruptions_per_node_h: needs rented"),
        ({"budget_gpus": 30, "budget_usd_per_h": None}, "budget_gpus: GPUs of several types"),
        ({"budget_usd_per_h": 0.5}, "budget_usd_per_h: 0.5 USD: less than the cheapest node"),
    ],
)
def test_scenarios_that_cannot_have_spot_nodes_are_refused(changes, fault):
    with pytest.raises(optsched.InstanceError) as caught:
        read_scenario(NAME).changed(changes)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"market": "on-demand"}, "nodes[3].interruptions_per_node_h: must be 0"),
        ({"interruptions_per_node_h": -1.0}, "nodes[3].interruptions_per_node_h"),
        ({"usd_per_gpu_h": 0.0}, "nodes[3].usd_per_gpu_h"),
        ({"market": "reserved"}, "nodes[3].market"),
        ({"gpu_type": "t5"}, 'nodes[3].gpu_type: no model runs on "t5"'),
    ],
)
def test_groups_of_spot_nodes_with_faults_have_their_path(fields, fault):
    document = read_scenario(NAME).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["nodes"][3] |= fields
    with pytest.raises(optsched.InstanceError) as caught:
        Scenario.from_document(document)
    assert fault in str(caught.value)


def test_a_pool_has_one_rate_and_no_type_has_its_name():
    document = read_scenario(NAME).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["nodes"].append(document["nodes"][3] | {"interruptions_per_node_h": 0.07})
    document["nodes"].append(document["nodes"][0] | {"gpu_type": "t4-spot"})
    with pytest.raises(optsched.InstanceError) as caught:
        Scenario.from_document(document)
    text = str(caught.value)
    assert "nodes[6].interruptions_per_node_h: 0.07: others of the type" in text
    assert 'nodes[3].gpu_type: "t4-spot" would be this pool' in text


JUNK = ([], [1], {}, 3, math.inf, math.nan, -1, True, 10**400)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: str(junk)[:9])
@pytest.mark.parametrize("field", ["gpu_type", "market", "interruptions_per_node_h"])
def test_fields_of_groups_with_wrong_types_are_faults_and_no_crash(field, junk):
    """A list in the place of a type's name could not be looked up in a set."""
    document = read_scenario(NAME).model_dump(mode="json", by_alias=True, exclude_none=True)
    groups = document["nodes"]
    for n, group in enumerate(groups):
        if field == "interruptions_per_node_h" and (junk == 3 and group["market"] == "spot"):
            continue
        hostile = [*groups[:n], group | {field: junk}, *groups[n + 1 :]]
        with pytest.raises(optsched.InstanceError):
            Scenario.from_document(document | {"nodes": hostile})


@pytest.mark.parametrize(
    "junk", [[], math.inf, math.nan, -1, "x", 10**400], ids=lambda j: str(j)[:9]
)
def test_checkpoints_of_wrong_types_are_faults_and_no_crash(junk):
    document = read_scenario(NAME).model_dump(mode="json", by_alias=True, exclude_none=True)
    with pytest.raises(optsched.InstanceError):
        Scenario.from_document(document | {"costs": {"checkpoint_every_s": junk}})


def test_bounds_refuse_spot_nodes_by_their_path():
    scenario = read_scenario(NAME)
    spot = next(group for group in scenario.nodes if group.market == "spot")
    plain = read_scenario("boa-cloud").changed({"costs": {"checkpoint_every_s": 600.0}})
    fields = {"market": "spot", "gpu_type": "t4", "interruptions_per_node_h": 0.1}
    world = plain.changed(
        {"nodes": [{"count": 40, "gpus": spot.gpus, **fields}], "gpus_per_node": None}
    )
    with pytest.raises(UnknownPhysics, match=r"nodes\[0\]"):
        optsched.bound(world)
