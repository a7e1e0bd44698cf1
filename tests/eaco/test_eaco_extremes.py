"""EaCO's exact methods on figures that differ by orders: what they state is what they prove."""

import pytest

import optsched
from benchmarks.generators import sharing
from optsched.eaco.exact import proving
from optsched.eaco.settings import SETTINGS
from optsched.registry import problem
from optsched.search import Search
from tests.support.strategies.eaco import small_instance


@pytest.mark.parametrize("watts", [1e6, 1e10, 1e12])
@pytest.mark.parametrize("method", ["exact", "milp"])
def test_a_group_dearer_by_orders_leaves_no_gap_open(method, watts):
    """Its cost once set the tolerances for all others: "feasible", 25 % off, without a word."""
    instance = small_instance(
        ["a", {"type": "b"}, {"type": "c", "work_s": 6540.0}],
        types={
            "a": {"utilisation": 0.5, "speeds": {"X": 2}},
            "b": {"utilisation": 0.0, "speeds": {"X": 0.5}},
            "c": {"utilisation": 0.293, "speeds": {"X": 2}},
        },
        measured={
            "a c": {"rates": [1, 1], "gpu_power_w": watts},
            "a b c": {"rates": [0.5, 0.5, 1], "gpu_power_w": 1e-9},
        },
        nodes={"x": {"gpus": 2, "on": 2, "power": {"base_w": 0, "wake_s": 600}}},
        fallback="pairs",
        max_jobs_per_gpu=3,
    )
    result = optsched.solve(instance, method)
    assert result.status == "optimal"
    assert [group.jobs for group in result.plan.groups] == [("j0", "j1", "j2")]


@pytest.mark.parametrize(("jobs", "rate"), [(8, 0.01), (8, 0.001), (5, 0.001)])
def test_groups_that_run_at_less_than_a_billionth_are_groups(jobs, rate):
    """They once were left out, so that the bound was none, and the verifier refused it."""
    names = [f"t{n}" for n in range(jobs)]
    instance = small_instance(
        [{"type": name, "work_s": 3600.0 * (n + 1)} for n, name in enumerate(names)],
        types={name: 0.1 * (n + 1) for n, name in enumerate(names)},
        measured={f"{a} {b}": [rate, rate] for a in names for b in names if a < b},
        nodes={"x": {"gpus": 1, "count": 1, "power": {"base_w": 0}}},
        fallback="pairs",
        max_jobs_per_gpu=8,
    )
    result = optsched.solve(instance)
    assert (result.status, len(result.plan.groups)) == ("optimal", 1)
    optsched.verify(instance, result)


@pytest.mark.parametrize("partner_slowdown", [1e9, 1e10, 1e12])
def test_partners_that_slow_down_without_limit_leave_prices_right(partner_slowdown):
    """First prices of full groups were so high that what was left of them was rounding."""
    change = {"interference.partner_slowdown": partner_slowdown, "jobs.*.max_slowdown": None}
    instance = sharing(12, 3, 0.25, 0).changed(change)
    result = optsched.solve(instance, "columns")
    assert result.status == "optimal"
    assert {len(group.jobs) for group in result.plan.groups} == {1}
    optsched.verify(instance, result)


def test_columns_of_no_cost_at_all():
    instance = small_instance(
        ["a", "a"],
        types={"a": 0.0},
        gpus={"X": {"power": {"bare_w": 0, "context_w": 0, "peak_w": 100}}},
        nodes={"x": {"power": {"base_w": 0}}},
    )
    result = optsched.solve(instance, "columns")
    assert (result.status, result.objective, result.bound) == ("optimal", 0, 0)


def test_a_gap_that_stays_open_has_a_reason(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "most_near", 1)
    instance = sharing(24, 3, 0.25, 0)
    search = Search(instance)
    certificate = optsched.registry.problem("eaco").method("columns")(instance, search)
    assert certificate.bound < search.objective * (1 - 1e-6)
    assert "groups cost so little more than their jobs pay" in search.gave_up


def test_a_tree_of_few_nodes_says_so(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "most_nodes", 2)
    monkeypatch.setitem(vars(SETTINGS), "root_cut_rounds", 0)  # cuts alone would close the gap
    monkeypatch.setitem(vars(SETTINGS), "cut_rounds_below", 0)
    instance = sharing(24, 3, 0.25, 2)
    search = Search(instance)
    optsched.registry.problem("eaco").method("exact")(instance, search)
    assert search.certificate.bound < search.objective * (1 - 1e-6)
    assert search.gave_up == "the tree has 3 nodes, as many as it may have"


def test_a_dive_and_cuts_over_few_columns_leave_the_optimum_what_it_is(monkeypatch):
    instance = sharing(24, 3, 0.25, 2)
    over_all = optsched.solve(instance, "exact", gap=1e-6)
    dived = []
    dive = proving.dived_plan
    monkeypatch.setitem(vars(SETTINGS), "cut_columns", 60)
    monkeypatch.setattr(
        proving, "dived_plan", lambda near: dived.append(len(near.pool.cost)) or dive(near)
    )
    monkeypatch.setitem(vars(SETTINGS), "root_cut_rounds", 0)  # cuts alone would close the gap
    result = optsched.solve(instance, "exact", gap=1e-6)
    assert len(dived) == 1
    assert dived[0] < 150  # 61, and those of the point
    assert result.objective == pytest.approx(over_all.objective, rel=1e-6)
    optsched.verify(instance, result)


def test_a_group_without_watts_made_the_rules_divide_by_zero_under_a_cap():
    """GPUs that draw nothing, on nodes that are too much for the cap: all jobs have to wait."""
    instance = small_instance(
        [{"type": "a", "waiting_penalty_kwh": 1.0}, {"type": "a", "waiting_penalty_kwh": 1.0}],
        types={"a": {"utilisation": 0.0}},
        gpus={"X": {"power": {"bare_w": 0.0, "context_w": 0.0, "peak_w": 1.0}}},
        nodes={"x": {"gpus": 1, "count": 2, "power": {"base_w": 100.0, "sleep_w": 0.0}}},
        power_cap_w=150.0,
    )
    for method in problem("eaco").methods:
        result = optsched.solve(instance, method.name)
        assert len(result.plan.groups) <= 1, method.name
