"""Steps from a width to the next one, and which of them are steep, by what they do to a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.policies.width_curves import Curve

MOST_CURVES = 16
"""That jobs may have; with more of them all steps are looked at."""

MARGIN = 1e-6
"""By how much, relatively, slopes must fall from step to step, and gains may differ from theirs."""


class Steps(NamedTuple):
    """Steps from a width to the next one, of all jobs.

    Attributes
    ----------
    gain
        By how much the job gets shorter for each GPU of it: the least of this step and of those
        before it, for the job must have taken these.
    job, number
        Whose it is, and which one of its own.
    gpus
        How many GPUs it takes.
    """

    gain: Floats
    job: Integers
    number: Integers
    gpus: Integers

    def only(self, which: Integers) -> Steps:
        """Return some of the steps."""
        return Steps(self.gain[which], self.job[which], self.number[which], self.gpus[which])

    def in_order(self) -> Steps:
        """Return the steps, the steepest first; of equal ones those of the first job."""
        return self.only(np.lexsort((self.number, self.job, -self.gain)))


class SlopeTable:
    """Curves, one after the other: their speeds, and how steep each step of a job of one second is.

    Kept are curves whose steps surely become less steep from each to the next, whatever was
    rounded: of these a job takes the first ones.
    """

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._curves: list[Curve] = []
        self._slopes: list[Floats] = []  # of each curve, less than 0
        self._first = np.zeros(0, dtype=np.int64)  # where the speeds of each curve begin
        self._speed, self._wider = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._is_told = True

    def steps(self, curves: Sequence[Curve], seconds: Floats, floor: float) -> Steps | None:
        """Return all steps that gain so much, and some that gain a bit less.

        None if that cannot be told from slopes.

        Parameters
        ----------
        curves
            Of each job.
        seconds
            The time that each has left at speed 1.
        floor
            A gain above 0.
        """
        known = self._number
        numbers = [*map(known.get, map(id, curves))]
        if None in numbers:
            for curve in curves:
                self._tell(curve)
            numbers = [*map(known.get, map(id, curves))]
        if not self._is_told or not seconds.min() > 0:
            return None
        which = np.array(numbers, dtype=np.int64)
        least, many = -floor * (1 - MARGIN) / seconds, np.zeros(len(which), dtype=np.int64)
        for n, slopes in enumerate(self._slopes):
            rows = np.flatnonzero(which == n)
            many[rows] = slopes.searchsorted(least[rows], side="right")
        job = np.arange(len(which)).repeat(many)
        number = np.arange(len(job)) - (many.cumsum() - many).repeat(many)
        at, left = self._first[which].repeat(many) + number, seconds.repeat(many)
        wider = self._wider[at]
        gain = (left / self._speed[at] - left / self._speed[at + 1]) / wider
        return Steps(gain, job, number, wider)

    def _tell(self, curve: Curve) -> None:
        """Take note of a curve."""
        if id(curve) in self._number or not self._is_told:
            return
        slopes = sure_slopes(curve)
        self._is_told = slopes is not None and len(self._curves) < MOST_CURVES
        if slopes is None:
            return
        self._number[id(curve)] = len(self._curves)
        self._curves.append(curve)
        self._slopes.append(-slopes)
        self._first = np.append(self._first, len(self._speed))
        self._speed = np.append(self._speed, np.array(curve.speed))
        self._wider = np.append(self._wider, [*np.diff(curve.gpus).tolist(), 0])


def sure_slopes(curve: Curve) -> Floats | None:
    """Return how much shorter each step makes a second of work at speed 1, for each GPU of it.

    None unless every step surely is less steep than the one before, whatever was rounded.
    """
    times = 1 / np.array(curve.speed)
    falls = times[:-1] - times[1:]
    slopes: Floats = falls / np.diff(curve.gpus)
    is_sure = bool((falls > times[:-1] * MARGIN).all())  # rounding is far below the margin
    is_sure &= bool((slopes[1:] < slopes[:-1] * (1 - MARGIN)).all())
    return slopes if is_sure else None
