"""The gate to HiGHS: arrays, statuses, duals, options, threads, Ctrl-C, and a second opinion."""

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from scipy.optimize import Bounds, LinearConstraint
from scipy.optimize import milp as scipy_milp
from scipy.sparse import csr_array

import optsched
from optsched.mip import highs
from optsched.mip.incremental_lp import LinearProgram
from optsched.models import boa


def program(cost, rows, low, high, *, integer=False, upper=10.0):
    """Return a program of variables between 0 and `upper`."""
    columns = len(cost)
    return highs.Program(
        cost=np.array(cost, float),
        offset=0.0,
        lower=np.zeros(columns),
        upper=np.full(columns, upper),
        integer=np.full(columns, integer),
        matrix=csr_array(np.array(rows, float)),
        row_lower=np.array(low, float),
        row_upper=np.array(high, float),
    )


KNAPSACK = program(
    [-5, -4, -3], [[2, 3, 1], [4, 1, 2]], [-np.inf] * 2, [5, 11], integer=True, upper=2.0
)


# --- compiling --------------------------------------------------------------------------------


def test_compiled_arrays():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(1, 4))
    m.n = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.b = pyo.Var(domain=pyo.Binary)
    m.unused = pyo.Var()
    m.objective = pyo.Objective(expr=2 * m.x - m.n + 7)
    m.most = pyo.Constraint(expr=m.x + 3 * m.n <= 9)
    m.same = pyo.Constraint(expr=m.n - m.b == 1)
    m.least = pyo.Constraint(expr=m.x + m.b >= 2)
    m.between = pyo.Constraint(expr=(-1, m.x - m.n, 5))
    compiled = highs.compile_model(m)
    assert [v.name for v in compiled.variables] == ["x", "n", "b"]
    assert [c.name for c in compiled.constraints] == ["most", "same", "least", "between", "between"]
    program = compiled.program
    assert program.cost.tolist() == [2, -1, 0]
    assert program.offset == 7
    assert program.lower.tolist() == [1, 0, 0]
    assert program.upper.tolist() == [4, np.inf, 1]
    assert program.integer.tolist() == [False, True, True]
    assert program.matrix.toarray().tolist() == [
        [1, 3, 0], [0, 1, -1], [1, 0, 1], [1, -1, 0], [1, -1, 0],
    ]  # fmt: skip
    assert program.row_lower.tolist() == [-np.inf, 1, 2, -np.inf, -1]
    assert program.row_upper.tolist() == [9, 1, np.inf, 5, np.inf]
    outcome = highs.solve(program)
    assert outcome.status == "optimal"
    assert outcome.objective == pytest.approx(7)  # x = 1, n = 2, b = 1
    assert outcome.x == pytest.approx([1, 2, 1])


def test_maximisation_becomes_minimisation():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 3))
    m.objective = pyo.Objective(expr=m.x + 1, sense=pyo.maximize)
    m.row = pyo.Constraint(expr=m.x <= 2)
    outcome = highs.solve(highs.compile_model(m).program)
    assert outcome.objective == pytest.approx(-3)


# --- outcomes ---------------------------------------------------------------------------------


def test_linear_program_has_duals():
    """The price 0.6875 of boa/hand (docs/math/boa.md, Golden values) is the budget's dual."""
    instance = optsched.read("boa/hand").changed({"widths": "mixed"})
    compiled = highs.compile_model(boa.build(instance))
    outcome = highs.solve(compiled.program)
    assert outcome.status == "optimal"
    assert outcome.objective == outcome.bound == pytest.approx(1.015625)
    assert outcome.nodes == 0
    duals = dict(zip([c.name for c in compiled.constraints], outcome.row_duals, strict=True))
    assert duals["budget"] == pytest.approx(-0.6875)
    arrays = compiled.program
    reduced = arrays.cost - arrays.matrix.T @ outcome.row_duals  # of columns at 0 or at 1
    weak = outcome.row_duals @ arrays.row_upper + np.minimum(reduced, 0).sum()
    assert weak == pytest.approx(1.015625)


