"""The steepest steps from call to call: only jobs near the cut are asked what they have left.

A step to one GPU more is taken if it gains more than the cut, the gain at which all GPUs are given
out. From one call to the next the cut and the work that jobs have left move by little, so most jobs
stay between the same two steps whatever exactly they have left: to know between what bounds it lies
is enough. These follow from what a job had left when it was asked last and how fast it got on
between two looks, at the first of which it ran already: where speed depends on its own GPUs alone,
it stays as it is for as long as the job holds these.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.rollout.policies.capacity.slopes import MARGIN
from optsched.rollout.policies.capacity.steepest_steps import Pause

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.policies.capacity.unit_steps import UnitSteps

    Ask = Callable[[Sequence[int]], Floats]
    """Returns the seconds that jobs have left at speed 1."""

MOST_MOVES = 256
"""Steps that are given or taken back in a call before all jobs are looked at."""

MOST_ROUNDS = 8
"""Of asking jobs near the cut in a call, likewise."""

LEAST_LEFT = 1e-9
"""Seconds that a job has left at least, so that none of its gains is 0."""

SURE_SPAN_US = 1_000_000
"""At least so much lies between two looks that tell how fast a job gets on."""

AT_MOST, AT_LEAST = 1 + 1e-5, 1 - 1e-4
"""What was so seen is times: what jobs have left is rounded to microseconds."""

LEFT, AT, PACE, LAST, AFTER = range(5)
"""Rows of figures by job: seconds left when it was asked, and when that was; if it is not due, how
many less it has after each microsecond; slopes of the last step that it takes and of the next."""

NONE = -1
"""Steps of a job that does not hold its least width yet."""


class Look(NamedTuple):
    """What was seen of a job that has got the GPUs which it holds.

    Attributes
    ----------
    left, at
        The seconds that it had left, and when that was.
    runs
        Whether it had got on by then, so that starting is behind it.
    """

    left: float
    at: int
    runs: bool


class NearCut:
    """Jobs in the order of submission, how many steps each takes, and bounds on what it has left.

    Attributes
    ----------
    jobs
        Of which note was taken.
    least
        GPUs that all of them hold at their least widths.
    figures
        By row of `LEFT` to `AFTER`, and by job; with room for more jobs.
    due
        Jobs that are to be asked wherever the cut is, until it was seen how fast they get on; and
        the last look that tells of it.
    """

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.least = 0
        self._steps: list[UnitSteps] = []
        self._counts: list[int] = []  # of steps that each job takes
        self.figures = np.zeros((AFTER + 1, 64))
        self._microsecond = 0.0  # what jobs need at least until they end, in seconds at speed 1
        self._cut = 0.0
        self._is_settled = False  # whether jobs hold what the counts say, but for new ones
        self._pause = Pause()
        self.due: dict[int, Look | None] = {}
        self._moved: set[int] = set()  # jobs that are new or whose counts were changed

    def add(self, job: int, steps: UnitSteps) -> None:
        """Take note of a job, after all that came before it."""
        row, count = bisect_left(self.jobs, job), len(self.jobs)
        if count == self.figures.shape[1]:
            self.figures = np.concatenate([self.figures, np.zeros_like(self.figures)], axis=1)
        self.figures[:, row + 1 : count + 1] = self.figures[:, row:count]
        self.jobs.insert(row, job)
        self.least += steps.curve.least
        self._microsecond = max(self._microsecond, 1e-6, 1e-6 * steps.curve.speed[-1])
        self._steps.insert(row, steps)
        self._counts.insert(row, NONE)
        self.due[job] = None

    def remove(self, job: int) -> None:
        """Forget a job."""
        row, count = bisect_left(self.jobs, job), len(self.jobs)
        self.least -= self._steps[row].curve.least
        del self.jobs[row], self._steps[row], self._counts[row]
        self.figures[:, row : count - 1] = self.figures[:, row + 1 : count]
        self.due.pop(job, None)

    def upset(self) -> None:
        """Take note that jobs may hold anything."""
        self._is_settled = False

    def settle(self, seconds: Sequence[float], counts: Sequence[int]) -> None:
        """Take note of how many steps all jobs take from now on, who have so much left."""
        if not self._pause.is_over:
            return
        for row, count in enumerate(counts):
            self._hold(row, count)
        self._cut = float((np.maximum(seconds, LEAST_LEFT) * self._rows[LAST]).min(initial=inf))
        self._is_settled = True

    def changes(self, now: int, gpus: int, ask: Ask) -> dict[int, int] | None:
        """Return the widths of jobs that do not hold these yet; None if that cannot be told.

        Parameters
        ----------
        now
            In microseconds.
        gpus
            For all jobs together, at least what their least widths take.
        ask
            Of jobs, what they have left.
        """
        if not self._is_settled:
            self._pause.pass_by()
            return None
        if not self.jobs:
            return {}
        before, self._moved = self._counts[:], set()
        self._is_settled = self._find(now, gpus - self.least, ask)
        self._pause.begin(not self._is_settled)
        if not self._is_settled:
            return None
        changes = {}
        for row in sorted(self._moved):
            count = self._counts[row]
            if count != before[row]:
                changes[self.jobs[row]] = self._steps[row].curve.gpus[count]
                self._hold(row, count)
        return changes

    def bounds(self, now: int) -> tuple[Floats, Floats]:
        """Return the seconds that jobs have left at least and at most, but for those not asked."""
        left, at, pace = self._rows[:LAST]
        span, fast, slow = now - at, pace * AT_MOST, pace * AT_LEAST
        least: Floats = np.maximum(left - fast * (span + 1), LEAST_LEFT)  # whatever was rounded
        most: Floats = np.maximum(left - slow * (span - 1), 0.0) + self._microsecond
        return least, np.minimum(most, left)

    def _find(self, now: int, spare: int, ask: Ask) -> bool:
        """Find how many steps all jobs take; return False if that cannot be told."""
        self._ask_due(now, ask)
        spare -= sum(self._counts)
        _, at, _, last, after = self._rows
        for _ in range(MOST_ROUNDS):
            low, high = self.bounds(now)
            gains = low * last, low * after
            if not self._level(low, *gains, spare):
                return False
            spare, least, most = 0, float(gains[0].min()), float(gains[1].max())
            if not most:  # all jobs take all steps
                return True
            self._cut = (most + min(least, 3 * most)) / 2
            near = high * after >= self._cut * (1 - MARGIN)
            near |= gains[0] <= self._cut * (1 + MARGIN)
            rows = near.nonzero()[0]
            if not len(rows):
                return True
            if (at[rows] == now).any():
                return False
            self._ask(rows, now, ask)
        return False

    def _ask_due(self, now: int, ask: Ask) -> None:
        """Ask jobs of which too little is known, and see how fast they get on."""
        jobs = sorted(self.due)
        rows = [bisect_left(self.jobs, job) for job in jobs]
        self._ask(np.array(rows, dtype=np.int64), now, ask)
        for row, job, left in zip(rows, jobs, self.figures[LEFT, rows].tolist(), strict=True):
            look = self.due[job]
            if self._counts[row] == NONE:
                slope = self._cut / max(left, LEAST_LEFT)
                self._take(row, self._steps[row].steps_above(slope))
            elif look is None:
                self.due[job] = Look(left, now, runs=False)
            elif not look.runs and left < look.left:
                self.due[job] = Look(left, now, runs=True)
            elif look.runs and now - look.at >= SURE_SPAN_US:
                self.figures[PACE, row] = (look.left - left) / (now - look.at)
                del self.due[job]

    def _level(self, low: Floats, last: Floats, after: Floats, spare: int) -> bool:
        """Give steps and take them back until none that is taken gains less than one that is not.

        Parameters
        ----------
        low
            The seconds that jobs have left at least.
        last, after
            What their last steps gain by that, and the ones after these; kept up to date.
        spare
            GPUs that are left; less than 0 if too many steps are taken.
        """
        for _ in range(MOST_MOVES):
            row, change = int(after.argmax()), 1
            if spare <= 0:
                down = int(last.argmin())
                if spare == 0 and after[row] <= last[down]:
                    return True
                row, change = down, -1
            elif not after[row]:
                return True
            count = self._counts[row] + change
            self._take(row, count)
            spare -= change
            slopes, seconds = self._steps[row].slopes, float(low[row])
            last[row], after[row] = seconds * slopes[count], seconds * slopes[count + 1]
        return False

    @property
    def _rows(self) -> Floats:
        """The figures, without room for more jobs."""
        return self.figures[:, : len(self.jobs)]

    def _take(self, row: int, count: int) -> None:
        """Let a job take so many steps."""
        self._counts[row] = count
        slopes, figures = self._steps[row].slopes, self.figures
        figures[LAST, row], figures[AFTER, row] = slopes[count], slopes[count + 1]
        self._moved.add(row)

    def _hold(self, row: int, count: int) -> None:
        """Take note that a job comes to hold so many steps: how fast it got on says no more."""
        self._take(row, count)
        self.due[self.jobs[row]] = None

    def _ask(self, rows: Integers, now: int, ask: Ask) -> None:
        """Ask jobs what they have left."""
        if len(rows):
            self.figures[LEFT, rows] = ask([self.jobs[row] for row in rows.tolist()])
            self.figures[AT, rows] = now
