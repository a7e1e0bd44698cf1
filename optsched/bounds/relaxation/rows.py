"""Jobs as arrays of pieces and slots, and what prices are worth, in floats."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from optsched.bounds.least_times import World
    from optsched.documents.arrays import Bools, Floats, Integers


class Rows(NamedTuple):
    """Jobs that take time, and their pieces of speed; seconds and GPUs.

    Attributes
    ----------
    number
        By job its number in the trace.
    release, length, end
        By job: when it can begin, for how long it holds, and its earliest end.
    job, rate, width
        By piece its job, its share of full speed, and its GPUs per full speed.
    """

    number: Integers
    release: Floats
    length: Floats
    end: Floats
    job: Integers
    rate: Floats
    width: Floats


def rows_of(world: World) -> Rows:
    """Return the jobs of a world that hold GPUs for some time."""
    numbers = [n for n, job in enumerate(world.jobs) if job.length_us > 0 and job.pieces]
    jobs = [world.jobs[n] for n in numbers]
    pieces = [
        (n, p.rate / (1 << 16), float(p.width)) for n, job in enumerate(jobs) for p in job.pieces
    ]
    owner, rate, width = zip(*pieces, strict=True) if pieces else ((), (), ())
    return Rows(
        np.array(numbers, np.int64),
        np.array([job.release_us / 1e6 for job in jobs]),
        np.array([job.length_us / 1e6 for job in jobs]),
        np.array([job.end_us / 1e6 for job in jobs]),
        np.array(owner, np.int64),
        np.array(rate, float),
        np.array(width, float),
    )


class Value(NamedTuple):
    """What prices are worth, and what jobs would use at them.

    Attributes
    ----------
    total
        Sum over jobs of mean busy time and half of the length, or the earliest end where that is
        later, less the price of all GPUs; seconds.
    thresholds
        By job, seconds: it takes time t of a piece where t + price x width x length is below.
    use
        By slot the GPU-seconds that jobs take.
    busy
        By job its mean busy time.
    is_priced
        By job whether prices bound its end, and not the earliest end that it has alone.
    """

    total: float
    thresholds: Floats
    use: Floats
    busy: Floats
    is_priced: Bools


class Pricing:
    """Evaluates prices of slots; the time after the last slot is free.

    Parameters
    ----------
    edges
        Of slots, in seconds, the first of them no later than any release.
    """

    def __init__(self, rows: Rows, edges: Floats, capacity: float) -> None:
        self.rows, self.edges, self.capacity = rows, edges, capacity
        self.begin, self.end = edges, np.r_[edges[1:], np.inf]
        self.first = np.searchsorted(self.end, rows.release, side="right")
        self.size = 0  # pairs of piece and slot that were looked at last

    def value(self, prices: Floats) -> Value:
        """Return what prices of slots are worth."""
        price = np.r_[prices, 0.0]
        limit = self._limits(price)
        last = np.searchsorted(self.begin, limit, side="left")
        parts = [self._part(price, limit, last, few) for few in self._chunks(last)]
        thresholds, busy, ends, is_priced = (
            np.concatenate([part[n] for part in parts]) for n in range(4)
        )
        use = np.sum([part[4] for part in parts], axis=0)[: len(prices)]
        rent = self.capacity * float(prices @ np.diff(self.edges))
        return Value(float(ends.sum()) - rent, thresholds, use, busy, is_priced)

    def _limits(self, price: Floats) -> Floats:
        """Return by job a time after which it takes nothing: right after release is cheaper."""
        rows = self.rows
        until = np.minimum(
            np.searchsorted(self.begin, rows.release + rows.length, side="left"), len(price)
        )
        # The dearest slot of the window, by the next power of two of its slots.
        worst = np.zeros(len(rows.release))
        span = np.maximum(1, until - self.first)
        level, most, shift = np.floor(np.log2(span)).astype(int), price, 1
        for n in range(int(level.max(initial=0)) + 1):
            here = level == n
            low = self.first[here]
            high = np.maximum(low, until[here] - shift)
            worst[here] = np.maximum(
                most[np.minimum(low, len(most) - 1)], most[np.minimum(high, len(most) - 1)]
            )
            if len(most) <= shift:
                continue
            most, shift = np.maximum(most[:-shift], most[shift:]), shift * 2
        widest = np.zeros(len(rows.release))
        np.maximum.at(widest, rows.job, rows.width)
        limits: Floats = rows.release + rows.length * (1 + widest * worst)
        return limits

    def _chunks(self, last: Integers) -> list[slice]:
        counts = np.bincount(self.rows.job, minlength=len(last)) * np.maximum(1, last - self.first)
        upto = np.cumsum(counts)
        self.size = int(upto[-1]) if len(upto) else 0
        cuts, done = [0], 0
        while cuts[-1] < len(last):
            stop = max(cuts[-1] + 1, int(np.searchsorted(upto, done + 1_000_000, side="right")))
            cuts.append(stop)
            done = int(upto[stop - 1])
        return [slice(a, b) for a, b in pairwise(cuts)]

    def _part(
        self, price: Floats, limit: Floats, last: Integers, few: slice
    ) -> tuple[Floats, Floats, Floats, Bools, Floats]:
        rows, count = self.rows, few.stop - few.start
        lines = np.flatnonzero((rows.job >= few.start) & (rows.job < few.stop))
        owner = rows.job[lines]
        slots = np.maximum(1, last[owner] - self.first[owner])
        line = np.repeat(np.arange(len(lines)), slots)
        offset = np.arange(len(line)) - np.repeat(np.cumsum(slots) - slots, slots)
        job = owner[line]
        slot = self.first[job] + offset
        length, release = rows.length[job], rows.release[job]
        here = job - few.start
        rate, width = rows.rate[lines][line], rows.width[lines][line]
        begin = np.maximum(self.begin[slot], release)
        most = self.end[slot] - begin
        cost = begin + price[slot] * width * length
        low, high = rows.release[few].copy(), limit[few].copy()
        for _ in range(50):
            middle = (low + high) / 2
            taken = np.minimum(np.maximum(middle[here] - cost, 0), most) * rate
            is_less = np.bincount(here, taken, count) < rows.length[few]
            low, high = np.where(is_less, middle, low), np.where(is_less, high, middle)
        depth = high[here] - cost
        taken = np.minimum(np.maximum(depth, 0), most)
        surplus = np.bincount(here, rate * taken * (2 * depth - taken), count) / 2
        late = high - surplus / rows.length[few]
        busy = np.bincount(here, rate * taken * (begin + taken / 2), count) / rows.length[few]
        alone = rows.end[few]
        ends = late + rows.length[few] / 2
        is_priced = ends > alone
        weights = rate * taken * width * is_priced[here]
        use: Floats = np.bincount(slot, weights, len(price)).astype(float)
        latest: Floats = np.maximum(ends, alone)
        return high, busy.astype(float), latest, is_priced, use
