"""Running jobs in arrays: how far back each stands in an order, at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Bools, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import SteadyOrder


class Standing(NamedTuple):
    """Where a job stands in an order: those with less come first. Equal keys go by number."""

    key: float
    job: int


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
        self._seen = np.zeros(0)

    def add(self, job: int, gpus: tuple[int, ...], seen: float, now: int) -> None:
        """Let a job hold GPUs from now on; `seen` is what the order looks at, as it is now."""
        if not self._unused:
            self._grow()
        row = self._row[job] = self._unused.pop()
        self.gpus[job] = gpus
        self._job[row], self._width[row] = job, len(gpus)
        self._seen[row], self._since[row] = seen, now

    def remove(self, job: int) -> tuple[int, ...]:
        """Let a job hold GPUs no more; return which these were."""
        row = self._row.pop(job)
        self._width[row] = 0
        self._unused.append(row)
        return self.gpus.pop(job)

    def behind(self, standing: Standing, now: int) -> int:
        """Return how many GPUs jobs hold that may stand behind another job now: at most so many."""
        return int(self._width @ self._may_be_behind(standing, now))

    def tail(self, standing: Standing, view: View) -> list[Standing]:
        """Return the jobs that do stand behind another job now, in order."""
        now = view.now_us
        rows = np.flatnonzero(self._may_be_behind(standing, now) & (self._width > 0))
        jobs = self._job[rows].tolist()
        self._seen[rows], self._since[rows] = self.order.seen(view, jobs), now
        none = np.zeros(len(rows), dtype=np.int64)
        keys = self.order.keys(self._seen[rows], none, self._width[rows]).tolist()
        return sorted(s for s in map(Standing, keys, jobs) if s > standing)

    def _may_be_behind(self, standing: Standing, now: int) -> Bools:
        keys = self.order.keys(self._seen, now - self._since, self._width)
        behind: Bools = keys > standing.key
        equal = keys == standing.key
        if equal.any():
            behind |= equal & (self._job > standing.job)
        return behind

    def _grow(self) -> None:
        count = len(self._job)
        more = max(64, count)
        self._unused = list(range(count + more - 1, count - 1, -1))
        self._job, self._width, self._since = (
            np.append(column, np.zeros(more, dtype=column.dtype))
            for column in (self._job, self._width, self._since)
        )
        self._seen = np.append(self._seen, np.zeros(more))


def standings(order: SteadyOrder, view: View, jobs: Sequence[int]) -> list[tuple[float, Standing]]:
    """Return for jobs that wait what the order looks at, and where they stand."""
    seen = order.seen(view, jobs)
    none: Integers = np.zeros(len(jobs), dtype=np.int64)
    keys = order.keys(seen, none, none)
    return list(zip(seen.tolist(), map(Standing, keys.tolist(), jobs), strict=True))
