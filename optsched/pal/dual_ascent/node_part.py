"""Some nodes of a packing as a cutting-stock problem: what each of them may hold.

A job within a node is a gang of the node's pattern. One that spreads over nodes is a number of
*seats*: GPUs of its domain, in whichever nodes, that are no slower than a threshold. What it costs
follows from domain and threshold alone, so a seat is like a job of one GPU that costs nothing, on
the GPUs that will do. Thresholds are those of the jobs that spread now, and some beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.job_types import GangType
from optsched.pal.node_classes.aggregation import NodeClass, NodeClasses
from optsched.pal.node_classes.pattern_pricing import Pattern, PlacedGang, gang_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.rounding import GangPacking, Placed

Seat = tuple[int, int, float]
"""Domain, row of the slowdowns and threshold."""


class Spread(NamedTuple):
    """A way for jobs to spread over nodes.

    Attributes
    ----------
    jobs
        Type of the jobs, in the instance.
    kind, seats
        Types of the part: of the jobs, and of the seats that each takes.
    gpus
        How many.
    cost
        What it costs.
    """

    jobs: int
    kind: int
    seats: int
    gpus: int
    cost: float


class NodePart:
    """Some nodes, the jobs within them, and the seats of those that reach beyond.

    Parameters
    ----------
    lowest
        The nodes, as domains.
    shift
        How far beside each threshold another one is looked at, in GPUs by slowdown.

    Attributes
    ----------
    nodes
        Each as a class of its own. Types are kinds of jobs that cost the same within a node, then
        seats.
    nested
        Shape (types, types): which serve which; a seat serves those of greater thresholds, too.
    demand
        Shape (types,): how many of each there are to place, or of those that serve it.
    spreads
        Ways to spread.
    types
        Type of each job in the instance, by its number.
    within
        Jobs that have all their GPUs here, and may move.
    first_seat
        Number of the first type that is a seat.
    """

    def __init__(
        self, packing: GangPacking, lowest: Iterable[int], shift: Callable[[], int] | None
    ) -> None:
        self._packing, self._problem = packing, packing.problem
        self.types = {job: t for t, jobs in enumerate(self._problem.types) for job in jobs.jobs}
        kept = {keep.job: keep.gpus for keep in self._problem.keeps}
        self._owner = np.full(len(self._problem.gpus), -1, dtype=np.intp)
        self._is_open = np.zeros(len(self._owner), dtype=np.bool_)
        for d in lowest:
            self._is_open[self._inside(d)] = True
        for job, gpus in packing.placed.items():
            self._owner[gpus] = job
            if job in kept and np.array_equal(kept[job], np.sort(gpus)):
                self._is_open[gpus] = False
        self._open = [
            gpus
            for d in lowest
            if len(gpus := np.flatnonzero(self._is_open[self._inside(d)]) + self._inside(d).start)
        ]
        here = sorted({int(job) for job in self._owner[self._is_open] if job >= 0})
        self.within = [job for job in here if self._is_open[packing.placed[job]].all()]
        self._beyond = [job for job in here if not self._is_open[packing.placed[job]].all()]
        self._home = {job: self._lowest_around(packing.placed[job]) for job in here}
        self._kinds: dict[object, int] = {}
        self._kind = {job: self._kind_of(job) for job in self.within}
        self._seats: dict[Seat, int] = {}
        self._seat = {job: self._seat_of(job) for job in here if self._is_spread(job)}
        self.spreads = list(self._spreads(shift))
        self._seat_list = list(self._seats)
        self.first_seat = len(self._kinds)
        self.nodes = self._as_classes()
        self.nested = self._nested()
        demand = np.zeros(len(self.nodes.types))
        np.add.at(demand, list(self._kind.values()), 1.0)
        for job in self._beyond:
            demand[self.first_seat + self._seat[job]] += self._is_open[packing.placed[job]].sum()
        self.demand = self.nested @ demand

    def _inside(self, domain: int) -> slice:
        domains = self._problem.domains
        return slice(int(domains.start[domain]), int(domains.stop[domain]))

    def _lowest_around(self, gpus: Indices) -> int:
        domains = self._problem.domains
        around = (domains.start <= gpus.min()) & (domains.stop > gpus.max())
        return int(np.flatnonzero(around)[0])

    def _is_spread(self, job: int) -> bool:
        return bool(self._problem.domains.has_children[self._home[job]])

    def _kind_of(self, job: int) -> int:
        """Return the kind of a job; jobs of a kind cost the same within a node."""
        jobs = self._problem.types[self.types[job]]
        is_narrow = jobs.gpus <= max(map(len, self._open))
        beyond = None if is_narrow else self.types[job]
        key = jobs.gpus, jobs.row, float(jobs.factor[0]), jobs.moving, beyond
        return self._kinds.setdefault(key, len(self._kinds))

    def _seat_of(self, job: int) -> int:
        row = self._problem.types[self.types[job]].row
        slowest = float(self._problem.slowdown[row, self._packing.placed[job]].max())
        return self._seats.setdefault((self._home[job], row, slowest), len(self._seats))

    # --- ways to spread ---------------------------------------------------------------------------

    def _spreads(self, shift: Callable[[], int] | None) -> Iterator[Spread]:
        """Yield ways for the types that spread now, or do not fit in a node."""
        spread = [job for job in self.within if job in self._seat]
        homes = {self._home[job] for job in spread}
        homes |= {int(self._problem.domains.parent[self._lowest_around(g)]) for g in self._open}
        chosen = {self.types[job]: self._kind[job] for job in spread}
        self._add_seats(homes - {-1}, {self._problem.types[t].row for t in chosen}, shift)
        for t, kind in chosen.items():
            jobs = self._problem.types[t]
            for (home, row, slowest), n in self._seats.items():
                cost = jobs.factor[self._problem.domains.level[home]] * slowest + jobs.moving
                if row == jobs.row and np.isfinite(cost):
                    yield Spread(t, kind, n, jobs.gpus, float(cost))

    def _add_seats(self, homes: set[int], rows: set[int], shift: Callable[[], int] | None) -> None:
        """Add thresholds beside those that there are, and some for domains without any."""
        now = list(self._seats)
        for home in sorted(homes):
            for row in sorted(rows):
                mine = [slow for d, r, slow in now if (d, r) == (home, row)]
                beside = mine or [slow for _, r, slow in now if r == row]
                if shift is not None:
                    beside = [self._shifted(home, row, slow, shift()) for slow in beside]
                for slow in beside:
                    self._seats.setdefault((home, row, slow), len(self._seats))

    def _shifted(self, home: int, row: int, slowest: float, by: int) -> float:
        order = self._problem.chains[row][home].order
        order = order[self._is_open[order]]
        if not len(order):
            return slowest
        values = self._problem.slowdown[row, order]
        return float(values[np.clip(np.searchsorted(values, slowest) + by, 0, len(order) - 1)])

    # --- as nodes and patterns --------------------------------------------------------------------

    def _as_classes(self) -> NodeClasses:
        problem, rows = self._problem, len(self._problem.slowdown)
        jobs: dict[int, list[int]] = {}
        for job in self.within:
            jobs.setdefault(self._kind[job], []).append(job)
        types = []
        for _, numbers in sorted(jobs.items()):
            like = problem.types[self.types[numbers[0]]]
            figures = like.gpus, like.row, like.factor[:1], like.moving, np.inf
            types.append(GangType(tuple(numbers), *figures))
        seats = np.full((len(self._seats), len(problem.gpus)), np.inf)
        for n, (home, row, slowest) in enumerate(self._seats):
            inside = self._inside(home)
            seats[n, inside][problem.slowdown[row, inside] <= slowest] = 0.0
            types.append(GangType((), 1, rows + n, np.ones(1), 0.0, np.inf))
        slowdown = np.concatenate([problem.slowdown, seats])
        classes = tuple(
            NodeClass(gpus[np.newaxis], slowdown[:, gpus], (), (), ((),)) for gpus in self._open
        )
        return NodeClasses(tuple(types), slowdown, classes, ())

    def _nested(self) -> Floats:
        """Return which seats serve which types: those of a threshold serve slower ones, too."""
        nested = np.eye(len(self.nodes.types))
        for (home, row, slowest), n in self._seats.items():
            for (other, its, threshold), k in self._seats.items():
                if (home, row) == (other, its) and threshold > slowest:
                    nested[self.first_seat + k, self.first_seat + n] = 1.0
        return nested

    def fastest(self, pattern: Pattern) -> Pattern:
        """Return a pattern with each seat as that of the least threshold that its GPU meets."""
        gpus = self._open[pattern.node_class]
        gangs = [self._fastest(gang, gpus) if gang.type >= self.first_seat else gang
                 for gang in pattern.gangs]  # fmt: skip
        return pattern._replace(gangs=tuple(sorted(gangs)))

    def _fastest(self, gang: PlacedGang, gpus: Indices) -> PlacedGang:
        home, row, _ = self._seat_list[gang.type - self.first_seat]
        slowdown = self._problem.slowdown[row, gpus[gang.positions[0]]]
        meets = [(slow, n) for (d, r, slow), n in self._seats.items()
                 if (d, r) == (home, row) and slow >= slowdown]  # fmt: skip
        return gang._replace(type=self.first_seat + min(meets)[1])

    def patterns(self) -> Iterator[Pattern]:
        """Yield the pattern that each node has now."""
        for k, gpus in enumerate(self._open):
            held: dict[int, list[int]] = {}
            for position, job in enumerate(self._owner[gpus].tolist()):
                if job >= 0:
                    held.setdefault(job, []).append(position)
            gangs = []
            for job, positions in held.items():
                if job in self._seat:
                    seat = len(self._kinds) + self._seat[job]
                    gangs += [PlacedGang(seat, (at,), is_kept=False) for at in positions]
                else:
                    gangs.append(PlacedGang(self._kind[job], tuple(positions), is_kept=False))
            costs = [gang_cost(self.nodes.types, self.nodes.classes[k], gang) for gang in gangs]
            yield Pattern(k, tuple(sorted(gangs)), sum(costs))

    def placed(self, patterns: Iterable[Pattern], spreads: Iterable[Spread]) -> Placed | None:
        """Return where patterns and spreads put the jobs; None if some do not get all GPUs."""
        waiting = {kind: list(jobs.jobs) for kind, jobs in enumerate(self.nodes.types)}
        takers = [
            (each.seats, self._popped(waiting[each.kind], each.jobs), each.gpus) for each in spreads
        ]
        seats: dict[tuple[int, int], list[int]] = {}
        placed: Placed = {}
        for pattern in patterns:
            gpus = self._open[pattern.node_class]
            for gang in pattern.gangs:
                if gang.type >= self.first_seat:
                    home, row, _ = self._seat_list[gang.type - self.first_seat]
                    seats.setdefault((home, row), []).extend(gpus[list(gang.positions)].tolist())
                elif waiting[gang.type]:
                    placed[waiting[gang.type].pop()] = gpus[list(gang.positions)]
        for beyond in self._beyond:
            gpus = self._packing.placed[beyond]
            placed[beyond] = gpus[~self._is_open[gpus]]
            takers.append((self._seat[beyond], beyond, len(gpus) - len(placed[beyond])))
        for seat, job, count in sorted(takers, key=lambda taker: self._seat_list[taker[0]][2]):
            home, row, slowest = self._seat_list[seat]
            values = self._problem.slowdown[row]
            free = sorted(seats.get((home, row), []), key=lambda gpu: -values[gpu])
            chosen = [free.pop() for _ in range(min(count, len(free)))]
            if job is None or len(chosen) < count or values[chosen].max() > slowest:
                return None
            seats[home, row] = free
            placed[job] = np.sort(np.r_[placed.get(job, self._owner[:0]), chosen])
        return placed if len(placed) == len(self.within) + len(self._beyond) else None

    def _popped(self, waiting: list[int], t: int) -> int | None:
        """Take a job of a type out of those of a kind."""
        for n, job in enumerate(waiting):
            if self.types[job] == t:
                return waiting.pop(n)
        return None
