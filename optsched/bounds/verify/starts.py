"""Starts of rented nodes: a dynamic program over parts, widths and moments, rounded down.

What a ready node is worth at a moment, and the price of what is billed, charge each job for the
GPUs that it holds; what it costs at least by itself is found in whole microseconds. Times between
two edges of a grid are looked at as one cell, of which each term has its least. The proof is in
docs/math/bounds.md, starts of nodes.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from optsched.bounds.lower_hull import lower_hull
from optsched.bounds.verify.least_work import WorkReader
from optsched.bounds.verify.ready_nodes import PPM, ReadyNodes, ready_nodes
from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.bounds.certificate import StartsCertificate
    from optsched.bounds.schedules import Schedules
    from optsched.bounds.verify.least_work import Speeds
    from optsched.documents.arrays import Integers
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

PARTS: Final = 5
CELLS: Final = 10
"""Parts, at the width that is best at the rent, and cells are such a fraction of an overhead."""
MOST_STATES: Final = 20_000_000_000
MOST_CELLS: Final = 1_000_000
"""Of a job: arrays have so many numbers for each width."""
MOST: Final = 1 << 61
_Pace = dict[int, tuple[int, int]]


class Phase(NamedTuple):
    """So many parts of a job that are alike: microseconds of each, by width."""

    parts: int
    times: tuple[int, ...]


class Task(NamedTuple):
    """A job by itself; microseconds.

    Attributes
    ----------
    widths
        Ascending, without those at which nothing is faster than at a narrower one.
    until
        After its release: what takes longer costs that much.
    """

    release: int
    widths: tuple[int, ...]
    phases: tuple[Phase, ...]
    overhead: int
    until: int
    cell: int

    @property
    def states(self) -> int:
        """How many states its dynamic program has."""
        return sum(p.parts for p in self.phases) * len(self.widths) * (self.until // self.cell + 1)


def proven_starts_us(
    scenario: Scenario, trace: Trace, schedules: Schedules, certificate: StartsCertificate
) -> int:
    """Return what all JCTs and the price of the bill add up to at least, microseconds.

    Raises
    ------
    Refused
        Where nodes do not start, jobs fail or may share GPUs, or changes of width cost nothing; if
        the certificate is none, or its proof would take too long.
    """
    worth = ready_nodes(scenario, trace, certificate)
    if scenario.sharing.max_jobs_per_gpu > 1 or trace.failures or schedules.trials:
        raise Refused("starts of nodes are known for jobs that neither share GPUs nor fail")
    tasks = list(
        _tasks(WorkReader(scenario, trace, schedules, [Fraction(1)] * len(trace)), trace, worth)
    )
    if sum(task.states for task in tasks) > MOST_STATES:
        raise Refused("overheads are so short that starts of nodes would take too long to prove")
    return sum(least_us(task, worth) for task in tasks)


def _tasks(reader: WorkReader, trace: Trace, worth: ReadyNodes) -> Iterator[Task]:
    """Yield jobs that hold GPUs, by themselves."""
    known: dict[int, list[_Pace]] = {}
    for job, submit in enumerate(trace.submit_us.tolist()):
        speeds = reader.speeds(job)
        if speeds.phases:
            pace = known.setdefault(id(speeds), list(_paces(speeds)))
            yield _task(submit, reader.work(job), speeds.overhead_us, pace, worth)


def _paces(speeds: Speeds) -> Iterator[_Pace]:
    """Yield by phase and width the microseconds for a part of a job's work, as a fraction."""
    for share, rates in speeds.phases:
        paces = {k: share / rate for k, rate in sorted(rates.items())}
        yield {k: (pace.numerator, pace.denominator) for k, pace in paces.items()}


