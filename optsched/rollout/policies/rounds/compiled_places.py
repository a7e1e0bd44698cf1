"""PM-First and PAL for a whole round at once, on arrays, compiled by numba.

The rules are those of `pal_rules` without caps, the one for levels where there are two. Tables of a
class are brought up to date when its turn comes. Passes over nodes have no early end, so processors
look at many nodes at a time.

All that is compiled stands in this file, with the constants in it: numba keeps what it has compiled
until this file changes, and does not look at others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Integers
    from optsched.rollout.policies.rounds.round_arrays import RoundArrays, Shorts

    F = TypeVar("F", bound=Callable[..., object])

PM_FIRST, PAL, MULTILEVEL = range(3)
NOBODY = -1
NONE = np.int16(np.iinfo(np.int16).max)
"""More than any bin, and than any number of a node's GPUs."""
NOWHERE = np.int32(np.iinfo(np.int32).max)
"""Behind all nodes."""
WORD = 8
"""GPUs that are compared at once: what is free has a multiple of it; the last are never free."""


def compiled(function: F) -> F:
    """Compile a function; the result is kept in a file, if there is a folder for it."""
    try:
        return cast("F", njit(cache=True)(function))
    except RuntimeError:  # there is none that can be written to
        return cast("F", njit(function))


# --- passes over nodes ------------------------------------------------------------------------


@compiled
def _least(nth: Shorts, group: int, n: int) -> np.int16:
    """Return the least bin within which a node has so many free GPUs."""
    least = NONE
    for node in range(nth.shape[2]):
        least = min(least, nth[group, n, node])
    return least


@compiled
def _first_within(nth: Shorts, group: int, n: int, within: np.int16) -> np.int32:
    """Return the first node that has so many free GPUs within a bin."""
    first = NOWHERE
    for node in range(nth.shape[2]):
        first = min(first, np.int32(node) if nth[group, n, node] <= within else NOWHERE)
    return first


@compiled
def _fewest_within(nth: Shorts, group: int, n: int, within: np.int16) -> np.int32:
    """Return the first one with the fewest free GPUs of nodes that have so many within a bin."""
    fewest, first = NONE, NOWHERE
    for node in range(nth.shape[2]):
        fewest = min(fewest, nth[group, 0, node] if nth[group, n, node] <= within else NONE)
    for node in range(nth.shape[2]):
        is_best = (nth[group, n, node] <= within) & (nth[group, 0, node] == fewest)
        first = min(first, np.int32(node) if is_best else NOWHERE)
    return first


@compiled
def _first_any(counts: Shorts, group: int, bin: int) -> np.int32:
    """Return the first node with free GPUs of a bin."""
    first = NOWHERE
    for node in range(counts.shape[2]):
        first = min(first, np.int32(node) if counts[group, bin, node] > 0 else NOWHERE)
    return first


@compiled
def _first_of(counts: Shorts, group: int, bin: int, one: np.int16, other: np.int16) -> np.int32:
    """Return the first node with one or the other number of free GPUs of a bin."""
    first = NOWHERE
    for node in range(counts.shape[2]):
        n = counts[group, bin, node]
        first = min(first, np.int32(node) if (n == one) | (n == other) else NOWHERE)
    return first


@compiled
def _distance(counts: Shorts, group: int, bin: int, size: np.int16) -> np.int16:
    """Return how far from a size the nearest number of a node's free GPUs of a bin is."""
    least = NONE
    for node in range(counts.shape[2]):
        n = counts[group, bin, node]
        over = np.int16(n - size)
        distance = max(over, np.int16(-over))
        least = min(least, distance if n > 0 else NONE)
    return least


# --- tables -----------------------------------------------------------------------------------


@compiled
def _rank(arrays: RoundArrays, group: int, node: int | np.int32) -> None:
    """Bring what the table `nth` has of a node up to date."""
    nth, n = arrays.nth, 1
    for place in range(arrays.first[node], arrays.first[node + 1]):
        gpu = arrays.ranked[group, place]
        nth[group, n, node] = arrays.bin_of[group, gpu]  # stays if the GPU is free
        n += arrays.free[gpu]
    nth[group, 0, node] = n - 1
    for rest in range(n, nth.shape[1]):
        nth[group, rest, node] = NONE


@compiled
def _catch_up(arrays: RoundArrays, group: int) -> None:
    """Bring the tables of a class up to date."""
    free, known, before = arrays.free, arrays.known[group], -1
    words, then = free.view(np.uint64), known.view(np.uint64)
    for word in range(len(words)):
        if words[word] == then[word]:
            continue
        for gpu in range(word * WORD, word * WORD + WORD):
            if free[gpu] == known[gpu]:
                continue
            node, bin = arrays.node_of[gpu], arrays.bin_of[group, gpu]
            step = 1 if free[gpu] else -1
            arrays.counts[group, bin, node] += np.int16(step)
            arrays.totals[group, bin] += step
            known[gpu] = free[gpu]
            if arrays.rule != PM_FIRST and node != before:
                _rank(arrays, group, node)
                before = node


@compiled
def _take(arrays: RoundArrays, group: int, node: int | np.int32, gpu: int) -> None:
    bin = arrays.bin_of[group, gpu]
    arrays.free[gpu] = arrays.known[group, gpu] = 0
    arrays.counts[group, bin, node] -= np.int16(1)
    arrays.totals[group, bin] -= 1


# --- a job ------------------------------------------------------------------------------------


