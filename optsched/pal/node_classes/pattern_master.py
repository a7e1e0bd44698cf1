"""The master problem of column generation (Gilmore & Gomory, Operations Research 1961).

It says which patterns the nodes of each class run. Its rows are the types of jobs and the node
classes, so a basic solution uses few patterns, and is nearly whole where there are many nodes. What
is left over after rounding down, jobs and nodes, is a small program of its own, solved in whole
numbers for the patterns that are known.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array, hstack

from optsched.mip import highs
from optsched.mip.column_generation import DualBound, Priced, generate
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.node_classes.pattern_pricing import PatternPricing
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.documents.arrays import Floats, Indices
    from optsched.mip.incremental_lp import Solved
    from optsched.pal.node_classes.aggregation import NodeClasses
    from optsched.pal.node_classes.pattern_pricing import Pattern


class PatternMaster:
    """The master program.

    Parameters
    ----------
    jobs
        Shape (types,): how many jobs there are to place.
    counts
        Shape (classes,): how many nodes there are for them.
    missing
        Shape (types,): what it costs to place a job of a type nowhere.
    """

    def __init__(
        self, nodes: NodeClasses, jobs: Indices, counts: Indices, missing: Floats, seed: int
    ) -> None:
        self.patterns: list[Pattern] = []
        self._jobs, self._counts, self._missing, self._seed = jobs, counts, missing, seed
        self._pricing = PatternPricing(nodes)
        self._known: set[object] = set()
        self._lp = LinearProgram(self._program([], jobs, counts), seed)

    def add(self, patterns: Iterable[Pattern]) -> int:
        """Add columns that are not there yet; return how many."""
        new = []
        for pattern in patterns:
            if (pattern.node_class, pattern.gangs) not in self._known:
                self._known.add((pattern.node_class, pattern.gangs))
                new.append(pattern)
        if new:
            self._lp.add_columns(np.array([p.cost for p in new]), csc_array(self._matrix(new)))
            self.patterns += new
        return len(new)

    def solve(self, seconds_left: Callable[[], float | None]) -> Floats | None:
        """Return how many nodes run each of `patterns`, nearly at least cost; None without time."""
        self._clock = seconds_left
        no_duals = np.zeros(len(self._jobs)), np.zeros(len(self._counts))
        bound, rounds = DualBound(no_duals), SETTINGS.master_rounds
        generated = generate(self, self._price, _is_near, bound, rounds=rounds)
        if generated.solved is None or generated.reason == "unsolved":
            return None
        return np.asarray(generated.solved.x[len(self._jobs) :])

    def optimum(self) -> Solved | None:
        """Return an optimum over the patterns so far, if there is one in time."""
        return self._lp.solve(self._clock())

    def duals(self, solved: Solved) -> tuple[Floats, Floats]:
        """Return what jobs of each type save, and nodes of each class."""
        types = len(self._jobs)
        return np.maximum(solved.row_duals[:types], 0.0), np.minimum(solved.row_duals[types:], 0.0)

    def _price(
        self, duals: tuple[Floats, Floats]
    ) -> Priced[tuple[Floats, Floats], Iterable[Pattern]]:
        jobs, nodes = duals
        least = nodes - SETTINGS.master_improvement * self._missing.max()
        filled = self._pricing.fill(jobs, least)
        value = float(jobs @ self._jobs + np.minimum(filled.values, 0.0) @ self._counts)
        return Priced(filled.patterns, len(filled.patterns), duals, value)

    def whole(self, uses: Floats, time_limit_s: float | None) -> Indices:
        """Return whole numbers of nodes near fractional ones, so that most jobs have a place."""
        kept = np.floor(uses + SETTINGS.integral).astype(np.intp)
        jobs, counts = self._left(kept)
        used = np.flatnonzero([counts[p.node_class] > 0 for p in self.patterns])
        if not len(used) or not jobs.any():
            return kept
        program = self._program([self.patterns[n] for n in used.tolist()], jobs, counts)
        outcome = highs.solve(
            program,
            gap=SETTINGS.rest_gap,
            most_nodes=SETTINGS.rest_nodes,
            seed=self._seed,
            time_limit_s=time_limit_s,
        )
        if outcome.x is not None:
            kept[used] += np.rint(outcome.x[len(jobs) :]).astype(np.intp)
        return kept

    def _left(self, kept: Indices) -> tuple[Indices, Indices]:
        """Return how many jobs and nodes there are besides those of some patterns."""
        jobs, counts = self._jobs.copy(), self._counts.copy()
        for n in np.flatnonzero(kept).tolist():
            pattern = self.patterns[n]
            counts[pattern.node_class] -= kept[n]
            for gang in pattern.gangs:
                jobs[gang.type] -= kept[n]
        return np.maximum(jobs, 0), counts

    def _matrix(self, patterns: list[Pattern]) -> csr_array:
        """Return the columns of patterns: jobs by type, and the node."""
        types, classes = len(self._jobs), len(self._counts)
        entries = [
            (row, column, times)
            for column, p in enumerate(patterns)
            for row, times in [*Counter(g.type for g in p.gangs).items(), (types + p.node_class, 1)]
        ]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        shape = types + classes, len(patterns)
        return csr_array((np.array(values, dtype=float), (rows, columns)), shape=shape)

    def _program(self, patterns: list[Pattern], jobs: Indices, counts: Indices) -> highs.Program:
        """Return the program of some patterns; its first columns are the jobs that are missing."""
        types, number = len(jobs), len(jobs) + len(patterns)
        missing = csr_array(
            (np.ones(types), (np.arange(types), np.arange(types))),
            shape=(types + len(counts), types),
        )
        matrix = hstack([missing, self._matrix(patterns)], format="csr") if patterns else missing
        return highs.Program(
            cost=np.r_[self._missing, [p.cost for p in patterns]],
            offset=0.0,
            lower=np.zeros(number),
            upper=np.full(number, np.inf),
            integer=np.arange(number) >= types,
            matrix=csr_array(matrix),
            row_lower=np.r_[jobs.astype(float), np.full(len(counts), -np.inf)],
            row_upper=np.r_[np.full(types, np.inf), counts.astype(float)],
        )


def _is_near(solved: Solved, value: float) -> bool:
    return solved.objective - value <= SETTINGS.master_gap * abs(solved.objective)
