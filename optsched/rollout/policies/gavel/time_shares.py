"""Shares of time that gangs are to have on each type of GPUs: Gavel's linear programs.

Let x_jt be the share of its time that job j is to run on type t, on its g_j GPUs at speed v_jt.
Shares of a job are at most 1 in sum, and of a type no more GPUs are shared out than there are. Both
programs maximise the least of a linear gain over jobs, and then, that least being kept, the sum of
the gains, for else jobs that could have more have no shares to speak of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from optsched.mip import highs

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Integers

KEPT = 1 - 1e-7
"""How much of the least gain is kept when the sum is maximised: HiGHS has tolerances."""


class WaitingGangs(NamedTuple):
    """Jobs that want GPUs.

    Attributes
    ----------
    gpus
        Shape (jobs,): what each needs at once.
    speed
        Shape (jobs, types): how fast each gets on; 0 where it cannot run.
    capacity
        Shape (types,): GPUs of each type.
    """

    gpus: Floats
    speed: Floats
    capacity: Floats

    @property
    def fits(self) -> Floats:
        """Speeds, 0 where there are too few GPUs for a gang."""
        speed: Floats = np.where(self.gpus[:, None] <= self.capacity, self.speed, 0.0)
        return speed


def fair_shares(gangs: WaitingGangs) -> Floats:
    """Return the shares of time of max-min fairness, shape (jobs, types).

    The gain of a job is its GPUs times its speed over that of an equal share of all GPUs: so a gang
    of eight has an eighth of the time of a job with one GPU, where types are alike.

    Source: Narayanan et al., Gavel, OSDI 2020, section 4.1.
    """
    fits = gangs.fits
    equal = fits @ gangs.capacity / max(gangs.capacity.sum(), 1.0)
    scale = np.divide(gangs.gpus, equal, out=np.zeros_like(equal), where=equal > 0)
    return _greatest_least(gangs, fits * scale[:, None])


def shares_of_least_makespan(gangs: WaitingGangs, work: Floats) -> Floats:
    """Return shares of time with which the last of the jobs ends first, shape (jobs, types).

    Parameters
    ----------
    work
        Shape (jobs,): what each has left, in seconds at speed 1.

    Notes
    -----
    Source: Narayanan et al., Gavel, OSDI 2020, section 4.2. There the makespan is searched by
    bisection; as the program is linear in its inverse, one program finds it.
    """
    left = np.maximum(work, 1e-6)
    return _greatest_least(gangs, gangs.fits / left[:, None])


def _greatest_least(gangs: WaitingGangs, gains: Floats) -> Floats:
    """Return shares of the greatest least gain, and of the greatest sum with that."""
    if gains.shape[1] == 1:
        share: Floats = np.where(gains > 0, 1.0, 0.0)
        if gangs.gpus @ share[:, 0] <= gangs.capacity[0]:
            return share  # all run all the time: nothing is to be solved
    return by_programs(gangs, gains)


def by_programs(gangs: WaitingGangs, gains: Floats) -> Floats:
    """Return the same, whatever there is to share out.

    Parameters
    ----------
    gains
        Shape (jobs, types): what a job gains if it runs there all the time.
    """
    shares = np.zeros_like(gains)
    jobs, types = np.nonzero(gains)
    if not len(jobs):
        return shares
    kept, rows = np.unique(jobs, return_inverse=True)
    value = gains[jobs, types] / gains.max()
    program = _program(gangs, rows, types, value, gangs.gpus[jobs])
    first = highs.solve(program)
    if first.x is None:
        return shares
    lower = program.lower.copy()
    lower[-1] = max(first.x[-1] * KEPT, 0.0)
    second = highs.solve(replace(program, lower=lower, cost=-np.append(value, 0.0)))
    best = first.x if second.x is None else second.x
    shares[kept[rows], types] = np.clip(best[:-1], 0.0, 1.0)
    return shares


def _program(
    gangs: WaitingGangs, rows: Integers, types: Integers, value: Floats, gpus: Floats
) -> highs.Program:
    """Return the program that maximises the last column, the least gain."""
    jobs, columns = int(rows.max()) + 1, len(rows)
    every, least = np.arange(columns), np.full(jobs, columns)
    entries = (
        (rows, every, value),  # gain - least >= 0
        (np.arange(jobs), least, -np.ones(jobs)),
        (jobs + rows, every, np.ones(columns)),  # sum of shares <= 1
        (2 * jobs + types, every, gpus),  # GPUs of a type
    )
    row, column, entry = (np.concatenate(part) for part in zip(*entries, strict=True))
    count = 2 * jobs + len(gangs.capacity)
    bounds = np.concatenate([np.full(jobs, np.inf), np.ones(jobs), gangs.capacity])
    return highs.Program(
        cost=np.append(np.zeros(columns), -1.0),
        offset=0.0,
        lower=np.zeros(columns + 1),
        upper=np.append(np.ones(columns), np.inf),
        integer=np.zeros(columns + 1, dtype=bool),
        matrix=csr_array((entry, (row, column)), shape=(count, columns + 1)),
        row_lower=np.append(np.zeros(jobs), np.full(count - jobs, -np.inf)),
        row_upper=bounds,
    )
