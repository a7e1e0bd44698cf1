"""What the dearest gangs that fit on a cluster pay at once: a knapsack in each slot, in int64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK: Final = 4_000_000
MOST_WORK: Final = 4_000_000_000
MOST_GPUS: Final = 1 << 20
"""Prices are below 2**40: what so many gangs pay is below 2**60."""


def fullest(
    gangs: Sequence[tuple[int, Sequence[int]]],
    prices: Sequence[Sequence[int]],
    ends: Sequence[int],
    capacity: int,
) -> list[int]:
    """Return by slot the most that gangs pay together, no more of a width than were released.

    A dynamic program over GPUs, one gang after the other. Gangs of a single GPU come last, for
    they fill what is left.

    Parameters
    ----------
    gangs
        Widths, each with the releases of its jobs, ascending.
    prices
        By width and slot.
    ends
        Of the slots; a gang that is released at the end of a slot or later has no part in it.

    Raises
    ------
    Refused
        If it would take too long, or numbers could overflow.
    """
    counts = [min(len(releases), capacity // width) for width, releases in gangs]
    if capacity > MOST_GPUS or (sum(counts) + 1) * (capacity + 1) * len(ends) > MOST_WORK:
        raise Refused(f"gangs: too many on {capacity:,} GPUs in {len(ends):,} slots")
    step = max(1, CHUNK // (capacity + 1))
    found: list[int] = []
    for low in range(0, len(ends), step):
        part = slice(low, low + step)
        paid = np.array([row[part] for row in prices], np.int64).reshape(len(gangs), -1)
        until = np.array(ends[part], np.int64)
        most = np.zeros((capacity + 1, len(until)), np.int64)
        alone = most[0]
        for (width, releases), row, count in zip(gangs, paid, counts, strict=True):
            if width == 1:
                there = np.searchsorted(np.array(releases, np.int64), until, side="left")
                free = capacity - np.arange(capacity + 1)
                alone = np.minimum(there, free[:, None]) * row
                continue
            for release in releases[:count]:
                first = int(np.searchsorted(until, release, side="right"))
                more = most[: capacity + 1 - width, first:] + row[first:]
                most[width:, first:] = np.maximum(most[width:, first:], more)
        found += (most + alone).max(axis=0).tolist()
    return found
