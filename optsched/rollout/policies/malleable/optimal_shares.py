"""Shares of least total flow time for jobs that are all there: heSRPT, and SmartFill for any curve.

Let jobs 1, ..., m have work x_1 >= ... >= x_m left. Let no more jobs come, let job i run at speed
s_i(k) on k GPUs, with s_i concave and s_i(0) = 0, and let jobs end in the order m, ..., 1. Then the
least total flow time is linear in the work left, sum a_i x_i, and the best shares are those that
maximise sum a_i s_i(k_i) (Hamilton, Jacobi, Bellman: the cost falls as fast as jobs are there, so
the maximum is m). The weights follow one by one, since those of jobs 1 to i are as if no other had
been there: if F(b) is the maximum for jobs 1 to i - 1 on b GPUs,

    a_i = min over k of (i - F(C - k)) / s_i(k).

So the ratios of derivatives of speeds of two jobs that share stay the same for ever: the rule of
consistent derivative ratios. For s(k) = k ** p this gives heSRPT, in closed form.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.malleable.fills import Filling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers


MOST_COUNTS = 1 << 10
"""Of jobs, for which the shares of heSRPT are kept."""


@lru_cache(MOST_COUNTS)
def hesrpt_shares(jobs: int, exponent: float) -> Floats:
    """Return the shares of all GPUs, from the job with the most work left to that with the least.

    Parameters
    ----------
    jobs
        How many there are.
    exponent
        The p of s(k) = k ** p, above 0 and below 1.

    Notes
    -----
    Source: Berg, Vesilo and Harchol-Balter, heSRPT, arXiv 1903.09346: job i of m, the longest
    first, has (i / m) ** (1 / (1 - p)) - ((i - 1) / m) ** (1 / (1 - p)), whatever the sizes are.
    """
    ends = (np.arange(jobs + 1) / max(jobs, 1)) ** (1 / (1 - exponent))
    shares: Floats = np.diff(ends)
    shares.setflags(write=False)
    return shares


def smartfill_weights(speeds: Sequence[Floats], gpus: int) -> list[float]:
    """Return what a unit of work left costs in total flow time, from the longest job on.

    Parameters
    ----------
    speeds
        Of each job, the one with the most work left first: at 0, 1, 2, ... GPUs, concave, ascending
        from 0, up to `gpus` at most. Between whole numbers of GPUs speeds are linear.
    gpus
        How many there are. A job that no width within them suits costs nothing, for it waits.

    Notes
    -----
    Source: Li, Ju, Eryilmaz and Shroff, SmartFill, arXiv 2509.01811. Since the speeds have corners
    at whole numbers only, so has F, and the minimum, of a ratio of linear functions, is at one.
    """
    return Filling(speeds, gpus).weights(range(len(speeds)))


def smartfill_shares(speeds: Sequence[Floats], gpus: int) -> Integers:
    """Return the GPUs of each job that are best until one ends.

    Parameters are those of `smartfill_weights`. Of shares that are as good, those that give the
    jobs with less work left more.
    """
    # What is the same but for floating point goes to the job that ends first.
    return Filling(speeds, gpus).shares(np.arange(len(speeds)))


def whittle_gains(speed: Floats) -> Floats:
    """Return at which price of a GPU each further one is no longer worth it, descending.

    Parameters
    ----------
    speed
        At 0, 1, 2, ... GPUs, concave, ascending from 0.

    Notes
    -----
    A job alone, at a price for each GPU and second and a cost of 1 for each second that it is
    there, takes the k that minimises (1 + price k) / s(k). From k - 1 to k this pays up to the
    price at which both are the same, (s(k) - s(k-1)) / (k s(k-1) - (k-1) s(k)), which is what
    Whittle's index is here. As far as the speed is linear from 0 on, it is infinite.
    """
    k = np.arange(1, len(speed))
    rise = np.diff(speed)
    rest = speed[1:] - k * rise  # where the line through both cuts the axis of speed
    is_linear = rest <= 1e-12 * speed[1:]
    gains: Floats = np.where(is_linear, np.inf, rise / np.where(is_linear, 1.0, rest))
    return gains
