"""Gangs in the order of a list, preemptively, by numbers of GPUs alone: a tenth of a millisecond.

It knows no places, no costs and no failures: who simulates lists by the thousand asks it, and
the engine about the best few.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Scenario

    Entry = tuple[int, int]  # place in the list, gang


class GangTimes(NamedTuple):
    """Jobs by number, in whole units of time.

    Attributes
    ----------
    release, length, width
        When each can begin, for how long it holds GPUs, at least 1, and how many, none more than
        there are.
    """

    release: Sequence[int]
    length: Sequence[int]
    width: Sequence[int]


def unit_us(scenario: Scenario) -> int:
    """Return the unit of time of schedules: a round, where GPUs are held for whole rounds."""
    in_rounds = scenario.finish_at_epochs and not scenario.decide_on
    return max(1, round(scenario.epoch_s * 1_000_000)) if in_rounds else 1


def first_fit(active: Sequence[Entry], width: Sequence[int], gpus: int) -> list[Entry]:
    """Return the first gangs of a list that fit on so many GPUs, some behind one that does not."""
    running = []
    for entry in active:
        if width[entry[1]] <= gpus:
            gpus -= width[entry[1]]
            running.append(entry)
            if not gpus:
                break
    return running


def list_schedule(gangs: GangTimes, order: Sequence[int], gpus: int) -> list[int]:
    """Return when jobs end: at each release and end the first of the list that fit hold GPUs.

    Parameters
    ----------
    order
        All jobs, the most urgent first; those behind one that does not fit may run before it.
    """
    rank = {job: n for n, job in enumerate(order)}
    release, width, left = gangs.release, gangs.width, list(gangs.length)
    coming = sorted(order, key=lambda job: (release[job], job))
    active: list[Entry] = []
    ends, now, come, count = [0] * len(left), 0, 0, len(coming)
    while active or come < count:
        if not active:
            now = max(now, release[coming[come]])
        while come < count and release[coming[come]] <= now:
            insort(active, (rank[coming[come]], coming[come]))
            come += 1
        running = first_fit(active, width, gpus)
        until = now + min(left[job] for _, job in running)
        if come < count:
            until = min(until, release[coming[come]])
        for entry in running:
            job = entry[1]
            left[job] -= until - now
            if left[job] <= 0:
                active.remove(entry)
                ends[job] = until
        now = until
    return ends
