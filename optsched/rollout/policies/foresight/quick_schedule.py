"""GangWorks in the order of a list, preemptively, on GPUs of unlike speeds: under a millisecond.

As `list_schedule`, but gangs get on as fast as the GPUs that are left for them allow. Who simulates
lists by the hundred asks it, and the engine about what came out best.
"""

from __future__ import annotations

from bisect import insort
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.list_schedule import first_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.policies.list_schedule import Entry

ROUNDING = 1e-9
"""In rounds: so much of one more round is an error of floats."""


class GangWorks(NamedTuple):
    """Jobs by number, in units of time: rounds, where GPUs are held for whole rounds.

    Attributes
    ----------
    release
        When each can begin, from now on.
    work
        For how long it holds GPUs of slowdown 1 at the best place.
    width
        How many GPUs it takes, none more than there are.
    kind
        Those of one kind want the same GPUs.
    factor
        How much slower it is for distance.
    places, size
        Slowdowns of the places that it can have, ascending: of nodes, or of parts of nodes, of so
        many GPUs; of single GPUs, if it stands across nodes and the slowest of them counts.
    """

    release: Sequence[float]
    work: Sequence[float]
    width: Sequence[int]
    kind: Sequence[int]
    factor: Sequence[float]
    places: Sequence[Sequence[float]]
    size: Sequence[int]


class QuickSchedule:
    """Schedules of lists on a cluster of which only the slowdowns of GPUs are known.

    Of the gangs that run, those of the first kind choose first, as in PAL, and the first of the
    list among them. Each takes the fastest place that those of its kind have left; GPUs that other
    kinds have taken are as fast as any for it. Moves are free.

    Parameters
    ----------
    gpus
        How many there are.
    in_rounds
        Whether gangs hold GPUs for whole units of time.

    Attributes
    ----------
    alone
        For how long each gang holds the fastest GPUs, with the cluster to itself.
    known_total
        What `total` is of any list, if it is the same for all.
    """

    def __init__(self, gangs: GangWorks, gpus: int, in_rounds: bool) -> None:
        self.gangs, self.gpus, self.in_rounds = gangs, gpus, in_rounds
        self._fastest = [
            row[(width - 1) // size] * factor
            for row, width, size, factor in zip(
                gangs.places, gangs.width, gangs.size, gangs.factor, strict=True
            )
        ]
        """By gang how much slower it is than at reference in its best place."""
        self.alone = [
            self._held(work * slowdown)
            for work, slowdown in zip(gangs.work, self._fastest, strict=True)
        ]
        self._rest = sum(
            work * slowdown + max(0.0, time)
            for work, slowdown, time in zip(gangs.work, self._fastest, gangs.release, strict=True)
        )
        """What the ends add up to at least."""
        self._is_alike = all(row[0] == row[-1] for row in gangs.places)
        self.known_total = self._of_any_list()
        self._by_release = sorted(
            (n for n, time in enumerate(gangs.release) if time > 0),
            key=lambda n: (gangs.release[n], n),
        )

    def _of_any_list(self) -> float | None:
        """Return the total, if it is the same for all lists: no gang ever has to wait."""
        if not self._is_alike or sum(self.gangs.width) > self.gpus:
            return None
        return sum(max(0.0, time) for time in self.gangs.release) + sum(self.alone)

    def total(self, order: Sequence[int], most: float = inf) -> float:
        """Return the sum of all ends, or some number above `most` if that is above it.

        Parameters
        ----------
        order
            All gangs, the most urgent first; those behind one that does not fit may run before it.
        """
        if self.known_total is not None:
            return self.known_total
        release, coming, fastest = self.gangs.release, self._by_release, self._fastest
        place = [0] * len(order)
        for rank, n in enumerate(order):
            place[n] = rank
        left, rest = list(self.gangs.work), self._rest
        active = [(rank, n) for rank, n in enumerate(order) if release[n] <= 0]
        now = total = 0.0
        come, count, enough = 0, len(coming), most * (1 + ROUNDING)
        while active or come < count:
            if not active:
                now = max(now, release[coming[come]])
            while come < count and release[coming[come]] <= now:
                insort(active, (place[coming[come]], coming[come]))
                rest -= release[coming[come]]
                come += 1
            running = first_fit(active, self.gangs.width, self.gpus)
            factors = self._factors(running)
            needs = [
                self._held(left[n] * factor)
                for (_, n), factor in zip(running, factors, strict=True)
            ]
            lasts = min(needs)
            if come < count:
                lasts = min(lasts, release[coming[come]] - now)
            now += lasts
            for entry, need, factor in zip(running, needs, factors, strict=True):
                n = entry[1]
                done = left[n] if need <= lasts else lasts / factor
                left[n] -= done
                rest -= done * fastest[n]
                if need <= lasts:
                    total += now
                    active.remove(entry)
            least = total + now * len(active) + rest
            if least > enough:
                return least
        return total

    def _held(self, time: float) -> float:
        return float(max(1, ceil(time - ROUNDING))) if self.in_rounds else time

    def _factors(self, running: list[Entry]) -> list[float]:
        """Return how much slower each gang is for slow GPUs and distance; sort them by kind."""
        _, _, width, kind, factor, places, size = self.gangs
        if self._is_alike:
            return [places[n][0] * factor[n] for _, n in running]
        running.sort(key=lambda entry: kind[entry[1]])
        found, gpus = [], self.gpus
        taken = others = 0  # by gangs of the present kind, and of those before it
        last = -1
        for _, n in running:
            if kind[n] != last:
                last, others, taken = kind[n], others + taken, 0
            left = gpus - taken
            slowest = taken + -(-width[n] * left // (left - others)) - 1
            row = places[n]
            found.append(row[min(slowest // size[n], len(row) - 1)] * factor[n])
            taken += width[n]
        return found
