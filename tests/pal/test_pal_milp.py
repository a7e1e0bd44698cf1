"""The method "milp" of PAL: HiGHS' plans and claims, starts, limits, and lies of the solver."""

import math
import re

import numpy as np
import pytest
from hypothesis import given

from optsched.mip import highs
from optsched.models import pal
from optsched.pal import milp as method
from optsched.pal.greedy import pal_rules
from optsched.pal.plan import Leaf, PalCertificate
from optsched.search import Search
from tests.support.builders.milp_parts import lying
from tests.support.oracles import pal as oracles
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

# Two gangs of two: first come, first served takes the fast node for the light one.
CROSSED = small_instance(
    {"a": 2, "b": 2},
    {"A": [1.0, 1.0, 1.5, 1.5]},
    [{"gpus": 2, "weight": 1.0}, {"gpus": 2, "weight": 4.0}],
)
OVERFULL = small_instance({"a": 1, "b": 2}, jobs=[2, 2])
BEST, GREEDY = 1.5 + 4.0, 1.0 + 6.0


def certified(bound):
    """A certificate that states a bound; nobody proves it here."""
    return PalCertificate(bound=bound, nodes=(Leaf(gpu_prices=()),))


@pytest.fixture
def claims(monkeypatch):
    """Bounds that are to be proven; each is taken to be so."""
    claims = []

    def certify_claim(instance, search, claimed):
        claims.append(claimed)
        return certified(min(claimed, search.objective or claimed))

    monkeypatch.setattr(method.exact, "certify_claim", certify_claim)
    return claims


# --- plans and claims -------------------------------------------------------------------------


@law(300)
@given(pal_instances(feasible=False))
def test_plan_and_claim_equal_the_oracle(instance):
    search = Search(instance)
    outcome = method.solve_formulation(instance, search)
    optimum = oracles.bitmask_optimum(instance)
    if optimum is None:
        assert outcome.status == "infeasible"
        assert search.plan is None
        return
    assert outcome.bound == pytest.approx(optimum, rel=2e-6)
    assert search.objective == pytest.approx(optimum, rel=2e-6)
    assert oracles.plan_cost(instance, search.plan) == pytest.approx(search.objective, rel=1e-12)


def test_claim_is_what_highs_proves(claims):
    search = Search(CROSSED)
    certificate = method.milp(CROSSED, search)
    assert claims == [pytest.approx(BEST, rel=1e-6)]
    assert certificate.bound == pytest.approx(BEST, rel=1e-6)
    assert search.objective == BEST
    assert search.stopped == ""


def test_claim_without_a_plan_is_infinite(claims):
    search = Search(OVERFULL)
    method.milp(OVERFULL, search)
    assert claims == [math.inf]
    assert search.plan is None


def test_plan_may_be_that_of_the_greedy_start(claims, monkeypatch):
    lying(monkeypatch, x=lambda _: None, objective=lambda _: None)
    search = Search(CROSSED)
    method.milp(CROSSED, search)
    assert search.objective == GREEDY
    assert claims == [pytest.approx(BEST, rel=1e-6)]


# --- starts -----------------------------------------------------------------------------------


@law(300)
@given(pal_instances())
def test_a_start_is_a_point_of_the_program_and_costs_what_the_plan_does(instance):
    plans = [pal_rules.quick_start(instance), _solved(instance)]
    model = pal.build(instance)
    compiled = highs.compile_model(model)
    program = compiled.program
    for plan in plans:
        if plan is None:
            continue
        chosen = {id(variable) for variable in method.ones(model, instance, plan)}
        x = np.array([float(id(variable) in chosen) for variable in compiled.variables])
        rows = program.matrix @ x
        assert np.all((program.lower <= x) & (x <= program.upper))
        assert np.all((program.row_lower <= rows) & (rows <= program.row_upper))
        cost = program.cost @ x + program.offset
        assert cost == pytest.approx(oracles.plan_cost(instance, plan), rel=1e-12)


def _solved(instance):
    search = Search(instance)
    method.solve_formulation(instance, search)
    return search.plan


@pytest.mark.parametrize("is_started", [True, False])
def test_highs_gets_the_best_plan_so_far(is_started, monkeypatch):
    starts = []
    solve = highs.solve

    def seen(program, **options):
        starts.append(options["start"])
        return solve(program, **options)

    monkeypatch.setattr(highs, "solve", seen)
    search = Search(CROSSED)
    if is_started:
        search.offer(pal_rules.quick_start(CROSSED))
    method.solve_formulation(CROSSED, search)
    assert [start is not None for start in starts] == [is_started]
    if is_started:
        assert sum(starts[0]) == 2 + 4  # a column for each job, and a variable for each GPU
    assert search.objective == BEST


# --- limits -----------------------------------------------------------------------------------


def test_without_time_the_greedy_plan_is_left(claims, monkeypatch):
    monkeypatch.setattr(pal, "build", None)
    search = Search(CROSSED, time_limit_s=0.0)
    method.milp(CROSSED, search)
    assert search.objective == GREEDY
    assert claims == [0.0]
    assert search.stopped == "time limit"


@pytest.mark.parametrize(
    ("status", "bound", "claim", "stopped"),
    [
        ("limit", 3.0, 3.0, "time limit"),
        ("limit", -math.inf, 0.0, "time limit"),
        ("interrupted", 3.0, 0.0, "interrupted"),
        ("error", 3.0, 0.0, "HiGHS ends with 'Optimal'"),
    ],
)
def test_an_early_end_is_noted(status, bound, claim, stopped, claims, monkeypatch):
    lying(monkeypatch, status=lambda _: status, bound=lambda _: bound)
    search = Search(CROSSED)
    method.milp(CROSSED, search)
    assert claims == [claim]
    assert search.stopped == stopped
    assert search.objective == BEST


def test_options_reach_highs(claims, monkeypatch):
    seen = {}
    solve = highs.solve

    def noted(program, **options):
        seen.update(options)
        return solve(program, **options)

    monkeypatch.setattr(highs, "solve", noted)
    method.milp(CROSSED, Search(CROSSED, gap=0.1, seed=7, threads=2, time_limit_s=60))
    assert 0.05 < seen["gap"] < 0.1
    assert (seen["seed"], seen["threads"]) == (7, 2)
    assert 0 < seen["time_limit_s"] <= 60


# --- lies of the solver -----------------------------------------------------------------------


def test_a_stated_objective_below_what_is_proven_is_told(claims, monkeypatch):
    lying(monkeypatch, objective=lambda outcome: outcome.objective * 0.9)
    search = Search(CROSSED)
    assert method.milp(CROSSED, search).bound <= search.objective
    assert re.search(r"states the objective 4\.95\d*, but every plan", search.disbelieved)


def test_a_plan_that_breaks_a_rule_is_not_taken(claims, monkeypatch):
    """All variables at one: both gangs choose several columns, and get the GPUs that are left."""
    lying(monkeypatch, x=lambda outcome: np.ones_like(outcome.x))
    search = Search(CROSSED)
    method.milp(CROSSED, search)
    assert search.objective in (GREEDY, BEST)
    assert oracles.plan_cost(CROSSED, search.plan) == search.objective
