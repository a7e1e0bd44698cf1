"""Simulated annealing (Kirkpatrick, Gelatt & Vecchi, Science 1983) of which GPUs each gang has.

Relax and fix leaves small faults everywhere, which four kinds of moves mend by the thousand: two
GPUs change their jobs; a gang goes into one node, whose jobs take its GPUs; two gangs of one size
change places; a gang takes fast GPUs of a domain that it can have without breaking up another one.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from itertools import islice
from math import exp
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from optsched.pal.exact.rounding import GangPacking

Gpus = list[int]
Exchange = list[tuple[int, Gpus]]
"""Jobs with the GPUs that they get."""

IDLE, FIXED = -1, -2  # instead of the number of a job


class _Gang(NamedTuple):
    """What a job costs: `factor[level]` for each unit of the greatest slowdown on its GPUs."""

    gpus: int
    row: int
    slowdown: list[float]
    factor: list[float]
    moving: float


class GangAnnealing:
    """Moves the gangs of a packing; running jobs that keep their GPUs stay there.

    Parameters
    ----------
    packing
        Where the jobs stand now; jobs that are not placed stay out.
    seconds_left
        Until the deadline; None for none.
    """

    def __init__(
        self, packing: GangPacking, seed: int, seconds_left: Callable[[], float | None]
    ) -> None:
        problem, self._packing, self._seconds_left = packing.problem, packing, seconds_left
        self._draw = random.Random(seed)
        domains = problem.domains
        self._start, self._stop = domains.start.tolist(), domains.stop.tolist()
        self._parent, self._level = domains.parent.tolist(), domains.level.tolist()
        self._has_children = domains.has_children.tolist()
        self._nodes = np.flatnonzero(~domains.has_children).tolist()
        self._inside: dict[int, list[int]] = {}
        for d, around in enumerate(self._parent):
            self._inside.setdefault(around, []).append(d)
        self._node = [0] * len(problem.gpus)
        for d in self._nodes:
            self._node[self._start[d] : self._stop[d]] = [d] * (self._stop[d] - self._start[d])
        slowdown = problem.slowdown.tolist()
        self._gangs: dict[int, _Gang] = {}
        for kind in problem.types:
            figures = slowdown[kind.row], kind.factor.tolist(), kind.moving
            self._gangs |= dict.fromkeys(kind.jobs, _Gang(kind.gpus, kind.row, *figures))
        self._chains: dict[tuple[int, int], tuple[Gpus, list[float]]] = {}
        self.read()

    def read(self) -> None:
        """Take who stands where from the packing, after it was changed."""
        packing = self._packing
        kept = {keep.job: set(keep.gpus.tolist()) for keep in packing.problem.keeps}
        self._who = [IDLE] * len(self._node)
        self._held: dict[int, Gpus] = {}
        for job, where in packing.placed.items():
            gpus = where.tolist()
            is_fixed = kept.get(job) == set(gpus)
            for gpu in gpus:
                self._who[gpu] = FIXED if is_fixed else job
            if not is_fixed:
                self._held[job] = gpus
        self._jobs = self._movable = list(self._held)
        priced = {job: self._priced(job, gpus) for job, gpus in self._held.items()}
        self._in = {job: domain for job, (domain, _) in priced.items()}
        self._cost = {job: cost for job, (_, cost) in priced.items()}
        self._total = sum(self._cost.values())
        self._same: dict[int, list[int]] = {}
        for job in self._movable:
            self._same.setdefault(self._gangs[job].gpus, []).append(job)

    def near(self, gpus: Iterable[int]) -> list[int]:
        """Return the jobs that stand on the nodes of some GPUs."""
        nodes = {self._node[gpu] for gpu in gpus}
        inside = (self._who[self._start[node] : self._stop[node]] for node in nodes)
        return sorted({job for jobs in inside for job in jobs if job >= 0})

    def run(self, moves: int, hot: float, goal: float, jobs: list[int] | None = None) -> bool:
        """Try so many moves, and put the best that was found into the packing.

        Parameters
        ----------
        hot
            Temperature to begin with, relative to the mean cost of a job.
        goal
            Cost of the jobs that are placed, at which it ends at once.
        jobs
            Whose moves are tried, all by default; others give way to them.

        Returns
        -------
        bool
            Whether the packing costs less than before.
        """
        self._jobs = self._movable if jobs is None else jobs
        if not self._jobs:
            return False
        begun = best = self._total
        goal -= sum(map(self._packing.cost, self._packing.placed.keys() - self._held.keys()))
        found = dict(self._held)
        mean = begun / len(self._movable)
        hot, cold = hot * mean, SETTINGS.anneal_cold * mean
        kinds = [self._swapped, self._into_node, self._roles, self._spread]
        chosen = self._draw.choices(kinds, SETTINGS.anneal_moves, k=moves)
        self._heat = hot
        for number, move in enumerate(chosen):
            if not number % SETTINGS.anneal_every:
                if self._seconds_left() == 0:
                    break
                self._heat = hot * (cold / hot) ** (number / moves)
            exchange = move()
            if exchange is not None and self._done(exchange) and self._total < best:
                best, found = self._total, dict(self._held)
                if best <= goal:
                    break
        if best >= begun * (1 - SETTINGS.better):
            self.read()
            return False
        for job in found:
            self._packing.take(job)
        for job, gpus in found.items():
            self._packing.put(job, np.array(sorted(gpus), dtype=np.intp))
        self.read()
        return True

    def _priced(self, job: int, gpus: Gpus) -> tuple[int, float]:
        """Return the lowest domain around GPUs, and what a job costs there."""
        gang = self._gangs[job]
        if len(gpus) == 1:
            domain, slowest = self._node[gpus[0]], gang.slowdown[gpus[0]]
        else:
            last, domain = max(gpus), self._node[min(gpus)]
            while self._stop[domain] <= last:
                domain = self._parent[domain]
            slowdown = gang.slowdown
            slowest = max([slowdown[gpu] for gpu in gpus])
        return domain, gang.factor[self._level[domain]] * slowest + gang.moving

    def _done(self, exchange: Exchange) -> bool:
        """Make an exchange if it costs less, or by chance; return whether it was made."""
        change, priced = 0.0, []
        for job, gpus in exchange:
            domain, cost = self._priced(job, gpus)
            change += cost - self._cost[job]
            priced.append((job, gpus, domain, cost))
        if change > 0 and self._draw.random() >= exp(-change / self._heat):
            return False
        who = self._who
        for job, _, _, _ in priced:
            for gpu in self._held[job]:
                who[gpu] = IDLE
        for job, gpus, domain, cost in priced:
            for gpu in gpus:
                who[gpu] = job
            self._held[job], self._in[job], self._cost[job] = gpus, domain, cost
        self._total += change
        return True

    # --- moves -----------------------------------------------------------------------------------

    def _swapped(self) -> Exchange | None:
        """Return an exchange of two GPUs, of which the first one is often a job's slowest."""
        draw, who = self._draw.random, self._who
        job = self._jobs[int(draw() * len(self._jobs))]
        gpus, gang, domain = self._held[job], self._gangs[job], self._in[job]
        slowdown, count = gang.slowdown, len(gpus)
        if count > 1 and draw() < SETTINGS.anneal_slowest:
            old = max(gpus, key=slowdown.__getitem__)
        else:
            old = gpus[int(draw() * count)]
        around = domain if count > 1 else len(self._start) - 1
        order, values = self._chain(gang.row, around)
        faster = bisect_left(values, slowdown[old]) if draw() < SETTINGS.anneal_faster else 0
        new = order[int(draw() * (faster or len(order)))]
        other = who[new]
        if other in (job, FIXED) or (other >= 0 and not self._may_have(other, new, old)):
            return None
        mine = [new if gpu == old else gpu for gpu in gpus]
        if other < 0:
            return [(job, mine)]
        return [(job, mine), (other, [old if gpu == new else gpu for gpu in self._held[other]])]

    def _may_have(self, job: int, old: int, new: int) -> bool:
        """Tell whether a job may have another GPU without leaving its domain."""
        domain = self._in[job]
        return self._gangs[job].gpus == 1 or self._start[domain] <= new < self._stop[domain]

    def _chain(self, row: int, domain: int) -> tuple[Gpus, list[float]]:
        """Return the GPUs of a domain from the fastest on, and their slowdowns."""
        if (row, domain) not in self._chains:
            problem = self._packing.problem
            order = problem.chains[row][domain].order
            self._chains[row, domain] = order.tolist(), problem.slowdown[row][order].tolist()
        return self._chains[row, domain]

    def _into_node(self) -> Exchange | None:
        """Return a gang's way into another node, whose jobs take the GPUs that it leaves."""
        draw = self._draw
        job = self._jobs[int(draw.random() * len(self._jobs))]
        node = self._nodes[int(draw.random() * len(self._nodes))]
        size = self._gangs[job].gpus
        if size == 1 or self._in[job] == node or size > self._stop[node] - self._start[node]:
            return None
        taken = [gpu for gpu in self._held[job] if self._node[gpu] == node]
        units = list(self._units(node, job))
        draw.shuffle(units)
        for unit in units:
            if len(taken) + len(unit) <= size:
                taken += unit
                if len(taken) == size:
                    return self._given(job, taken)
        return None

    def _units(self, node: int, but: int) -> Iterator[Gpus]:
        """Yield what may leave a node: single GPUs, and whole gangs that are within it."""
        whole: dict[int, Gpus] = {}
        for gpu in range(self._start[node], self._stop[node]):
            job = self._who[gpu]
            if job in (but, FIXED):
                continue
            if job >= 0 and self._in[job] == node and self._gangs[job].gpus > 1:
                whole.setdefault(job, []).append(gpu)
            else:
                yield [gpu]
        yield from whole.values()

    def _given(self, job: int, taken: Gpus) -> Exchange:
        """Return a job on other GPUs, and those whose GPUs they were on the ones that it leaves."""
        mine = set(taken)
        left = [gpu for gpu in self._held[job] if gpu not in mine]
        self._draw.shuffle(left)
        come = [gpu for gpu in taken if self._who[gpu] != job]
        instead = dict(zip(come, left, strict=True))
        others = {self._who[gpu] for gpu in come} - {IDLE}
        exchange = [(job, taken)]
        for other in sorted(others):
            exchange.append((other, [instead.get(gpu, gpu) for gpu in self._held[other]]))
        return exchange

    def _roles(self) -> Exchange | None:
        """Return two gangs of one size in each other's places."""
        draw = self._draw.random
        job = self._jobs[int(draw() * len(self._jobs))]
        equal = self._same[self._gangs[job].gpus]
        other = equal[int(draw() * len(equal))]
        return None if job == other else [(job, self._held[other]), (other, self._held[job])]

    def _spread(self) -> Exchange | None:
        """Return a gang on fast GPUs of a domain: idle ones, of jobs of one GPU, or of wide gangs.

        Wide gangs give GPUs only for others within their domain.
        """
        draw = self._draw
        job = self._jobs[int(draw.random() * len(self._jobs))]
        gang, domain = self._gangs[job], self._in[job]
        if gang.gpus == 1:
            return None
        above = domain if self._has_children[domain] else self._parent[domain]
        above = domain if above < 0 else above
        beside = self._inside[self._parent[above]]
        around = beside[int(draw.random() * len(beside))]
        more = 1 + int(draw.random() * gang.gpus)
        can = list(islice(self._fast(job, around, around == above), gang.gpus + more))
        return None if len(can) < gang.gpus else self._given(job, draw.sample(can, gang.gpus))

    def _fast(self, job: int, domain: int, is_own: bool) -> Iterable[int]:
        """Yield GPUs of a domain that a job may take, the fastest first."""
        for gpu in self._chain(self._gangs[job].row, domain)[0]:
            other = self._who[gpu]
            is_wide = other >= 0 and is_own and self._in[other] == domain != self._node[gpu]
            if other in (IDLE, job) or is_wide or (other >= 0 and self._gangs[other].gpus == 1):
                yield gpu
