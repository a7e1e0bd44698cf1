"""The method "milp": golden values, agreement with "exact", limits, and lies of the solver."""

import re

import numpy as np
import pytest
from hypothesis import given

import optsched
from optsched.boa import BoaInstance
from optsched.boa import milp as method
from optsched.boa.verify import feasibility
from optsched.mip import highs
from optsched.search import Search
from tests.support.builders.milp_parts import lying
from tests.support.strategies.common import boa_instances, law


def solved(instance, **options):
    """Solve by HiGHS, and have the verifier prove the outcome."""
    result = optsched.solve(instance, method="milp", **options)
    optsched.verify(instance, result)
    return result


ROW_TOLERANCE = 1e-6
AGREEMENT = 2e-6


def steepness(instance, result):
    """How much the objective changes, relative, per relative change of the limit."""
    value = result.objective * float(feasibility.objective_divisor(instance))
    return result.certificate.price * float(feasibility.limit(instance)) / value


# --- golden values ----------------------------------------------------------------------------


@pytest.mark.parametrize(("widths", "jct"), [("mixed", 1.015625), ("integer", 1.1513157894736843)])
def test_golden_hand(widths, jct):
    result = solved(optsched.read("boa/hand").changed({"widths": widths}))
    assert result.objective == pytest.approx(jct, rel=1e-9)
    assert result.bound == pytest.approx(jct, rel=1e-6)
    assert result.status == "optimal"


@pytest.mark.parametrize(("budget", "jct"), [(24, 1336.24), (30, 805.31)])
def test_golden_cbd_85_mixed(budget, jct):
    changes = {"widths": "mixed", "budget_gpus": budget, "classes.*.rescale_s": 0}
    result = solved(optsched.read("boa/cbd-85").changed(changes))
    assert result.objective == pytest.approx(jct, abs=0.01)
    assert result.status == "optimal"


@pytest.mark.parametrize(
    ("budget", "jct"), [pytest.param(24, 1739.3996, marks=pytest.mark.slow), (48, 704.7424)]
)
def test_golden_cbd_85_with_rescaling(budget, jct):
    result = solved(optsched.read("boa/cbd-85").changed({"budget_gpus": budget}))
    assert result.objective == pytest.approx(jct, rel=1.2e-6)
    assert result.status == "optimal"
    assert result.message == ""


@pytest.mark.slow
def test_golden_six_models():
    known = optsched.known_values()["boa/six-models"]["optimal"]
    assert solved(optsched.read("boa/six-models")).objective == pytest.approx(known, rel=1e-6)


# --- agreement with the exact method ----------------------------------------------------------


@law(2000)
@given(boa_instances(feasible=True))
def test_milp_equals_exact(instance):
    """Any widths, budgets and targets, classes without arrivals, tables of any shape."""
    result, exact = solved(instance), optsched.solve(instance, gap=1e-9)
    if steepness(instance, exact) * ROW_TOLERANCE > AGREEMENT:
        assert result.bound <= exact.objective * (1 + 1e-9)
        assert result.objective >= exact.objective * (1 - 1e-9)
        return  # what HiGHS may exceed the limit by is worth more than the gap
    assert result.status == "optimal"
    assert result.objective == pytest.approx(exact.objective, rel=AGREEMENT)
    assert result.bound == pytest.approx(exact.objective, rel=AGREEMENT)


@law(1000, is_costly=True)
@given(boa_instances())
def test_milp_and_exact_agree_on_what_is_possible(instance):
    result, exact = solved(instance), optsched.solve(instance)
    assert (result.status == "infeasible") == (exact.status == "infeasible")
    if exact.status == "infeasible":
        assert result.certificate == exact.certificate
        assert result.message == exact.message


@pytest.mark.parametrize("widths", ["integer", "mixed"])
@pytest.mark.parametrize("limit", [{"budget_gpus": 30}, {"target_mean_jct_s": 500}])
def test_milp_equals_exact_on_awkward_curves(widths, limit):
    stress = optsched.read("boa/stress").changed({"budget_gpus": None, "widths": widths, **limit})
    result = solved(stress, gap=0.0)
    exact = optsched.solve(stress, gap=0.0)
    assert result.objective == pytest.approx(exact.objective, rel=1e-9)
    idle = next(c for c in result.plan.classes if c.id == "no-arrivals")
    assert len(idle.sequences) == 1


def test_plan_comes_from_highs_not_from_the_proof(monkeypatch):
    """Without HiGHS' point the greedy plan is left, however good the bound that is proven."""
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 48})
    lying(monkeypatch, x=lambda _: None, objective=lambda _: None)
    search = Search(instance)
    certificate = method.milp(instance, search)
    assert search.objective == optsched.solve(instance, method="class-width").objective > 716
    assert certificate.bound == pytest.approx(704.7424, rel=1.2e-6)


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("widths", "limit_s", "budget"),
    [("integer", 0.0, 20.5), ("integer", 0.05, 24), ("mixed", 0.0, 24), ("mixed", 0.05, 20.5)],
)
def test_time_limit_leaves_a_plan_and_an_honest_bound(widths, limit_s, budget):
    instance = optsched.read("boa/cbd-85").changed({"widths": widths, "budget_gpus": budget})
    result = solved(instance, time_limit_s=limit_s)
    best = optsched.solve(instance).objective
    assert result.bound <= best * (1 + 1e-9)
    assert result.objective >= best * (1 - 1e-9)
    assert result.status in ("optimal", "feasible")
    assert result.message == "stopped early: time limit"
    assert not result.deterministic


