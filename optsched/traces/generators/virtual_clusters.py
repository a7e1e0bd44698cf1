"""Which virtual cluster each job belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from optsched.traces.generators.kills import ranks
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.random_draws import stratified
from optsched.traces.generators.workload_models import class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers
    from optsched.traces.generators.workload_models import World

BLOCK = 40
"""Jobs of about as much GPU time among which draws are stratified."""


def draw_queues(
    rng: Generator, world: World, gpus: Integers, gpu_s: Floats, by: Literal["hours", "size"]
) -> list[str] | None:
    """Return the virtual cluster of each job: the more GPU time, the likelier a steep one.

    By size, each class of size has its own levels, and draws are stratified within it.
    """
    if not world.queues:
        return None
    log_hours = np.log(gpu_s / 3600)
    if by == "hours":
        chances = chances_of(log_hours, np.array(FITTED.queue_level), FITTED.queue_slope)
        place = stratified(rng, ranks(gpu_s) // BLOCK)
    else:
        size = class_of(gpus)
        levels = np.array(FITTED.queue_levels_by_size)[size]
        chances = chances_of(log_hours, levels, FITTED.queue_slope_by_size)
        rank = np.empty(len(size), dtype=np.int64)
        rank[np.lexsort((gpu_s, size))] = np.arange(len(size))
        place = stratified(rng, rank // BLOCK)
    chosen = (place[:, None] >= np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    return [world.queues[n] for n in chosen.tolist()]


def chances_of(log_hours: Floats, level: Floats, slope: Sequence[float]) -> Floats:
    """Return the chances of the virtual clusters by job: the softmax of level + slope x.

    Levels are the same for all jobs, or a row for each.
    """
    score = level + log_hours[:, None] * np.array(slope)
    weights = np.exp(score - score.max(axis=1, keepdims=True))
    chances: Floats = weights / weights.sum(axis=1, keepdims=True)
    return chances
