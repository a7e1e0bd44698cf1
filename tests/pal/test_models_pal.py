"""The specification of PAL: golden LP files, columns, plans read off, export."""

import re
from pathlib import Path

import pyomo.environ as pyo
import pytest

from optsched.exporting import export
from optsched.models import pal
from optsched.pal.verify import feasibility
from tests.support.builders.milp_parts import solved_from_file
from tests.support.oracles import pal as oracles
from tests.support.strategies.pal import small_instance

GOLDEN = Path(__file__).parents[1] / "golden"


def job(gpus, **fields):
    return {"gpus": gpus, **fields}


TINY = {
    "pal-waiting": small_instance(
        {"a": 2, "b": 2},
        {"A": [1.0, 1.5, 1.0, 1.25], "B": [1.0] * 4},
        [job(2, weight=3.0), job(1, application_class="B")],
    ),
    "pal-running": small_instance(
        {"r": {"a": 2, "b": 1}, "c": 1},
        {"A": [1.0, 1.5, 1.25, 1.0]},
        [
            job(2, remaining_s=10, current=["a/0", "a/1"], restart_s=2, reward=40),
            job(2, remaining_s=20, weight=2, highest_level="rack", reward=100),
            job(1, remaining_s=5, current=["c/0"], restart_s=0, reward=1),
        ],
        admission="optional",
    ),
    "pal-infeasible": small_instance({"a": 1, "b": 1}, jobs=[job(2, highest_level="node"), 1]),
}


# --- golden files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY)
def test_golden_lp(name):
    """Byte for byte; to renew a file after a wanted change, write `export(TINY[name])` into it."""
    assert export(TINY[name]) == (GOLDEN / f"{name}.lp").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TINY)
def test_every_rule_is_in_a_golden_file(name):
    golden = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("pal-*.lp"))
    model = pal.build(TINY[name])
    rules = [rule.name for rule in model.component_objects(pyo.Constraint)]
    assert rules == ["one_choice", "gang", "inside", "one_job"]
    assert [rule for rule in rules if not re.search(rf"^c_._{rule}\(", golden, re.M)] == []


# --- columns ----------------------------------------------------------------------------------


def columns(instance, name="j0"):
    return sorted((d, b) for j, d, b in pal.build(instance).y if j == name)


def test_columns_have_enough_gpus_one_of_their_bin_and_need_their_domain():
    """Bins 0 to 2 are 1, 1.25 and 1.5; of the rack's GPUs those of bin 0 lie in node b alone."""
    nodes, slowdown = {"r": {"a": 2, "b": 2}, "c": 2}, {"A": [1.25, 1.5, 1.0, 1.0, 1.0, 1.25]}
    instance = small_instance(nodes, slowdown, [1, 2, job(2, highest_level="rack"), 5])
    single = [("a", 1), ("a", 2), ("all", 0), ("all", 1), ("all", 2), ("b", 0), ("c", 0), ("c", 1)]
    single += [("r", 1), ("r", 2)]
    assert columns(instance) == single
    pair = [column for column in single if column not in [("a", 1), ("c", 0)]]
    assert columns(instance, "j1") == pair
    assert columns(instance, "j2") == [column for column in pair if column[0] != "all"]
    assert columns(instance, "j3") == [("all", 1), ("all", 2)]


def test_a_chain_of_domains_counts_once():
    instance = small_instance({"row": {"r": {"a": 2}, "s": {}}}, jobs=[1])
    assert columns(instance) == [("a", 0)]


def test_gpus_that_are_not_free_make_no_bins():
    instance = small_instance(
        {"a": 2, "b": 2}, {"A": [1.0, 2.0, 3.0, 4.0]}, [1], drained=["a"], unavailable=["b/0"]
    )
    assert columns(instance) == [("b", 0)]
    assert list(pal.build(instance).x) == [("j0", "b/1")]


