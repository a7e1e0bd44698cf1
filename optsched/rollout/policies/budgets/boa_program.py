"""A multiple-choice knapsack: the widths of the jobs at hand within an allowance, as arrays.

Source: docs/math/boa.md, Budgeted drain, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.rollout.engine.decision import NOT_STATED, SolveRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

FEASIBILITY = 1e-9  # of the allowance, added to it: the floor uses it up to the last digit


class Block(NamedTuple):
    """Consecutive phases of a job that get one width.

    Attributes
    ----------
    until
        The first phase behind it.
    gpus, seconds
        The widths that all its phases have, and the expected time that is left at each.
    floor
        The stationary width of all its phases.
    """

    until: int
    gpus: tuple[int, ...]
    seconds: tuple[float, ...]
    floor: int

    @property
    def least(self) -> int:
        """The width of least GPU time."""
        return min(zip(self.gpus, self.seconds, strict=True), key=lambda p: (p[0] * p[1], p[0]))[0]


class Ahead(NamedTuple):
    """A job and what it has before it.

    Attributes
    ----------
    now
        The width that it has, 0 if it waits.
    rescale_s
        Seconds lost at a start or change of width.
    """

    job: int
    blocks: tuple[Block, ...]
    now: int
    rescale_s: float

    @property
    def floor(self) -> tuple[int, ...]:
        """The stationary widths."""
        return tuple(block.floor for block in self.blocks)

    @property
    def least(self) -> tuple[int, ...]:
        """The widths of least GPU time, changes of width aside."""
        return tuple(block.least for block in self.blocks)

    def totals(self, widths: Sequence[int]) -> tuple[float, float]:
        """Return seconds and GPU-seconds at the given widths, changes of width included."""
        seconds = used = 0.0
        before = self.now
        for block, width in zip(self.blocks, widths, strict=True):
            time_s = block.seconds[block.gpus.index(width)]
            time_s += self.rescale_s if width != before else 0.0
            seconds, used = seconds + time_s, used + width * time_s
            before = width
        return seconds, used


class Program:
    """B1 as arrays: a column for each (job, block, width), and for each change between blocks."""

    def __init__(self, ahead: Sequence[Ahead], allowance: float, cap: int) -> None:
        self.ahead, self.allowance, self.cap = ahead, allowance, cap
        self.keys: list[tuple[int, int, int]] = []  # (job, block, place of the width)
        self.cost: list[float] = []
        self.used: list[float] = []
        self._rows: list[tuple[list[int], list[float], float, float]] = []
        for n in range(len(ahead)):
            self._add_job(n)
        self.binaries = len(self.keys)
        self._add_changes()
        everything = list(range(len(self.cost)))
        limit = allowance * (1 + FEASIBILITY)
        self._rows.append((everything, self.used, -np.inf, limit))
        first = [c for c, (n, e, _) in enumerate(self.keys) if e == 0]
        gpus = [float(self._width(c)) for c in first]
        self._rows.append((first, gpus, -np.inf, float(cap)))

    def _width(self, column: int) -> int:
        n, e, at = self.keys[column]
        return self.ahead[n].blocks[e].gpus[at]

    def _add_job(self, n: int) -> None:
        a = self.ahead[n]
        for e, block in enumerate(a.blocks):
            first = len(self.keys)
            for at, (gpus, seconds) in enumerate(zip(block.gpus, block.seconds, strict=True)):
                if e == 0 and gpus != a.now:
                    seconds += a.rescale_s
                self.keys.append((n, e, at))
                self.cost.append(seconds)
                self.used.append(gpus * seconds)
            columns = list(range(first, len(self.keys)))
            self._rows.append((columns, [1.0] * len(columns), 1.0, 1.0))

    def _add_changes(self) -> None:
        """Add y >= x of a block - x of the one before it, for the rescaling between them."""
        column = {(n, e, self._width(c)): c for c, (n, e, _) in enumerate(self.keys)}
        for (n, e, gpus), now in column.items():
            rescale_s = self.ahead[n].rescale_s
            if e == 0 or not rescale_s:
                continue
            change = len(self.cost)
            self.cost.append(rescale_s)
            self.used.append(gpus * rescale_s)
            before = column.get((n, e - 1, gpus))
            columns = [change, now] if before is None else [change, now, before]
            self._rows.append((columns, [1.0, -1.0, 1.0][: len(columns)], 0.0, np.inf))

    def solve(self, most_nodes: int, time_limit_s: float, gap: float) -> tuple[Any, Any]:
        """Return the widths of each job, those of the floor if there is nothing better."""
        from optsched.mip import highs

        floor = [a.floor for a in self.ahead]
        outcome = highs.solve(
            self._program(),
            time_limit_s=time_limit_s,
            gap=gap,
            most_nodes=most_nodes,
            start=self._point(floor) if self._is_within(floor) else None,
        )
        widths = floor if outcome.x is None else self._widths(outcome.x)
        value = sum(a.totals(w)[0] for a, w in zip(self.ahead, widths, strict=True))

        def record(seconds: float) -> SolveRecord:
            # HiGHS' bound and status are floats without a certificate, so neither is stated.
            fallback = outcome.x is None
            return SolveRecord("feasible", value, NOT_STATED, seconds, fallback=fallback)

        return widths, record

    def _program(self) -> Any:
        from scipy.sparse import csr_array

        from optsched.mip import highs

        count = len(self.cost)
        integer = np.zeros(count, dtype=bool)
        integer[: self.binaries] = True
        starts = np.cumsum([0, *(len(row[0]) for row in self._rows)])
        columns = list(itertools.chain.from_iterable(row[0] for row in self._rows))
        values = list(itertools.chain.from_iterable(row[1] for row in self._rows))
        shape = (len(self._rows), count)
        return highs.Program(
            cost=np.array(self.cost),
            offset=0.0,
            lower=np.zeros(count),
            upper=np.ones(count),
            integer=integer,
            matrix=csr_array((values, columns, starts), shape=shape),
            row_lower=np.array([row[2] for row in self._rows]),
            row_upper=np.array([row[3] for row in self._rows]),
        )

    def _is_within(self, widths: Sequence[Sequence[int]]) -> bool:
        used = sum(a.totals(w)[1] for a, w in zip(self.ahead, widths, strict=True))
        return used <= self.allowance and sum(w[0] for w in widths) <= self.cap

    def _point(self, widths: Sequence[Sequence[int]]) -> Any:
        x = np.zeros(len(self.cost))
        for column, (n, e, _) in enumerate(self.keys):
            x[column] = self._width(column) == widths[n][e]
        for columns, signs, _, _ in self._rows:
            if signs[:2] == [1.0, -1.0]:
                x[columns[0]] = max(0.0, x[columns[1]] - sum(x[columns[2:]]))
        return x

    def _widths(self, x: Any) -> list[tuple[int, ...]]:
        widths: list[list[int]] = [[0] * len(a.blocks) for a in self.ahead]
        best: dict[tuple[int, int], float] = {}
        for column, (n, e, _) in enumerate(self.keys):
            if x[column] > best.get((n, e), 0.0):
                best[n, e] = x[column]
                widths[n][e] = self._width(column)
        return [tuple(row) for row in widths]
