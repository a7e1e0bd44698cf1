"""The linear program of a round over the options that matter so far, kept in HiGHS.

A basic solution splits no more jobs than there are capacities, so it is nearly a plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from optsched.mip.highs import Program
from optsched.mip.incremental_lp import LinearProgram
from optsched.sia.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools
    from optsched.sia.arrays import Floats, Indices, Round


class LpSolution(NamedTuple):
    """An optimal point of the linear program.

    Attributes
    ----------
    objective
        Its cost, the price of what is missing included.
    options, share
        The options that are taken, in whole or in part, and how much of each.
    missing
        How much more capacity it would need, in multiples of the largest use of each.
    prices
        Shape (capacities,), from 0 up.
    """

    objective: float
    options: Indices
    share: Floats
    missing: float
    prices: Floats


class Master:
    """The least cost of shares of options, one in all for each job, within the capacities.

    Columns: what is missing of each capacity, at a penalty; then options. Rows: capacities, then
    jobs. A capacity counts in units near its largest use.

    Parameters
    ----------
    options
        Which ones to begin with, at least one of every job.
    """

    def __init__(self, instance: Round, options: Indices, seed: int) -> None:
        self.round, self.capacities = instance, len(instance.capacity)
        largest = np.array([use.max(initial=0.0) for use in instance.of_capacity])
        self._unit = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))
        self.penalty = _penalty(instance, self._unit)
        self.options = options
        self.column = np.full(len(instance.cost), -1, dtype=np.intp)
        self.column[options] = self.capacities + np.arange(len(options))
        self._program = LinearProgram(self._first(), seed)

    def _first(self) -> Program:
        instance, capacities, jobs = self.round, self.capacities, len(self.round.jobs)
        capacity = instance.capacity / self._unit
        missing = csc_array(
            (np.full(capacities, -1.0), np.arange(capacities), np.arange(capacities + 1)),
            shape=(capacities + jobs, capacities),
        )
        columns = capacities + len(self.options)
        return Program(
            cost=np.concatenate((self.penalty, instance.cost[self.options])),
            offset=0.0,
            lower=np.zeros(columns),
            upper=np.full(columns, np.inf),
            integer=np.zeros(columns, dtype=np.bool_),
            matrix=_beside(missing, self._columns(self.options)),
            row_lower=np.concatenate((np.full(capacities, -np.inf), np.ones(jobs))),
            row_upper=np.concatenate((capacity, np.ones(jobs))),
        )

    def _columns(self, options: Indices) -> csc_array:
        instance, capacities = self.round, self.capacities
        use = np.column_stack((instance.use[options] / self._unit, np.ones(len(options))))
        rows = np.broadcast_to(np.arange(capacities + 1), use.shape).copy()
        rows[:, capacities] += instance.job[options]
        is_there = use != 0
        upto = np.concatenate(([0], np.cumsum(is_there.sum(axis=1))))
        shape = (capacities + len(instance.jobs), len(options))
        return csc_array((use[is_there], rows[is_there], upto), shape=shape)

    def start_from(self, basic: Bools, loose: Bools) -> None:
        """Begin where these options and capacities are basic."""
        columns = np.concatenate((np.zeros(self.capacities, dtype=np.bool_), basic[self.options]))
        rows = np.concatenate((loose, np.zeros(len(self.round.jobs), dtype=np.bool_)))
        self._program.start_from(columns, rows)

    def basic(self) -> tuple[Indices, Bools]:
        """Return which options are basic in the last solve, and which capacities are."""
        columns, rows = self._program.basic()
        return self.options[columns[self.capacities :]], rows[: self.capacities]

    def add(self, options: Indices) -> None:
        """Take in further options."""
        self.column[options] = self.capacities + len(self.options) + np.arange(len(options))
        self.options = np.concatenate((self.options, options))
        self._program.add_columns(self.round.cost[options], self._columns(options))

    def limit(self, options: Indices, lower: float, upper: float) -> None:
        """Bound the shares of options."""
        columns = self.column[options]
        many = len(columns)
        self._program.limit_columns(columns, np.full(many, lower), np.full(many, upper))

    def raise_penalty(self, factor: float) -> None:
        """Let what is missing cost more."""
        self.penalty = self.penalty * factor
        self._program.cost_columns(np.arange(self.capacities, dtype=np.intp), self.penalty)

    def solve(self) -> LpSolution | None:
        """Solve from the last basis; None if HiGHS finds no optimum."""
        solved = self._program.solve()
        if solved is None:
            return None
        share = solved.x[self.capacities :]
        taken = np.flatnonzero(share > SETTINGS.lp_tolerance)
        return LpSolution(
            objective=solved.objective,
            options=self.options[taken],
            share=share[taken],
            missing=float(solved.x[: self.capacities].sum()),
            prices=np.maximum(-solved.row_duals[: self.capacities], 0.0) / self._unit,
        )


def _penalty(instance: Round, unit: Floats) -> Floats:
    """Return what a unit of each capacity can be worth at most, unless uses differ by little."""
    spread = float(np.ptp(instance.cost)) if len(instance.cost) else 0.0
    least = np.array([use[use > 0].min(initial=np.inf) for use in instance.of_capacity])
    worth = np.where(np.isfinite(least), unit / least, 1.0)
    return (1.0 + 2 * spread) * worth


def _beside(left: csc_array, right: csc_array) -> csr_array:
    from scipy.sparse import hstack

    return csr_array(hstack((left, right), format="csr"))
