"""The layout as a law by folder; `benchmarks.shape` says what imports, rooms and circles are.

A problem is a folder: its data at the root, `verify` that imports data only, `greedy` that imports
no exact method, `view` on top. Where a module is, is all that a test has to know.
"""

from pathlib import Path

import pytest

from benchmarks.shape import Shape, circles

SHAPE = Shape(Path(__file__).parent.parent)
VERIFIERS = {"verify", "verification"}
PROBLEMS = {m.room for m in SHAPE.code if {*m.folders} & VERIFIERS}
SHARED = {"documents", "instance", "registry", "certificates", "cluster", "verification"}
EXACT = {"exact", "primal", "groups", "cuts", "node_classes", "decomposition"}
NUMBERS = {"numpy", "scipy", "pyomo", "highspy", "sklearn", "pandas", "networkx"}
# In whole numbers of 63 bits or in floats rounded to the safe side, each line says which way.
WITH_ARRAYS = {"reduced_cost_filter", "completion_bounds", "enumeration", "reduced_costs"}
# Marginal gains are a price at which widths are best, and the gap that it leaves is closed.
EXCEPTION = "optsched.boa.greedy.methods"


def ways(*folders, inside=True):
    """Pairs of modules, the second imported by the first, of these folders if any are named."""
    return [
        (module, SHAPE.modules[name])
        for module in SHAPE.code
        for name in sorted(SHAPE.imported(module, inside=inside, types=False))
        if not folders or {*module.folders} & {*folders}
    ]


def assert_none(broken):
    shown = sorted(f"{module.name} <- {other.name}" for module, other in broken)
    assert not shown


def test_rooms_import_in_one_direction():
    """Models belong to their problems."""
    pairs = {(a.room, b.room) for a, b in ways(inside=False) if a.room != b.room}
    pairs = {pair for pair in pairs if "models" not in pair}
    assert not circles({a: {d for c, d in pairs if c == a} for a, _ in pairs})


@pytest.mark.parametrize("module", [m for m in SHAPE.code if {*m.folders} & VERIFIERS], ids=str)
def test_a_verifier_reaches_data_and_verifiers_only(module):
    """By whatever it imports, and what these import."""
    for name in SHAPE.reached({module.name, *SHAPE.imported(module, inside=True, types=False)}):
        other = SHAPE.modules[name]
        assert other.room in SHARED | {module.room}, name
        assert other.room != module.room or {*other.folders} <= VERIFIERS, name
        numbers = {base.split(".")[0] for base, _ in other.imports(inside=True, types=False)}
        assert not numbers & NUMBERS or other.path.stem in WITH_ARRAYS, name


def test_greedy_rules_import_no_exact_method():
    broken = [(a, b) for a, b in ways("greedy") if {*b.folders} & EXACT]
    assert_none([(a, b) for a, b in broken if a.name != EXCEPTION])


def test_views_are_on_top():
    """Only a problem's entry, and `plot` of instances and plans, know them."""
    views = [(a, b) for a, b in ways() if b.folders == ("view",) and a.folders != ("view",)]
    assert_none([(a, b) for a, b in views if a.folders or a.room != b.room])


def test_no_problem_knows_another():
    assert_none([(a, b) for a, b in ways() if {a.room, b.room} <= PROBLEMS and a.room != b.room])


def test_methods_ask_the_verifier_only_whether_a_plan_is_feasible_and_what_it_costs():
    """Figures that are still borrowed, each to be replaced by the method's own."""
    borrowed = {"optsched.eaco.verify.group_energy"}
    asked = [(a, b) for a, b in ways(*EXACT, "greedy") if {*b.folders} & VERIFIERS]
    assert {b.name for _, b in asked if b.path.stem != "feasibility"} == borrowed


@pytest.mark.parametrize("folder", ["cluster", "traces", "rollout"])
def test_clusters_traces_and_rollouts_need_no_solver_and_no_command_line(folder):
    for module in SHAPE.code:
        if module.room == folder:
            names = {base.split(".")[0] for base, _ in module.imports(inside=False, types=False)}
            assert not names & {"pyomo", "highspy", "typer"}, module.name


def test_nothing_is_too_large_doubled_or_in_circles():
    assert SHAPE.broken() == []
