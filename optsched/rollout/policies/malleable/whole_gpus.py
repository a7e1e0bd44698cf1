"""From shares of GPUs, as theory has them, to the whole widths that jobs may have."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.exact.hull import hull_vertices
from optsched.rollout.policies.capacity.slopes import Steps
from optsched.rollout.policies.capacity.steepest_steps import steps_within
from optsched.rollout.policies.capacity.width_table import WidthTable

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
    table = WidthTable()
    share = np.array(shares, dtype=float)
    widths: list[int] = Rounding(table).rounded(table.kinds(curves), share, gpus).tolist()
    return widths


class Rounding:
    """The same from call to call: the widths of curves that came before are kept.

    Attributes
    ----------
    table
        The widths of all kinds of curves.
    """

    def __init__(self, table: WidthTable) -> None:
        self.table = table

    def rounded(self, kinds: Integers, shares: Floats | Integers, gpus: int) -> Integers:
        """Return what `rounded` does for jobs whose curves are of some kinds."""
        table, share = self.table, shares.astype(np.float64)
        at = table.within(kinds, np.floor(share + TOLERANCE).astype(np.int64))
        found: Integers = table.widths[at]
        left = gpus - int(found.sum())
        if left <= 0 or not len(at):
            return found
        many, counts = table.ends[kinds] - at, None
        if table.is_unit:
            counts = in_rounds(share, found, many, left)
        at += self._more(at, many, share, left) if counts is None else counts
        widened: Integers = table.widths[at]
        return widened

    def _more(self, at: Integers, many: Integers, share: Floats, gpus: int) -> Integers:
        """Return how many of their steps jobs take within so many GPUs.

        Mostly these are the first few: no more are looked at unless a job takes all of these.
        """
        most = 2 + 2 * gpus // len(at)
        while True:
            looked = np.minimum(many, most)
            taken = steps_within(self._steps(at, looked, share), gpus)
            counts: Integers = np.bincount(taken, minlength=len(at))
            if not ((counts == looked) & (looked < many)).any():
                return counts
            most *= 4

    def _steps(self, at: Integers, many: Integers, share: Floats) -> Steps:
        """Return the steps of all jobs from their widths on: each gains by what a job is below."""
        job = np.arange(len(at)).repeat(many)
        number = np.arange(len(job)) - (many.cumsum() - many).repeat(many)
        before = at.repeat(many) + number
        widths = self.table.widths
        width = widths[before]
        return Steps(share.repeat(many) - width, job, number, widths[before + 1] - width)


def in_rounds(share: Floats, widths: Integers, many: Integers, gpus: int) -> Integers | None:
    """Return how many steps of one GPU jobs take: who is furthest below its share takes the next.

    With each step a job is one GPU less below it. So where all are about as far below, by less than
    one GPU, they take one step each, in rounds; the last round is for those who are furthest below.

    Parameters
    ----------
    share, widths
        What each job should have, and has.
    many
        How many steps it can take.
    gpus
        For how many steps there are GPUs.

    Returns
    -------
    Integers | None
        None if jobs are too far apart.
    """
    below = (share - widths)[many > 0]
    if len(below) and below.max() - below.min() > 1 - TOLERANCE:
        return None
    takers = len(many) - np.bincount(many).cumsum()  # by round
    rounds = int(takers.cumsum().searchsorted(gpus, "right"))
    counts: Integers = np.minimum(many, rounds)
    last = (many > rounds).nonzero()[0]
    furthest = (widths[last] + rounds - share[last]).argsort(kind="stable")
    counts[last[furthest[: gpus - int(counts.sum())]]] += 1
    return counts


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
        found += np.minimum(np.maximum(left - (equal.cumsum() - equal), 0), equal)
        return found
