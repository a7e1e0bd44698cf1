"""GPUs that go one by one to where they gain most, for jobs in order: what SmartFill comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers

DIGITS = 12
"""Of gains, where the largest is 1: those that are the same in these differ by rounding alone."""

NEAR = 1e-11
"""Gains that are further apart than this are not the same in these."""


class Kind(NamedTuple):
    """A concave curve as it is gone through from the last GPU that a job can use to the first.

    Attributes
    ----------
    rises
        What each of them adds, ascending.
    speeds
        With so many of them.
    """

    rises: Floats
    speeds: Floats


class Fill(NamedTuple):
    """What jobs come to that SmartFill has looked at, from the longest on.

    Attributes
    ----------
    jobs
        How many of them there are that could run at all.
    weight
        Of the last one: what a unit of its work left costs in total flow time.
    gains
        What each GPU brings all of them, ascending; 0 for one that none can use.
    """

    jobs: int
    weight: float
    gains: Floats

    def next(self, kind: Kind) -> Fill:
        """Return the same with one job more, of less work left."""
        most = len(kind.rises)
        if not most:  # it cannot run on so few GPUs
            return Fill(self.jobs, 0.0, self.gains)
        jobs, gains = self.jobs + 1, self.gains
        beside = np.empty(most)  # less what the others gain on the GPUs that it leaves them
        beside[0] = np.subtract.reduce(gains[: most - 1 : -1], initial=0.0)
        beside[1:] = gains[most - 1 : 0 : -1]
        np.subtract.accumulate(beside, out=beside)
        weight = float(np.minimum.reduce((jobs + beside) / kind.speeds))
        merged = np.empty(len(gains) + most)
        merged[: len(gains)] = gains
        np.multiply(kind.rises, weight, out=merged[len(gains) :])
        merged.sort(kind="stable")  # two runs that are in order but for floating point
        return Fill(jobs, weight, merged[most:])


class Filling:
    """The fills of jobs, from call to call: those of jobs before any change are not made anew.

    Parameters
    ----------
    speeds
        By kind of job: at 0, 1, 2, ... GPUs, concave, ascending from 0, up to `gpus` at most.
    gpus
        How many there are.
    """

    def __init__(self, speeds: Sequence[Floats], gpus: int) -> None:
        self._gpus = gpus
        rises = list(map(np.diff, speeds))
        self._kinds = [
            Kind(rise[::-1].copy(), speed[:0:-1].copy())
            for rise, speed in zip(rises, speeds, strict=True)
        ]
        self._rises = np.concatenate([np.zeros(0), *rises])  # of all kinds, one after the other
        lengths = np.array(list(map(len, rises)), dtype=np.int64)
        self._begin = lengths.cumsum() - lengths
        self._first_rise = np.array([rise[0] if len(rise) else 0.0 for rise in rises])
        self._order: list[int] = []  # kinds of the jobs that were filled last
        self._fills = [Fill(0, 0.0, np.zeros(gpus))]  # from none of them to all

    def weights(self, kinds: Sequence[int]) -> list[float]:
        """Return what `smartfill_weights` does, for jobs of some kinds."""
        same = 0
        for one, other in zip(self._order, kinds, strict=False):
            if one != other:
                break
            same += 1
        del self._fills[same + 1 :]
        for kind in kinds[same:]:
            self._fills.append(self._fills[-1].next(self._kinds[kind]))
        self._order = list(kinds)
        return [fill.weight for fill in self._fills[1:]]

    def shares(self, kinds: Integers) -> Integers:
        """Return what `smartfill_shares` does, for jobs of some kinds.

        The last gain that has a GPU is known from the fills: whatever is far from it is decided.
        """
        weights = np.array(self.weights(kinds.tolist()))[::-1]  # from the job that ends first on
        which = kinds[::-1]
        top = float((weights * self._first_rise[which]).max(initial=0.0)) or 1.0
        least = (self._fills[-1].gains[:1] / top).round(DIGITS)[0]
        found, upto = self._counts(which, weights, top * (least + NEAR), top * (least - NEAR))
        near = upto - found
        job = np.arange(len(which)).repeat(near)
        number = np.arange(len(job)) + (upto - near.cumsum()).repeat(near)
        rises = self._rises[self._begin[which[job]] + number]
        gains = (weights[job] * rises / top).round(DIGITS)
        found += np.bincount(job[gains > least], minlength=len(which))
        if least > 0:
            equal = job[gains == least][: self._gpus - int(found.sum())]
            found += np.bincount(equal, minlength=len(which))
        return found[::-1]

    def _counts(self, which: Integers, weights: Floats, *levels: float) -> list[Integers]:
        """Return how many GPUs of each job gain more than each level."""
        some = np.where(weights > 0, weights, 1.0)  # who cannot run has none
        least = [level / some for level in levels]
        counts = [np.zeros(len(which), dtype=np.int64) for _ in levels]
        for kind in {*which.tolist()}:
            rows = (which == kind).nonzero()[0]
            rises = self._kinds[kind].rises
            for count, bound in zip(counts, least, strict=True):
                count[rows] = len(rises) - rises.searchsorted(bound[rows], "right")
        return counts
