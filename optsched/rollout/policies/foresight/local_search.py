"""Local search over lists, by moves of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


class Schedule(Protocol):
    """What says how good a list is."""

    def total(self, order: Sequence[int], most: float) -> float:
        """Return the sum of all ends, or some number above `most` if that is above it."""
        ...


def improved(
    schedule: Schedule, lists: Sequence[list[int]], moves: int, draws: random.Random
) -> list[int]:
    """Return the best of some lists, after moves of one job that do not make it worse."""
    total, order = float("inf"), lists[0]
    for one in lists:
        found = schedule.total(one, total)
        if found < total:
            order, total = one, found
    for _ in range(moves if len(order) > 1 else 0):
        moved = neighbour(order, draws)
        found = schedule.total(moved, total)
        if found <= total:
            order, total = moved, found
    return list(order)


def neighbour(order: Sequence[int], draws: random.Random) -> list[int]:
    """Return a list in which one job stands elsewhere, near places more often than far ones."""
    moved, count = list(order), len(order)
    at, bits = draws.randrange(count), count.bit_length()
    far = int(2 ** draws.uniform(0, bits)) * draws.choice((-1, 1))
    moved.insert(min(count - 1, max(0, at + far)), moved.pop(at))
    return moved
