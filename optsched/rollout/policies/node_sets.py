"""Sets as whole numbers: bit n stands for node n, for GPU n, or for the n-th GPU of a node."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_SETS = 1 << 12
"""Of GPUs, of which it is remembered what is in them."""


def members(numbers: int) -> Iterator[int]:
    """Yield what is in a set, ascending."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers -= lowest


@lru_cache(MOST_SETS)
def numbers_in(gpus: int) -> tuple[int, ...]:
    """Return which GPUs of a node are in a set, ascending."""
    return tuple(members(gpus))


def domain_sets(column: Sequence[int]) -> list[int]:
    """Return the set of nodes of each domain of a level."""
    sets: dict[int, int] = {}
    for node, domain in enumerate(column):
        sets[domain] = sets.get(domain, 0) | 1 << node
    return list(sets.values())
