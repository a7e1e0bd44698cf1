"""GPUs step by step to the job that each of them makes shorter by most, in one sort."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.capacity.slopes import SlopeTable, Steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.policies.width_curves import Curve


MOST_CURVES = 1 << 10
"""Of which arrays are kept."""

REACH = 0.7
"""Gains are looked at down to so much of the least that was taken last."""

LONGEST_PAUSE = 63
"""Of calls."""


class Pause:
    """For how many calls something is not tried that was in vain: each time in a row for longer."""

    def __init__(self) -> None:
        self._length = self._left = 0

    @property
    def is_over(self) -> bool:
        """Whether it may be tried."""
        return not self._left

    def begin(self, was_in_vain: bool) -> None:
        """Take note of how it went when it was tried."""
        self._length = min(2 * self._length + 1, LONGEST_PAUSE) if was_in_vain else 0
        self._left = self._length

    def pass_by(self) -> None:
        """Take note of a call in which it was not tried."""
        self._left = max(0, self._left - 1)


def steepest(curves: Sequence[Curve], seconds: Sequence[float], gpus: int) -> list[int]:
    """Return how many steps each job takes if the steepest next step is taken again and again.

    A job whose next step takes more GPUs than are left takes none any more.

    Parameters
    ----------
    curves
        Of each job; it begins at the least width.
    seconds
        The time that each has left at speed 1.
    gpus
        How many there are besides the least widths.

    Notes
    -----
    A step that is steeper than the one before it is taken right after that one, since no other job
    has one as steep. So the order in which steps come is that of the least gain up to each, and
    within one job that of its widths.
    """
    return Steepest().steps(curves, seconds, gpus)


class Steepest:
    """The same from call to call: steps far less steep than those last taken are let be.

    How steep a step is about follows from the time left and what the step does to one second; only
    of those that may be steep enough the gains are asked for. If they do not settle who takes what,
    all steps are looked at, as at first.
    """

    def __init__(self) -> None:
        self._least = 0.0  # gain, of as many of the steepest steps as there were GPUs
        self._pause = Pause()
        self._table = SlopeTable()

    def steps(self, curves: Sequence[Curve], seconds: Sequence[float], gpus: int) -> list[int]:
        """Return what `steepest` does."""
        if not curves:
            return []
        taken = None
        if self._least > 0 and gpus > 0 and self._pause.is_over:
            taken = self._within_reach(curves, np.array(seconds), gpus)
            self._pause.begin(taken is None)
        else:
            self._pause.pass_by()
        if taken is None:
            every = _steps(curves, seconds)
            taken = steps_within(every, gpus)
            self._least = _least_of(every.gain, gpus)
        counts: list[int] = np.bincount(taken, minlength=len(curves)).tolist()
        return counts

    def _within_reach(self, curves: Sequence[Curve], seconds: Floats, gpus: int) -> Integers | None:
        """Return whose steps are taken, if those from a bit below the last gain on settle it."""
        floor = self._least * REACH
        found = self._table.steps(curves, seconds, floor)
        if found is None or len(found.gain) < gpus:
            return None
        least = _least_of(found.gain, gpus)
        if least < floor:
            return None
        self._least = least
        steepest = found.only(np.flatnonzero(found.gain >= least))
        if int(steepest.gpus.sum()) <= gpus:
            return steepest.job
        taken, left = _taken(steepest.in_order(), gpus)
        return None if left else taken


def _least_of(gains: Floats, count: int) -> float:
    """Return the least of so many of the largest gains; 0 if there are not as many."""
    return float(np.partition(gains, -count)[-count]) if 0 < count <= len(gains) else 0.0


def steps_within(steps: Steps, gpus: int) -> Integers:
    """Return the job of each step that is taken within so many GPUs, in any order.

    The steepest are taken first; a job whose next step takes more GPUs than are left takes none
    any more.
    """
    if int(steps.gpus.sum()) <= gpus:
        return steps.job
    if gpus < len(steps.gain):
        least = np.partition(steps.gain, -gpus)[-gpus]
        steepest = np.flatnonzero(steps.gain >= least)
        if int(steps.gpus[steepest].sum()) <= gpus:
            return steps.job[steepest]
        taken, left = _taken(steps.only(steepest).in_order(), gpus)
        if not left:  # else some of these were too large
            return taken
    return _taken(steps.in_order(), gpus)[0]


def _steps(curves: Sequence[Curve], seconds: Sequence[float]) -> Steps:
    """Return all steps of all jobs."""
    alike: dict[int, list[int]] = {}  # jobs by curve: one object stands for a model's
    for n, curve in enumerate(curves):
        alike.setdefault(id(curve), []).append(n)
    parts, every = [], np.array(seconds)
    for jobs in map(np.array, alike.values()):
        speed, wider, numbers = _columns(curves[jobs[0]])
        left = every[jobs][:, None] / speed
        gain = np.minimum.accumulate((left[:, :-1] - left[:, 1:]) / wider, axis=1)
        same = np.empty((3, *gain.shape), dtype=np.int64)
        same[0], same[1], same[2] = jobs[:, None], numbers, wider
        parts.append((gain.ravel(), *same.reshape(3, -1)))
    return Steps(*map(np.concatenate, zip(*parts, strict=True)))


@lru_cache(MOST_CURVES)
def _columns(curve: Curve) -> tuple[Floats, Integers, Integers]:
    """Return the speeds of a curve, how much wider each step makes a job, and their numbers."""
    gpus: Integers = np.array(curve.gpus, dtype=np.int64)
    wider = gpus[1:] - gpus[:-1]
    return np.array(curve.speed), wider, np.arange(len(wider), dtype=np.int64)


def _taken(steps: Steps, gpus: int) -> tuple[Integers, int]:
    """Return whose steps are taken, in order, and how many GPUs are left then."""
    upto = np.cumsum(steps.gpus)
    count = int(np.searchsorted(upto, gpus, side="right"))
    taken = steps.job[:count]
    left = gpus - (int(upto[count - 1]) if count else 0)
    more, over = [], set()
    for job, size in zip(steps.job[count:].tolist(), steps.gpus[count:].tolist(), strict=True):
        if not left:
            break
        if job in over:
            continue
        if size > left:
            over.add(job)
        else:
            more.append(job)
            left -= size
    return np.concatenate([taken, np.array(more, dtype=np.int64)]), left
