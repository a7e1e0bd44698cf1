"""The least makespan: earliest ends, the GPU time of jobs that come late, and gangs that fit."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from optsched.bounds.verify.fullest import fullest
from optsched.bounds.verify.gangs import width_of
from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from optsched.bounds.certificate import MakespanCertificate
    from optsched.bounds.least_times import World

STEPS = 1 << 16


def least_end_us(world: World) -> int:
    """Return what the last end is at least, in whole microseconds since the trace's start.

    The greatest of the jobs' earliest ends, and over all releases t of t + what jobs that are
    released at t or later hold at least / all GPUs: an elastic job all its time where a GPU does
    the most work.
    """
    latest = max((job.end_us for job in world.jobs), default=0)
    held = Fraction(0)
    for job in sorted(world.jobs, key=lambda job: job.release_us, reverse=True):
        held += job.length_us * min((piece.width for piece in job.pieces), default=Fraction(0))
        latest = max(latest, job.release_us + (held / world.capacity).__ceil__())
    return latest


def end_by_gangs_us(world: World, certificate: MakespanCertificate) -> int:
    """Return what the last end is at least by the worth of gangs, in whole microseconds.

    t + the worth of all that jobs released at t or later hold / the most that gangs are worth which
    fit together, see docs/math/bounds.md.

    Raises
    ------
    Refused
        If jobs are elastic, widths do not ascend, or there are too many gangs.
    """
    widths, values = certificate.widths, certificate.values
    if any(wide <= narrow for narrow, wide in pairwise(widths)):
        raise Refused("makespan: widths must ascend")
    if len(values) != len(widths):
        raise Refused("makespan: one value for each width")
    value_of = dict(zip(widths, values, strict=True))
    counts, worth = dict.fromkeys(widths, 0), 0
    for job in world.jobs:
        width = width_of(job)
        if width in value_of and job.release_us >= certificate.since_us:
            counts[width] += 1
            worth += value_of[width] * job.length_us
    gangs = [(width, [0] * count) for width, count in counts.items()]
    most = fullest(gangs, [[value] for value in values], [1], world.capacity)[0]
    return certificate.since_us + -(-worth // most) if most else 0
