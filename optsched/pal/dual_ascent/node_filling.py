"""Nodes filled anew: set partitioning over patterns (Gilmore & Gomory, Operations Research 1961).

The linear program over all patterns of some nodes is solved by column generation; an integer
program over those that were priced says which one each node gets. It begins with what the nodes
hold now, so that what it finds costs less or nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array

from optsched.mip import highs
from optsched.mip.column_generation import DualBound, Priced, generate
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.node_classes.pattern_pricing import Pattern, PatternPricing
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.documents.arrays import Floats
    from optsched.mip.incremental_lp import Solved
    from optsched.pal.dual_ascent.node_part import NodePart
    from optsched.pal.exact.rounding import Placed

Column = tuple[float, dict[int, float]]
"""Cost, and coefficients by row."""


class NodeFilling:
    """The program of a part; its columns are jobs that are missing, ways to spread, and patterns.

    Parameters
    ----------
    missing
        What a job without a place costs, or a seat.
    """

    def __init__(
        self,
        part: NodePart,
        missing: float,
        seed: int,
        seconds_left: Callable[[], float | None],
    ) -> None:
        self._part, self._seed, self._clock = part, seed, seconds_left
        self._types, self._nodes = len(part.nodes.types), len(part.nodes.classes)
        self._capped = sorted({each.jobs for each in part.spreads})
        self._counts = Counter(part.types[job] for job in part.within)
        self._columns: list[Column] = [(missing, {t: 1.0}) for t in range(self._types)]
        self._columns += [self._spread(n) for n in range(len(part.spreads))]
        self._first = len(self._columns)
        self._known: set[object] = set()
        self.patterns: list[Pattern] = []
        for pattern in part.patterns():
            self._note(pattern)
        self._pricing = PatternPricing(part.nodes)
        self._least = -SETTINGS.master_improvement * missing
        self._lp = LinearProgram(self._program(), seed)

    def run(self, target: float, cutoff: float) -> Placed | None:
        """Return where all jobs of the part cost less than now; None if no such place was found.

        Parameters
        ----------
        target, cutoff
            Cost of the part's jobs that is good enough; and that a plan must be below.
        """
        duals = np.zeros(self._types + self._nodes)
        rounds = SETTINGS.filling_rounds
        generated = generate(self, self._price, _is_near, DualBound(duals), rounds=rounds)
        if generated.solved is None or generated.solved.objective >= cutoff or self._clock() == 0:
            return None
        outcome = highs.solve(
            self._program(),
            gap=SETTINGS.filling_gap,
            most_nodes=SETTINGS.filling_nodes,
            time_limit_s=self._clock(),
            seed=self._seed,
            target=target,
            cutoff=cutoff,
            restarts=False,
        )
        if outcome.x is None or outcome.objective is None or outcome.objective >= cutoff:
            return None
        uses = np.rint(outcome.x[self._types :]).astype(np.intp)
        ways = self._part.spreads
        spreads = [ways[n] for n in np.repeat(np.arange(len(ways)), uses[: len(ways)]).tolist()]
        chosen = [self.patterns[n] for n in np.flatnonzero(uses[len(ways) :]).tolist()]
        return self._part.placed(chosen, spreads)

    # --- as the master of column generation -------------------------------------------------------

    def optimum(self) -> Solved | None:
        """Return an optimum over the patterns so far, if there is one in time."""
        return self._lp.solve(self._clock())

    def duals(self, solved: Solved) -> Floats:
        """Return the duals of types and nodes."""
        return np.asarray(solved.row_duals[: self._types + self._nodes])

    def add(self, patterns: Iterable[Pattern]) -> int:
        """Add columns that are not there yet; return how many."""
        before = len(self._columns)
        for pattern in patterns:
            self._note(pattern)
        new = self._columns[before:]
        if new:
            self._lp.add_columns(np.array([cost for cost, _ in new]), csc_array(self._matrix(new)))
        return len(new)

    def _price(self, duals: Floats) -> Priced[Floats, Iterable[Pattern]]:
        types = np.maximum(duals[: self._types], 0.0)
        nodes = np.minimum(duals[self._types :], 0.0)
        filled = self._pricing.fill(types @ self._part.nested, nodes + self._least)
        spread = dict.fromkeys(self._capped, 0.0)
        for n, way in enumerate(self._part.spreads):
            cost, rows = self._columns[self._types + n]
            reduced = cost - sum(types[row] * by for row, by in rows.items() if row < self._types)
            spread[way.jobs] = min(spread[way.jobs], float(reduced))
        value = float(types @ self._part.demand + np.minimum(filled.values, 0.0).sum())
        value += sum(self._counts[t] * least for t, least in spread.items())
        return Priced(filled.patterns, len(filled.patterns), np.r_[types, nodes], value)

    # --- columns ----------------------------------------------------------------------------------

    def _spread(self, n: int) -> Column:
        way = self._part.spreads[n]
        seats = self._part.first_seat + way.seats
        cap = self._types + self._nodes + self._capped.index(way.jobs)
        below = np.flatnonzero(self._part.nested[:, seats]).tolist()
        return way.cost, {way.kind: 1.0, cap: 1.0} | dict.fromkeys(below, -float(way.gpus))

    def _note(self, pattern: Pattern) -> None:
        """Write a pattern down, if it is not there yet."""
        pattern = self._part.fastest(pattern)
        key = pattern.node_class, pattern.gangs
        if key not in self._known:
            self._known.add(key)
            served = self._part.nested[:, [gang.type for gang in pattern.gangs]].sum(axis=1)
            held = {row: float(served[row]) for row in np.flatnonzero(served).tolist()}
            self._columns.append((pattern.cost, held | {self._types + pattern.node_class: 1.0}))
            self.patterns.append(pattern)

    def _matrix(self, columns: list[Column]) -> csr_array:
        entries = [(row, n, by) for n, (_, rows) in enumerate(columns) for row, by in rows.items()]
        rows, numbers, values = zip(*entries, strict=True)
        shape = self._types + self._nodes + len(self._capped), len(columns)
        return csr_array((np.array(values), (rows, numbers)), shape=shape)

    def _costs(self) -> Floats:
        return np.array([cost for cost, _ in self._columns])

    def _program(self) -> highs.Program:
        count = len(self._columns)
        counts = [float(self._counts[t]) for t in self._capped]
        return highs.Program(
            cost=self._costs(),
            offset=0.0,
            lower=np.zeros(count),
            upper=np.full(count, np.inf),
            integer=np.arange(count) >= self._types,
            matrix=self._matrix(self._columns),
            row_lower=np.r_[self._part.demand, np.full(self._nodes + len(counts), -np.inf)],
            row_upper=np.r_[np.full(self._types, np.inf), np.ones(self._nodes), counts],
        )


def _is_near(solved: Solved, value: float) -> bool:
    return solved.objective - value <= SETTINGS.filling_near * abs(solved.objective)
