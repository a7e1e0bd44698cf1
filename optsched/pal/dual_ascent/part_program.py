"""Some jobs on their GPUs as an integer program: gangs within nodes one by one, others by chains.

Costs are reduced by prices of GPUs, idle ones pay theirs; so the value of a plan is what it costs
above what the prices prove, and a gang that alone costs as much as the whole part now is left out.
Above the nodes a job takes an option (domain, slowest GPU), as in the type-chain formulation
(docs/math/pal.md): GPUs flow into the chain of the domain, and what faster ones leave over goes on.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from optsched.mip.program import Program
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.rounding import GangPacking


@cache
def _subsets(count: int, size: int) -> Indices:
    """Return the places of all gangs of a size among so many GPUs: shape (gangs, size)."""
    return np.array(list(combinations(range(count), size)), dtype=np.intp)


class PricedJobs(NamedTuple):
    """What GPUs cost, and jobs at least.

    Attributes
    ----------
    prices
        Shape (GPUs,).
    least
        Shape (types,): of a job, with the prices of its GPUs.
    """

    prices: Floats
    least: Floats


class GangColumn(NamedTuple):
    """A gang of a type: its GPUs, or how many of a chain (from 0) it may take them from."""

    type: int
    gpus: Indices
    chain: int = -1
    end: int = 0


class Chain(NamedTuple):
    """GPUs of a domain, ascending by slowdown, and the columns by which they are given to it."""

    order: Indices
    columns: Indices


class ChainOptions(NamedTuple):
    """A domain's GPUs, ascending by slowdown, and up to which ends types may take their own."""

    row: int
    level: int
    order: Indices
    ends: dict[int, Indices]

    @property
    def places(self) -> Indices:
        """Shape (ends,): of all types, ascending."""
        return np.unique(np.concatenate(list(self.ends.values())))


