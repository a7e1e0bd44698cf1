"""BOA with offers: GPU types, markets and interruptions; exact, formulation, verifier, laws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from tests.support.oracles.boa import brute_force, options_of, path_lp
from tests.support.strategies.common import boa_instances, law, offered_instances

NAME = "boa/three-types"


def solved(instance, method=None, **options):
    """Solve, and have the verifier prove the outcome."""
    result = optsched.solve(instance, method, **options)
    optsched.verify(instance, result)
    return result


def best(instance):
    """The optimum by brute force, or for mixtures by SciPy's linear programme over all paths."""
    return brute_force(instance) if instance.widths == "integer" else path_lp(instance)


# --- exact = formulation = brute force ----------------------------------------------------------


@law(2000)
@given(instance=offered_instances(widths=("integer",)))
def test_exact_is_brute_force(instance):
    expected = brute_force(instance)
    result = solved(instance)
    if expected is None:
        assert result.status == "infeasible"
    else:
        assert result.status == "optimal"
        assert result.objective == pytest.approx(float(expected), rel=2e-6)
        assert result.bound <= float(expected) * (1 + 1e-12)


@law(300, is_costly=True)
@given(instance=offered_instances(widths=("mixed",), feasible=True))
def test_mixtures_are_the_linear_programme_over_all_paths(instance):
    result = solved(instance)
    price = result.certificate.price * float(feasibility.limit(instance))
    value = result.objective * float(feasibility.objective_divisor(instance))
    assume(price < 1e3 * value)  # beyond, SciPy's tolerance on the limit is worth too much
    assert result.objective == pytest.approx(path_lp(instance), rel=1e-5)


@law(150, is_costly=True)
@given(instance=offered_instances(feasible=True, max_classes=2))
def test_the_formulation_has_the_same_optimum(instance):
    one, other = solved(instance), solved(instance, "milp")
    assert other.objective == pytest.approx(one.objective, rel=1e-5)


# --- one offer is no offer ----------------------------------------------------------------------


def offered(instance, price=1.0):
    """The instance with all its GPUs as one offer."""
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "budget_gpus" in document:
        document["budget_usd_per_h"] = document.pop("budget_gpus") * price
    document["offers"] = [{"id": "all", "gpu_type": "any", "usd_per_gpu_h": price}]
    for phase in (phase for c in document["classes"] for phase in c["phases"]):
        curve = {"gpu_type": "any", "speedup": phase["speedup"]}
        phase["speedup"] = {"kind": "by-type", "curves": [curve]}
    return BoaInstance.from_document(document)


@law(200, is_costly=True)
@given(
    instance=boa_instances(),
    method=st.sampled_from(["exact", "class-width", "sia-like", "marginal"]),
)
def test_one_offer_at_a_dollar_is_the_instance_without_offers(instance, method):
    """Plans, objectives and certificates are the same figures, to the last digit."""
    one = optsched.solve(instance, method)
    other = optsched.solve(offered(instance), method)
    assert (one.status, one.objective, one.bound) == (other.status, other.objective, other.bound)
    assert one.certificate == other.certificate
    if one.plan is not None:
        widths = [[s.gpus for s in c.sequences] for c in one.plan.classes]
        assert [[s.gpus for s in c.sequences] for c in other.plan.classes] == widths


# --- laws -----------------------------------------------------------------------------------------


@law(200, is_costly=True)
@given(instance=offered_instances(feasible=True), data=st.data())
def test_a_further_offer_never_raises_the_optimum(instance, data):
    assume(len(instance.offers) > 1)
    dropped = data.draw(st.sampled_from(instance.offers))
    rest = tuple(offer for offer in instance.offers if offer is not dropped)
    types = {offer.gpu_type for offer in rest}
    phases = [phase for c in instance.classes for phase in c.phases]
    assume(all(types & {curve.gpu_type for curve in p.speedup.curves} for p in phases))
    fewer = instance.model_copy(update={"offers": rest})
    assume(all(list(options_of(fewer, c, p)) for c in fewer.classes for p in c.phases))
    before, after = solved(fewer), solved(instance)
    if before.status == "optimal":
        assert after.bound <= before.objective
        assert after.objective <= before.objective * (1 + 1e-6)


@law(100, is_costly=True)
@given(instance=offered_instances(feasible=True))
def test_without_interruptions_the_optimum_is_no_worse(instance):
    calm = tuple(o.model_copy(update={"interruptions_per_node_h": 0.0}) for o in instance.offers)
    result = solved(instance.model_copy(update={"offers": calm}))
    assert result.bound <= float(solved(instance).objective)


