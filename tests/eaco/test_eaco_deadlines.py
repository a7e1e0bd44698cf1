"""Deadlines of EaCO that cannot be met: due at the earliest end alone, by whatever way of solving.

Once such a deadline bound nothing, so that tightening it by a second lowered the energy.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco import performance
from optsched.eaco.due_times import due_s
from optsched.eaco.verify.feasibility import violations
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.explanation.explain import explain
from optsched.mip import highs
from optsched.models import eaco
from tests.support.oracles import eaco as oracles
from tests.support.strategies.common import among, law
from tests.support.strategies.eaco import eaco_instances, small_instance

PLACED = {"levels": False, "caps": False, "max_pools": 1}


@st.composite
def pressed(draw, max_jobs=4, shares=(-0.1, 0.5, 0.9, 1.0, 1.02, 1.25), **features):
    """Return an instance with deadlines about when jobs end alone, many of which cannot be met."""
    instance = draw(eaco_instances(max_jobs=max_jobs, max_nodes=2, feasible=False, **features))
    deadlines = {f"jobs.{job.id}.deadline_s": draw(among(None, *shares)) for job in instance.jobs}
    given = {path: share for path, share in deadlines.items() if share is not None}
    work = {job.id: job.work_s for job in instance.jobs}
    return instance.changed({p: share * work[p.split(".")[1]] for p, share in given.items()})


def least(instance):
    """Return the optimum of the formulation; infinity without a plan."""
    outcome = highs.solve(highs.compile_model(eaco.build(instance)).program, gap=1e-9)
    return math.inf if outcome.status == "infeasible" else outcome.objective


# --- laws -------------------------------------------------------------------------------------


@law(200)
@given(pressed())
def test_exact_formulation_and_all_plans_agree_on_jobs_that_cannot_be_in_time(instance):
    optimum, all_plans = least(instance), oracles.brute_force(instance)
    result = optsched.solve(instance, gap=0)
    if all_plans is None:
        assert math.isinf(optimum)
        assert result.status == "infeasible"
        return
    assert optimum == pytest.approx(all_plans, rel=1e-6, abs=1e-9)
    assert result.objective == pytest.approx(all_plans, rel=1e-6, abs=1e-9)


@law(300, is_costly=True)
@given(st.data())
def test_tightening_a_deadline_never_lowers_the_optimum(data):
    instance = data.draw(pressed(max_jobs=5))
    job = data.draw(st.sampled_from(instance.jobs))
    shares = st.one_of(among(-1.0, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.25), st.floats(0.3, 3))
    tight, loose = sorted([data.draw(shares), data.draw(shares)])
    path = f"jobs.{job.id}.deadline_s"
    before = least(instance.changed({path: loose * job.work_s}))
    after = least(instance.changed({path: tight * job.work_s}))
    assert after >= before - 1e-6 * abs(after) - 1e-9 or math.isinf(after)


@law(500)
@given(eaco_instances(feasible=False))
def test_methods_and_verifier_agree_on_when_jobs_are_due(instance):
    figures = ExactFigures(instance)
    for job in instance.jobs:
        assert due_s(instance, job) == figures.due_s(job)


# --- one by one -------------------------------------------------------------------------------


def two(deadline_s, **more):
    """Two jobs that save energy side by side, 10 % slower; the first has a deadline."""
    jobs = [{"deadline_s": deadline_s, "work_s": 18_000.0}, {"work_s": 18_000.0}]
    return small_instance(jobs, measured={"a a": [0.9, 0.9]}, **more)


def test_a_deadline_missed_by_a_second_takes_no_less_energy():
    loose, met, missed = (optsched.solve(two(s)).objective for s in (20_000, 18_000, 17_999))
    assert loose < met == missed
    assert optsched.solve(two(-5.0)).objective == missed


def test_explain_and_figures_name_late_jobs_and_when_they_are_due():
    instance = two(17_999)
    result = optsched.solve(instance)
    assert violations(instance, result.plan) == []
    assert performance(instance, result.plan).late == ("j0",)
    told = "\n".join(explain(instance, result).binding)
    assert "late jobs, each due at the earliest end that it can have alone: j0 in 18,000 s" in told


def test_infeasible_by_jobs_that_cannot_be_in_time_names_them():
    """Two jobs run side by side: only one of them can stay alone, the other must be moved."""
    jobs = [{"deadline_s": 5.0}, {"deadline_s": -5.0}]
    place = {"nodes": "x", "node": 0, "jobs": ["j0", "j1"]}
    instance = small_instance(jobs, measured={"a a": [0.9, 0.9]}, running=[place])
    result = optsched.solve(instance)
    assert result.status == "infeasible"
    assert "due at the earliest end that they can have alone: 'j0', 'j1'" in result.message
    optsched.verify(instance, result)
    told = " ".join(rule.text for rule in explain(instance, result).conflict)
    assert "job 'j0' must end within 3,600 s, the earliest end alone: not in 5 s" in told


def test_greedy_rules_leave_a_late_job_where_it_runs():
    """Moved it would end later than it can: its partner goes, and no other takes its GPUs."""
    jobs = [{"work_s": 7200.0}, {"deadline_s": -5.0}, {}]
    place = {"nodes": "x", "node": 0, "jobs": ["j0", "j1"]}
    instance = small_instance(jobs, measured={"a a": [0.9, 0.9]}, running=[place])
    for method in optsched.registry.problem("eaco").methods:
        result = optsched.solve(instance, method.name)
        stays = next(g for g in result.plan.groups if "j1" in g.jobs)
        assert (stays.jobs, stays.location) == (("j1",), "r0")
