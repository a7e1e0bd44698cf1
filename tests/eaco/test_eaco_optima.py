"""The specification of EaCO, solved: optima against oracles, published values, a second opinion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint
from scipy.optimize import milp as scipy_milp

from optsched.eaco.verify import feasibility
from optsched.mip import highs
from optsched.models import eaco
from optsched.models.eaco_nodes import parts_of
from tests.eaco.verify.test_eaco_energy import paper
from tests.support.oracles import eaco as oracles
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance
from tests.support.strategies.eaco_parts import exclusive

PLAIN = {"running": False, "caps": False}
PAIRS = PLAIN | {"levels": False, "max_pools": 1, "sharing": (1, 2)}


def solved(instance):
    """Solve the formulation by HiGHS; return the objective and the plan, None without a plan."""
    model = eaco.build(instance)
    compiled = highs.compile_model(model)
    outcome = highs.solve(compiled.program, gap=1e-9)
    if outcome.status == "infeasible":
        return None, None
    assert outcome.status == "optimal"
    for variable, x in zip(compiled.variables, outcome.x.tolist(), strict=True):
        variable.set_value(x, skip_validation=True)
    return outcome.objective, eaco.extract(model, instance)


def close(optimum):
    return None if optimum is None else pytest.approx(optimum, rel=1e-6, abs=1e-9)


# --- optima -----------------------------------------------------------------------------------


@law(300, is_costly=True)
@given(eaco_instances(feasible=False))
def test_plans_break_no_rule_and_cost_what_the_model_says(instance):
    value, plan = solved(instance)
    if plan is None:
        return
    assert feasibility.violations(instance, plan) == []
    assert feasibility.objective(instance, plan) == close(value)


@law(300)
@given(eaco_instances(max_jobs=4, max_nodes=2, feasible=False))
def test_optimum_equals_that_of_all_plans(instance):
    """All features, also without a plan; exact packing by nodes, caps, levels, locations."""
    assert solved(instance)[0] == close(oracles.brute_force(instance))


@law(2000)
@given(eaco_instances(**PLAIN, gangs=(1, 2, 4, 8), feasible=False).filter(oracles.sums_pack))
def test_optimum_equals_that_of_dynamic_programming(instance):
    assert solved(instance)[0] == close(oracles.bitmask_optimum(instance))


MATCHED = PAIRS | {"waiting": False, "sleep": False, "objectives": ("run-to-completion",)}


@law(300)
@given(st.data(), st.sampled_from([1, 2, 4]))
def test_optimum_equals_that_of_matching(data, gang):
    instance = data.draw(eaco_instances(**MATCHED, gangs=(gang,), max_jobs=10, feasible=False))
    assert solved(instance)[0] == close(oracles.matching_optimum(instance))


@law(100, is_costly=True)
@given(st.data(), st.sampled_from([1, 2, 3, 4]))
def test_compact_model_agrees(data, gang):
    instance = data.draw(eaco_instances(**PAIRS, gangs=(gang,), max_jobs=6, feasible=False))
    assert oracles.compact_optimum(instance) == close(solved(instance)[0])


@law(200, is_costly=True)
@given(eaco_instances())
def test_relaxation_is_a_lower_bound(instance):
    relaxed = highs.compile_model(eaco.build(instance)).program
    relaxed = replace(relaxed, integer=np.zeros_like(relaxed.integer))
    outcome = highs.solve(relaxed)
    assert outcome.status == "optimal"
    optimum = solved(instance)[0]
    assert outcome.objective <= optimum + 1e-7 * abs(optimum) + 1e-9


@law(100, is_costly=True)
@given(eaco_instances(feasible=False))
def test_second_opinion(instance):
    """SciPy carries a HiGHS of its own, of another version."""
    program = highs.compile_model(eaco.build(instance)).program
    scale = np.abs(program.cost).max() or 1.0
    outcome = scipy_milp(
        program.cost / scale,
        integrality=program.integer,
        bounds=Bounds(program.lower, program.upper),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"mip_rel_gap": 0.0},
    )
    optimum = solved(instance)[0]
    if optimum is None:
        assert outcome.x is None
    else:
        value = outcome.fun * scale + program.offset
        assert value == pytest.approx(optimum, rel=1e-6, abs=1e-6 * scale)


# --- docs/math/eaco.md, Golden values ---------------------------------------------------------


@pytest.mark.parametrize(
    ("cap", "kwh", "sizes"),
    [
        (1, 161.67, [1, 1, 1, 1]),
        (1.03, 161.67, [1, 1, 1, 1]),
        (1.035, 136.53, [1, 1, 2]),
        (1.04, 111.77, [2, 2]),
        (1.24, 111.77, [2, 2]),
        (1.25, 93.66, [4]),
        (9, 93.66, [4]),
    ],
)
def test_least_energy_by_slowdown_cap(cap, kwh, sizes):
    value, plan = solved(paper().changed({"jobs.*.max_slowdown": cap}))
    assert value == pytest.approx(kwh, rel=1e-9)
    assert sorted(len(group.jobs) for group in plan.groups) == sizes


@pytest.mark.parametrize(
    ("copies", "cap", "kwh"),
    [
        ((2, 2, 2, 2), 1.10, 222.69),
        ((4, 2, 3, 1), 1.10, 223.92),
        ((4, 2, 3, 1), 1.05, 272.05),
    ],
)
def test_least_energy_of_copies(copies, cap, kwh):
    instance = paper(copies).changed({"jobs.*.max_slowdown": cap})
    assert solved(instance)[0] == pytest.approx(kwh, rel=1e-9)


# --- docs/math/eaco.md, Properties ------------------------------------------------------------


@law(100, is_costly=True)
@given(eaco_instances())
def test_optimum_is_at_most_exclusive(instance):
    plan = exclusive(instance)
    if plan is None or feasibility.violations(instance, plan):
        return
    value = solved(instance)[0]
    assert value <= feasibility.objective(instance, plan) + 1e-6 * abs(value) + 1e-9


LOOSER = [
    {"max_jobs_per_gpu": 8},
    {"jobs.*.max_slowdown": None},
    {"jobs.*.deadline_s": None},
    {"memory_headroom": 0.0},
    {"utilisation_limit": None},
    {"power_cap_w": None},
    {"gpu_types.*.levels": [{"id": "l2", "limit_w": 90, "rate": 0.9, "power": 0.7}]},
]


@law(100, is_costly=True)
@given(eaco_instances(max_jobs=6, levels=False), st.sampled_from(LOOSER))
def test_optimum_does_not_rise_with_more_freedom(instance, change):
    tight, loose = solved(instance)[0], solved(instance.changed(change))[0]
    assert loose <= tight + 1e-6 * abs(tight) + 1e-9


@law(100, is_costly=True)
@given(eaco_instances(max_jobs=6, gangs=(1,)))
def test_optimum_does_not_rise_with_more_nodes(instance):
    """Of nodes that sleep for nothing, and with gangs that are as much at home without them."""
    more = {f"nodes.{n.id}": {"on": n.awake, "count": n.count + 1} for n in instance.nodes}
    flat = {f"{path}.{key}": value for path, new in more.items() for key, value in new.items()}
    free = {"nodes.*.power.sleep_w": 0.0}
    loose, tight = solved(instance.changed(flat | free))[0], solved(instance.changed(free))[0]
    assert loose <= tight + 1e-6 * abs(tight) + 1e-9


@law(100, is_costly=True)
@given(eaco_instances(max_jobs=6, feasible=False))
def test_relabelling_changes_nothing(instance):
    turned = instance.model_copy(update={"jobs": instance.jobs[::-1]})
    assert solved(turned)[0] == close(solved(instance)[0])


@law(100)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(1, 4))
def test_without_interference_sorted_blocks_are_best(works, most):
    """Item 9: groups of jobs that end together; what their GPUs do besides costs the same."""
    jobs = [{"type": "a", "work_s": 600.0 * work} for work in works]
    table = {"saturation_slope": 0, "partner_slowdown": 0}
    instance = small_instance(jobs, types={"a": 0.125}, max_jobs_per_gpu=most, **table)
    value, _ = solved(instance)
    longest = sorted(works, reverse=True)[::most]
    joules = 600 * (sum(longest) * (20 + 25) + sum(works) * 0.125 * 100)
    assert value == pytest.approx(joules / 3.6e6, rel=1e-9)


# --- packing ----------------------------------------------------------------------------------

WAITS = {"waiting_penalty_kwh": 100.0}


def waiting(instance):
    return len(solved(instance)[1].waiting)


def test_five_gangs_of_three_do_not_fit_two_nodes_of_eight():
    jobs = [{"gpus": 3, **WAITS}] * 5
    two = small_instance(jobs, nodes={"x": {"gpus": 8, "count": 2}}, max_jobs_per_gpu=1)
    assert waiting(two) == 1
    assert waiting(two.changed({"nodes.x.gpus": 9})) == 0
    assert waiting(two.changed({"nodes.x.count": 3})) == 0


@pytest.mark.parametrize("far", [False, True])
def test_small_gangs_that_stay_leave_less_room_for_large_ones(far):
    """Three gangs of 4 beside two of 1 on two nodes of 8: not if those are on different nodes."""
    jobs = [{"migration_s": 1e9}] * 2 + [{"gpus": 4, **WAITS}] * 3
    running = [{"nodes": "x", "node": n * far, "jobs": [f"j{n}"]} for n in range(2)]
    nodes = {"x": {"gpus": 8, "count": 2}}
    instance = small_instance(jobs, nodes=nodes, running=running, max_jobs_per_gpu=1)
    assert waiting(instance) == int(far)


@pytest.mark.parametrize(("node", "waits"), [(0, 0), (1, 1), (2, 0)])
def test_gangs_of_two_nodes_need_two_that_follow_each_other(node, waits):
    jobs = [{"migration_s": 1e9}, {"gpus": 8, **WAITS}]
    running = [{"nodes": "x", "node": node, "jobs": ["j0"]}]
    instance = small_instance(jobs, nodes={"x": {"gpus": 4, "count": 3}}, running=running)
    assert waiting(instance) == waits


def test_few_of_many_nodes_are_written_down():
    """Gangs of 3 on nodes of 4 must be told apart by nodes, but not on all 100,000 of them."""
    jobs = [{"gpus": 3}] * 2 + [{"gpus": 8}, {"gpus": 1}]
    running = [{"nodes": "x", "node": 70_000, "jobs": ["j3"]}]
    instance = small_instance(jobs, nodes={"x": {"gpus": 4, "count": 100_000}}, running=running)
    parts = parts_of(instance, instance.nodes[0])
    assert sorted(parts) == [*range((5 + 1 + 1) * 2), 70_000]
    assert feasibility.violations(instance, solved(instance)[1]) == []


# --- locations, nodes, caps by hand -----------------------------------------------------------


def test_one_half_of_a_split_group_stays():
    """At rate 0.5 nobody bears the other; the move of the one with less to lose is paid for."""
    jobs = [{"max_slowdown": 1, "migration_s": s} for s in (360.0, 36.0)]
    running = [{"nodes": "x", "jobs": ["j0", "j1"]}]
    instance = small_instance(jobs, running=running, measured={"a a": (0.5, 0.5)})
    value, plan = solved(instance)
    assert {group.jobs: group.location for group in plan.groups} == {("j0",): "r0", ("j1",): None}
    assert value == pytest.approx((7200 + 36) * (70 + 25) / 3.6e6, rel=1e-9)


@pytest.mark.parametrize(("wake_s", "groups"), [(1.0, 2), (1e6, 1)])
def test_a_node_is_woken_if_that_pays(wake_s, groups):
    """Alone each GPU takes an hour at 70 W; together at half the speed two hours at 100 W."""
    power = {"base_w": 100.0, "sleep_w": 10.0, "wake_s": wake_s, "wake_w": 60.0}
    nodes = {"x": {"gpus": 1, "count": 2, "on": 1, "power": power}}
    pair = {"a a": {"rates": (0.5, 0.5), "gpu_power_w": 100.0}}
    value, plan = solved(small_instance(["a", "a"], nodes=nodes, measured=pair))
    assert len(plan.groups) == groups
    woken = wake_s * (60 - 10) if groups == 2 else 0.0
    assert value == pytest.approx((7200 * (90 + 70 + 30 * (groups == 1)) + woken) / 3.6e6)


@pytest.mark.parametrize(
    ("cap", "levels"), [(260, [None, None]), (230, ["l0", None]), (195, ["l0", "l0"]), (189, None)]
)
def test_power_levels_keep_a_cap(cap, levels):
    """A node of 100 W, two bare GPUs at 10 W; a job takes 70 W, at the level 35, but longer."""
    gpus = {"X": {"levels": [(100.0, 0.25, 0.5)]}}
    types = {"a": {"utilisation": 0.5, "memory_gb": 16}}
    nodes = {"x": {"gpus": 4, "count": 1}}
    base = small_instance(["a", "a"], gpus=gpus, types=types, nodes=nodes)
    _, plan = solved(base.changed({"power_cap_w": cap}))
    used = None if plan is None else sorted((g.level for g in plan.groups), key=str)
    assert used == (None if levels is None else sorted(levels, key=str))


def test_a_cap_below_the_idle_floor_has_no_plan():
    power = {"base_w": 100.0, "sleep_w": 30.0}
    nodes = {"x": {"gpus": 4, "count": 2, "power": power}}
    instance = small_instance([WAITS], nodes=nodes, power_cap_w=59.0)
    assert solved(instance) == (None, None)
    assert waiting(instance.changed({"power_cap_w": 61.0})) == 1