def test_integer_program_has_a_bound_and_no_duals():
    outcome = highs.solve(KNAPSACK)
    assert outcome.status == "optimal"
    assert outcome.x == pytest.approx([2, 0, 1])
    assert outcome.objective == pytest.approx(-13)
    assert outcome.bound == pytest.approx(-13)
    assert outcome.row_duals is None


@pytest.mark.parametrize("integer", [False, True])
def test_infeasible_program(integer):
    outcome = highs.solve(program([1, 1], [[1, 1]], [30], [np.inf], integer=integer))
    assert outcome.status == "infeasible"
    assert (outcome.x, outcome.objective, outcome.bound) == (None, None, -np.inf)


def test_unbounded_program():
    outcome = highs.solve(program([-1, 0], [[0, 1]], [0], [1], upper=np.inf))
    assert outcome.status == "unbounded"
    assert outcome.bound == -np.inf


def test_no_time_leaves_the_start():
    start = np.array([1.0, 1.0, 0.0])
    outcome = highs.solve(KNAPSACK, time_limit_s=0.0, start=start)
    assert outcome.status == "limit"
    assert outcome.bound <= -13
    assert outcome.x is None or outcome.objective == KNAPSACK.cost @ outcome.x


def test_start_is_used():
    arrays = highs.compile_model(boa.build(optsched.read("boa/stress"))).program
    best = highs.solve(arrays)
    loose = highs.solve(arrays, gap=0.9)
    started = highs.solve(arrays, gap=0.9, start=best.x)
    assert started.objective == pytest.approx(best.objective)
    assert loose.objective > 1.1 * best.objective


@pytest.mark.parametrize("scale", [1e-18, 1e-9, 1.0, 1e9, 1e18])
def test_units_of_cost_and_rows_do_not_matter(scale):
    """HiGHS drops coefficients below 1e-9, refuses those above 1e15, and has fixed tolerances."""
    scaled = replace(
        KNAPSACK,
        cost=KNAPSACK.cost * scale,
        matrix=KNAPSACK.matrix * scale,
        row_upper=KNAPSACK.row_upper * scale,
    )
    for given in (scaled, replace(scaled, integer=np.zeros(3, bool))):
        outcome = highs.solve(given)
        plain = highs.solve(replace(KNAPSACK, integer=given.integer))
        assert outcome.x == pytest.approx(plain.x)
        assert outcome.objective == pytest.approx(plain.objective * scale)
        assert outcome.bound == pytest.approx(plain.bound * scale)
        if plain.row_duals is not None:
            assert outcome.row_duals == pytest.approx(plain.row_duals)


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("thread", 1), ("threads", 1.5), ("mip_rel_gap", -1.0), ("random_seed", -1)]
)
def test_refused_options_are_errors(name, value):
    with pytest.raises(ValueError, match=f"HiGHS refuses the option '{name}' = {value}"):
        highs.set_option(highspy.Highs(), name, value)


def test_refused_programs_are_errors():
    outcome = highs.solve(replace(KNAPSACK, lower=np.full(3, np.nan)))
    assert (outcome.status, outcome.x) == ("error", None)
    assert outcome.message == "HiGHS refuses the program of 2 rows and 3 columns"


def test_threads_may_change_between_solves():
    """In one thread of the caller, a second number makes HiGHS give up with objective 0."""
    solved = [highs.solve(KNAPSACK, threads=n).objective for n in (1, 2, 1, 3)]
    assert solved == pytest.approx([-13] * 4)


