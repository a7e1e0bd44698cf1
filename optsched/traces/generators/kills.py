"""Which jobs their users kill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.traces.generators.random_draws import stratified

if TYPE_CHECKING:
    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers
    from optsched.traces.generators.workload_models import World

BLOCK = 16
"""Jobs of about as much GPU time among which draws are stratified."""


def draw_killed(
    rng: Generator, world: World, size: Integers, place: Floats, gpu_time: Floats, factor: float
) -> Any:
    """Return whether a job's user would kill it: odds c (v / (1 - v)) ** slope at quantile v.

    c gives the size class its share of killed jobs. v is the place among the run times of the size,
    or, in a world with one share for all sizes, among the GPU times of all jobs.
    """
    rank = ranks(gpu_time)
    if len(world.killed) == 1:
        size, place = np.zeros_like(size), (rank + 0.5) / len(rank)
    with np.errstate(divide="ignore"):
        logit = world.kill_slope * np.log(place / (1 - place))
    shares = np.clip(np.array(world.killed) * factor, 0, 1)
    offsets = np.array([kill_offset(share, world.kill_slope) for share in shares])
    with np.errstate(over="ignore"):
        chance = 1 / (1 + np.exp(-logit - offsets[size]))
    return stratified(rng, rank // BLOCK) < chance


def kill_offset(share: float, slope: float) -> float:
    """Return the log of c with which this share of all jobs is killed."""
    if share in (0, 1):
        return -np.inf if share == 0 else np.inf
    from scipy.optimize import brentq

    place = (np.arange(2000) + 0.5) / 2000
    logit = slope * np.log(place / (1 - place))
    return float(brentq(lambda c: np.mean(1 / (1 + np.exp(-logit - c))) - share, -80, 80))


def ranks(values: Floats) -> Integers:
    """Return the place of each value in ascending order, from 0."""
    rank: Integers = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return rank