def test_gap_is_kept():
    instance = optsched.read("boa/cbd-85")
    result = solved(instance, gap=0.05)
    assert result.status == "optimal"
    assert result.gap <= 0.05
    assert result.message == ""


def test_infeasible():
    result = solved(optsched.read("boa/cbd-85").changed({"budget_gpus": 15}))
    assert result.status == "infeasible"
    assert "below the least possible cost of 20.12417" in result.message
    assert result.plan is None


def test_continuous_widths_are_refused():
    with pytest.raises(ValueError, match="'milp' and export need widths 'integer' or 'mixed'"):
        optsched.solve(optsched.read("boa/epew-figure1"), method="milp")


def test_same_seed_same_bytes():
    instance = optsched.read("boa/stress")
    texts = {
        solved(instance, seed=3)
        .model_copy(update={"seconds": 0.0, "verification_s": None})
        .to_json()
        for _ in range(2)
    }
    assert len(texts) == 1


# --- tolerances and lies of the solver --------------------------------------------------------


@pytest.mark.parametrize("widths", ["integer", "mixed"])
def test_plan_beyond_the_limit_is_replaced(widths, monkeypatch):
    """HiGHS' rows may be exceeded by its tolerance: made much worse here; the budget is not."""
    instance = optsched.read("boa/stress").changed({"widths": widths})
    attempts = []
    solve = highs.solve

    def tolerant(program, **options):
        rows = program.row_upper > 1  # the budget
        attempts.append(program.row_upper[rows].item())
        loose = np.where(rows, program.row_upper * 1.03, program.row_upper)
        return solve(method.replace(program, row_upper=loose), **options)

    monkeypatch.setattr(highs, "solve", tolerant)
    result = solved(instance)
    assert attempts == sorted(attempts, reverse=True)
    assert len(attempts) > 1
    best = optsched.solve(instance).objective
    assert best * (1 - 1e-6) <= result.objective <= best * 1.05


def test_a_claimed_bound_above_a_plan_is_told_and_not_believed(monkeypatch):
    lying(monkeypatch, bound=lambda outcome: outcome.bound * 1.001)
    result = solved(optsched.read("boa/hand"))
    assert re.search(r"claims the bound 1\.15246\d*, but a plan has 1\.15131", result.message)
    assert result.bound <= result.objective
    optsched.verify(optsched.read("boa/hand"), result)


def test_a_bound_that_a_steep_price_lifts_above_a_plan_is_no_traceback():
    """The budget leaves 3e-9 of itself for rescaling, less than HiGHS is exact to."""
    two = {"kind": "table", "gpus": [1, 2], "speedup": [1.0, 2.0]}
    three = {"kind": "table", "gpus": [1, 2, 3], "speedup": [1.0, 2.0, 2.5]}
    one = {"kind": "amdahl", "parallel_fraction": 0.0, "max_gpus": 1}
    first = [(51.27628603316484, two), (30.0, one), (1.0, three), (1.0, two)]
    second = [(2.485072958010886, three), (1.0, one)]
    classes = [
        {"id": name, "arrival_rate_per_h": 1.0, "rescale_s": lost,
         "phases": [{"work_gpu_s": work, "speedup": curve} for work, curve in phases]}
        for name, lost, phases in (("a", 1e-6, first), ("b", 2.0**-20, second))
    ]  # fmt: skip
    document = {"schema": "optsched/boa/1", "classes": classes, "budget_gpus": 0.024100379907586563}
    instance = BoaInstance.from_document(document)
    result = solved(instance)
    optsched.verify(instance, result)
    assert "HiGHS claims the bound 29.69" in result.message
    assert result.objective == optsched.solve(instance).objective


def test_bound_that_is_a_little_too_high_is_lowered(monkeypatch):
    lying(monkeypatch, bound=lambda outcome: outcome.bound * (1 + 1e-9))
    result = solved(optsched.read("boa/hand"))
    assert result.status == "optimal"
    assert result.bound <= result.objective


def test_a_stated_objective_below_the_bound_is_told_and_not_believed(monkeypatch):
    lying(monkeypatch, objective=lambda outcome: outcome.objective * 0.9)
    result = solved(optsched.read("boa/hand"))
    assert re.search(r"states the objective 1\.036\d*, but every plan has", result.message)
    assert result.bound <= result.objective == optsched.solve(optsched.read("boa/hand")).objective


def test_false_infeasibility_is_told_and_not_believed(monkeypatch):
    lying(monkeypatch, status=lambda _: "infeasible", x=lambda _: None, objective=lambda _: None)
    result = solved(optsched.read("boa/hand"))
    assert result.status == "feasible"
    assert "finds no plan, but one needs only 2" in result.message


def test_failure_of_the_solver_leaves_the_greedy_plan(monkeypatch):
    lying(
        monkeypatch,
        status=lambda _: "error",
        x=lambda _: None,
        objective=lambda _: None,
        message=lambda _: "Solve error",
    )
    result = solved(optsched.read("boa/stress"))
    assert result.status == "feasible"
    assert result.message == "stopped early: HiGHS ends with 'Solve error'"
