"""The problem Sia through the door of all problems: optima, proofs, tampering, explanations."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given

import optsched
from benchmarks.proving.rounds import sia_cost
from optsched.models import sia as specification
from optsched.registry import problem
from optsched.sia import Assignment, SiaInstance, SiaPlan
from optsched.sia.instance import configuration_cost
from optsched.verification import Violation
from tests.support.strategies.common import law
from tests.support.strategies.sia import instances, least, plans

GOLDEN = Path(__file__).parents[1] / "golden"
HAND = optsched.read("sia/hand")
GREEDY = [method.name for method in problem("sia").methods if method.kind == "greedy"]


def plan(**given):
    """The plan of the hand instance with these groups "4 slow"; the others wait."""
    rows = []
    for job in HAND.jobs:
        gpus, name = given[job.id].split() if job.id in given else (0, None)
        rows.append(Assignment(id=job.id, type=name, gpus=int(gpus)))
    return SiaPlan(jobs=tuple(rows))


# --- optima -----------------------------------------------------------------------------------


def test_the_hand_instance_as_its_description_says():
    result = optsched.solve(HAND)
    assert result.plan == plan(a="4 slow", b="1 fast", c="1 fast")
    assert (result.status, result.objective) == ("optimal", pytest.approx(0.50 + 0.45 + 0.88))
    assert result.bound == pytest.approx(1.83)
    assert "0.50" in HAND.description
    assert "1.83" in HAND.description
    in_order = optsched.solve(HAND, method="in-order")
    assert in_order.plan == plan(a="2 fast", b="4 slow")
    assert in_order.objective == pytest.approx(2.09)
    assert problem("sia").objective(HAND, plan(b="2 fast", a="4 slow")) == pytest.approx(1.93)


@law(150)
@given(instances())
def test_exact_and_milp_are_as_good_as_the_best_of_all_plans(instance):
    """And their certificates prove it; where there is no plan, that is proven, too."""
    best = least(instance)
    for method in ("exact", "milp"):
        result = optsched.solve(instance, method=method)
        optsched.verify(instance, result)
        if best is None:
            assert (result.status, result.plan) == ("infeasible", None)
        else:
            assert result.status == "optimal"
            assert float(best) <= result.objective <= float(best) * (1 + 1e-6)
            assert result.bound <= best


@law(60)
@given(instances())
def test_greedy_plans_keep_the_rules_and_are_bounded(instance):
    best = least(instance)
    for method in GREEDY:
        result = optsched.solve(instance, method=method)
        if result.plan is not None:
            optsched.check(instance, result.plan)
            assert result.objective >= float(best) * (1 - 1e-12)
        if result.bound is not None:
            optsched.verify(instance, result)
        elif best is not None:
            raise AssertionError(f"{method} has no bound")


@law(60)
@given(instances(most_jobs=3))
def test_the_objective_of_every_plan_is_the_sum_of_its_costs_rounded_once(instance):
    entry = problem("sia")
    for each, cost in plans(instance):
        assert not entry.violations(instance, each)
        assert entry.objective(instance, each) == float(cost)


@pytest.mark.parametrize("power", [-0.5, -1.0, -2.5, -100.0])
def test_costs_are_those_that_rollouts_compute_in_arrays(power):
    """Also where a power is beyond all floats."""
    draw = np.random.default_rng(0)
    goodput, counts = draw.lognormal(0, 1, 600), np.full(100, 6)
    restart, held = draw.uniform(0, 1, 100), draw.integers(-1, 6, 100)
    with np.errstate(over="ignore"):
        expected = sia_cost(goodput, counts, restart=restart, held=held, power=power)
    for job in range(100):
        own = goodput[6 * job : 6 * job + 6]
        for place, value in enumerate(own.tolist()):
            is_moved = held[job] not in (-1, place)
            ratio = value / float(own.min()) * (float(restart[job]) if is_moved else 1.0)
            assert configuration_cost(ratio, power) == expected[6 * job + place]


# --- from round to round ----------------------------------------------------------------------


def test_a_round_begins_with_what_the_last_one_left_in_memory_or_in_a_file(tmp_path):
    one = optsched.read("sia/cluster-64")
    first = optsched.solve(one)
    later = one.changed({"gpus.a100": 15, "waiting_cost": 1.2})
    cold = optsched.solve(later)
    warm = optsched.solve(later, start=first)
    optsched.write(first, tmp_path / "first.json")
    from_file = optsched.solve(later, start=optsched.read_result(tmp_path / "first.json"))
    for result in (warm, from_file):
        optsched.verify(later, result)
        assert result.objective == pytest.approx(cold.objective, rel=2e-6)


def test_no_time_is_no_plan_of_the_tree_but_a_greedy_one_with_an_honest_bound():
    result = optsched.solve(optsched.read("sia/cluster-64"), time_limit_s=0.0)
    assert result.status in ("feasible", "optimal", "error")
    if result.bound is not None:
        optsched.verify(optsched.read("sia/cluster-64"), result)


# --- the verifier -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "rule", "words"),
    [
        (plan(a="4 slow", b="4 slow"), "capacity", '8 GPUs of type "slow" are taken, of 4'),
        (plan(a="3 slow"), "configuration", '3 GPUs of "slow" are no configuration of job "a"'),
        (plan(a="1 quick"), "configuration", '1 GPUs of "quick" are no configuration'),
        (SiaPlan(jobs=plan().jobs[:2]), "job", 'job "c" is in the plan 0 times'),
        (SiaPlan(jobs=(*plan().jobs, Assignment(id="a"))), "job", 'job "a" is in the plan 2 times'),
        (SiaPlan(jobs=(*plan().jobs, Assignment(id="d"))), "job", 'there is no job "d"'),
    ],
)
def test_plans_that_break_rules(chosen, rule, words):
    with pytest.raises(Violation) as error:
        optsched.check(HAND, chosen)
    assert rule in [broken.rule for broken in error.value.broken]
    assert words in str(error.value)


def test_jobs_that_may_not_wait_or_be_moved():
    document = json.loads(HAND.to_json())
    document["jobs"][0]["must_run"] = True
    document["jobs"][1] |= {"current": {"type": "slow", "gpus": 1}, "preemptible": False}
    instance = SiaInstance.from_document(document)
    with pytest.raises(Violation, match='job "a" must run, but it waits'):
        optsched.check(instance, plan(b="1 slow"))
    with pytest.raises(Violation, match=r'job "b" is not preemptible and has 1 GPUs of .slow.'):
        optsched.check(instance, plan(a="1 slow", b="1 fast"))
    result = optsched.solve(instance)
    assert result.plan == plan(a="2 fast", b="1 slow", c="2 slow")


@law(60)
@given(instances())
def test_a_bound_above_the_optimum_is_refused(instance):
    best = least(instance)
    assume(best is not None)
    result = optsched.solve(instance)
    above = float(best) * (1 + 1e-6) + 1e-9
    for certificate in (
        result.certificate.model_copy(update={"bound": above}),
        result.certificate.model_copy(update={"bound": None}),
    ):
        assert problem("sia").prove(instance, certificate)
    first = Assignment(id=instance.jobs[0].id, type="a", gpus=99)
    other = SiaPlan(jobs=(first, *result.plan.jobs[1:]))
    with pytest.raises(Violation):
        optsched.verify(instance, result.model_copy(update={"plan": other}))


def test_figures_of_a_result_that_are_not_so_are_refused():
    result = optsched.solve(HAND)
    for changed in ({"objective": 1.5}, {"bound": 1.9}, {"gap": 0.5}, {"status": "infeasible"}):
        with pytest.raises(Violation):
            optsched.verify(HAND, result.model_copy(update=changed))
    cheaper = HAND.changed({"jobs.a.configurations.2.goodput": 8})
    with pytest.raises(Violation):
        optsched.verify(cheaper, result)


# --- formulation ------------------------------------------------------------------------------


def test_golden_lp():
    document = json.loads(HAND.to_json())
    document["jobs"][0] |= {"current": {"type": "slow", "gpus": 2}, "restart_factor": 0.5}
    document["jobs"][1]["must_run"] = True
    text = optsched.export(SiaInstance.from_document(document), "lp")
    assert text == (GOLDEN / "sia-running.lp").read_text()


def test_a_plan_read_off_the_formulation_is_the_plan_that_was_put_in():
    model, chosen = specification.build(HAND), plan(a="4 slow", b="1 fast")
    for variable in (*model.x.values(), *model.waits.values()):
        variable.set_value(0.0)
    model.x["a", "slow", 4].set_value(1.0 - 1e-7)
    model.x["b", "fast", 1].set_value(1.0)
    model.waits["c"].set_value(1.0)
    assert specification.extract(model, HAND) == chosen


# --- explanations and sweeps ------------------------------------------------------------------


def test_an_infeasible_round_is_explained_by_the_jobs_and_the_type_that_conflict():
    document = json.loads(HAND.to_json())
    for job in document["jobs"][:2]:
        job |= {"current": {"type": "fast", "gpus": 2}, "preemptible": False}
    instance = SiaInstance.from_document(document)
    result = optsched.solve(instance)
    assert result.status == "infeasible"
    explained = result.explain()
    assert explained.is_irreducible
    assert {rule.id for rule in explained.conflict} == {"job:a", "job:b", "gpus:fast"}
    assert "job 'a' keeps 2 GPUs of type 'fast'" in str(explained)


def test_a_plan_is_explained_by_the_gpus_that_its_jobs_compete_for():
    explained = optsched.solve(HAND).explain()
    assert explained.binding[0] == "2 of 2 GPUs of type 'fast' have a job: none is left"
    changes = {price.change: price.saves for price in explained.prices}
    more = HAND.changed({"gpus.fast": 3})
    saved = 1.83 - float(least(more))
    assert changes["1 more GPU of type 'fast'"] == pytest.approx(saved, rel=1e-5)


def test_a_frontier_over_the_gpus_of_a_type_is_that_of_single_solves():
    frontier = optsched.frontier(HAND, parameter="gpus.fast", values=[0, 1, 2, 3, 4])
    for point in frontier.points:
        expected = least(HAND.changed({"gpus.fast": int(point.value)}))
        assert point.status == "optimal"
        assert point.objective == pytest.approx(float(expected))


def test_tables_show_every_job():
    result = optsched.solve(HAND)
    frame = result.frame()
    assert frame["job"].tolist() == ["a", "b", "c"]
    assert frame["cost"].sum() == pytest.approx(result.objective)
    assert frame["ratio"].tolist() == [4.0, 5.0, 1.3]
    assert "3 of 3" in str(result)
    large = optsched.solve(optsched.read("sia/cluster-64"))
    text = large.summary()
    assert text["GPUs used"] == "24 of 24 t4, 24 of 24 rtx, 16 of 16 a100"
    assert "restart" in text["running jobs"]
    with pytest.raises(ValueError, match="no picture"):
        large.plot()
