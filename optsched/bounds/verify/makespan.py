"""The least makespan: earliest ends, and the GPU time of jobs that come late."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.bounds.least_times import World

STEPS = 1 << 16


def least_end_us(world: World) -> int:
    """Return what the last end is at least, in whole microseconds since the trace's start.

    The greatest of the jobs' earliest ends, and over all releases t of t + what jobs that are
    released at t or later hold at least / all GPUs.
    """
    latest = max((job.end_us for job in world.jobs), default=0)
    held = Fraction(0)
    for job in sorted(world.jobs, key=lambda job: job.release_us, reverse=True):
        gpus = sum((piece.rate * piece.width for piece in job.pieces), Fraction(0)) / STEPS
        held += job.length_us * gpus
        latest = max(latest, job.release_us + (held / world.capacity).__ceil__())
    return latest