def test_solves_in_several_threads_at_once():
    solved = []
    workers = [
        threading.Thread(target=lambda: solved.append(highs.solve(KNAPSACK).objective))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert solved == pytest.approx([-13] * 8)


def test_same_seed_same_point():
    compiled = highs.compile_model(boa.build(optsched.read("boa/stress")))
    first, second = (highs.solve(compiled.program, seed=7) for _ in range(2))
    assert first.x.tolist() == second.x.tolist()
    assert first[2:] == second[2:]


# --- a second opinion -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("boa/hand", "integer"), ("boa/hand", "mixed"),
        ("boa/stress", "integer"), ("boa/stress", "mixed"),
        ("boa/cbd-85", "integer"), ("boa/cbd-85", "mixed"),
        ("boa/six-models", "mixed"),
    ],
)  # fmt: skip
def test_another_version_of_highs_agrees(name, widths):
    """scipy carries a HiGHS of its own: the same arrays, the same optimum as the exact method."""
    instance = optsched.read(name).changed({"widths": widths})
    arrays = highs.compile_model(boa.build(instance)).program
    solved = scipy_milp(
        arrays.cost,
        integrality=arrays.integer,
        bounds=Bounds(arrays.lower, arrays.upper),
        constraints=LinearConstraint(arrays.matrix, arrays.row_lower, arrays.row_upper),
        options={"mip_rel_gap": 1e-6},
    )
    assert solved.success
    exact = optsched.solve(instance, gap=1e-9)
    assert solved.fun + arrays.offset == pytest.approx(exact.objective, rel=2e-6)


# --- Ctrl-C -----------------------------------------------------------------------------------

INTERRUPTED = """
import json, os, signal, threading, time
import optsched
from optsched.mip import highs

pressed, asked = [], threading.Event()

def press(event):
    "Press Ctrl-C at the first plan, and let HiGHS wait until it is told."
    if event.data_out.mip_primal_bound < 1e300 and not pressed:
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
        asked.wait(600)

class Watched(highs.highspy.Highs):
    def __init__(self):
        super().__init__()
        self.cbMipInterrupt += press

    def cancelSolve(self):
        super().cancelSolve()
        asked.set()

highs.highspy.Highs = Watched
instance = optsched.read("boa/cbd-85")
result = optsched.solve(instance, method="milp", gap=0.0)
seconds = time.process_time() - pressed[0]
optsched.verify(instance, result)
print(json.dumps([result.status, result.message, result.gap, seconds]))
"""


def test_ctrl_c_gives_the_best_plan_so_far():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=600, check=True
    )
    status, message, gap, cpu_s = json.loads(done.stdout)
    assert (status, message) == ("feasible", "stopped early: interrupted")
    assert 0 < gap < 0.5
    assert cpu_s < 10  # a second is allowed
    assert done.stderr == ""


class Pressed(ThreadPoolExecutor):
    """Ctrl-C comes when HiGHS has just ended, before anybody knows."""

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        result, calls = future.result, iter([KeyboardInterrupt])

        def pressed(timeout=None):
            for error in calls:
                raise error
            return result(timeout)

        future.result = pressed
        return future


def test_ctrl_c_is_not_lost_when_highs_ends_with_it(monkeypatch):
    """So that a search of many short runs would go on as if nothing had been."""
    monkeypatch.setattr(highs, "ThreadPoolExecutor", Pressed)
    with pytest.raises(KeyboardInterrupt):
        highs.solve(KNAPSACK)
    kept = highs.solve(KNAPSACK, keep_best=True)
    assert (kept.status, kept.objective, kept.bound) == ("interrupted", -13.0, -13.0)
    short = LinearProgram(KNAPSACK)
    short._pool = Pressed(1)
    with pytest.raises(KeyboardInterrupt):
        short.solve()


# --- standard output --------------------------------------------------------------------------


def test_lines_of_other_threads_are_not_sent_to_standard_error(monkeypatch, capfd):
    """While HiGHS runs: this function is called by it."""
    told = []

    def tell(event):
        told.append(os.write(1, b"a line\n"))

    def new(new=highs.new, **options):
        solver = new(**options)
        solver.cbMipInterrupt += tell
        return solver

    monkeypatch.setattr(highs, "new", new)
    optsched.solve(optsched.read("boa/cbd-85"), "milp", gap=0.01)
    assert told
    assert capfd.readouterr() == ("a line\n" * len(told), "")


@pytest.mark.parametrize("name", ["boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand"])
def test_highs_writes_no_log(name, capfd):
    result = optsched.solve(optsched.read(name), "milp")
    assert result.status == "optimal"
    assert capfd.readouterr() == ("", "")


def test_a_daemon_without_descriptors_solves():
    code = """
import os, sys
for number in range(3):
    os.close(number)
import optsched
result = optsched.solve(optsched.read("pal/tiny"), "milp")
os._exit(17 if result.status == "optimal" else 1)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 17
