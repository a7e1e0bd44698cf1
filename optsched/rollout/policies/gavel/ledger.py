"""What share of its time each job is to have on each type of GPUs, and what it has received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.documents.arrays import Floats


class TimeLedger(Restorable):
    """An account of GPU time by job and type, since shares were computed last.

    Parameters
    ----------
    types
        Names of the types of GPUs.

    Attributes
    ----------
    jobs
        Those that shares were computed for, ascending.
    shares, received_s
        Shape (jobs, types): the share of its time that each is to have; the seconds that it ran.
    owed_s
        Shape (jobs, types): what each had not received of its shares when they were computed.
    runs
        Shape (jobs, types): 1 where a job runs now, else 0.
    """

    changing = ("jobs", "shares", "received_s", "owed_s", "runs")

    def __init__(self, types: Sequence[str]) -> None:
        self.types = tuple(types)
        self._rank = np.argsort(np.argsort(self.types))
        self.jobs: list[int] = []
        self.shares = np.zeros((0, len(self.types)))
        self.received_s, self.owed_s, self.runs = (self.shares.copy() for _ in range(3))
        self._row: dict[int, int] = {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        super().restore(state)
        self._row = {job: row for row, job in enumerate(self.jobs)}

    def count(self, passed_s: float) -> None:
        """Count so many seconds for the jobs that run."""
        self.received_s += passed_s * self.runs

    def leave(self, jobs: Iterable[int]) -> None:
        """Note that jobs run no more."""
        for job in jobs:
            if job in self._row:
                self.runs[self._row[job]] = 0.0

    def run_on(self, types: Mapping[int, str]) -> None:
        """Note on which type each job runs that does; of several at once it counts for none."""
        self.runs[:] = 0.0
        for job, name in types.items():
            if job in self._row:
                self.runs[self._row[job], self.types.index(name)] = 1.0

    def renew(self, jobs: Sequence[int], shares: Floats, since_s: float) -> None:
        """Begin with new shares; what jobs have not received of the old ones is owed to them.

        Parameters
        ----------
        shares
            Shape (jobs, types).
        since_s
            For how long the old ones were in force.
        """
        owed_s = self.owed_s + self.shares * since_s - self.received_s
        known = [(row, self._row[job]) for row, job in enumerate(jobs) if job in self._row]
        rows, before = np.array(known, dtype=np.intp).reshape(-1, 2).T
        self.owed_s = np.zeros_like(shares)
        self.owed_s[rows] = owed_s[before]
        self.jobs, self.shares = list(jobs), shares
        self.received_s, self.runs = np.zeros_like(shares), np.zeros_like(shares)
        self._row = {job: row for row, job in enumerate(jobs)}

    def ranked(self, speed: Floats) -> list[tuple[int, int]]:
        """Return rows of jobs and of types on which they get on, the highest priority first.

        Parameters
        ----------
        speed
            Shape (jobs, types): how fast each gets on; 0 where it cannot run.
        """
        rows, types = np.nonzero(speed)
        share, received_s = self.shares[rows, types], self.received_s[rows, types]
        priority = np.where(share != 0, np.inf, 0.0)
        np.divide(share, received_s, out=priority, where=received_s != 0)
        owed_s, fast = self.owed_s[rows, types], speed[rows, types]
        order = np.lexsort((self._rank[types], rows, -fast, -share, -owed_s, -priority))
        return list(zip(rows[order].tolist(), types[order].tolist(), strict=True))
