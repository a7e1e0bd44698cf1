"""A linear program that stays in HiGHS: rows are added, bounds changed, and it is solved again.

Each solve starts from the basis of the last one. After a change of rows and their bounds alone that
basis is still dual feasible, so that the dual simplex method goes on from there.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched import highs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


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
        self.rows = len(program.row_lower)

    def add_elastic_row(self, columns: Indices, penalty: float) -> int:
        """Add a row of ones, without bounds yet; return its number.

        A lower bound on it may be missed at the penalty per unit, by a column of its own.
        """
        indices, row = columns.astype(np.int32), np.array([self.rows], dtype=np.int32)
        self._highs.addRow(-np.inf, np.inf, len(columns), indices, np.ones(len(columns)))
        self._highs.addCol(penalty * self._cost_scale, 0.0, np.inf, 1, row, np.ones(1))
        self.rows += 1
        return self.rows - 1

    def bound_row(self, row: int, lower: float, upper: float) -> None:
        """Change the bounds of a row."""
        self._highs.changeRowBounds(row, lower, upper)

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
