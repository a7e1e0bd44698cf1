"""BOA with orders of nodes that cost something: start, stop and least time of billing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from tests.boa.test_boa_offers import solved
from tests.support.oracles.boa import brute_force
from tests.support.strategies.common import law, offered_instances

FIELDS = "start_s", "stop_s", "least_billed_s"


def with_orders(instance, **figures):
    """The instance with these figures in each offer."""
    offers = tuple(offer.model_copy(update=figures) for offer in instance.offers)
    return instance.model_copy(update={"offers": offers})


def one_job_an_hour(phases=1, **figures):
    """3,600 GPU-seconds an hour in equal phases, on one or two GPUs at 1 USD each."""
    curve = {"kind": "table", "gpus": [1, 2], "speedup": [1, 2]}
    speedup = {"kind": "by-type", "curves": [{"gpu_type": "t4", "speedup": curve}]}
    phase = {"work_gpu_s": 3600 / phases, "speedup": speedup}
    offer = {"id": "all", "gpu_type": "t4", "usd_per_gpu_h": 1} | figures
    job_class = {"id": "a", "arrival_rate_per_h": 1, "phases": [phase] * phases}
    document = {"budget_usd_per_h": 2, "offers": [offer], "classes": [job_class]}
    return BoaInstance.from_document(document | {"schema": "optsched/boa/1"})


@pytest.mark.parametrize(
    ("figures", "jct_s", "usd_per_h"),
    [
        ({}, 1800, 1),
        ({"start_s": 360}, 2160, 1.2),
        ({"stop_s": 360}, 1800, 1.2),
        ({"least_billed_s": 720}, 1800, 1.4),
        ({"start_s": 360, "stop_s": 180, "least_billed_s": 720}, 2160, 1.4),
        ({"start_s": 360, "stop_s": 180, "least_billed_s": 100}, 2160, 1.3),
    ],
)
@pytest.mark.parametrize("phases", [1, 3])
def test_a_job_on_two_gpus_by_hand(figures, jct_s, usd_per_h, phases):
    """Half an hour on two GPUs; a job of three phases keeps its nodes, and is charged once."""
    instance = one_job_an_hour(phases, **figures)
    result = solved(instance)
    rent = optsched.boa.performance(instance, result.plan).mean_rent
    assert (result.objective, rent) == pytest.approx((jct_s, usd_per_h), rel=1e-12)
    assert solved(instance, "milp").objective == pytest.approx(jct_s)
    assert float(brute_force(instance)) == pytest.approx(jct_s)


def test_the_charge_decides_the_width():
    """At 1.3 USD/h, two GPUs with 0.4 USD for an order of both are too dear; one costs 1.2."""
    instance = one_job_an_hour(least_billed_s=720).changed({"budget_usd_per_h": 1.3})
    [planned] = solved(instance).plan.classes
    assert planned.sequences[0].gpus == (1,)


@law(100, is_costly=True)
@given(instance=offered_instances(feasible=True), field=st.sampled_from(FIELDS))
def test_orders_that_cost_less_never_hurt(instance, field):
    free = with_orders(instance, **{field: 0.0})
    assert solved(free).bound <= float(solved(instance).objective)


@law(60, is_costly=True)
@given(instance=offered_instances(feasible=True))
def test_orders_that_cost_nothing_are_the_figures_of_before(instance):
    """To the last digit: a least time that rescaling takes anyway changes nothing."""
    free = with_orders(instance, **dict.fromkeys(FIELDS, 0.0))
    least = min(c.rescale_s for c in instance.classes)
    billed = with_orders(free, least_billed_s=least)
    one, other = optsched.solve(free), optsched.solve(billed)
    assert (one.status, one.objective, one.plan) == (other.status, other.objective, other.plan)
    assert one.bound == other.bound


def test_no_sizes_with_the_same_means_are_billed_more():
    """Nodes of their own, drawn sizes: the charge is reached where most work is in few jobs."""
    draw, (start, stop, least, mean) = np.random.default_rng(0), (100.0, 30.0, 600.0, 900.0)
    charged = max(least, start + stop) + mean
    sizes = {
        "exponential": draw.exponential(mean, 200_000),
        "constant": np.full(10, mean),
        "rare": np.where(np.arange(100_000) < 10, mean * 10_000, 0.0),
    }
    billed = {
        name: np.maximum(start + work + stop, least).mean() * mean / work.mean()
        for name, work in sizes.items()
    }
    assert billed["constant"] < billed["exponential"] < charged
    assert billed["rare"] == pytest.approx(charged, rel=1e-4)


def test_bounds_and_plans_of_free_orders_are_not_believed():
    free = optsched.read("boa/three-types")
    charged = with_orders(free, start_s=120.0, stop_s=60.0, least_billed_s=3600.0)
    before, after = solved(free), solved(charged)
    assert before.objective < after.bound
    assert proof.prove(free, after.certificate)
    assert proof.prove(charged, before.certificate)
    assert "budget" in {b.rule for b in feasibility.violations(charged, before.plan)}
    explained = str(optsched.explain(charged, result=after))
    assert "nodes that are there at once" in explained


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("figure", [-1.0, float("nan"), float("inf")])
def test_times_of_orders_that_are_none_have_their_path(field, figure):
    instance = optsched.read("boa/three-types")
    with pytest.raises(optsched.InstanceError, match=rf"offers\[1\]\.{field}"):
        instance.changed({f"offers.t4-spot.{field}": figure})
    odd = with_orders(instance, **{field: figure})
    assert "figures" in {b.rule for b in proof.prove(odd, solved(instance).certificate)}


def test_a_frontier_in_one_sort_is_refused_where_starts_cost():
    charged = one_job_an_hour(stop_s=60).changed({"widths": "mixed"})
    with pytest.raises(ValueError, match="free"):
        optsched.boa.frontier(charged)


def test_a_chain_of_widths_fills_nodes_but_for_one():
    """The bound of docs/math/boa.md: widths of which each divides the next, moved at will."""
    draw = np.random.default_rng(1)
    for _ in range(200):
        jobs = draw.choice([1, 2, 4, 8], draw.integers(1, 60))
        nodes = []  # GPUs free; the largest first, each into the first node that has room
        for gpus in sorted(jobs.tolist(), reverse=True):
            room = next((n for n, free in enumerate(nodes) if free >= gpus), None)
            if room is None:
                nodes.append(8 - gpus)
            else:
                nodes[room] -= gpus
        assert len(nodes) * 8 - jobs.sum() <= 7
