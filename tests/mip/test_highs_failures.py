"""HiGHS that raises, returns no numbers, or runs out of memory: a plan is at hand all the same."""

import contextlib
import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import highspy
import numpy as np
import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.mip import highs
from optsched.mip.failures import note_failure, noted_failures
from optsched.pal.decomposition.subproblems import results
from optsched.registry import PROBLEMS
from optsched.search import Search

SMALL = {"boa": "boa/stress", "pal": "pal/tiny", "eaco": "eaco/paper-four", "sia": "sia/hand"}


def _raises(solver):
    raise RuntimeError("fell over")


def _of(status, solver, *, run=highspy.Highs.run):
    run(solver)
    solver.getModelStatus = lambda: status  # in place of what C++ has
    return highspy.HighsStatus.kError


FAILURES = {
    "RuntimeError: fell over": _raises,
    "Memory limit reached": partial(_of, highspy.HighsModelStatus.kMemoryLimit),
    "Solve error": partial(_of, highspy.HighsModelStatus.kSolveError),
}


def failing(monkeypatch, message):
    monkeypatch.setattr(highspy.Highs, "run", lambda solver: FAILURES[message](solver))


@pytest.mark.parametrize("message", FAILURES)
@pytest.mark.parametrize("name", SMALL.values())
def test_a_failure_of_highs_leaves_the_greedy_plan_and_says_why(name, message, monkeypatch):
    failing(monkeypatch, message)
    instance = optsched.read(name)
    result = optsched.solve(instance, method="milp")
    optsched.verify(instance, result)
    assert result.plan is not None
    assert result.status in ("feasible", "optimal")
    assert f"HiGHS ends with '{message}'" in result.message


@pytest.mark.parametrize("message", FAILURES)
@pytest.mark.parametrize("name", SMALL.values())
def test_the_exact_method_goes_on_without_highs(name, message, monkeypatch):
    failing(monkeypatch, message)
    instance = optsched.read(name)
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == "optimal" or (result.plan is not None and message in result.message)


def test_the_command_line_ends_as_with_any_plan(monkeypatch):
    failing(monkeypatch, "RuntimeError: fell over")
    done = CliRunner().invoke(app, ["solve", "pal/tiny", "--method", "milp", "--json"])
    assert done.exit_code == 0
    assert "fell over" in json.loads(done.stdout)["message"]


@pytest.mark.parametrize(
    "change",
    [
        {"x": np.array([np.nan, 1.0])}, {"objective": np.nan}, {"bound": np.nan},
        {"row_duals": np.array([np.inf])}, {"x": None, "objective": None},
    ],
    ids=lambda change: ", ".join(change),
)  # fmt: skip
def test_figures_that_are_no_numbers_are_an_error(change):
    sound = highs.HighsOutcome("optimal", np.ones(2), 2.0, 2.0, np.ones(1), 0, "Optimal")
    assert highs.trusted(sound) is sound
    outcome = highs.trusted(sound._replace(**change))
    assert (outcome.status, outcome.bound, outcome.row_duals) == ("error", -np.inf, None)
    assert outcome.message == "figures that are no numbers"
    assert (outcome.x is None) == bool({"x", "objective"} & change.keys())  # a plan is a plan


def test_every_problem_is_tried():
    assert set(SMALL) == {name.split(".")[-1] for name in PROBLEMS}


class Failing(NamedTuple):
    """A block in which HiGHS fails."""

    number: int

    def run(self, seconds):
        note_failure(f"failure {self.number}")
        return self.number


@pytest.mark.parametrize("workers", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_failures_in_workers_are_told_too(workers):
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(workers(2)) if workers else None
        search = Search(optsched.read("pal/tiny"), executor=pool)
        with noted_failures() as failures:
            done = list(results([Failing(n) for n in range(5)], search))
    assert done == [0, 1, 2, 3, 4]
    assert failures == [f"failure {n}" for n in done]