@law(100, is_costly=True)
@given(instance=offered_instances(widths=("integer",), feasible=True))
def test_greedy_plans_keep_the_rules_and_are_no_better_than_the_optimum(instance):
    result = solved(instance)
    for method in ("same-k", "class-width", "equal-share", "efficiency", "pollux-like", "sia-like",
                   "marginal", "boa-published"):  # fmt: skip
        plan = optsched.solve(instance, method).plan
        assert plan is None or feasibility.violations(instance, plan) == []
        assert plan is None or feasibility.objective(instance, plan) >= result.bound


@pytest.mark.parametrize("budget", [9, 16, 40, 300])
def test_the_frontier_in_one_sort_has_the_optimum_of_each_budget(budget):
    free = optsched.read(NAME).changed(
        {"widths": "mixed", "classes.*.rescale_s": 0, "budget_usd_per_h": budget}
    )
    curve = optsched.boa.frontier(free)
    assert curve.rent_unit == "USD/h"
    assert float(curve.mean_jct_s(budget)) == pytest.approx(solved(free).objective, rel=1e-9)


def test_equal_rents_of_two_types_share_a_corner_of_the_frontier():
    free = optsched.read(NAME).changed(
        {"classes.*.rescale_s": 0, "widths": "mixed", "offers.*.usd_per_gpu_h": 1.0,
         "budget_usd_per_h": 40}
    )  # fmt: skip
    curve = optsched.boa.frontier(free)
    assert np.isfinite(curve.price).all()
    assert float(curve.mean_jct_s(40)) == pytest.approx(solved(free).objective, rel=1e-9)


# --- interruptions --------------------------------------------------------------------------------


def test_time_with_interruptions_is_what_a_simulation_of_them_takes():
    """Of a job that writes checkpoints by the clock of its running time; the figure is from above.

    The true mean is that of geometric trials of each interval between checkpoints; the difference
    is of second order in interruptions per interval.
    """
    instance = optsched.read(NAME)
    plan = optsched.solve(instance, "sia-like").plan
    [offer] = [o for o in instance.offers if o.id == "a100-spot"]
    draw, k, restart = np.random.default_rng(0), 16, offer.restart_s + 120
    often = offer.interruptions_per_node_h * 2 / 3600
    [job_class] = [c for c in instance.classes if c.id == "bert"]
    until = draw.exponential(1 / often, 400_000)  # of trials of one interval
    done = until >= job_class.checkpoint_s
    spent = np.where(done, job_class.checkpoint_s, until + restart).sum()
    measured = spent / (done.sum() * job_class.checkpoint_s)
    times = {
        name: seconds for name, _, seconds in options_of(instance, job_class, job_class.phases[0])
    }
    [curve] = [c.speedup for c in job_class.phases[0].speedup.curves if c.gpu_type == "a100"]
    stated = float(times["a100-spot", k]) * curve.measured[k] / job_class.phases[0].work_gpu_s
    assert stated == pytest.approx(measured, rel=3e-3)
    assert plan is not None


def test_the_stated_time_is_an_upper_bound_on_that_of_geometric_trials():
    for rate in np.geomspace(1e-4, 1, 20):  # interruptions for each checkpoint interval
        trials = math.expm1(rate) / rate
        stated = 1 / (1 - rate / 2)
        assert trials <= stated <= trials * (1 + rate**2 / 6)


# --- tampering ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_types():
    instance = optsched.read(NAME)
    return instance, optsched.solve(instance)


def with_sequence(plan, **fields):
    first, *others = plan.classes
    sequence = first.sequences[0].model_copy(update=fields)
    return plan.model_copy(
        update={"classes": (first.model_copy(update={"sequences": (sequence,)}), *others)}
    )


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"offers": None}, "known-offer"),
        ({"offers": ()}, "known-offer"),
        ({"offers": ("h100-spot",)}, "known-offer"),
        ({"gpus": (3,)}, "allowed-width"),
        ({"gpus": (2.5,)}, "allowed-width"),
        ({"offers": ("a100-on-demand",), "gpus": (16,)}, "budget"),
    ],
)
def test_tampered_plans_break_a_rule(three_types, fields, rule):
    instance, result = three_types
    broken = feasibility.violations(instance, with_sequence(result.plan, **fields))
    assert rule in {b.rule for b in broken}


def test_a_width_that_interruptions_eat_is_refused(three_types):
    instance, result = three_types
    eaten = instance.changed({"classes.cifar10.checkpoint_s": 3600 / 0.1})
    plan = with_sequence(result.plan, gpus=(16,), offers=("rtx-2080ti-spot",))
    assert "allowed-width" in {b.rule for b in feasibility.violations(eaten, plan)}


