"""Diving (Berthold, TU Berlin 2006) in the program of a part: gangs are fixed, some at a time.

The linear program knows what is at stake: a dive is over where what is fixed costs as much as the
part does now. Where some gangs at once cost too much, fewer of them are tried, and a single one
that does is ruled out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats, Indices
    from optsched.mip.incremental_lp import Solved
    from optsched.pal.dual_ascent.part_program import PartProgram


class PartDive:
    """A dive for a better place of all jobs of a part.

    Parameters
    ----------
    seconds_left
        Until the deadline; None without one.
    """

    def __init__(self, part: PartProgram, seconds_left: Callable[[], float | None]) -> None:
        self.part, self._seconds_left = part, seconds_left
        self._program = part.program()
        self._limit = part.limit * (1 - SETTINGS.better)
        sizes = [part.problem.types[gang.type].gpus for gang in part.gangs]
        self._size = np.array(sizes, dtype=float)
        self._fixed = np.zeros(len(sizes))
        self._failures = 0
        self._lp = LinearProgram(self._program)

    def run(self) -> dict[int, Indices] | None:
        """Return the GPUs of each job at less cost than now; None if none was found."""
        solved = self._solved()
        if solved is None:
            return None
        self._rule_out(solved)
        while solved is not None:
            x = solved.x[: len(self._fixed)]
            if (np.abs(x - np.rint(x)) <= SETTINGS.integral).all():
                return self.part.placed(solved.x)
            solved = self._step(x)
        return None

    def _solved(self) -> Solved | None:
        """Return the optimum with what is fixed; None if it is no better than what there is."""
        if (left := self._seconds_left()) == 0:
            return None
        solved = self._lp.solve(left)
        return solved if solved is not None and solved.objective < self._limit else None

    def _rule_out(self, solved: Solved) -> None:
        """Rule out gangs that are in no better plan, by their reduced costs."""
        reduced = self._program.cost - self._program.matrix.T @ solved.row_duals
        gangs = reduced[: len(self._fixed)]
        self._lp.bound_columns(np.flatnonzero(gangs > self._limit - solved.objective), 0.0)

    def _step(self, x: Floats) -> Solved | None:
        """Fix some gangs more, or rule one out; return the optimum then, None where it ends."""
        chosen = self._chosen(x)
        while True:
            more = self._fixed[chosen] + np.maximum(1, np.floor(x[chosen] - self._fixed[chosen]))
            self._bound(chosen, more, np.inf)
            solved = self._solved()
            if solved is not None:
                self._fixed[chosen] = more
                return solved
            self._failures += 1
            if self._failures > SETTINGS.part_failures:
                return None
            self._bound(chosen, self._fixed[chosen], np.inf)
            if len(chosen) == 1:
                self._bound(chosen, self._fixed[chosen], float(self._fixed[chosen[0]]))
                return self._solved()
            chosen = chosen[: len(chosen) // 2]

    def _bound(self, columns: Indices, lower: Floats, upper: float) -> None:
        self._lp.limit_columns(columns, lower, np.full(len(columns), upper))

    def _chosen(self, x: Floats) -> Indices:
        """Return gangs of much share, without common GPUs within nodes, that ask for a part."""
        share = x - self._fixed
        some = np.flatnonzero(share > SETTINGS.integral)
        wanted = float((self._size * share)[some].sum())
        order = some[np.argsort(-np.minimum(share[some], 1) * self._size[some] ** 0.5)]
        used = np.zeros(len(self.part.problem.gpus), dtype=np.bool_)
        chosen: list[int] = []
        given = 0.0
        for n in order.tolist():
            gang = self.part.gangs[n]
            if gang.chain < 0:
                if used[gang.gpus].any():
                    continue
                used[gang.gpus] = True
            chosen.append(n)
            given += self._size[n]
            if given >= SETTINGS.part_share * wanted:
                break
        return np.array(chosen, dtype=np.intp)
