"""From shares of GPUs, as theory has them, to the whole widths that jobs may have."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.exact.hull import hull_vertices
from optsched.rollout.policies.capacity.slopes import Steps
from optsched.rollout.policies.steepest_steps import steps_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.policies.width_curves import Curve

TOLERANCE = 1e-9
"""How far below a width a share may be that stands for it: what is lost in floating point."""


def rounded(curves: Sequence[Curve], shares: Sequence[float], gpus: int) -> list[int]:
    """Return whole widths near shares of GPUs: the method of largest remainders, on given widths.

    Each job gets the largest of its widths within its share, none if there is none. Of the GPUs
    that are left, the job that is furthest below its share (or least above it) gets those to its
    next width, again and again; one for whose next width there are too few gets no more. Of equal
    ones, the first.

    Parameters
    ----------
    curves
        Of each job: its useful widths.
    shares
        Of each job, in GPUs; their sum is at most `gpus`.
    gpus
        How many there are.
    """
    counts = [
        bisect_right(curve.gpus, share + TOLERANCE)
        for curve, share in zip(curves, shares, strict=True)
    ]
    widths = [curve.gpus[n - 1] if n else 0 for curve, n in zip(curves, counts, strict=True)]
    left = gpus - sum(widths)
    if left > 0 and widths:
        steps = _steps(curves, counts, shares)
        more = np.bincount(steps_within(steps, left), minlength=len(curves)).tolist()
        for job, n in enumerate(more):
            if n:
                widths[job] = curves[job].gpus[counts[job] + n - 1]
    return widths


def _steps(curves: Sequence[Curve], counts: Sequence[int], shares: Sequence[float]) -> Steps:
    """Return the steps of all jobs from so many widths on: each gains by what a job is below."""
    widths: list[int] = []  # of all curves, each from 0 on
    starts: dict[int, int] = {}
    for curve in curves:
        if id(curve) not in starts:
            starts[id(curve)] = len(widths)
            widths += (0, *curve.gpus)
    pairs = list(zip(curves, counts, strict=True))
    many = np.array([len(curve.gpus) - n for curve, n in pairs], dtype=np.int64)
    first = np.array([starts[id(curve)] + n for curve, n in pairs], dtype=np.int64)
    job = np.arange(len(pairs)).repeat(many)
    number = np.arange(len(job)) - (many.cumsum() - many).repeat(many)
    at, every = first.repeat(many) + number, np.array(widths)
    before = every[at]
    gain = np.array(shares, dtype=float).repeat(many) - before
    return Steps(gain, job, number, every[at + 1] - before)


def envelope(curve: Curve, gpus: int) -> Floats:
    """Return the speeds at 0, 1, 2, ... GPUs on the concave envelope of a curve and of 0 at 0.

    Speeds between two widths are what turns at both give. The last number of GPUs is the first of
    the greatest speed within `gpus`; a curve without a width within them has that of 0 only.
    """
    count = bisect_right(curve.gpus, gpus)
    if not count:
        return np.zeros(1)
    widths = np.array(curve.gpus[:count], dtype=float)
    speeds = np.array(curve.speed[:count])
    kept = hull_vertices(widths, speeds[:, None])[:, 0]
    ends = np.concatenate([[0.0], widths[kept]])
    dense: Floats = np.interp(
        np.arange(int(ends[-1]) + 1), ends, np.concatenate([[0.0], speeds[kept]])
    )
    return dense


def filled_in_order(every: Floats, counts: Sequence[int], gpus: int) -> Integers:
    """Return how many GPUs each job gets if they go one by one to where the gain is largest.

    Parameters
    ----------
    every
        Of each job, by its GPUs: what each of them adds. Of equal ones, the first job's goes first;
        one that adds nothing is not given.
    counts
        How many of these each job has.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.flatnonzero(every > 0)
    if len(first) > gpus > 0:
        positive = every[first]
        least = np.partition(positive, -gpus)[-gpus]
        above, equal = first[positive > least], first[positive == least]
        first = np.concatenate([above, equal[: gpus - len(above)]])
    found: Integers = np.bincount(owner[first[:gpus]], minlength=len(counts))
    return found


class GainLevels:
    """What `filled_in_order` gives to jobs of few kinds: how many there are of each says it all.

    Parameters
    ----------
    gains
        Of each kind: what each further GPU of a job adds.
    """

    def __init__(self, gains: Sequence[Floats]) -> None:
        ascending = [np.sort(gain[gain > 0]) for gain in gains]
        levels = np.unique(np.concatenate(ascending))[::-1]
        below, upto = (
            np.array([gain.searchsorted(levels, side) for gain in ascending], dtype=np.int64).T
            for side in ("left", "right")
        )
        self._equal = upto - below  # by level, the largest gain first, and kind: GPUs that add it
        self._upto = self._equal.cumsum(axis=0)

    def filled(self, which: Integers, gpus: int) -> Integers:
        """Return how many GPUs each job gets, given its kind; of equal gains the first job's."""
        jobs = np.bincount(which, minlength=self._equal.shape[1])
        level = int((self._upto @ jobs).searchsorted(gpus))
        if level == len(self._upto):  # all that add anything
            found: Integers = self._upto[-1:].sum(axis=0)[which]
            return found
        equal = self._equal[level][which]
        found = self._upto[level][which] - equal
        left = gpus - int(found.sum())
        found += np.clip(left - (equal.cumsum() - equal), 0, equal)
        return found
