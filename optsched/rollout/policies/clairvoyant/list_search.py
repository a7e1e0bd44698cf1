"""Local search over lists: thousands of them, each by a schedule that knows no places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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

    def total(self, order: Sequence[int]) -> int:
        """Return the sum of all ends."""
        return sum(list_schedule(self.gangs, order, self.gpus))

    def improved(self, lists: Sequence[list[int]], draws: random.Random) -> list[int]:
        """Return the best of some lists, after moves of one job that do not make it worse."""
        totals = [self.total(jobs) for jobs in lists]
        total, count = min(totals), len(lists[0])
        order = list(lists[totals.index(total)])
        for _ in range(self.moves if count > 1 else 0):
            moved = neighbour(order, draws)
            found = self.total(moved)
            if found <= total:
                order, total = moved, found
        return order


def neighbour(order: Sequence[int], draws: random.Random) -> list[int]:
    """Return a list in which one job stands elsewhere, near places more often than far ones."""
    moved, count = list(order), len(order)
    at, bits = draws.randrange(count), count.bit_length()
    far = int(2 ** draws.uniform(0, bits)) * draws.choice((-1, 1))
    moved.insert(min(count - 1, max(0, at + far)), moved.pop(at))
    return moved
