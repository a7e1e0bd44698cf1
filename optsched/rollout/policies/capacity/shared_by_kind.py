"""Shares that follow from what kinds of curves the active jobs have: arrays are kept of these."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.capacity.width_table import WidthTable
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.decision import Decision, Rent
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario

KIND, WIDTH = range(2)
"""Rows of whole numbers by job: the kind of its curve, and how many GPUs it holds."""


class ActiveRows:
    """Jobs in the order of submission, and what is known of each, in arrays with room for more.

    Attributes
    ----------
    jobs
        Of which note was taken.
    phased
        Those of them that have several phases: what is known of these may be of an earlier one.
    """

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.phased: set[int] = set()
        self._whole = np.zeros((2, 64), dtype=np.int64)
        self._speeds = np.zeros((1, 64))

    @property
    def kinds(self) -> Integers:
        """The kinds of their curves."""
        return self._whole[KIND, : len(self.jobs)]

    @property
    def widths(self) -> Integers:
        """How many GPUs they hold."""
        return self._whole[WIDTH, : len(self.jobs)]

    @property
    def speeds(self) -> Floats:
        """Their speeds at the gangs that they ask for."""
        return self._speeds[0, : len(self.jobs)]

    def find(self, job: int) -> int:
        """Return the row of a job; -1 if there is none."""
        row = bisect_left(self.jobs, job)
        return row if row < len(self.jobs) and self.jobs[row] == job else -1

    def add(self, job: int, kind: int, speed: float, width: int) -> None:
        """Take note of a job, or of what is new of it."""
        row, count = self.find(job), len(self.jobs)
        if row < 0:
            row = bisect_left(self.jobs, job)
            if count == self._whole.shape[1]:
                self._whole = np.concatenate([self._whole, self._whole], axis=1)
                self._speeds = np.concatenate([self._speeds, self._speeds], axis=1)
            for figures in (self._whole, self._speeds):
                figures[:, row + 1 : count + 1] = figures[:, row:count]
            self.jobs.insert(row, job)
        self._whole[KIND, row], self._whole[WIDTH, row] = kind, width
        self._speeds[0, row] = speed

    def remove(self, job: int) -> None:
        """Forget a job, if it is known."""
        row, count = self.find(job), len(self.jobs)
        if row >= 0:
            del self.jobs[row]
            self.phased.discard(job)
            for figures in (self._whole, self._speeds):
                figures[:, row : count - 1] = figures[:, row + 1 : count]


class SharedByKind(SharedOut):
    """Widths of all jobs at once; what they hold is known, so those that change are looked at."""

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self.table = WidthTable()
        self.rows: ActiveRows | None = None  # of the active jobs; None: not known

    @abstractmethod
    def assigned(self, view: View, rows: ActiveRows, gpus: int) -> tuple[Integers, Integers]:
        """Return rows in the order in which their jobs are placed, and the widths of these."""

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        is_changed = super().take_note(view)
        if self.rows is not None:
            for job in (*view.ended, *view.failed):
                self.rows.remove(job)
            self._add(view, self.rows, view.arrived)
        return is_changed

    def _add(self, view: View, rows: ActiveRows, jobs: Iterable[int]) -> None:
        """Take note of jobs, or of their phases."""
        for job in jobs:
            curve = self.curve(view, job)
            if job not in self._only:
                rows.phased.add(job)
            speed = self.speed_asked(view, job)
            rows.add(job, self.table.kind(curve), speed, self.held.width(job))

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for jobs."""
        rows = ActiveRows()
        self._add(view, rows, jobs)
        order, widths = self.assigned(view, rows, gpus)
        return {jobs[row]: n for row, n in zip(order.tolist(), widths.tolist(), strict=True)}

    def share_out(self, view: View, gpus: int, rent: Rent) -> Decision:
        """Give every active job its width of so many GPUs; on a closed node jobs keep theirs."""
        if self.held.stuck:
            self.rows = None
            return super().share_out(view, gpus, rent)
        if self.rows is None:
            self.rows = ActiveRows()
            self._add(view, self.rows, self.active)
        else:
            self._add(view, self.rows, [*self.rows.phased])
        rows = self.rows
        order, widths = self.assigned(view, rows, gpus)
        others = (widths != rows.widths[order]).nonzero()[0]
        which, wanted = order[others], widths[others]
        rows.widths[which] = wanted
        changed = [rows.jobs[row] for row in which.tolist()]
        pairs = list(zip(changed, wanted.tolist(), strict=True))
        changes = {job: width for job, width in pairs if width}
        before = {*self.held.of}
        if len(changes) < len(pairs):
            self.held.release([job for job, width in pairs if not width])
        decision = self.placed(view, changes, before, rent)
        if {job: len(held) for job, held in decision.place.items()} != changes:
            self.rows = None
        return decision

    def curve_known(self, job: int) -> Curve | None:
        """Return the curve of a job as its share was chosen last, if that is known."""
        row = -1 if self.rows is None else self.rows.find(job)
        return None if self.rows is None or row < 0 else self.table.curves[self.rows.kinds[row]]
