"""The layout as a law by folder; `benchmarks.shape` says what imports, packages and circles are.

A problem is a folder: its data at the root, `verify` that imports data only, `greedy` that imports
no exact method, `view` on top. Where a module is, is all that a test has to know.
"""

from functools import cache
from pathlib import Path

import pytest

from benchmarks.shape import Shape, circles

SHAPE = Shape(Path(__file__).parent.parent)
VERIFIERS = {"verify", "verification"}
VERIFYING = [m for m in SHAPE.code if {*m.folders} & VERIFIERS]
PROBLEMS = {m.package for m in VERIFYING}
SHARED = {"documents", "instance", "registry", "certificates", "cluster", "verification"}
EXACT = {"exact", "primal", "groups", "cuts", "node_classes", "decomposition", "dual_ascent"}
NUMBERS = {"numpy", "scipy", "pyomo", "highspy", "sklearn", "pandas", "networkx"}
# In whole numbers of 63 bits or in floats rounded to the safe side, each line says which way.
WITH_ARRAYS = {
    *("reduced_cost_filter", "completion_bounds", "enumeration", "reduced_costs"),
    *("slot_values", "mean_jct", "fullest", "ready_nodes", "starts"),
}


@cache
def imports(*, inside=True):
    """Pairs of modules, the second imported by the first."""
    return [
        (module, SHAPE.modules[name])
        for module in SHAPE.code
        for name in sorted(SHAPE.imported(module, inside=inside, types=False))
    ]


LAWS = {
    "a greedy rule imports no exact method": lambda a, b: (
        "greedy" in a.folders and {*b.folders} & EXACT
    ),
    "views are on top: only a problem's entry, and `plot` of its data, know them": lambda a, b: (
        b.folders == ("view",) != a.folders and (a.folders or a.package != b.package)
    ),
    "no problem knows another": lambda a, b: (
        {a.package, b.package} <= PROBLEMS and a.package != b.package
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_every_import_keeps(law):
    assert [f"{a} <- {b}" for a, b in imports() if LAWS[law](a, b)] == []


def test_methods_ask_the_verifier_only_whether_a_plan_is_feasible_and_what_it_costs():
    methods = ((a, b) for a, b in imports() if {*a.folders} & {*EXACT, "greedy"})
    asked = {b.name for _, b in methods if {*b.folders} & VERIFIERS}
    assert all(name.endswith(".feasibility") for name in asked), asked


def test_packages_import_in_one_direction():
    """Models belong to their problems."""
    pairs = {(a.package, b.package) for a, b in imports(inside=False) if a.package != b.package}
    pairs = {pair for pair in pairs if "models" not in pair}
    assert not circles({a: {d for c, d in pairs if c == a} for a, _ in pairs})


@pytest.mark.parametrize("module", VERIFYING, ids=str)
def test_a_verifier_reaches_data_and_verifiers_only(module):
    """By whatever it imports, and what these import."""
    for name in SHAPE.reached({module.name, *SHAPE.imported(module, inside=True, types=False)}):
        other = SHAPE.modules[name]
        assert other.package in SHARED | {module.package}, name
        assert other.package != module.package or {*other.folders} <= VERIFIERS, name
        numbers = {base.split(".")[0] for base, _ in other.imports(inside=True, types=False)}
        assert not numbers & NUMBERS or other.path.stem in WITH_ARRAYS, name


@pytest.mark.parametrize("folder", ["cluster", "traces", "rollout"])
def test_clusters_traces_and_rollouts_need_no_solver_and_no_command_line(folder):
    for module in (m for m in SHAPE.code if m.package == folder):
        names = {base.split(".")[0] for base, _ in module.imports(inside=False, types=False)}
        assert not names & {"pyomo", "highspy", "typer"}, module.name


def test_nothing_is_too_large_doubled_or_in_circles():
    assert SHAPE.broken() == []
