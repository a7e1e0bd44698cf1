"""GPUs step by step to the job that each of them makes shorter by most, in one sort."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.policies.width_curves import Curve


MOST_CURVES = 1 << 10
"""Of which arrays are kept."""


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
    if not curves:
        return []
    taken = steps_within(_steps(curves, seconds), gpus)
    counts: list[int] = np.bincount(taken, minlength=len(curves)).tolist()
    return counts


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
