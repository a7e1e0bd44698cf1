"""The specification of EaCO: golden LP files, columns, parts, plans read off, export."""

import re
from pathlib import Path

import pyomo.environ as pyo
import pytest
from hypothesis import given

from optsched.eaco.verify import feasibility
from optsched.exporting import export
from optsched.models import eaco
from optsched.models.eaco_columns import columns
from optsched.models.eaco_nodes import parts_of
from tests.support.builders.milp_parts import solved_from_file
from tests.support.oracles import eaco as oracles
from tests.support.oracles.eaco_pairwise import build_pairwise
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance

GOLDEN = Path(__file__).parents[1] / "golden"
SLEEPY = {"base_w": 100.0, "sleep_w": 20.0, "wake_s": 36.0, "wake_w": 120.0}
TINY = {
    "eaco-pairs": small_instance(
        [{"type": "a", "waiting_penalty_kwh": 0.5}, "b", {"type": "b", "max_slowdown": 1.5}],
        types={"a": 0.25, "b": 0.5},
        nodes={"x": {"gpus": 2, "count": 3, "on": 1, "power": SLEEPY}},
        measured={"a b": (0.8, 0.5)},
        fallback="none",
    ),
    "eaco-running": small_instance(
        [{"migration_s": 400.0}, "a", {"type": "b", "gpus": 2, "waiting_penalty_kwh": 1.0}],
        gpus={"X": {"levels": [(60.0, 0.5, 0.75)]}},
        nodes={"x": {"gpus": 3, "count": 2, "on": 1, "power": SLEEPY}},
        measured={"a a": {"rates": (0.8, 0.8), "gpu_power_w": 90.0}},
        running=[{"nodes": "x", "jobs": ["j0"]}],
        max_jobs_per_gpu=2,
        objective="epoch",
        epoch_s=3600.0,
        power_cap_w=400.0,
    ),
}
RULES = ["one_place", "one_stays", "begin", "room", "waking", "power_cap"]


# --- golden files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TINY)
def test_golden_lp(name):
    """Byte for byte; to renew a file after a wanted change, write `export(TINY[name])` into it."""
    assert export(TINY[name]) == (GOLDEN / f"{name}.lp").read_text(encoding="utf-8")


def test_every_rule_is_in_a_golden_file():
    golden = "".join(path.read_text(encoding="utf-8") for path in GOLDEN.glob("eaco-*.lp"))
    model = eaco.build(TINY["eaco-running"])
    assert [rule.name for rule in model.component_objects(pyo.Constraint)] == RULES
    assert [rule for rule in RULES if not re.search(rf"^c_._{rule}(\(|_)", golden, re.M)] == []


# --- columns ----------------------------------------------------------------------------------


def allowed(instance):
    return [(*c.jobs, c.level, c.location) for c in columns(instance)]


def test_columns_of_measured_groups_within_tolerances():
    """At rate 0.5, slowdown 2, job j2 does not bear a beside it; b and b were not measured."""
    alone = [("j0", None, None), ("j1", None, None), ("j2", None, None)]
    assert allowed(TINY["eaco-pairs"]) == [*alone, ("j0", "j1", None, None)]


def test_columns_at_levels_and_locations():
    single = [("j0", None, None), ("j0", None, "r0"), ("j0", "l0", None), ("j0", "l0", "r0")]
    pair = [("j0", "j1", *tail[1:]) for tail in single]
    other = [("j1", None, None), ("j1", "l0", None)]
    gang = [("j2", None, None), ("j2", "l0", None)]
    assert allowed(TINY["eaco-running"]) == [*single, *other, *pair, *gang]


@law(300, is_costly=True)
@given(eaco_instances(feasible=False))
def test_columns_are_the_groups_that_the_verifier_allows(instance):
    listed = {c[:4] for c in columns(instance)}
    left, expected = list(instance.jobs), set()
    while left:
        for chosen in oracles.subsets(left, instance.max_jobs_per_gpu):
            for g in oracles.variants(instance, chosen):
                expected.add((g.jobs, g.nodes, g.level, g.location))
        left = left[1:]
    assert listed == expected


def test_costs_and_watts_by_hand():
    """a at 0.25 and b at 0.5 of 100 W above 20; a share of (100 - 20) / 2 W of the node."""
    first, second, _, pair = columns(TINY["eaco-pairs"])
    assert first.cost == pytest.approx(3600 * (45 + 40) / 3.6e6, rel=1e-15)
    assert second.cost == pytest.approx(3600 * (70 + 40) / 3.6e6, rel=1e-15)
    together_w = 20 + 100 * (0.25 * 0.8 + 0.5 * 0.5)
    joules = 4500 * (together_w + 40) + (3600 - 2250) * (70 + 40)
    assert pair.cost == pytest.approx(joules / 3.6e6, rel=1e-15)
    assert (first.gpu_w, second.gpu_w, pair.gpu_w) == (45, 70, 70)


# --- parts ------------------------------------------------------------------------------------


def parts(gangs, nodes, running=()):
    jobs = [{"gpus": gang} for gang in gangs]
    instance = small_instance(jobs, nodes={"x": nodes}, running=running)
    by_first = parts_of(instance, instance.nodes[0])
    return [(list(part.numbers), part.awake) for part in by_first.values()]


