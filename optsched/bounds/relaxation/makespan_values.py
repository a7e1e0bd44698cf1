"""What a gang of each width is worth, so that those that fit are worth 1: a linear program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from optsched.bounds.certificate import MakespanCertificate
from optsched.bounds.relaxation.dearest_gangs import Gangs
from optsched.bounds.verify.makespan import end_by_gangs_us, least_end_us
from optsched.mip import highs

if TYPE_CHECKING:
    from optsched.bounds.least_times import World
    from optsched.documents.arrays import Floats, Integers

MOST_MOMENTS: Final = 8
MOST_ROUNDS: Final = 60
MOST_SIZE: Final = 1_000_000
"""Gangs x GPUs beyond which it is not tried: so many fit well, and it would take long."""
VALUE_BITS: Final = 36
CLOSE: Final = 1 + 1e-9


class _Work(NamedTuple):
    """Jobs that hold GPUs, by release: their widths, and the seconds for which they hold them."""

    releases_us: Integers
    widths: Integers
    seconds: Floats

    def since(self, moment_us: int) -> _Work:
        """Return the jobs that are released at a moment or later."""
        first = int(np.searchsorted(self.releases_us, moment_us))
        return _Work(self.releases_us[first:], self.widths[first:], self.seconds[first:])


def makespan_certificate(world: World) -> MakespanCertificate | None:
    """Return values of gangs that prove more of the makespan than GPU time does; None if none do.

    None where a job has more than one width, too. From the first release on, and from that since
    which gangs of half the cluster and more hold it longest, values are followed by the moment
    since which they prove most, and that by the values that are best for it.
    """
    if any(len(job.pieces) > 1 for job in world.jobs):
        return None
    work = _work(world)
    if not len(work.widths):
        return None
    best, most_us, seen = None, least_end_us(world), set[int]()
    half = np.where(2 * work.widths >= world.capacity, 1.0, 0.0)
    for start_us in (int(work.releases_us[0]), _best_moment_us(work, half)):
        moment_us = start_us
        while moment_us not in seen and len(seen) < MOST_MOMENTS:
            seen.add(moment_us)
            late = work.since(moment_us)
            if moment_us + 1e6 * float(late.seconds.sum()) <= most_us:
                break  # one by one they would end sooner
            certificate = _valued(late, moment_us, world.capacity)
            if certificate is None:
                break
            end_us = end_by_gangs_us(world, certificate)
            if end_us > most_us:
                best, most_us = certificate, end_us
            value = np.zeros(int(work.widths.max()) + 1)
            value[list(certificate.widths)] = certificate.values
            moment_us = _best_moment_us(work, value[work.widths] / 2**VALUE_BITS)
    return best


def _work(world: World) -> _Work:
    rows = sorted(
        (job.release_us, int(job.pieces[0].width), job.length_us)
        for job in world.jobs
        if job.pieces and job.length_us
    )
    releases, widths, lengths = np.array(rows, np.int64).reshape(-1, 3).T
    return _Work(releases, widths, lengths / 1e6)


def _best_moment_us(work: _Work, values: Floats) -> int:
    """Return the release since which jobs are worth most, at values that are 1 at once at most."""
    left = np.cumsum((values * work.seconds)[::-1])[::-1]
    return int(work.releases_us[int(np.argmax(work.releases_us / 1e6 + left))])


def _valued(work: _Work, since_us: int, capacity: int) -> MakespanCertificate | None:
    """Return the values of gangs of the most worth, by cutting planes: sets that are worth most."""
    widths, place = np.unique(work.widths, return_inverse=True)
    counts = np.bincount(place)
    seconds = np.bincount(place, work.seconds).astype(float)
    gangs = Gangs(widths, counts[:, None], capacity)
    if gangs.size > MOST_SIZE or widths[-1] > capacity:
        return None
    alone = np.minimum(counts, capacity // widths)
    rows = np.diag(alone).astype(float)
    values, pay = np.zeros(len(alone)), 0.0
    for _ in range(MOST_ROUNDS):
        found = highs.solve(_program(seconds, rows)).x
        if found is None:
            break
        dearest = gangs.dearest(found[:, None])
        values, pay = found, float(dearest.pay[0])
        if pay <= CLOSE:
            break
        rows = np.vstack([rows, dearest.counts[:, 0]])
    whole = np.floor(values * 2**VALUE_BITS).astype(np.int64)
    if not pay or not whole.any():
        return None
    kept = whole > 0
    return MakespanCertificate(
        since_us=since_us, widths=widths[kept].tolist(), values=whole[kept].tolist()
    )


def _program(seconds: Floats, rows: Floats) -> highs.Program:
    count = len(seconds)
    return highs.Program(
        cost=-seconds / max(1.0, float(seconds.max())),
        offset=0.0,
        lower=np.zeros(count),
        upper=np.full(count, np.inf),
        integer=np.zeros(count, bool),
        matrix=csr_array(rows),
        row_lower=np.full(len(rows), -np.inf),
        row_upper=np.ones(len(rows)),
    )
