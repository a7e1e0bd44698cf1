"""Local search over lists: thousands of them, each by a schedule that knows no places."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.foresight.local_search import improved
from optsched.rollout.policies.list_schedule import GangTimes, list_schedule, unit_us

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from optsched.rollout.results.record import Record


class ListSearch:
    """Lists of jobs, by the sum of ends if each holds its GPUs for as long as in a rollout.

    So distance, slow GPUs, failures and overheads count as they did there, on average.

    Parameters
    ----------
    record
        Of a rollout in which all jobs ended.
    moves
        How many lists a call of `improved` tries.
    """

    def __init__(self, record: Record, moves: int) -> None:
        unit, trace = unit_us(record.scenario), record.trace
        held = np.maximum(1, -(-record.jobs.running_us // unit))
        released = -(-trace.submit_us // unit)
        self.gangs = GangTimes(released.tolist(), held.tolist(), trace.gpus.tolist())
        self.gpus, self.moves = record.scenario.gpus, moves

    def total(self, order: Sequence[int], most: float = inf) -> float:
        """Return the sum of all ends, whatever it is."""
        return sum(list_schedule(self.gangs, order, self.gpus))

    def improved(self, lists: Sequence[list[int]], draws: random.Random) -> list[int]:
        """Return the best of some lists, after moves of one job that do not make it worse."""
        return improved(self, lists, self.moves, draws)
