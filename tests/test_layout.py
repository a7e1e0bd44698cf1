"""The shape that the project keeps: packages, links, the direction of imports, a light import."""

import ast
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import optsched
from optsched.problems import ROOMS, problem

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "optsched"
# A module may import from its own layer and from lower ones.
LAYERS = [
    {"faults", "jsonfile", "problems", "instance", "changes", "models", "instances", "cluster"},
    {
        "check",
        "result",
        "reasons",
        "casetree",
        "memory",
    },
    {
        "solve",
        "highs",
        "program",
        "linear",
        "specification",
    },
    {"export", "explain", "doctor"},
    {
        "frontier",
        "frontier_points",
        "frontier_proof",
        "frontier_cache",
        "frontier_sweep",
        "frontier_plot",
        "frontier_slider",
    },
    {"report", "report_sources", "report_parts", "report_rollouts"},
    {
        "cli",
        "cli_instances",
        "cli_topology",
        "cli_trace",
        "cli_rollout",
        "cli_frontier",
        "cli_report",
        "tables",
        "terminal",
    },
]
ROOM_LAYERS = [
    {
        "instance",
        "plan",
        "check",
        "proof",
        "pricing",
        "costs",
        "uniform",
        "hopes",
        "sieve",
        "directed",
        "effort",
        "paces",
        "places",
        "pricelist",
        "chains",
        "enclosures",
        "counterexample",
        "phases",
        "lagrangian",
        "rooms",
        "faults",
        "interference",
        "gavel",
        "levels",
        "energy",
        "totals",
        "figures",
        "doubts",
    },
    {
        "arrays",
        "curves",
        "stacks",
        "price",
        "labels",
        "two_sides",
        "mixing",
        "closing",
        "ladders",
        "published",
        "heuristics",
        "hull",
        "continuous",
        "cluster_state",
        "ranking",
        "hurry",
        "relaxation",
        "lagrange",
        "rules",
        "rounding",
        "branching",
        "neighbourhoods",
        "division",
        "parts",
        "rounds",
        "packing",
        "variability",
        "estimates",
        "grouping",
        "capping",
        "greedy",
        "local_search",
        "due",
        "multisets",
        "groups",
        "members",
        "gains",
        "goods",
        "markets",
        "searchable",
        "filling",
        "generation",
        "columns",
        "subsets",
        "holding",
        "master",
        "placing",
        "certificates",
        "points",
        "matching",
        "blossoms",
        "firm",
        "fluid_bound",
        "fluid_prices",
        "kinds_nodes",
        "kinds_arrays",
        "kinds_bound",
        "kinds_packing",
        "kinds_master",
        "kinds_plan",
        "kinds_state",
    },
    {
        "cases",
        "tree",
        "diving",
        "repair",
        "misfit",
        "partial",
        "warm",
        "prover",
        "anew",
        "dear",
        "carried",
        "restricted",
    },
    {"exact", "milp"},
    {"pods", "pod_tasks", "large", "kinds"},
    {"memory"},
    {"problem", "plot", "colocation", "tables", "explain", "__init__"},
]


def test_packages_equal_folders():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {"optsched", "optsched.models", "optsched.instances"}
    folders |= {
        "optsched." + ".".join(path.parent.relative_to(SOURCE).parts)
        for path in SOURCE.glob("*/**/__init__.py")
        if not path.parent.is_symlink()
    }
    assert set(settings["packages"]) == folders
    for name in ("models", "instances"):
        assert (SOURCE / name).is_symlink()
        assert (SOURCE / name).readlink() == Path("..") / name


