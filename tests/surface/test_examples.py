"""Examples in docstrings print what they say, and what users call has one."""

import doctest
import importlib
import inspect

import pytest

import optsched

PACKAGES = (
    "optsched", "optsched.boa", "optsched.pal", "optsched.eaco", "optsched.sia",
    "optsched.cluster", "optsched.traces", "optsched.rollout", "optsched.testing",
)  # fmt: skip
SLOW = {"optsched.testing.check_policy"}  # the tests of it run more than its example
# What other examples show, or none can: a defect of a solver.
SHOWN_ELSEWHERE = {"BrokenRule", "Violation", "Status", "SolverDisagreement"}
MAIN = {
    "optsched": set(optsched.__all__) - SHOWN_ELSEWHERE,
    "optsched.boa": {"BoaInstance", "frontier", "performance", "plot_speedups"},
    "optsched.pal": {"PalInstance"},
    "optsched.eaco": {
        "EacoInstance", "fluid", "pair_rates", "performance", "plot_colocation", "power_levels",
    },
    "optsched.sia": {"SiaInstance"},
}  # fmt: skip


def documented():
    """Every public class and function with an example, once, by the name of its module."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and ">>>" in (inspect.getdoc(value) or ""):
                found.setdefault(value, f"{package}.{name}")
    return [pytest.param(value, id=name) for value, name in found.items() if name not in SLOW]


@pytest.mark.parametrize("value", documented())
def test_an_example_prints_what_it_says(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    finder = doctest.DocTestFinder(recurse=False)
    for example in finder.find(value, globs={}, module=False):
        outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example)
        assert outcome.attempted > 0
        assert outcome.failed == 0


@pytest.mark.parametrize("package", MAIN)
def test_what_users_call_has_an_example(package):
    module = importlib.import_module(package)
    values = {name: getattr(module, name) for name in MAIN[package]}
    without = [n for n, v in values.items() if callable(v) and ">>>" not in (v.__doc__ or "")]
    assert without == []
