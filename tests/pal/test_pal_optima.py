"""The specification of PAL, solved: optima against oracles, special cases, a second opinion."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint
from scipy.optimize import milp as scipy_milp

from optsched.mip import highs
from optsched.models import pal
from optsched.pal import PalPlan, Placement
from optsched.pal.verify import feasibility
from tests.support.oracles import pal as oracles
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

INFEASIBLE = small_instance({"a": 1, "b": 1}, jobs=[{"gpus": 2, "highest_level": "node"}, 1])


def job(gpus, **fields):
    return {"gpus": gpus, **fields}


def solved(instance):
    """Solve the formulation by HiGHS; return the objective and the plan, None without a plan."""
    model = pal.build(instance)
    compiled = highs.compile_model(model)
    outcome = highs.solve(compiled.program, gap=1e-9)
    if outcome.status == "infeasible":
        return None, None
    assert outcome.status == "optimal"
    for variable, x in zip(compiled.variables, outcome.x.tolist(), strict=True):
        variable.set_value(x, skip_validation=True)
    return outcome.objective, pal.extract(model, instance)


# --- optima -----------------------------------------------------------------------------------


@law(300)
@given(pal_instances(feasible=False))
def test_optimum_equals_that_of_dynamic_programming(instance):
    """All features, also without a plan; plans break no rule and cost what HiGHS says."""
    objective, plan = solved(instance)
    optimum = oracles.bitmask_optimum(instance)
    if optimum is None:
        assert plan is None
        return
    assert objective == pytest.approx(optimum, rel=1e-6)
    assert feasibility.violations(instance, plan) == []
    assert oracles.plan_cost(instance, plan) == pytest.approx(optimum, rel=1e-6)


@law(200)
@given(pal_instances(max_gpus=6, max_jobs=4))
def test_relaxation_is_a_lower_bound(instance):
    relaxed = highs.compile_model(pal.build(instance)).program
    relaxed = replace(relaxed, integer=np.zeros_like(relaxed.integer))
    outcome = highs.solve(relaxed)
    assert outcome.status == "optimal"
    assert outcome.objective <= oracles.bitmask_optimum(instance) * (1 + 1e-9)


@law(100)
@given(pal_instances(max_gpus=8, feasible=False))
def test_second_opinion(instance):
    """SciPy carries a HiGHS of its own, of another version."""
    program = highs.compile_model(pal.build(instance)).program
    scale = np.abs(program.cost).max() or 1.0
    outcome = scipy_milp(
        program.cost / scale,
        integrality=program.integer,
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"mip_rel_gap": 0.0},
    )
    optimum = oracles.bitmask_optimum(instance)
    if optimum is None:
        assert outcome.x is None
    else:
        assert outcome.fun * scale == pytest.approx(optimum, rel=1e-6, abs=1e-6 * scale)


PLAIN = {"running": False, "optional": False, "caps": False, "measured": False}


@law(100)
@given(pal_instances(**PLAIN, max_gpus=16, max_jobs=5), st.booleans())
def test_one_class_without_distance_takes_blocks(instance, is_equal):
    changes = {"jobs.*.application_class": "A", "locality.*": [1.0] * len(instance.topology.levels)}
    if is_equal:
        changes |= {"jobs.*.weight": 2.0, "jobs.*.remaining_s": 3.0}
    instance = instance.changed(changes)
    optimum = oracles.best_order_of_blocks(instance)
    assert solved(instance)[0] == pytest.approx(optimum, rel=1e-6)
    if is_equal:
        assert oracles.smallest_first(instance) == pytest.approx(optimum, rel=1e-9)


@law(100)
@given(pal_instances(**PLAIN, max_gpus=16, max_jobs=4))
def test_equal_gpus_are_packed(instance):
    gpus = len(instance.profile.gpus)
    instance = instance.changed({"profile.slowdown.*": [1.25] * gpus})
    assert solved(instance)[0] == pytest.approx(oracles.best_packing(instance), rel=1e-6)


@law(100)
@given(pal_instances(running=False, optional=False, max_gpus=24, max_jobs=1))
def test_a_single_job_takes_the_best_entry_of_its_table(instance):
    assert solved(instance)[0] == pytest.approx(oracles.best_for_one(instance), rel=1e-6)


# --- without a plan ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "instance",
    [
        INFEASIBLE,
        small_instance({"a": 1, "b": 1}, jobs=[job(2, highest_level="node")]),
        small_instance({"a": 2, "b": 1}, jobs=[2, 2]),
        small_instance({"a": 3, "b": 3}, jobs=[job(2, highest_level="node")] * 3),
    ],
)
def test_infeasible(instance):
    assert oracles.bitmask_optimum(instance) is None
    assert solved(instance) == (None, None)


def test_a_job_that_fits_nowhere_is_left_out_if_it_may_be():
    reward = {"jobs.0.reward": 7.0, "jobs.1.reward": 8.0, "admission": "optional"}
    objective, plan = solved(INFEASIBLE.changed(reward))
    assert objective == pytest.approx(8.0)
    assert [len(placement.gpus) for placement in plan.jobs] == [0, 1]


# --- running jobs -----------------------------------------------------------------------------


def moving(restart_s):
    """One job on the slow node; the fast one saves it 10 s."""
    runs = job(2, remaining_s=20, current=["a/0", "a/1"], restart_s=restart_s)
    return small_instance({"a": 2, "b": 2}, {"A": [1.5, 1.5, 1.0, 1.0]}, [runs])


@pytest.mark.parametrize(
    ("restart_s", "objective", "gpus"),
    [(0, 20, ["b/0", "b/1"]), (9, 29, ["b/0", "b/1"]), (11, 30, ["a/0", "a/1"])],
)
def test_a_job_moves_if_that_pays(restart_s, objective, gpus):
    cost, plan = solved(moving(restart_s))
    assert cost == pytest.approx(objective)
    assert sorted(plan.jobs[0].gpus) == gpus


# --- oracles against each other ---------------------------------------------------------------


@law(300)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False), st.randoms())
def test_no_plan_is_better_than_the_oracle(instance, random):
    """Plans drawn at random, judged by floats here and by fractions there."""
    gpus = oracles.open_gpus(instance)
    random.shuffle(gpus)
    placements = []
    for j in instance.jobs:
        take = j.gpus if len(gpus) >= j.gpus and random.random() < 0.9 else 0
        placements.append(Placement(id=j.id, gpus=tuple(gpus[:take])))
        gpus = gpus[take:]
    plan = PalPlan(jobs=tuple(placements))
    cost, optimum = oracles.plan_cost(instance, plan), oracles.bitmask_optimum(instance)
    assert math.isinf(cost) == bool(feasibility.violations(instance, plan))
    if not math.isinf(cost):
        assert feasibility.objective(instance, plan) == pytest.approx(cost, rel=1e-12)
        assert cost >= optimum * (1 - 1e-12)
