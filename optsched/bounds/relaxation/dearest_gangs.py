"""The dearest gangs that fit on a cluster at once, in floats: what they pay, and which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Integers


class Dearest(NamedTuple):
    """By slot what the dearest gangs pay, and by width and slot how many there are of them."""

    pay: Floats
    counts: Floats


class Gangs:
    """Gangs by width, no more of one than were released before the end of a slot.

    Attributes
    ----------
    size
        Numbers that a call of `dearest` looks at.
    """

    def __init__(self, widths: Integers, there: Integers, capacity: int) -> None:
        self._capacity, self._widths = capacity, widths.tolist()
        self._there = np.minimum(there, capacity // widths[:, None])
        free = capacity - np.arange(capacity + 1)
        self._alone = np.minimum(there[0], free[:, None]) if self._widths[0] == 1 else None
        most = self._there.max(axis=1, initial=0)
        self._items = [
            (number, width, int(np.searchsorted(self._there[number], nth)))
            for number, width in enumerate(self._widths)
            for nth in range(1, (int(most[number]) if width > 1 else 0) + 1)
        ]
        self.size = (len(self._items) + 1) * (capacity + 1) * there.shape[1]

    def dearest(self, prices: Floats) -> Dearest:
        """Return the dearest gangs at prices by width and slot, shape (widths, slots)."""
        slots = prices.shape[1]
        most, taken = np.zeros((self._capacity + 1, slots)), []
        for number, width, first in self._items:
            more = most[:-width, first:] + prices[number, first:]
            is_more = more > most[width:, first:]
            most[width:, first:] = np.maximum(more, most[width:, first:])
            taken.append(is_more)
        every, counts = np.arange(slots), np.zeros_like(prices)
        left = np.full(slots, self._capacity)
        if self._alone is not None:
            most = most + prices[0] * self._alone
            left = most.argmax(axis=0)
            counts[0] = self._alone[left, every]
        pay = most[left, every]
        for (number, width, first), is_more in zip(
            reversed(self._items), reversed(taken), strict=True
        ):
            rows = left[first:] - width
            chosen = np.zeros(slots, bool)
            chosen[first:] = (rows >= 0) & is_more[np.maximum(rows, 0), every[: slots - first]]
            counts[number] += chosen
            left = left - width * chosen
        return Dearest(pay, counts)