def test_who_may_stay():
    jobs = [
        job(2, current=["a/0", "b/0"]),
        job(1, current=["c/0"]),  # drained
        job(1, current=["a/1"]),  # unavailable
        job(2, current=["b/1", "d/0"], highest_level="rack"),
        job(1),
    ]
    running = [{"remaining_s": 1, "restart_s": 1, **j} for j in jobs[:-1]] + [jobs[-1]]
    running[-1]["remaining_s"] = 1
    nodes = {"r": {"a": 2, "b": 2, "c": 1}, "s": {"d": 1}}
    instance = small_instance(nodes, None, running, drained=["c"], unavailable=["a/1"])
    assert list(pal.build(instance).stay) == ["j0"]


# --- reading plans off ------------------------------------------------------------------------


def values_set(instance, ones, halves=()):
    model = pal.build(instance)
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(1e-7, skip_validation=True)
    for name, value in [*((n, 1 - 1e-7) for n in ones), *((n, 0.5) for n in halves)]:
        model.find_component(name).set_value(value, skip_validation=True)
    return pal.extract(model, instance)


def test_gpus_are_whole_where_x_is_not():
    instance = small_instance({"a": 2, "b": 2}, jobs=[1, 1, 2])
    halves = [f"x[{j},{g}]" for j in ("j0", "j1") for g in ("a/0", "a/1")]
    plan = values_set(instance, ["y[j0,a,0]", "y[j1,a,0]", "y[j2,b,0]"], halves)
    assert feasibility.violations(instance, plan) == []
    assert {frozenset(placement.gpus) for placement in plan.jobs[:2]} == {
        frozenset({"a/0"}),
        frozenset({"a/1"}),
    }
    assert set(plan.jobs[2].gpus) == {"b/0", "b/1"}


@pytest.mark.parametrize("held", ["a/0", "a/1"])
def test_jobs_that_stay_keep_their_gpus_from_others(held):
    instance = small_instance(
        {"a": 2},
        jobs=[job(1, remaining_s=1), job(1, remaining_s=1, current=[held], restart_s=0)],
    )
    plan = values_set(instance, ["y[j0,a,0]", "stay[j1]"])
    assert plan.jobs[1].gpus == (held,)
    assert feasibility.violations(instance, plan) == []


def test_columns_that_do_not_fit_break_a_rule():
    instance = small_instance({"a": 2, "b": 2}, jobs=[2, 1])
    plan = values_set(instance, ["y[j0,a,0]", "y[j1,a,0]"])
    assert sum(len(placement.gpus) for placement in plan.jobs) == 2
    assert feasibility.violations(instance, plan) != []


def test_a_model_that_was_not_solved_is_refused():
    model = pal.build(TINY["pal-waiting"])
    with pytest.raises(ValueError, match="uninitialized"):
        pal.extract(model, TINY["pal-waiting"])


def test_any_solver_of_pyomo_can_solve_it():
    """The first job moves (25 + 2), the second gets its node (60), the third is not worth 5."""
    instance = TINY["pal-running"]
    model = pal.build(instance)
    pyo.SolverFactory("appsi_highs").solve(model)
    assert pyo.value(model.objective) == pytest.approx(27 + 60 + 1)
    assert oracles.bitmask_optimum(instance) == 27 + 60 + 1
    placed = [set(placement.gpus) for placement in pal.extract(model, instance).jobs]
    assert placed == [{"b/0", "c/0"}, {"a/0", "a/1"}, set()]


# --- export -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["lp", "mps"])
@pytest.mark.parametrize("name", TINY)
def test_other_programs_read_the_files(name, file_format, tmp_path):
    path = tmp_path / f"model.{file_format}"
    text = export(TINY[name], file_format)
    path.write_text(text)
    optimum = oracles.bitmask_optimum(TINY[name])
    objective = solved_from_file(path)
    assert objective == (None if optimum is None else pytest.approx(optimum, rel=1e-6))
    assert export(TINY[name], file_format) == text