class PartProgram:
    """The integer program of placing some jobs of a packing anew.

    Parameters
    ----------
    jobs
        Which are placed.

    Attributes
    ----------
    jobs_of
        Jobs by type.
    gpus
        Shape (GPUs,): which may be used, by number: those of the jobs, and the idle ones near them.
    limit
        What the jobs cost now above what the prices prove, with the prices of idle GPUs.
    gangs
        By column: the first ones. Others are GPUs in chains, or idle ones.
    """

    def __init__(self, packing: GangPacking, jobs: list[int], priced: PricedJobs) -> None:
        self.problem: PalArrays = packing.problem
        wanted = set(jobs)
        self.jobs_of = {
            t: mine
            for t, of_type in enumerate(self.problem.types)
            if (mine := [job for job in of_type.jobs if job in wanted])
        }
        self._priced, self._type_row = priced, {t: n for n, t in enumerate(self.jobs_of)}
        self._lowest = np.flatnonzero(~self.problem.domains.has_children)
        self.gpus = self._open(packing, jobs)
        counts = {t: len(mine) for t, mine in self.jobs_of.items()}
        least = sum(count * float(priced.least[t]) for t, count in counts.items())
        cost = sum(packing.cost(job) for job in jobs)
        self.limit = cost - least + float(priced.prices[self.gpus].sum())
        self.gangs: list[GangColumn] = []
        self.chains: list[Chain] = []
        self._cost: list[Floats] = []
        self._entries: list[tuple[Indices, Indices, Floats]] = []  # rows, columns, values
        self._columns = 0
        self._right = [np.array([*counts.values(), *np.ones(len(self.gpus))], dtype=float)]
        self._gpu_row = np.full(len(self.problem.gpus), -1, dtype=np.intp)
        self._gpu_row[self.gpus] = len(counts) + np.arange(len(self.gpus))

    def _open(self, packing: GangPacking, jobs: list[int]) -> Indices:
        """Return the GPUs of jobs, and the idle ones of the same lowest domains."""
        domains = self.problem.domains
        node = np.zeros(len(packing.free), dtype=np.intp)
        for d in self._lowest.tolist():
            node[domains.start[d] : domains.stop[d]] = d
        held = np.concatenate([packing.placed[job] for job in jobs])
        is_open: Bools = packing.free & np.isin(node, node[held])
        is_open[held] = True
        return np.flatnonzero(is_open)

    def program(self) -> Program:
        """Return the program; columns have no upper bounds, rows give them."""
        domains = self.problem.domains
        chained: list[ChainOptions] = []
        for d in range(len(domains)):
            first, last = np.searchsorted(self.gpus, [domains.start[d], domains.stop[d]])
            inside = self.gpus[first:last]
            if domains.has_children[d] or len(inside) > SETTINGS.most_node_gpus:
                chained += self._options(d, inside)
            else:
                self._add_gangs(d, inside)
        starts = [self._add_options(options) for options in chained]
        for options, start in zip(chained, starts, strict=True):
            self._add_chain(options, start)
        prices = self._priced.prices[self.gpus]  # of idle ones
        self._add(prices, self._gpu_row[self.gpus], np.ones(len(prices)))
        right = np.concatenate(self._right)
        rows, columns, values = (np.concatenate(some) for some in zip(*self._entries, strict=True))
        matrix = coo_array((values, (rows, columns)), shape=(len(right), self._columns))
        return Program(
            cost=np.concatenate(self._cost),
            offset=0.0,
            lower=np.zeros(self._columns),
            upper=np.full(self._columns, np.inf),
            matrix=csr_array(matrix),
            row_lower=right,
            row_upper=right,
            integer=np.arange(self._columns) < len(self.gangs),
        )

    def _add(self, cost: Floats, rows: Indices, values: Floats) -> Indices:
        """Add columns of equally many entries each; return their numbers."""
        columns = self._columns + np.arange(len(cost))
        self._columns += len(cost)
        self._cost.append(cost)
        entries = np.repeat(columns, len(rows) // max(1, len(cost)))
        self._entries.append((rows, entries, values))
        return columns

    def _add_gangs(self, d: int, inside: Indices) -> None:
        """Add all gangs within a node that are not too dear."""
        level = int(self.problem.domains.level[d])
        for t, row in self._type_row.items():
            jobs = self.problem.types[t]
            if jobs.gpus > len(inside) or not jobs.factor[level] < np.inf:
                continue
            gangs = inside[_subsets(len(inside), jobs.gpus)]
            slowest = self.problem.slowdown[jobs.row, gangs].max(axis=1)
            charged = self._priced.prices[gangs].sum(axis=1)
            cost = jobs.cost(level, slowest) + charged - self._priced.least[t]
            near = np.flatnonzero(cost < self.limit)
            rows = np.c_[np.full(len(near), row), self._gpu_row[gangs[near]]]
            self._add(cost[near], rows.reshape(-1), np.ones(rows.size))
            self.gangs += [GangColumn(t, gang) for gang in gangs[near]]

    def _options(self, d: int, inside: Indices) -> Iterator[ChainOptions]:
        """Yield what jobs may take in a domain, for each class."""
        problem, level = self.problem, int(self.problem.domains.level[d])
        for row in range(len(problem.slowdown)):
            order = inside[np.argsort(problem.slowdown[row, inside], kind="stable")]
            ends: dict[int, Indices] = {}
            for t in self._type_row:
                jobs = problem.types[t]
                least = 2 if problem.domains.has_children[d] else 1
                fits = least <= jobs.gpus <= len(order) and jobs.factor[level] < np.inf
                if jobs.row == row and fits and len(near := self._near(t, level, order)):
                    ends[t] = near
            if ends:
                yield ChainOptions(row, level, order, ends)

    def _near(self, t: int, level: int, order: Indices) -> Indices:
        """Return up to which places of a chain a job of a type may look and not be too dear."""
        jobs, prices = self.problem.types[t], self._priced.prices[order]
        ends = np.arange(jobs.gpus, len(order) + 1)
        cheapest = [np.partition(prices[:end], jobs.gpus - 1)[: jobs.gpus].sum() for end in ends]
        own = jobs.cost(level, self.problem.slowdown[jobs.row, order[ends - 1]])
        near: Indices = ends[own + np.array(cheapest) - self._priced.least[t] < self.limit]
        return near

    def _add_options(self, options: ChainOptions) -> int:
        """Add what jobs may take of a chain; return the first of its rows."""
        start, number = len(np.concatenate(self._right)), len(self._right) - 1
        for t, ends in options.ends.items():
            jobs = self.problem.types[t]
            slowest = self.problem.slowdown[options.row, options.order[ends - 1]]
            cost = jobs.cost(options.level, slowest) - self._priced.least[t]
            rows = np.searchsorted(options.places, ends) + start
            rows = np.c_[np.full(len(ends), self._type_row[t]), rows]
            values = np.tile([1.0, -float(jobs.gpus)], len(ends))
            self._add(cost, rows.reshape(-1), values)
            self.gangs += [GangColumn(t, options.order, number, end) for end in ends.tolist()]
        self._right.append(np.zeros(len(options.places)))
        return start

    def _add_chain(self, options: ChainOptions, start: int) -> None:
        """Add the GPUs that a chain may be given, and what each of its rows leaves to the next."""
        places = options.places
        order = options.order[: places[-1]]
        rows = start + np.searchsorted(places, np.arange(1, len(order) + 1))
        rows = np.c_[self._gpu_row[order], rows].reshape(-1)
        given = self._add(self._priced.prices[order], rows, np.ones(len(rows)))
        self.chains.append(Chain(order, given))
        left = start + np.arange(len(places) - 1)
        values = np.tile([-1.0, 1.0], len(left))
        self._add(np.zeros(len(left)), np.c_[left, left + 1].reshape(-1), values)

    def placed(self, x: Floats) -> dict[int, Indices] | None:
        """Return the GPUs of each job at a whole point of the program; None if it is not whole."""
        waiting = {t: list(jobs) for t, jobs in self.jobs_of.items()}
        placed: dict[int, Indices] = {}
        given = [chain.order[x[chain.columns] > 0.5] for chain in self.chains]
        used = np.flatnonzero(x[: len(self.gangs)] > 0.5)
        for n in sorted(used.tolist(), key=lambda n: self.gangs[n].end):
            t, gpus, chain, _ = self.gangs[n]
            for _ in range(round(float(x[n]))):
                if chain >= 0:
                    size = self.problem.types[t].gpus
                    gpus, given[chain] = given[chain][:size], given[chain][size:]
                if not waiting[t] or len(gpus) != self.problem.types[t].gpus:
                    return None
                placed[waiting[t].pop()] = gpus
        taken = np.concatenate(list(placed.values())) if placed else self.gpus[:0]
        is_whole = not any(waiting.values()) and len(np.unique(taken)) == len(taken)
        return placed if is_whole else None
