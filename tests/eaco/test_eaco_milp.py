"""The method "milp" of EaCO: HiGHS' plans and claims, starts, limits, and lies of the solver."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

from optsched.eaco import milp as method
from optsched.eaco.greedy import methods
from optsched.eaco.verify import feasibility
from optsched.mip import highs
from optsched.models import eaco
from optsched.search import Search
from tests.support.builders.milp_parts import lying
from tests.support.oracles import eaco as oracles
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance
from tests.support.strategies.eaco_parts import exclusive

# Pairs that run for as long as each other are best; the start puts every job on GPUs of its own.
WORKS = [3600.0, 1800.0, 3600.0, 1800.0]
MIXED = small_instance(
    [{"work_s": work} for work in WORKS],
    types={"a": 0.125},
    nodes={"x": {"gpus": 1, "count": 4}},
    max_jobs_per_gpu=2,
    saturation_slope=0,
    partner_slowdown=0,
)
BEST = (5400 * (20 + 100) + 10_800 * 12.5) / 3.6e6
GREEDY = 10_800 * (20 + 100 + 12.5) / 3.6e6
OVERFULL = MIXED.changed({"nodes.x.count": 1})


@pytest.fixture(autouse=True)
def simple_start(monkeypatch):
    """Start from jobs on GPUs of their own, whatever the rules can do."""
    monkeypatch.setattr(methods, "quick_start", exclusive)


@pytest.fixture
def claims(monkeypatch):
    """Bounds that are to be proven; each is taken to be so."""
    stated = []

    def certify_claim(instance, search, claimed):
        stated.append(claimed)
        proven = claimed if search.objective is None else min(claimed, search.objective)
        return SimpleNamespace(bound=proven)

    monkeypatch.setattr(method.listed_groups, "certify_claim", certify_claim)
    return stated


# --- plans and claims -------------------------------------------------------------------------


@law(300)
@given(eaco_instances(max_jobs=3, max_nodes=2, feasible=False))
def test_plan_and_claim_equal_the_oracle(instance):
    search = Search(instance)
    outcome = method.solve_formulation(instance, search)
    optimum = oracles.brute_force(instance)
    if optimum is None:
        assert outcome.status == "infeasible"
        assert search.plan is None
        return
    assert outcome.bound == pytest.approx(optimum, rel=2e-6, abs=1e-9)
    assert search.objective == pytest.approx(optimum, rel=2e-6, abs=1e-9)
    assert feasibility.objective(instance, search.plan) == search.objective


def test_claim_is_what_highs_proves(claims):
    search = Search(MIXED)
    certificate = method.milp(MIXED, search)
    assert claims == [pytest.approx(BEST, rel=1e-6)]
    assert certificate.bound == pytest.approx(BEST, rel=1e-6)
    assert search.objective == pytest.approx(BEST, rel=1e-12)
    assert search.stopped == ""


def test_claim_without_a_plan_is_infinite(claims):
    search = Search(OVERFULL)
    method.milp(OVERFULL, search)
    assert claims == [math.inf]
    assert search.plan is None


def test_plan_may_be_that_of_the_greedy_start(claims, monkeypatch):
    lying(monkeypatch, x=lambda _: None, objective=lambda _: None)
    search = Search(MIXED)
    method.milp(MIXED, search)
    assert search.objective == pytest.approx(GREEDY, rel=1e-12)
    assert claims == [pytest.approx(BEST, rel=1e-6)]


# --- starts -----------------------------------------------------------------------------------


@law(300, is_costly=True)
@given(eaco_instances())
def test_a_start_is_a_point_of_the_program_and_costs_what_the_plan_does(instance):
    model = eaco.build(instance)
    compiled = highs.compile_model(model)
    program = compiled.program
    for plan in (exclusive(instance), _solved(instance)):
        if plan is None or feasibility.violations(instance, plan):
            continue
        point = method.values(model, instance, plan)
        keys = [(v.parent_component().name, v.index()) for v in compiled.variables]
        x = np.array([float(point[key]) for key in keys])
        assert {key for key, value in point.items() if value} <= set(keys)
        rows = program.matrix @ x
        assert np.all((program.lower <= x) & (x <= program.upper))
        assert np.all((program.row_lower - 1e-9 <= rows) & (rows <= program.row_upper + 1e-9))
        cost = program.cost @ x + program.offset
        scale = np.abs(program.cost) @ np.abs(x)
        assert cost == pytest.approx(
            feasibility.objective(instance, plan), rel=1e-12, abs=1e-12 * scale
        )


def _solved(instance):
    search = Search(instance)
    method.solve_formulation(instance, search)
    return search.plan


def test_a_start_on_a_node_that_is_left_out_is_none():
    instance = small_instance([{"gpus": 3}], nodes={"x": {"gpus": 4, "count": 9}})
    plan = exclusive(instance)
    far = plan.model_copy(update={"groups": (plan.groups[0].model_copy(update={"node": 8}),)})
    assert feasibility.violations(instance, far) == []
    model = eaco.build(instance)
    assert method.values(model, instance, far) is None
    assert method.values(model, instance, plan) is not None
    search = Search(instance)
    assert search.offer(far)
    assert method.solve_formulation(instance, search).status == "optimal"


@pytest.mark.parametrize("is_started", [True, False])
def test_highs_gets_the_best_plan_so_far(is_started, monkeypatch):
    starts = []
    solve = highs.solve

    def seen(program, **options):
        starts.append(options["start"])
        return solve(program, **options)

    monkeypatch.setattr(highs, "solve", seen)
    search = Search(MIXED)
    if is_started:
        search.offer(exclusive(MIXED))
    method.solve_formulation(MIXED, search)
    assert [start is not None for start in starts] == [is_started]
    if is_started:
        assert sorted(starts[0])[-6:] == [1, 1, 1, 1, 4, 4]  # columns; groups that begin, nodes on
    assert search.objective == pytest.approx(BEST, rel=1e-12)


# --- limits -----------------------------------------------------------------------------------


def test_without_time_the_greedy_plan_is_left(claims, monkeypatch):
    monkeypatch.setattr(eaco, "build", None)
    search = Search(MIXED, time_limit_s=0.0)
    method.milp(MIXED, search)
    assert search.objective == pytest.approx(GREEDY, rel=1e-12)
    assert claims == [-math.inf]
    assert search.stopped == "time limit"


@pytest.mark.parametrize(
    ("status", "bound", "claim", "stopped"),
    [
        ("limit", 0.01, 0.01, "time limit"),
        ("limit", -math.inf, -math.inf, "time limit"),
        ("interrupted", 0.01, -math.inf, "interrupted"),
        ("error", 0.01, -math.inf, "HiGHS ends with 'Optimal'"),
    ],
)
def test_an_early_end_is_noted(status, bound, claim, stopped, claims, monkeypatch):
    lying(monkeypatch, status=lambda _: status, bound=lambda _: bound)
    search = Search(MIXED)
    method.milp(MIXED, search)
    assert claims == [claim]
    assert search.stopped == stopped
    assert search.objective == pytest.approx(BEST, rel=1e-12)


def test_options_reach_highs(claims, monkeypatch):
    seen = {}
    solve = highs.solve

    def noted(program, **options):
        seen.update(options)
        return solve(program, **options)

    monkeypatch.setattr(highs, "solve", noted)
    method.milp(MIXED, Search(MIXED, gap=0.1, seed=7, threads=2, time_limit_s=60))
    assert 0.05 < seen["gap"] < 0.1
    assert (seen["seed"], seen["threads"]) == (7, 2)
    assert 0 < seen["time_limit_s"] <= 60


# --- lies of the solver -----------------------------------------------------------------------


def test_a_stated_objective_below_what_is_proven_is_told(claims, monkeypatch):
    lying(monkeypatch, objective=lambda outcome: outcome.objective * 0.9)
    search = Search(MIXED)
    assert method.milp(MIXED, search).bound <= search.objective
    assert re.search(r"states the objective 0\.195\d*, but every plan", search.disbelieved)


@pytest.mark.parametrize(("off", "differ"), [(1e-9, False), (1e-3, True)])
def test_power_and_credits_that_cancel_are_no_disagreement(off, differ, claims, monkeypatch):
    """Alone on a full node the objective of an epoch is 0, the difference of two times 0.17 kWh."""
    instance = small_instance(
        ["a"], nodes={"x": {"gpus": 1, "count": 1}}, objective="epoch", epoch_s=3600.0
    )
    lying(monkeypatch, objective=lambda _: -off)
    search = Search(instance)
    assert method.milp(instance, search).bound == pytest.approx(0, abs=1e-12)
    assert bool(search.disbelieved) == differ


def test_a_plan_that_breaks_a_rule_is_not_taken(claims, monkeypatch):
    """All variables at one: every group is chosen, so that jobs stand in several."""
    lying(monkeypatch, x=lambda outcome: np.ones_like(outcome.x))
    search = Search(MIXED)
    method.milp(MIXED, search)
    assert search.objective == pytest.approx(GREEDY, rel=1e-12)
    assert feasibility.violations(MIXED, search.plan) == []


def test_a_cap_that_is_missed_by_a_hair_is_missed(claims):
    """The job draws 100 times the float 0.05, which is above 5; HiGHS does not see it."""
    instance = small_instance(
        [{"waiting_penalty_kwh": 1.0}],
        types={"a": 0.05},
        gpus={"X": {"power": {"bare_w": 0, "context_w": 0, "peak_w": 100}}},
        nodes={"x": {"gpus": 1, "count": 1, "power": {"base_w": 0}}},
        power_cap_w=5.0,
    )
    search = Search(instance)
    method.milp(instance, search)
    assert [rule.rule for rule in feasibility.violations(instance, exclusive(instance))] == [
        "power-cap"
    ]
    assert search.plan is None
    assert claims == [pytest.approx(0.005, rel=1e-9)]  # a true bound: waiting costs 1.005