def test_offers_in_a_plan_without_offers_are_refused():
    instance = optsched.read("boa/hand")
    plan = with_sequence(optsched.solve(instance).plan, offers=("t4",))
    assert {b.rule for b in feasibility.violations(instance, plan)} == {"known-offer"}


@pytest.mark.parametrize(
    "change",
    [
        {"usd_per_gpu_h": 0.0}, {"usd_per_gpu_h": -1.0}, {"usd_per_gpu_h": math.nan},
        {"interruptions_per_node_h": math.inf}, {"interruptions_per_node_h": -1.0},
        {"restart_s": math.nan}, {"gpus_per_node": 0}, {"id": "t4-spot"}, {"bills": "jobs"},
    ],
)  # fmt: skip
def test_offers_that_were_never_validated_are_refused(three_types, change):
    instance, result = three_types
    first, *others = instance.offers
    odd = instance.model_copy(update={"offers": (first.model_copy(update=change), *others)})
    assert "figures" in {b.rule for b in proof.prove(odd, result.certificate)}


def test_a_bound_of_cheaper_offers_is_not_believed(three_types):
    instance, result = three_types
    dearer = instance.changed({"offers.*.usd_per_gpu_h": 5})
    assert proof.prove(dearer, result.certificate)
    higher = result.certificate.model_copy(update={"bound": result.objective * 1.001})
    assert proof.prove(instance, higher)


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("offers.t4-spot.usd_per_gpu_h", 0, "offers[1].usd_per_gpu_h"),
        ("offers.t4-spot.usd_per_gpu_h", -1, "offers[1].usd_per_gpu_h"),
        ("offers.t4-spot.gpu_type", "t5", 'offers[1].gpu_type: no phase runs on "t5"; known: t4'),
        ("offers.t4-on-demand.interruptions_per_node_h", 1, "only 'spot' is interrupted"),
        ("offers.t4-spot.interruptions_per_node_h", 7, "interruptions_per_node_h: eats all"),
        ("offers.t4-spot.id", "a100-spot", "is already the id of offers[1]"),
        ("budget_gpus", 3, "budget_gpus: cannot stand beside"),
        ("price_usd_per_gpu_h", 1, "price_usd_per_gpu_h: cannot stand beside offers"),
        ("widths", "continuous", "widths: 'continuous' has no offers"),
        ("offers", None, "classes[0].phases[0].speedup.kind: 'by-type' needs offers"),
        ("offers", [], "offers"),
    ],
)  # fmt: skip
def test_faults_of_offers_have_their_path(path, value, fault):
    with pytest.raises(optsched.InstanceError) as caught:
        optsched.read(NAME).changed({path: value})
    assert fault in str(caught.value)


def test_phases_that_run_on_no_offer_are_a_fault():
    document = optsched.read(NAME).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["offers"] = [o for o in document["offers"] if o["gpu_type"] == "t4"]
    speedup = document["classes"][0]["phases"][0]["speedup"]
    speedup["curves"] = [c for c in speedup["curves"] if c["gpu_type"] != "t4"]
    document["classes"][1]["phases"][0]["speedup"] = {"kind": "table", "gpus": [1], "speedup": [1]}
    document["classes"][2]["phases"][0]["speedup"]["curves"].append(
        document["classes"][2]["phases"][0]["speedup"]["curves"][0]
    )
    with pytest.raises(optsched.InstanceError) as caught:
        BoaInstance.from_document(document)
    text = str(caught.value)
    assert 'classes[0].phases[0].speedup.curves: the phase runs on "rtx-2080ti", "a100"' in text
    assert "'by-type' beside offers, found \"table\"" in text
    assert 'classes[2].phases[0].speedup.curves[3].gpu_type: "t4" has a curve already' in text


def test_classes_that_write_no_checkpoint_in_time_are_a_fault():
    instance = optsched.read(NAME)
    spot = [o.model_dump(mode="json") for o in instance.offers if o.id == "a100-spot"]
    with pytest.raises(
        optsched.InstanceError, match=r"classes\[2\].checkpoint_s: interruptions eat"
    ):
        instance.changed({"offers": spot, "classes.bert.checkpoint_s": 20_000})


def test_a_phase_of_several_types_has_no_single_curve():
    phase = optsched.read(NAME).classes[0].phases[0]
    with pytest.raises(TypeError, match="one curve only"):
        phase.curve  # noqa: B018


# --- what users see -------------------------------------------------------------------------------


