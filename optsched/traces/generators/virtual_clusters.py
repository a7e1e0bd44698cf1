"""Which virtual cluster each job belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.traces.generators.kills import ranks
from optsched.traces.generators.philly_constants import FITTED
from optsched.traces.generators.random_draws import stratified

if TYPE_CHECKING:
    from numpy.random import Generator

    from optsched.documents.arrays import Floats
    from optsched.traces.generators.workload_models import World

BLOCK = 40
"""Jobs of about as much GPU time among which draws are stratified."""


def draw_queues(rng: Generator, world: World, gpu_s: Floats) -> list[str] | None:
    """Return the virtual cluster of each job: the more GPU time, the likelier a steep one."""
    if not world.queues:
        return None
    chances = chances_of(np.log(gpu_s / 3600), FITTED.queue_level, FITTED.queue_slope)
    place = stratified(rng, ranks(gpu_s) // BLOCK)
    chosen = (place[:, None] >= np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    return [world.queues[n] for n in chosen.tolist()]


def chances_of(log_hours: Floats, level: tuple[float, ...], slope: tuple[float, ...]) -> Floats:
    """Return the chances of the virtual clusters by job: the softmax of level + slope x."""
    score = np.array(level) + log_hours[:, None] * np.array(slope)
    weights = np.exp(score - score.max(axis=1, keepdims=True))
    chances: Floats = weights / weights.sum(axis=1, keepdims=True)
    return chances