def imported(path):
    """Modules that a file imports when it is itself imported: not those inside functions."""
    tree = ast.parse(path.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def layer(layers, name):
    found = [n for n, members in enumerate(layers) if name in members]
    assert found, f"module '{name}' stands in no layer of tests/test_layout.py"
    return found[0]


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.py")), ids=lambda path: path.stem)
def test_imports_of_the_hall_point_down(path):
    if path.stem == "__init__":
        return
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "optsched" and len(parts) > 1 and (SOURCE / f"{parts[1]}.py").exists():
            assert layer(LAYERS, parts[1]) <= layer(LAYERS, path.stem), f"{path.stem} <- {name}"
        assert parts[0] != "optsched" or parts[1:2] != ["boa"], "rooms are found by the registry"


@pytest.mark.parametrize("room", ROOMS)
def test_imports_of_a_room_point_down(room):
    for path in (SOURCE / room).glob("*.py"):
        for name in imported(path):
            parts = name.split(".")
            if parts[:2] == ["optsched", room] and len(parts) > 2:
                below = layer(ROOM_LAYERS, parts[2])
                assert below <= layer(ROOM_LAYERS, path.stem), f"{path} <- {name}"
            assert parts[:2] != ["optsched", "cli"]


@pytest.mark.parametrize("path", sorted((SOURCE / "cluster").rglob("*.py")), ids=str)
def test_clusters_know_nothing_of_problems_and_solvers(path):
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "optsched" and len(parts) > 1:
            assert parts[1] in {"cluster", "faults", "instance", "jsonfile", "problems"}
        assert parts[0] not in {"pyomo", "highspy", "typer", "rich"}


@pytest.mark.parametrize("path", sorted((SOURCE / "traces").rglob("*.py")), ids=str)
def test_traces_know_nothing_of_rollouts_and_solvers(path):
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "optsched" and len(parts) > 1:
            assert parts[1] in {"traces", "cluster", "faults", "instance", "jsonfile", "problems"}
        assert parts[0] not in {"pyomo", "highspy", "typer", "rich"}


@pytest.mark.parametrize("path", sorted((SOURCE / "rollout").rglob("*.py")), ids=str)
def test_rollouts_know_nothing_of_the_command_line(path):
    for name in imported(path):
        assert not name.startswith("optsched.cli")
        assert name.split(".")[0] not in {"pyomo", "highspy", "typer"}


def modules_after(statement):
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return {name.split(".")[0] for name in outcome.stdout.split()}


def test_import_is_light():
    heavy = {
        "numpy",
        "scipy",
        "pandas",
        "pyomo",
        "highspy",
        "matplotlib",
        "networkx",
        "pydantic",
        "sklearn",
    }
    assert not modules_after("import optsched") & (heavy | {"typer", "rich"})
    assert not modules_after("import optsched.cluster") & (heavy | {"yaml"})
    assert not modules_after("import optsched.cli") & {"numpy", "networkx", "yaml"}


@pytest.mark.parametrize("module", ["check", "boa.check", "boa.heuristics", "boa.exact"])
def test_judge_and_greedy_need_no_solver(module):
    assert not modules_after(f"import optsched.{module}") & {"pyomo", "highspy"}


def test_judge_needs_no_numbers_but_integers_and_fractions():
    names = ("check", "proof", "pricing", "places", "energy", "totals", "figures", "interference")
    names += ("chains", "counterexample", "pricelist", "enclosures", "costs", "phases", "paces")
    names += ("directed", "effort", "uniform", "lagrangian", "rooms")
    parts = [SOURCE.glob(f"*/{name}.py") for name in names]
    for path in [SOURCE / "check.py", *chain.from_iterable(parts)]:
        used = {name.split(".")[0] for name in imported(path)}
        assert not used & {"numpy", "scipy", "pyomo", "highspy"}, path


@pytest.mark.parametrize("first", ["optsched.solve", "optsched.check", "optsched.export"])
def test_functions_are_not_shadowed_by_their_modules(first):
    """`optsched.solve` is the function, whatever was imported before."""
    name = first.split(".")[1]
    modules_after(f"from {first} import {name}; import optsched; assert optsched.{name} is {name}")
    modules_after(f"import optsched, {first}; assert callable(optsched.{name})")


def test_public_names_are_importable():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None


def test_registered_methods_exist():
    for room in ROOMS:
        methods = problem(room).methods
        assert len({method.name for method in methods}) == len(methods)
        assert methods[0].kind == "exact"
        for method in methods:
            module, function = method.entry.split(":")
            __import__(module)
            assert callable(getattr(sys.modules[module], function))
            assert method.summary
            assert method.source