def _task(submit: int, work: int, overhead: int, paces: Sequence[_Pace], worth: ReadyNodes) -> Task:
    """Return a job whose times are rounded down, for a faster one has no greater cost.

    Parts and cells grow with the job: so the states of all jobs together prove the most.
    """
    if overhead <= 0:
        raise Refused(
            "changes of width that cost nothing, as they may where jobs move, leave nothing to "
            "prove of starts of nodes"
        )
    rows = [[work * top // below for top, below in pace.values()] for pace in paces]
    kept = _undominated(rows)
    rows = [[row[n] for n in kept] for row in rows]
    widths = [list(paces[0])[n] for n in kept]
    least = _least_still(widths, rows, overhead, worth.price_ppm)
    until = least + worth.greatest * widths[-1] + overhead
    scale = isqrt(least * isqrt(least))
    part = max(1, min(overhead // PARTS, scale * 2 // 3))
    costs = [
        (PPM + worth.price_ppm * k) * sum(row[n] for row in rows) for n, k in enumerate(widths)
    ]
    phases = tuple(_divided(rows, costs.index(min(costs)), part, until))
    cell = max(1, min(scale // 12, overhead // CELLS, worth.slot))
    task = Task(submit, tuple(widths), phases, overhead, until, cell)
    if _greatest(task, worth) > MOST:
        raise Refused("a job or a price is too great for whole numbers of 64 bits")
    if until // cell > MOST_CELLS:
        raise Refused("slots or overheads are so short that a job would have too many cells")
    return task


def _greatest(task: Task, worth: ReadyNodes) -> int:
    """Return a number that none exceeds in a job's dynamic program."""
    widest, dearest = task.widths[-1], max(worth.price_ppm, int(worth.prices.max()))
    longest = max(task.overhead, *(max(phase.times) for phase in task.phases))
    behind = sum(phase.parts * max(phase.times) for phase in task.phases)
    cost = task.until * (1 + dearest * widest // PPM) + 2 * worth.greatest * widest
    return max(longest * widest * dearest, task.release + behind + task.until + cost)


def _undominated(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the places of widths at which something is faster than at every narrower one.

    GPUs never cost less than nothing, so that the others are of no use.
    """
    return [
        n
        for n in range(len(rows[0]))
        if not any(all(row[m] <= row[n] for row in rows) for m in range(n))
    ]


def _divided(rows: Sequence[Sequence[int]], best: int, part: int, until: int) -> Iterator[Phase]:
    """Yield phases in parts that take no longer at a width, and whose times end with the job's."""
    for row in rows:
        parts = max(1, -(-row[best] // part))
        yield Phase(parts, tuple(min(until, time // parts) for time in row))


def _least_still(
    widths: Sequence[int], rows: Sequence[Sequence[int]], overhead: int, price_ppm: int
) -> int:
    """Return the least cost of a job where ready nodes are worth nothing."""
    rates = [PPM + price_ppm * k for k in widths]
    best = [overhead * rate for rate in rates]
    for row in rows:
        least = min(best)
        best = [
            min(cost, least + overhead * rate) + time * rate
            for cost, rate, time in zip(best, rates, row, strict=True)
        ]
    return min(best) // PPM


def least_us(task: Task, worth: ReadyNodes) -> int:
    """Return what a job costs at least by itself, in whatever way it waits and changes its width.

    From the last part to the first. By width and cell, `held` is the least cost to the end of a job
    that holds so many GPUs and has the parts before done; by cell, `free` is that of one that holds
    none, and may wait. Of what is held, its worth is taken off. All costs are from the release on,
    and those of what takes longer are the last cell's.
    """
    size, widths = -(-task.until // task.cell), np.array(task.widths)[:, None]
    longest = max(max(phase.times) for phase in task.phases) // task.cell + 4
    cells = worth.cells(task.release, task.cell, size + longest)
    times = np.arange(size + 1) * task.cell
    most = np.append(np.maximum(cells.most[:size], cells.most[1 : size + 1]), worth.greatest)
    over = most * widths
    done = sum((p.parts * np.array(p.times) for p in task.phases), np.zeros(len(widths), np.int64))
    held = times + (done % task.cell)[:, None] - over
    held[:, size] = times[size] - over[:, size]
    free = times
    begun = cells.least[:size] * widths + worth.charged(widths * task.overhead)
    for phase in reversed(task.phases):
        charges = part_charges(task, phase, cells.price, worth)
        steps = np.array(phase.times)
        paid = worth.charged(widths[:, 0] * steps)
        for _ in range(phase.parts):
            change = least_changes(free, charges)
            ahead = done // task.cell - (done - steps) // task.cell
            done = done - steps
            for row, shift, cost in zip(held, np.minimum(ahead, size).tolist(), paid, strict=True):
                row[: size - shift] = row[shift:size] + cost
                row[size - shift : size] = row[size]
            np.minimum(held[:, :size], change - over[:, :size], out=held[:, :size])
            shifts = (task.overhead - done) // task.cell + done // task.cell
            free = _started(held, begun, shifts.tolist(), times)
    return int(free[0])


def part_charges(
    task: Task, phase: Phase, price: Integers, worth: ReadyNodes
) -> list[tuple[int, Integers]]:
    """Return what a part costs within some times, at the least price of them, by cell.

    Its GPU time within at most so much is on the lower convex hull of (time, GPU time) of widths.
    Each row is the cells of the least time, and the charge for the GPU time at the greatest.
    """
    corners = lower_hull((t, k * t) for k, t in zip(task.widths, phase.times, strict=True))
    held = [gpu_time for _, gpu_time in corners]
    corners = corners[: held.index(min(held)) + 1]
    size, rows = -(-task.until // task.cell), []
    for n, (time, gpu_time) in enumerate(corners):
        window = window_least(price, -(-time // task.cell) + 1)[:size]
        rows.append((corners[max(0, n - 1)][0] // task.cell, worth.at(window, gpu_time)))
    return rows


def least_changes(free: Integers, charges: Sequence[tuple[int, Integers]]) -> Integers:
    """Return by cell what a change of width in the part costs at least, and all after it.

    The part's work lies in some window that begins now or later, and ends when it is done or
    before: none of it is cheaper than at the least price of that window.
    """
    size = len(free) - 1
    best = np.full(size, free[size])
    for shift, charge in charges:
        rest = max(0, size - shift)
        best[:rest] = np.minimum(best[:rest], free[size - rest : size] + charge[:rest])
    least: Integers = np.minimum.accumulate(best[::-1])[::-1]
    return least


def _started(held: Integers, begun: Integers, shifts: Sequence[int], times: Integers) -> Integers:
    """Return by cell what a job costs at least that holds no GPUs: it starts then, or waits."""
    size = held.shape[1] - 1
    best = times.copy()
    best[:size] = times[size]
    for row, cost, shift in zip(held, begun, shifts, strict=True):
        near = np.minimum(row[:-1], row[1:])[shift:]
        np.minimum(best[: len(near)], near + cost[: len(near)], out=best[: len(near)])
    least: Integers = np.minimum.accumulate(best[::-1])[::-1]
    return least


def window_least(values: Integers, length: int) -> Integers:
    """Return the least of each so many values from one on; shorter at the end."""
    least, width = values.copy(), 1
    while 2 * width <= length:
        least[:-width] = np.minimum(least[:-width], least[width:])
        width *= 2
    rest = length - width
    if rest:
        least[:-rest] = np.minimum(least[:-rest], least[rest:])
    return least
