"""Running jobs in arrays: how far back each stands in an order, at most."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.documents.arrays import Bools, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Keys, SteadyOrder


class Standing(NamedTuple):
    """Where a job stands in an order: those with less come first. Equal keys go by number."""

    key: tuple[float, ...]
    job: int


class Tail(NamedTuple):
    """Jobs that hold GPUs and stand behind another one, in order.

    Attributes
    ----------
    standings
        As `Standing`.
    upto
        How many GPUs the first n of them hold, from none to all of them.
    """

    standings: list[tuple[tuple[float, ...], int]]
    upto: list[int]


class Behind(NamedTuple):
    """Jobs that may stand behind another one: at most so many GPUs are theirs, and their rows."""

    gpus: int
    rows: Bools


class Running:
    """Jobs that hold GPUs, each in a row of arrays; rows that nobody has are of width 0.

    Attributes
    ----------
    gpus
        By job the GPUs that it holds.
    """

    def __init__(self, order: SteadyOrder) -> None:
        self.order = order
        self.gpus: dict[int, tuple[int, ...]] = {}
        self._row: dict[int, int] = {}
        self._unused: list[int] = []
        self._job = np.zeros(0, dtype=np.int64)
        self._width, self._since = self._job.copy(), self._job.copy()
        self._seen = np.zeros((0, 0))
        self._keys: tuple[int, Keys] | None = None  # since nothing was added, at a moment

    def add(self, view: View, held: Mapping[int, tuple[int, ...]]) -> None:
        """Let jobs hold the GPUs that they have."""
        jobs, self._keys = list(held), None
        seen = self.order.seen(view, jobs)
        while len(self._unused) < len(jobs):
            self._grow(len(seen))
        for n, job in enumerate(jobs):
            row = self._row[job] = self._unused.pop()
            self._job[row], self._width[row] = job, len(held[job])
            self._seen[:, row], self._since[row] = seen[:, n], view.now_us
        self.gpus.update(held)

    def remove(self, job: int) -> tuple[int, ...]:
        """Let a job hold GPUs no more; return which these were."""
        row = self._row.pop(job)
        self._width[row] = 0
        self._unused.append(row)
        return self.gpus.pop(job)

    def behind(self, standing: Standing, now: int) -> Behind | None:
        """Return who may stand behind another job now; None if no job runs."""
        if not self.gpus:
            return None
        rows = self._may_be_behind(standing, now)
        return Behind(int(self._width @ rows), rows)

    def tail(self, standing: Standing, behind: Behind, view: View) -> Tail:
        """Return the jobs that do stand behind another job now, of those that may."""
        now = view.now_us
        rows = np.flatnonzero(behind.rows & (self._width > 0))
        jobs = self._job[rows]
        widths = self._width[rows]
        if self.order.is_exact:
            keys = tuple(column[rows] for column in self._keys_at(now))
        else:
            self._keys = None
            self._seen[:, rows], self._since[rows] = self.order.seen(view, jobs.tolist()), now
            keys = self.order.keys(self._seen[:, rows], now, np.zeros_like(widths), widths)
        ordered = np.lexsort((jobs, *keys[::-1]))
        columns = [column[ordered].tolist() for column in keys]
        known = zip(*columns, strict=True) if columns else [()] * len(jobs)
        every = list(zip(known, jobs[ordered].tolist(), strict=True))
        first = bisect_right(every, standing)
        return Tail(every[first:], [0, *np.cumsum(widths[ordered[first:]]).tolist()])

    def _may_be_behind(self, standing: Standing, now: int) -> Bools:
        behind: Bools = self._job > standing.job
        for column, value in zip(self._keys_at(now)[::-1], standing.key[::-1], strict=True):
            behind &= column == value
            behind |= column > value
        return behind

    def _keys_at(self, now: int) -> Keys:
        """Return by what jobs are ordered now: several are compared with them in one call."""
        if self._keys is None or self._keys[0] != now:
            keys = self.order.keys(self._seen, now, now - self._since, self._width)
            self._keys = now, keys
        return self._keys[1]

    def _grow(self, numbers: int) -> None:
        count = len(self._job)
        more = max(64, count)
        self._unused += range(count + more - 1, count - 1, -1)
        self._job, self._width, self._since = (
            np.append(column, np.zeros(more, dtype=column.dtype))
            for column in (self._job, self._width, self._since)
        )
        seen, self._seen = self._seen, np.zeros((numbers, count + more))
        self._seen[:, :count] = seen if count else 0


def standings(order: SteadyOrder, view: View, jobs: Sequence[int]) -> list[Standing]:
    """Return where jobs stand now."""
    none: Integers = np.zeros(len(jobs), dtype=np.int64)
    keys = order.keys(order.seen(view, jobs), view.now_us, none, none)
    rows = zip(*(column.tolist() for column in keys), strict=True) if keys else [()] * len(jobs)
    return list(map(Standing, rows, jobs))
