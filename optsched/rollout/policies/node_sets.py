"""Sets as whole numbers: bit n stands for node n, for GPU n, or for the n-th GPU of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def members(numbers: int) -> Iterator[int]:
    """Yield what is in a set, ascending."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers -= lowest


def domain_sets(column: Sequence[int]) -> list[int]:
    """Return the set of nodes of each domain of a level."""
    sets: dict[int, int] = {}
    for node, domain in enumerate(column):
        sets[domain] = sets.get(domain, 0) | 1 << node
    return list(sets.values())
