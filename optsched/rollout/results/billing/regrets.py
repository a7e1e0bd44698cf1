"""Regret over time: what one rollout of a trace has cost by a moment beyond another one of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.rollout.results.time_averages import GPU_H
from optsched.traces.trace import US

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.results.record import Record


class Regret(NamedTuple):
    """What a rollout has cost by each moment beyond another of the same jobs; negative for less.

    Attributes
    ----------
    hours
        Shape (moments,): since the first arrival.
    arrived
        Shape (moments,): jobs that have come by then.
    job_s
        Shape (moments,): seconds that jobs were in the system, all together.
    usd
        Shape (moments,): what was billed for GPUs.
    """

    hours: Floats
    arrived: Floats
    job_s: Floats
    usd: Floats

    @property
    def jct_s(self) -> Floats:
        """Seconds beyond the other rollout per job that has come; 0 before the first."""
        return self.job_s / np.maximum(self.arrived, 1)


def regret(learner: Record, told: Record, hours: ArrayLike) -> Regret:
    """Return what a rollout costs beyond another one of the same trace, as it goes on.

    A job is in the system from its arrival to its end, so that after the last end `job_s` is the
    sum of the differences of job completion times.

    Parameters
    ----------
    learner, told
        Records of one trace, such as of a policy that learns a price and of the same policy at the
        price that the whole trace has shown to be right.
    hours
        Moments, in hours since the first arrival, in any order; `numpy.inf` for the end.

    Raises
    ------
    ValueError
        If the rollouts have other arrivals, or their nodes are not rented.

    Notes
    -----
    Source: regret as in online learning; docs/math/boa.md, Widths at a price.
    """
    arrivals = learner.trace.submit_us
    if not np.array_equal(arrivals, told.trace.submit_us):
        raise ValueError("regret is of two rollouts of one trace, and these have other arrivals")
    if learner.scenario.rented is None or told.scenario.rented is None:
        raise ValueError("regret is counted in what is billed, and these nodes are not rented")
    moments = np.atleast_1d(np.asarray(hours, dtype=float))
    if not len(arrivals):
        return Regret(moments, *np.zeros((3, len(moments))))
    at_us = arrivals[0] + moments * 3600 * US
    ahead_s, ahead_usd = (
        of(learner, at_us) - of(told, at_us) for of in (_job_seconds, _billed_usd)
    )
    arrived = np.searchsorted(arrivals, at_us, "right").astype(float)
    return Regret(moments, arrived, ahead_s, ahead_usd)


def _job_seconds(record: Record, at_us: Floats) -> Floats:
    """Return the seconds that jobs have been in the system by each moment."""
    ends = np.where(record.jobs.end_us < 0, record.end_us, record.jobs.end_us)
    total = _time_by(record.trace.submit_us, at_us) - _time_by(ends, at_us)
    return np.where(np.isinf(at_us), float((ends - record.trace.submit_us).sum()), total) / US


def _time_by(times_us: Integers, at_us: Floats) -> Floats:
    """Return the sum of max(0, moment - time) over times, for each finite moment."""
    ascending = np.sort(times_us).astype(float)
    sums = np.r_[0.0, ascending.cumsum()]
    count = np.searchsorted(ascending, at_us, "right")
    finite = np.where(np.isinf(at_us), 0.0, at_us)
    total: Floats = count * finite - sums[count]
    return total


def _billed_usd(record: Record, at_us: Floats) -> Floats:
    """Return the USD billed by each moment: linear between epochs, for nodes change at them."""
    now_us = np.array([e.now_us for e in record.epochs] + [record.end_us], dtype=float)
    usd = [e.billed_usd for e in record.epochs] + [record.billed_usd]
    if not record.scenario.has_prices:
        price = record.scenario.price_usd_per_gpu_h / GPU_H
        spent = [e.spent_gpu_us for e in record.epochs] + [record.spent_gpu_us]
        usd = [price * gpu_us for gpu_us in spent]
    return np.interp(at_us, np.r_[0.0, now_us], np.r_[0.0, usd])
