"""Warm-started dual simplex method (Lemke, Naval Research Logistics Quarterly 1, 1954).

A linear program stays in HiGHS: rows are added, bounds changed, and it is solved again from the
basis of the last solve. After a change of rows and their bounds alone that basis is still dual
feasible, so that the dual simplex method goes on from there.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from highspy import HighsBasis, HighsBasisStatus, HighsStatus

from optsched.mip import highs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import highspy
    from scipy.sparse import csc_array, csr_array

    from optsched.documents.arrays import Bools, Floats, Indices


BASIC, LOWER, UPPER = HighsBasisStatus.kBasic, HighsBasisStatus.kLower, HighsBasisStatus.kUpper


class Solved(NamedTuple):
    """An optimal point of a linear program.

    Attributes
    ----------
    objective
        Its value.
    x
        Shape (columns,).
    row_duals
        Shape (rows,): change of the objective per unit of a row's bound.
    """

    objective: float
    x: Floats
    row_duals: Floats


class LinearProgram:
    """A linear program in HiGHS.

    Parameters
    ----------
    program
        What to begin with; that columns are integer is not asked for. Coefficients of rows should
        be of the size of one: only the cost is scaled.

    Attributes
    ----------
    rows, columns
        How many there are.
    """

    def __init__(self, program: highs.Program, seed: int = 0, threads: int = 1) -> None:
        self._cost_scale = highs.cost_scale(program)
        self._pool = ThreadPoolExecutor(1)
        self._highs = highs.new(seed=seed, threads=threads)
        scaled = replace(
            program,
            cost=program.cost * self._cost_scale,
            offset=program.offset * self._cost_scale,
            integer=np.zeros_like(program.integer),
        )
        highs.load(self._highs, scaled)
        self.rows, self.columns = len(program.row_lower), len(program.cost)

    def add_row(self, columns: Indices, coefficients: Floats) -> int:
        """Add a row without bounds yet; return its number."""
        indices = columns.astype(np.int32)
        self._highs.addRow(-np.inf, np.inf, len(columns), indices, coefficients)
        self.rows += 1
        return self.rows - 1

    def add_rows(self, upper: Floats, matrix: csr_array) -> int:
        """Add rows without lower bounds; return the number of the first one.

        Parameters
        ----------
        upper
            Shape (new rows,).
        matrix
            Shape (new rows, columns).
        """
        self._highs.addRows(
            len(upper),
            np.full(len(upper), -np.inf),
            upper,
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        self.rows += len(upper)
        return self.rows - len(upper)

    def add_elastic_row(
        self, columns: Indices, penalty: float, coefficients: Floats | None = None
    ) -> int:
        """Add a row, of ones unless coefficients are given, without bounds yet; return its number.

        A lower bound on it may be missed at the penalty per unit, by a column of its own.
        """
        row = self.add_row(columns, np.ones(len(columns)) if coefficients is None else coefficients)
        at = np.array([row], dtype=np.int32)
        self._highs.addCol(penalty * self._cost_scale, 0.0, np.inf, 1, at, np.ones(1))
        self.columns += 1
        return row

    def drop_loose_rows(self, rows: Indices) -> Indices:
        """Drop those rows that do not bind in the last basis, which stays; return which ones."""
        basis = self._highs.getBasis()
        if not basis.valid:
            return rows[:0]
        status = basis.row_status
        loose = np.array([n for n in rows.tolist() if status[n] == BASIC], dtype=np.intp)
        if len(loose):
            self._highs.deleteRows(len(loose), np.sort(loose).astype(np.int32))
            self.rows -= len(loose)
        return loose

    def add_columns(self, cost: Floats, matrix: csc_array) -> None:
        """Add columns from 0 up.

        Parameters
        ----------
        cost
            Shape (new columns,).
        matrix
            Shape (rows, new columns).
        """
        many = len(cost)
        self._highs.addCols(
            many,
            cost * self._cost_scale,
            np.zeros(many),
            np.full(many, np.inf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        self.columns += many

    def bound_columns(self, columns: Indices, upper: float) -> None:
        """Change the upper bounds of columns."""
        for column in columns.tolist():
            self._highs.changeColBounds(column, 0.0, upper)

    def limit_columns(self, columns: Indices, lower: Floats, upper: Floats) -> None:
        """Change the bounds of columns."""
        self._highs.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def bound_row(self, row: int, lower: float, upper: float) -> None:
        """Change the bounds of a row."""
        self._highs.changeRowBounds(row, lower, upper)

    def cost_columns(self, columns: Indices, cost: Floats) -> None:
        """Change the costs of columns."""
        scaled = cost * self._cost_scale
        self._highs.changeColsCost(len(columns), columns.astype(np.int32), scaled)

    def start_from(self, columns: Bools, rows: Bools) -> None:
        """Let the next solve begin where these columns and rows are basic, the others at a bound.

        It need not be a basis: HiGHS makes one of it. The bound of a row is its upper one.
        """
        basis = HighsBasis()
        basis.alien = True
        basis.col_status = [BASIC if is_basic else LOWER for is_basic in columns.tolist()]
        basis.row_status = [BASIC if is_basic else UPPER for is_basic in rows.tolist()]
        self._highs.setBasis(basis)

    def basic(self) -> tuple[Bools, Bools]:
        """Return which columns and rows are basic in the last solve."""
        # Of a row, one less than minus its number; the stubs of highspy lack it.
        status, variables = self._highs.getBasicVariables()  # type: ignore[attr-defined]
        if status != HighsStatus.kOk:  # nothing is factorised: the basis is told all the same
            return basic(self._highs.getBasis())
        columns = np.zeros(self.columns, dtype=np.bool_)
        rows = np.zeros(self.rows, dtype=np.bool_)
        columns[variables[variables >= 0]] = True
        rows[-1 - variables[variables < 0]] = True
        return columns, rows

    def basis(self) -> highspy.HighsBasis:
        """Return the basis of the last solve, to `probe` from."""
        return self._highs.getBasis()

    def begin_from(self, basis: highspy.HighsBasis) -> None:
        """Start the next solve from a basis of another program, if it is as large as this one."""
        if (len(basis.row_status), len(basis.col_status)) == (self.rows, self.columns):
            self._highs.setBasis(basis)

    def probe(self, basis: highspy.HighsBasis, steps: int) -> float:
        """Return what the objective comes to in some steps of the dual simplex method."""
        self._highs.setBasis(basis)
        highs.set_option(self._highs, "simplex_iteration_limit", steps)
        outcome = highs.run(self._highs, pool=self._pool)
        highs.set_option(self._highs, "simplex_iteration_limit", 2**31 - 1)  # none
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        return float(self._highs.getInfo().objective_function_value) / self._cost_scale

    def solve(self, time_limit_s: float | None = None) -> Solved | None:
        """Solve from the last basis; return None if there is no optimum within the time limit."""
        if time_limit_s is not None:  # the clock of HiGHS runs on from solve to solve
            limit = self._highs.getRunTime() + time_limit_s
            highs.set_option(self._highs, "time_limit", limit)
        outcome = highs.run(self._highs, pool=self._pool)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        if outcome.status != "optimal" or outcome.x is None or outcome.row_duals is None:
            return None
        assert outcome.objective is not None
        scale = self._cost_scale
        return Solved(outcome.objective / scale, outcome.x, outcome.row_duals / scale)


def basic(basis: highspy.HighsBasis) -> tuple[Bools, Bools]:
    """Return which columns and rows are basic."""
    columns, rows = basis.col_status, basis.row_status
    return (
        np.array([status == BASIC for status in columns], dtype=np.bool_),
        np.array([status == BASIC for status in rows], dtype=np.bool_),
    )


def basis_of(columns: Sequence[int], rows: Sequence[int]) -> highspy.HighsBasis:
    """Return the basis of these statuses, as numbers; `LinearProgram.basis` gave it."""
    basis = HighsBasis()
    basis.valid, basis.alien = True, False
    basis.col_status = [HighsBasisStatus(status) for status in columns]
    basis.row_status = [HighsBasisStatus(status) for status in rows]
    return basis
