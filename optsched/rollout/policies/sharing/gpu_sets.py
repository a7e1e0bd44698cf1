"""Sets of GPUs that EaCO's Algorithm 1 tries, by what GPUs have in common.

A whole number stands for GPUs, too: bit n for GPU n.
"""

from __future__ import annotations

from functools import reduce
from heapq import heapify, heappop, heappush
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.node_sets import members

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.rollout.physics.cluster import Cluster

    Gpus = tuple[int, ...]

ALL = -1
"""All GPUs."""
NEAR = 1e-9
"""Relative: rounding makes less of a difference in the sum of the utilisations of a node."""


class Level(NamedTuple):
    """GPUs of equal utilisation.

    Attributes
    ----------
    busy
        That utilisation.
    takers
        Those that have room for a job.
    bearers
        Those of them where it breaks no tolerance.
    """

    busy: float
    takers: int
    bearers: int


def bits_of(gpus: Iterable[int]) -> int:
    """Return the number that stands for some GPUs."""
    return sum(1 << gpu for gpu in {*gpus})


def singles(levels: Iterable[Level], idle: int) -> Iterator[Gpus]:
    """Yield single GPUs as `within_nodes` yields sets; levels are asked for one by one."""
    for level in levels:
        for part in (level.bearers & ~idle, level.bearers & idle):
            yield from ((gpu,) for gpu in members(part))


def within_nodes(levels: Sequence[Level], size: int, idle: int, cluster: Cluster) -> Iterator[Gpus]:
    """Yield sets of GPUs of a node each, as of `sets_of`, the busiest first.

    Parameters
    ----------
    levels
        The busiest first.
    idle
        The GPUs of nodes without any job. Of equal sets, theirs come last; as nothing is less busy,
        they do so of all.
    """
    bearers = reduce(or_, (level.bearers for level in levels), 0)
    left = reduce(or_, _nodes(bearers & ~idle, size, cluster), 0)
    # By the most that its sets may be: those are formed only once nothing known is as busy.
    heap: list[tuple[float, Gpus, int]] = []
    for level in levels:
        for inside in _nodes(level.bearers & left, 1, cluster):
            heap.append((-size * level.busy * (1 + NEAR), (), inside))
            left &= ~inside
    heapify(heap)
    while heap:
        _, gpus, inside = heappop(heap)
        if gpus:
            yield gpus
            continue
        for busy, chosen in sets_of(levels, size, inside):
            heappush(heap, (busy, chosen, inside))
    for inside in _nodes(bearers & idle, size, cluster):
        yield from (gpus for _, gpus in sets_of(levels, size, inside))


def across_nodes(levels: Sequence[Level], size: int) -> Iterator[Gpus]:
    """Yield sets of GPUs of any nodes, as of `sets_of`, the busiest first.

    Any set within the first levels is busier than all with a GPU of a later one, so the GPUs of
    later ones, mostly idle, are only looked at if nothing before suits.
    """
    room, yielded = 0, 0
    for count, level in enumerate(levels, start=1):
        room |= level.bearers
        later = levels[count].busy if count < len(levels) else -1.0
        is_apart = level.busy - later > NEAR * size * levels[0].busy  # or rounding may mix them up
        if is_apart and room.bit_count() >= size:
            found = sorted(sets_of(levels[:count], size))
            yield from (gpus for _, gpus in found[yielded:])
            yielded = len(found)


def _nodes(bits: int, size: int, cluster: Cluster) -> Iterator[int]:
    """Yield the GPUs of each node that has at least so many of some GPUs."""
    while bits:
        node = cluster.node_of[(bits & -bits).bit_length() - 1]
        inside = ((1 << cluster.size[node]) - 1) << cluster.first[node]
        if (bits & inside).bit_count() >= size:
            yield inside
        bits &= ~inside


def sets_of(levels: Iterable[Level], size: int, within: int = ALL) -> list[tuple[float, Gpus]]:
    """Return sets of GPUs that follow each other in the order of utilisation, with that, negative.

    Of those that have room, the busiest first. Sets with a GPU where a tolerance breaks are left
    out.
    """
    found = []
    alike: dict[float, float] = {}  # by utilisation, of sets of GPUs that all have the same
    for run in _runs(levels, within):
        busy = [each for each, _ in run]
        gpus = [gpu for _, gpu in run]
        for first in range(len(run) - size + 1):
            chosen = gpus[first : first + size]
            if busy[first] != busy[first + size - 1]:
                found.append((-sum(busy[first : first + size]), tuple(sorted(chosen))))
                continue
            if busy[first] not in alike:
                alike[busy[first]] = -sum(busy[first : first + size])
            found.append((alike[busy[first]], tuple(chosen)))
    return found


def _runs(levels: Iterable[Level], within: int) -> Iterator[list[tuple[float, int]]]:
    """Yield the longest rows of GPUs where no tolerance breaks, each with its utilisation."""
    run = []
    for busy, takers, bearers in levels:
        for gpu in members(takers & within):
            if bearers >> gpu & 1:
                run.append((busy, gpu))
            elif run:
                yield run
                run = []
    yield run