@compiled
def _in_node(arrays: RoundArrays, job: int, low: int) -> bool:
    """Take GPUs of the best node, if none across nodes are better; tell whether it is so."""
    group, size, nth = arrays.group[job], arrays.size[job], arrays.nth
    most = nth.shape[1] - 2
    within = _least(nth, group, size) if size <= most else NONE
    if within == NONE:
        return False
    rank, left = low, size - arrays.totals[group, low]
    while left > 0:
        rank += 1
        left -= arrays.totals[group, rank]
    near = arrays.near[job] * arrays.values[group, within]
    if near > arrays.far[job] * arrays.values[group, rank]:
        return False
    if arrays.rule == MULTILEVEL:
        node = _fewest_within(nth, group, size, within)
    else:
        fullest = size
        while fullest < most and _least(nth, group, fullest + 1) <= within:
            fullest += 1
        node = _first_within(nth, group, fullest, within)
    got = 0
    for place in range(arrays.first[node], arrays.first[node + 1]):
        gpu = arrays.ranked[group, place] if arrays.rule == MULTILEVEL else place
        if got < size and arrays.free[gpu] and arrays.bin_of[group, gpu] <= within:
            _take(arrays, group, node, gpu)
            arrays.taken[got] = gpu
            got += 1
    _rank(arrays, group, node)
    return True


@compiled
def _across(arrays: RoundArrays, job: int, bin: int) -> None:
    """Take the best GPUs; of equal ones those in nodes that match most nearly, or the first."""
    group, size, counts = arrays.group[job], arrays.size[job], arrays.counts
    like = np.int16(min(size, arrays.nth.shape[1] - 2))
    under = over = np.int16(0)
    got, known = 0, -1  # known: the bin of which `under` and `over` are
    while got < size:
        if not arrays.totals[group, bin]:
            bin += 1
            continue
        node = NOWHERE
        if arrays.rule == MULTILEVEL:
            node = _first_any(counts, group, bin)
        elif known == bin:
            node = _first_of(counts, group, bin, under, over)
        if node == NOWHERE:
            distance, known = _distance(counts, group, bin, like), bin
            under, over = np.int16(like - distance), np.int16(like + distance)
            under = under if under > 0 else over
            node = _first_of(counts, group, bin, under, over)
        for gpu in range(arrays.first[node], arrays.first[node + 1]):
            if got < size and arrays.free[gpu] and arrays.bin_of[group, gpu] == bin:
                _take(arrays, group, node, gpu)
                arrays.taken[got] = gpu
                got += 1
        if arrays.rule != PM_FIRST:
            _rank(arrays, group, node)


@compiled
def _hold(arrays: RoundArrays, job: int, at: int) -> int:
    """Let a job hold what was taken; return how many GPUs were written, from a place on."""
    size, moves = arrays.size[job], False
    for n in range(size):
        gpu = arrays.taken[n]
        arrays.next_holder[gpu] = job
        moves |= arrays.holder[gpu] != job
    if not moves:
        return 0
    for n in range(size):  # ascending; they nearly are
        gpu, place = arrays.taken[n], at + n
        while place > at and arrays.moved_gpus[place - 1] > gpu:
            arrays.moved_gpus[place] = arrays.moved_gpus[place - 1]
            place -= 1
        arrays.moved_gpus[place] = gpu
    return int(size)


# --- a round ----------------------------------------------------------------------------------


@compiled
def _admitted(arrays: RoundArrays, jobs: Integers, backfill: bool) -> Integers:
    """Return the jobs for which there is room, by their classes."""
    place, room = np.zeros(len(arrays.totals) + 1, dtype=np.int64), len(arrays.holder)
    admitted, n = np.empty_like(jobs), 0
    for job in jobs:
        if arrays.size[job] <= room:
            room -= arrays.size[job]
            admitted[n] = job
            n += 1
            place[arrays.group[job] + 1] += 1
        elif not backfill:
            break
    for group in range(len(arrays.totals)):
        place[group + 1] += place[group]
    ordered = np.empty(n, dtype=np.int64)
    for job in admitted[:n]:
        group = arrays.group[job]
        ordered[place[group]] = job
        place[group] += 1
    return ordered


@compiled
def place_round(
    arrays: RoundArrays, ordered: Integers, backfill: bool, last: Integers
) -> tuple[Integers, int]:
    """Return the jobs that are placed, and how many move: which and where to is in `arrays`.

    `last` has those that were placed in the last round, `NOBODY` for one that has lost its GPUs.
    """
    jobs = _admitted(arrays, ordered, backfill)
    same, fewer = 0, min(len(jobs), len(last))
    while same < fewer and jobs[same] == last[same]:
        same += 1
    if same == len(jobs) == len(last):
        return jobs, 0
    arrays.stays[jobs[:same]] = 1
    for gpu in range(len(arrays.holder)):
        job = arrays.holder[gpu]
        stays = job != NOBODY and arrays.stays[job] == 1
        arrays.next_holder[gpu] = job if stays else NOBODY
        arrays.free[gpu] = not stays
    arrays.stays[jobs[:same]] = 0
    group, low, moved, written = -1, 0, 0, 0
    for job in jobs[same:]:
        if arrays.group[job] != group:
            group, low = arrays.group[job], 0
            _catch_up(arrays, group)
        while not arrays.totals[group, low]:
            low += 1
        looks = arrays.rule == MULTILEVEL or (arrays.rule != PM_FIRST and arrays.size[job] > 1)
        if not (looks and _in_node(arrays, job, low)):
            _across(arrays, job, low)
        more = _hold(arrays, job, written)
        if more:
            arrays.moved[moved] = job
            moved, written = moved + 1, written + more
    arrays.holder[:] = arrays.next_holder
    return jobs, moved
