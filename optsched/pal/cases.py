"""The relaxation under cases: rules as rows that are bounded, and the prices that come out.

A case bounds what a rule counts; cuts bound it always. All of them are rows of one linear program
that stays in HiGHS, so that going from one case to another changes bounds alone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.linear import LinearProgram
from optsched.pal.lagrange import Lagrangian, Options
from optsched.pal.plan import Cut, Leaf
from optsched.pal.relaxation import relaxation
from optsched.pal.rules import INTEGRAL, Point, Rule, capacity, violated_cuts

if TYPE_CHECKING:
    from highspy import HighsBasis
    from numpy.typing import NDArray

    from optsched.linear import Solved
    from optsched.pal.arrays import Arrays
    from optsched.pal.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


RISE, MOST_RISES = 16.0, 6  # of what missing the lower bound of a rule costs, and how often


class Case(NamedTuple):
    """A rule by number, and how it is bounded: at most a count, or at least one more."""

    rule: int
    at_most: int
    is_above: bool


Path = tuple[Case, ...]


class Prices(NamedTuple):
    """Prices of GPUs, of the cases of a path, and of cuts by rule."""

    gpus: Floats
    cases: tuple[float, ...]
    cuts: dict[int, float]

    def leaf(self, number: dict[int, int]) -> Leaf:
        """Return the prices as they stand in certificates, with rules numbered anew."""
        cuts = tuple(Cut(rule=number[rule], price=price) for rule, price in self.cuts.items())
        return Leaf(gpu_prices=tuple(self.gpus.tolist()), split_prices=self.cases, cuts=cuts)


class Cases:
    """The relaxation of an instance, under any cases.

    Parameters
    ----------
    reward
        Shape (types,): cost of leaving a job of a type out; infinite where that is not allowed.
    penalty
        Finite cost of missing a job or the lower bound of a rule, so that no case is infeasible. A
        bound that is missed in part costs more and more, until it is kept or the case costs this.
    """

    def __init__(
        self, problem: Arrays, found: Labels, reward: Floats, penalty: float, seed: int
    ) -> None:
        self.problem, self.labels = problem, found
        self.rules: list[Rule] = []
        finite = np.where(np.isfinite(reward), reward, penalty)
        self._penalty = penalty
        self._lp = LinearProgram(relaxation(problem, found, finite), seed=seed)
        self._lagrangian = Lagrangian(problem, found, reward)
        self._numbers: dict[Rule, int] = {}
        self._rows: list[int] = []
        self._missing: list[tuple[int, float]] = []  # the column of missing a rule, what it costs
        self._columns: list[Indices] = []
        self._capacity: dict[int, int] = {}  # of the rules that are cuts
        self._bounded: set[int] = set()  # rules that the last path bounded

    def begin_from(self, basis: HighsBasis) -> None:
        """Let the first relaxation start from a basis, if it is of one with as many rows."""
        self._lp.begin_from(basis)

    def number(self, rule: Rule) -> int:
        """Return the number of a rule; a new one gets a row without bounds."""
        if rule not in self._numbers:
            columns = rule.columns(self.problem, self.labels)
            self._numbers[rule] = len(self.rules)
            self.rules.append(rule)
            self._missing.append((self._lp.columns, self._penalty))
            self._rows.append(self._lp.add_elastic_row(columns, self._penalty))
            self._columns.append(columns)
        return self._numbers[rule]

    def cut(self, point: Point) -> bool:
        """Add the cuts that a point violates; return whether there were new ones."""
        before = len(self._capacity)
        for rule in violated_cuts(self.problem, self.labels, point):
            number = self.number(rule)
            if number not in self._capacity:
                self._capacity[number] = capacity(self.problem, rule)
                self._lp.bound_row(self._rows[number], -np.inf, self._capacity[number])
        return len(self._capacity) > before

    def relax(self, path: Path, time_limit_s: float | None) -> Solved | None:
        """Solve the relaxation under the cases of a path; None if there is no time for it."""
        tightest = _tightest(path)
        for rule in self._bounded | {rule for rule, _ in tightest}:
            low, high = -np.inf, float(self._capacity.get(rule, np.inf))
            if (rule, True) in tightest:
                low = path[tightest[rule, True]].at_most + 1
            if (rule, False) in tightest:
                high = min(high, path[tightest[rule, False]].at_most)
            self._lp.bound_row(self._rows[rule], low, high)
        self._bounded = {rule for rule, _ in tightest}
        begun = time.perf_counter()
        solved = self._lp.solve(time_limit_s)
        lower = [rule for rule, is_above in tightest if is_above]
        for _ in range(MOST_RISES):
            if solved is None or not self._raised(lower, solved):
                break
            past = time.perf_counter() - begun
            left = None if time_limit_s is None else max(0.0, time_limit_s - past)
            solved = self._lp.solve(left)
        return solved

    def _raised(self, lower: list[int], solved: Solved) -> bool:
        """Raise the costs of lower bounds that a solution misses; tell whether it missed any.

        A cheap part of a job that is missed would be split by the same rule again, without end.
        """
        if solved.objective >= self._penalty:
            return False
        missed = [rule for rule in lower if solved.x[self._missing[rule][0]] > INTEGRAL]
        for rule in missed:
            column, cost = self._missing[rule]
            self._missing[rule] = column, RISE * cost
            self._lp.cost_columns(np.array([column]), np.array([RISE * cost]))
        return bool(missed)

    def point(self, solved: Solved) -> Point:
        """Return where a solution of the relaxation lies."""
        return Point.of(solved.x, self.labels)

    def prices(self, path: Path, solved: Solved) -> Prices:
        """Return the prices of a solution; what a case bounds is paid to it, not to a cut."""
        duals = solved.row_duals
        types, gpus = len(self.problem.types), len(self.problem.gpus)
        tightest = _tightest(path)
        of_cases = []
        for n, case in enumerate(path):
            is_tightest = tightest[case.rule, case.is_above] == n
            dual = float(duals[self._rows[case.rule]]) if is_tightest else 0.0
            of_cases.append(max(0.0, dual if case.is_above else -dual))
        cuts = {
            rule: -float(duals[self._rows[rule]])
            for rule in self._capacity
            if (rule, False) not in tightest and duals[self._rows[rule]] < 0
        }
        return Prices(np.maximum(-duals[types : types + gpus], 0.0), tuple(of_cases), cuts)

    def options(self, path: Path, prices: Prices) -> Options:
        """Return what jobs may take at some prices, and what the prices prove."""
        extra = np.zeros(len(self.labels.type))
        constant = 0.0
        for case, price in zip(path, prices.cases, strict=True):
            signed = -price if case.is_above else price
            extra[self._columns[case.rule]] += signed
            constant -= signed * (case.at_most + case.is_above)
        for rule, price in prices.cuts.items():
            extra[self._columns[rule]] += price
            constant -= price * self._capacity[rule]
        return self._lagrangian.options(prices.gpus, extra, constant)

    def too_dear(self, options: Options, limit: float) -> NDArray[np.bool_]:
        """Tell which labels and stays are only in plans that cost at least a limit."""
        return self._lagrangian.too_dear(options, limit)


def _tightest(path: Path) -> dict[tuple[int, bool], int]:
    """Return for each rule and side the last case of a path that is tightest."""
    tightest: dict[tuple[int, bool], int] = {}
    for n, case in enumerate(path):
        key = case.rule, case.is_above
        if key in tightest:
            other = path[tightest[key]].at_most
            if (case.at_most < other) if case.is_above else (case.at_most > other):
                continue
        tightest[key] = n
    return tightest
