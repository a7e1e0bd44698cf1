"""Slots of time, so fine where many jobs come that prices can follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.bounds.least_times import World
    from optsched.documents.arrays import Floats


def horizon_s(world: World) -> float:
    """Return a time by which a work-conserving schedule could be done, in seconds."""
    last = max((job.end_us for job in world.jobs), default=0)
    work = sum(job.length_us * float(_gpus(job)) for job in world.jobs)
    return (last + work / max(1, world.capacity)) / 1e6


def _gpus(job: object) -> float:
    return sum(p.rate * float(p.width) for p in job.pieces) / (1 << 16)  # type: ignore[attr-defined]


def slot_edges(world: World, count: int) -> Floats:
    """Return edges of slots in seconds, from the first release to the horizon.

    Half of them are evenly spaced, half are quantiles of releases and earliest ends.
    """
    first = min(job.release_us for job in world.jobs) / 1e6
    last = max(horizon_s(world), first + 1e-6)
    even = np.linspace(first, last, count // 2 + 1)
    moments = [m / 1e6 for job in world.jobs for m in (job.release_us, job.end_us)]
    chosen = np.quantile(moments, np.linspace(0, 1, count - count // 2))
    edges: Floats = np.unique(np.r_[even, chosen])
    return edges