def test_plans_show_offers_and_money(three_types):
    instance, result = three_types
    table = result.to_frame() if hasattr(result, "to_frame") else result.frame()
    assert list(table.columns[3:5]) == ["offer", "gpus"]
    assert "USD/h" in str(result)
    assert optsched.boa.performance(instance, result.plan).mean_rent <= 16
    explained = str(optsched.explain(instance, result=result))
    assert "no interruptions of 'a100-spot'" in explained or "1 more USD/h" in explained


def test_a_target_asks_for_the_least_rent():
    instance = optsched.read(NAME).changed({"budget_usd_per_h": None, "target_mean_jct_s": 2000.0})
    result = solved(instance)
    assert result.objective_unit == "USD/h"
    assert result.objective == pytest.approx(float(best(instance)), rel=1e-6)


def test_a_budget_below_the_least_rent_is_infeasible():
    instance = optsched.read(NAME).changed({"budget_usd_per_h": 7.0})
    result = solved(instance)
    assert result.status == "infeasible"
    assert "USD/h" in result.message
    assert Fraction(result.certificate.least) > 7


# --- whole nodes ----------------------------------------------------------------------------------


def billed(instance, by):
    """The instance with all offers billed by GPUs or by nodes."""
    offers = tuple(offer.model_copy(update={"bills": by}) for offer in instance.offers)
    return instance.model_copy(update={"offers": offers})


@law(100, is_costly=True)
@given(instance=offered_instances(feasible=True))
def test_nodes_of_one_gpu_are_billed_as_gpus_to_the_last_digit(instance):
    ones = tuple(offer.model_copy(update={"gpus_per_node": 1}) for offer in instance.offers)
    single = instance.model_copy(update={"offers": ones})
    assume(all(list(options_of(single, c, p)) for c in single.classes for p in c.phases))
    by_gpu, by_node = (optsched.solve(billed(single, by)) for by in ("gpus", "nodes"))
    assert (by_gpu.status, by_gpu.objective, by_gpu.bound, by_gpu.plan, by_gpu.certificate) == (
        by_node.status, by_node.objective, by_node.bound, by_node.plan, by_node.certificate
    )  # fmt: skip


@law(200, is_costly=True)
@given(instance=offered_instances())
def test_whole_nodes_never_cost_less(instance):
    by_gpu, by_node = (solved(billed(instance, by)) for by in ("gpus", "nodes"))
    if by_node.status == "optimal":
        assert by_gpu.bound <= by_node.objective
        assert feasibility.violations(billed(instance, "gpus"), by_node.plan) == []


def test_whole_nodes_by_hand():
    """One class of 3,600 GPU-seconds an hour; two GPUs halve the time, of nodes of four at 1 USD.

    By the GPU 2 of them cost 2 USD/h for half an hour: 1 USD/h. By the node 4 USD/h for half an
    hour: 2 USD/h, and one GPU for an hour costs 4 USD/h.
    """
    curve = {"kind": "table", "gpus": [1, 2], "speedup": [1, 2]}
    phase = {
        "work_gpu_s": 3600,
        "speedup": {"kind": "by-type", "curves": [{"gpu_type": "t4", "speedup": curve}]},
    }
    offer = {"id": "all", "gpu_type": "t4", "usd_per_gpu_h": 1, "gpus_per_node": 4}
    document = {
        "schema": "optsched/boa/1", "target_mean_jct_s": 3600,
        "classes": [{"id": "a", "arrival_rate_per_h": 1, "phases": [phase]}],
    }  # fmt: skip
    costs = {
        by: solved(BoaInstance.from_document(document | {"offers": [offer | {"bills": by}]}))
        for by in ("gpus", "nodes")
    }
    assert costs["gpus"].objective == 1
    assert costs["nodes"].objective == 2
    assert costs["nodes"].plan.classes[0].sequences[0].gpus == (2,)


def test_a_bound_by_nodes_is_not_believed_of_gpus(three_types):
    """Of nodes of 32 GPUs, which no class fills."""
    instance, _ = three_types
    instance = instance.changed({"offers.*.gpus_per_node": 32, "budget_usd_per_h": 60})
    by_gpu, by_node = (solved(billed(instance, by)) for by in ("gpus", "nodes"))
    assert by_gpu.objective < by_node.bound
    assert proof.prove(billed(instance, "nodes"), by_node.certificate) == []
    assert proof.prove(billed(instance, "gpus"), by_node.certificate)
    assert {b.rule for b in feasibility.violations(billed(instance, "nodes"), by_gpu.plan)} == {
        "budget"
    }
