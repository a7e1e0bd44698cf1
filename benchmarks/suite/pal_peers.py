"""The same placement as a MILP handed to other solvers; their plans are checked by ours.

The formulation is that of models/pal.py, as sparse arrays: one binary for each job, domain and
slowdown, one variable in [0, 1] for each job and GPU. CP-SAT takes it with whole numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import optsched.models.pal
from benchmarks.suite.measure import Outcome, checked, measured
from benchmarks.suite.pal import case_of, cluster
from optsched.pal.plan import PalPlan, Placement

SCALE = 10**6  # CP-SAT's costs are whole numbers


class Answer(NamedTuple):
    """What a solver found: values of the variables (None: no plan), and the bound it claims."""

    values: Any
    bound: float | None


@dataclass
class Formulation:
    """Minimise cost x, with row_lower <= matrix x <= row_upper, 0 <= x <= 1, the first whole.

    Attributes
    ----------
    choices
        Job and column of each of the first variables, which are whole.
    """

    cost: Any
    matrix: Any
    row_lower: Any
    row_upper: Any
    choices: list[tuple[Any, Any]]


def formulation(instance: Any) -> Formulation:
    """Write the formulation of models/pal.py as arrays."""
    columns = optsched.models.pal.job_columns(instance)
    jobs = instance.jobs
    choices = [(job, column) for job in jobs for column in columns[job.id].values()]
    uses = {(j.id, g): 0 for j in jobs for c in columns[j.id].values() for g in c.gpus}
    uses = {key: len(choices) + n for n, key in enumerate(uses)}
    rows = _Rows()
    choosing = {job.id: rows.add(1, 1) for job in jobs}
    gangs = {job.id: rows.add(0, 0) for job in jobs}
    inside = {key: rows.add(-math.inf, 0) for key in uses}
    one_job = {gpu: rows.add(-math.inf, 1) for gpu in instance.free_gpus}
    for n, (job, column) in enumerate(choices):
        rows.put(choosing[job.id], n, 1)
        rows.put(gangs[job.id], n, -job.gpus)
        for gpu in column.gpus:
            rows.put(inside[job.id, gpu], n, -1)
    for (name, gpu), n in uses.items():
        rows.put(gangs[name], n, 1)
        rows.put(inside[name, gpu], n, 1)
        rows.put(one_job[gpu], n, 1)
    cost = [job.weight * instance.penalties[job.model][c.level] * c.slowdown for job, c in choices]
    count = len(choices) + len(uses)
    lower, upper = np.array(rows.bounds, float).T
    return Formulation(
        np.array(cost + [0.0] * len(uses)), rows.matrix(count), lower, upper, choices
    )


class _Rows:
    """Rows of a matrix, entry by entry."""

    def __init__(self) -> None:
        self.bounds: list[tuple[float, float]] = []
        self._entries: list[tuple[int, int, int]] = []

    def add(self, lower: float, upper: float) -> int:
        self.bounds.append((lower, upper))
        return len(self.bounds) - 1

    def put(self, row: int, column: int, value: int) -> None:
        self._entries.append((row, column, value))

    def matrix(self, columns: int) -> Any:
        row, column, value = np.array(self._entries).T
        shape = (len(self.bounds), columns)
        return csr_array((value.astype(float), (row, column)), shape=shape)


def plan_of(instance: Any, program: Formulation, values: Any) -> PalPlan | None:
    """Read a plan off: GPUs are given out within the columns that are chosen."""
    if values is None:
        return None
    whole = np.asarray(values)[: len(program.choices)] > 0.5
    chosen = [choice for choice, taken in zip(program.choices, whole, strict=True) if taken]
    number = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
    slots = [(job.id, column.gpus) for job, column in chosen for _ in range(job.gpus)]
    forbidden = np.ones((len(slots), len(number)))
    for n, (_, gpus) in enumerate(slots):
        forbidden[n, [number[gpu] for gpu in gpus]] = 0
    gpus: dict[str, list[str]] = {}
    for slot, gpu in zip(*linear_sum_assignment(forbidden), strict=True):
        gpus.setdefault(slots[slot][0], []).append(instance.free_gpus[gpu])
    return PalPlan(jobs=tuple(Placement(id=j.id, gpus=tuple(gpus[j.id])) for j in instance.jobs))


def solve(solver: str, gap: float, limit_s: float, **size: Any) -> Outcome:
    """Solve a placement by another solver; its time includes writing the formulation."""
    instance = cluster(**size)
    outcome = Outcome(case_of(instance))
    call = {"scipy": _scipy, "cvxpy": _cvxpy, "cp-sat": _cp_sat}[solver]
    tiny = formulation(optsched.read("pal/tiny"))
    call(tiny, gap, limit_s)  # imports everything

    def solved() -> tuple[Formulation, Answer]:
        program = formulation(instance)
        return program, call(program, gap, limit_s)

    program, answer = measured(outcome, solved)
    return checked(outcome, instance, plan_of(instance, program, answer.values), gap, answer.bound)


def _scipy(program: Formulation, gap: float, limit_s: float) -> Answer:
    from scipy.optimize import Bounds, LinearConstraint, milp

    solved = milp(
        program.cost,
        integrality=np.arange(len(program.cost)) < len(program.choices),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(program.matrix, program.row_lower, program.row_upper),
        options={"mip_rel_gap": gap, "time_limit": limit_s},
    )
    return Answer(solved.x, solved.mip_dual_bound)


def _cvxpy(program: Formulation, gap: float, limit_s: float) -> Answer:
    import cvxpy as cp

    whole = len(program.choices)
    y, x = cp.Variable(whole, boolean=True), cp.Variable(len(program.cost) - whole)
    used = program.matrix[:, :whole] @ y + program.matrix[:, whole:] @ x
    equal = program.row_lower == program.row_upper
    limits = [x >= 0, x <= 1, used[equal] == program.row_upper[equal]]
    limits.append(used[~equal] <= program.row_upper[~equal])
    problem = cp.Problem(cp.Minimize(program.cost[:whole] @ y), limits)
    options = {"mip_rel_gap": gap, "time_limit": limit_s, "threads": 1}
    problem.solve(solver="HIGHS", highs_options=options)
    if y.value is None:
        return Answer(None, None)
    extra = problem.solver_stats.extra_stats
    return Answer(np.r_[y.value, x.value], getattr(extra, "mip_dual_bound", None))


def _cp_sat(program: Formulation, gap: float, limit_s: float) -> Answer:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    variables = [model.new_bool_var("") for _ in program.cost]
    matrix = program.matrix
    for n, (low, high) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
        part = slice(matrix.indptr[n], matrix.indptr[n + 1])
        terms = [variables[k] for k in matrix.indices[part]]
        total = cp_model.LinearExpr.weighted_sum(terms, matrix.data[part].astype(int).tolist())
        model.add(total == int(high) if low == high else total <= int(high))
    costs = np.rint(program.cost * SCALE).astype(int).tolist()
    model.minimize(cp_model.LinearExpr.weighted_sum(variables, costs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.relative_gap_limit = gap
    solver.parameters.max_time_in_seconds = limit_s
    status = solver.solve(model)
    bound = solver.best_objective_bound / SCALE
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(None, bound)
    return Answer([solver.value(variable) for variable in variables], bound)
