"""The least of a job's completion and of the price of its gang's time, over all ways to hold it."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T", int, float)


def least_completion(
    release: T, length: T, edges: Sequence[T], prices: Sequence[T], slot: int, scale: T, far: T
) -> tuple[T, T]:
    """Return the least of scale x C + price of the cheapest `length` in [release, C], and C.

    As C grows, what is cheaper than the dearest time held so far takes its place. Within a slot
    the sum is convex in C and linear between such changes, so that its least is at one of them: in
    whole numbers the value is exact.

    Parameters
    ----------
    release, length
        When the job can begin, and for how long it holds its gang, above 0.
    edges, prices
        Of slots, each price per unit of time; the time after the last edge is free.
    slot
        That has the release, or len(prices) where that is after the last edge.
    scale
        Of a unit of time, in units of price x time.
    far
        A moment that is later than any completion.
    """
    held: list[tuple[T, int, T]] = []  # price, negative, with the slot and how much of it is held
    begin, kept, cost = release, length * 0, length * 0
    best, completion, last = far * scale, far, len(prices)
    while True:
        price, end = (prices[slot], edges[slot + 1]) if slot < last else (cost * 0, far)
        now, own = begin, min(length - kept, end - begin)
        kept, cost, now = kept + own, cost + price * own, now + own
        if kept >= length:
            if own and now * scale + cost < best:
                best, completion = now * scale + cost, now
            while now < end and held and -held[0][0] > price:
                dearest, where, amount = held[0]
                change = min(amount, end - now)
                cost, own, now = cost + (dearest + price) * change, own + change, now + change
                if change == amount:
                    heappop(held)
                else:
                    heapreplace(held, (dearest, where, amount - change))
                if now * scale + cost < best:
                    best, completion = now * scale + cost, now
        if end * scale >= best or slot >= last:
            return best, completion
        if own:
            heappush(held, (-price, slot, own))
        slot, begin = slot + 1, end