def test_equal_nodes_are_one_part_where_sizes_divide():
    nodes = {"gpus": 4, "count": 3, "on": 1}
    assert parts([1, 2, 4, 8], nodes) == [([0, 1, 2], 1)]
    assert parts([1, 3], nodes) == [([0], 1), ([1], 0), ([2], 0)]
    assert parts([3], nodes) == [([0], 1), ([1], 0)]
    assert parts([1, 1], {"gpus": 3, "count": 2}) == [([0, 1], 2)]


def test_nodes_with_running_jobs_are_parts_of_their_own():
    nodes, running = {"gpus": 4, "count": 3}, [{"nodes": "x", "node": 1, "jobs": ["j0"]}]
    assert parts([1, 2], nodes, running) == [([1], 1), ([0, 2], 2)]
    assert parts([1, 8], nodes, running) == [([0], 1), ([1], 1), ([2], 1)]
    held = [{"nodes": "x", "node": 1, "jobs": ["j1"]}]
    assert parts([1, 8], nodes, held) == [([0], 1), ([1], 1), ([2], 1)]
    assert parts([1], {"gpus": 4, "count": 1}, [running[0] | {"node": 0}]) == [([0], 1)]


# --- reading plans off ------------------------------------------------------------------------


def values_set(instance, ones):
    model = eaco.build(instance)
    for variable in model.component_data_objects(pyo.Var):
        variable.set_value(1e-7, skip_validation=True)
    for name, value in ones.items():
        model.find_component(name).set_value(value - 1e-7, skip_validation=True)
    return eaco.extract(model, instance)


def test_groups_fill_nodes_by_falling_size():
    instance = small_instance(
        [{"gpus": gang} for gang in (1, 2, 4, 1)], nodes={"x": {"gpus": 4, "count": 2}}
    )
    ones = {f"z[{n}]": 1 for n, c in enumerate(columns(instance)) if len(c.jobs) == 1}
    plan = values_set(instance, ones | {f"begins[{g},x,0]": n for g, n in ((1, 2), (2, 1), (4, 1))})
    assert feasibility.violations(instance, plan) == []
    assert {group.jobs: group.node for group in plan.groups} == {
        ("j2",): 0,
        ("j1",): 1,
        ("j0",): 1,
        ("j3",): 1,
    }


def test_groups_that_begin_nowhere_break_a_rule():
    instance = small_instance(["a"] * 3, nodes={"x": {"gpus": 1, "count": 3}}, max_jobs_per_gpu=1)
    ones = {f"z[{n}]": 1 for n in range(3)}
    assert feasibility.violations(instance, values_set(instance, ones | {"begins[1,x,0]": 3})) == []
    broken = feasibility.violations(instance, values_set(instance, ones | {"begins[1,x,0]": 1}))
    assert [rule.rule for rule in broken] == ["node-gpus"]
    broken = feasibility.violations(instance, values_set(instance, ones | {"begins[1,x,0]": 4}))
    assert broken == []


def test_a_model_that_was_not_solved_is_refused():
    model = eaco.build(TINY["eaco-pairs"])
    with pytest.raises(ValueError, match="uninitialized"):
        eaco.extract(model, TINY["eaco-pairs"])


def test_any_solver_of_pyomo_can_solve_it():
    """Pairs: a beside b costs less than their nodes apart, and no node needs to be woken."""
    instance = TINY["eaco-pairs"]
    model = eaco.build(instance)
    pyo.SolverFactory("appsi_highs").solve(model)
    optimum = oracles.brute_force(instance)
    assert pyo.value(model.objective) == pytest.approx(optimum, rel=1e-6)
    plan = eaco.extract(model, instance)
    assert feasibility.objective(instance, plan) == pytest.approx(optimum, rel=1e-6)


# --- the compact model ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jobs", "more", "reason"),
    [
        (["a"], {"max_jobs_per_gpu": 3}, "3 jobs per GPU"),
        (["a", {"gpus": 2}], {}, "gangs of several sizes"),
        (["a"], {"nodes": {"x": 4, "y": 4}}, "several kinds of nodes"),
        (["a"], {"running": [{"nodes": "x", "jobs": ["j0"]}]}, "running jobs"),
        (["a"], {"gpus": {"X": {"levels": [(60.0, 0.5, 0.75)]}}}, "power levels"),
        (["a"], {"power_cap_w": 1000.0}, "a power cap"),
    ],
)
def test_what_the_compact_model_cannot_express(jobs, more, reason):
    instance = small_instance(jobs, **{"max_jobs_per_gpu": 2, **more})
    with pytest.raises(ValueError, match=f"^small: the pairwise model cannot express {reason}$"):
        build_pairwise(instance)
    assert eaco.build(instance) is not None


# --- export -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["lp", "mps"])
@pytest.mark.parametrize("name", TINY)
def test_other_programs_read_the_files(name, file_format, tmp_path):
    path = tmp_path / f"model.{file_format}"
    text = export(TINY[name], file_format)
    path.write_text(text)
    assert solved_from_file(path) == pytest.approx(oracles.brute_force(TINY[name]), rel=1e-6)
    assert export(TINY[name], file_format) == text
