"""What the package promises: folders and links, a light import, names that mean one thing."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import optsched
from optsched.registry import PROBLEMS, problem

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "optsched"
NUMBERS = {"numpy", "scipy", "pyomo", "highspy", "sklearn", "pandas", "networkx"}


def test_models_and_instances_are_links_in_a_checkout_and_copies_in_a_source_archive():
    """An editable install is then a plain path, which type checkers follow."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packed = settings["targets"]["wheel"]["force-include"]
    assert packed == {name: f"optsched/{name}" for name in ("models", "instances")}
    for name in packed:
        link = SOURCE / name
        if (ROOT / ".git").exists():
            assert link.is_symlink()
            assert link.readlink() == Path("..") / name
        for path in (ROOT / name).rglob("*.*"):
            if "__pycache__" not in path.parts:
                assert (link / path.relative_to(ROOT / name)).read_bytes() == path.read_bytes()


def test_every_folder_of_the_package_is_one():
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def modules_after(statement):
    code = f"{statement}; import sys; print(' '.join(sys.modules))"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
    return {name.split(".")[0] for name in outcome.stdout.split()}


def test_import_is_light():
    heavy = NUMBERS | {"matplotlib", "pydantic"}
    assert not modules_after("import optsched") & (heavy | {"typer", "rich"})
    assert not modules_after("import optsched.cluster") & (heavy | {"yaml"})
    assert not modules_after("import optsched.cli.main") & {"numpy", "networkx", "yaml"}


@pytest.mark.parametrize(
    "module", ["verification", "boa.verify.feasibility", "boa.greedy.methods", "boa.exact.solver"]
)
def test_verifier_and_greedy_need_no_solver(module):
    assert not modules_after(f"import optsched.{module}") & {"pyomo", "highspy"}


@pytest.mark.parametrize(
    "package", ["", "boa", "pal", "eaco", "sia", "cluster", "traces", "rollout"]
)
def test_no_module_has_the_name_of_a_public_function(package):
    """Else it would depend on what was imported before which of the two the name means."""
    folder = SOURCE / package
    stub = ast.parse((folder / "__init__.pyi").read_text())
    names = {alias.name for node in stub.body if node.module for alias in node.names}
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not names & modules


def test_public_names_are_importable():
    for name in optsched.__all__:
        assert getattr(optsched, name) is not None


def test_registered_methods_exist():
    for room in PROBLEMS:
        methods = problem(room).methods
        assert len({method.name for method in methods}) == len(methods)
        assert methods[0].kind == "exact"
        for method in methods:
            module, function = method.entry.split(":")
            __import__(module)
            assert callable(getattr(sys.modules[module], function))
            assert method.summary
            assert method.source
