"""The type-chain formulation: an LP relaxation by Hall's theorem (J. London Math. Soc. 1935).

It is F7 of docs/math/pal.md (type chains) on arrays. Jobs of one class in one domain d with
threshold v may use any GPU of d that is no slower than v. These sets are nested in v, so by Hall's
condition whole counts y[type, d, v] of jobs can be placed exactly if, threshold by threshold, no
more GPUs are asked for than were given to the chain:

    S[c,d,v] = S[c,d,v-1] + sum of g[c,d,i] over GPUs i of slowdown v
                          - sum of k[t] y[t,d,v] over types t of class c,     S >= 0
    sum of g[c,d,i] over c, d <= 1 for each GPU i
    sum of y[t,.,.] + keeps + left out = n[t] for each type t

A job may be counted under an option above its true one, but never gains by it. A running job may
keep its GPUs (one column with these), and nobody else gets them: holdings are disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from optsched.mip.highs import Program

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.exact.arrays import PalArrays


@dataclass(frozen=True)
class GangOptions:
    """What a job may get: options by type, domain and slowdown; after them the kept placements.

    Attributes
    ----------
    type, domain
        Shape (options,).
    end
        Shape (options,): how many GPUs of the domain are fast enough; 0 for kept placements.
    slowdown, cost
        Shape (options,).
    job
        Shape (options,): number of the job that keeps its GPUs, -1 if none does.
    """

    type: Indices
    domain: Indices
    end: Indices
    slowdown: Floats
    cost: Floats
    job: Indices

    @cached_property
    def first_keep(self) -> int:
        """Index of the first kept placement."""
        return int((self.job < 0).sum())

    @cached_property
    def blocks(self) -> list[tuple[int, int, slice]]:
        """Type, domain, and the options that have both; without the kept placements."""
        keys = np.stack([self.type, self.domain])[:, : self.first_keep]
        starts = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)][: self.first_keep])
        stops = [*starts[1:].tolist(), self.first_keep]
        return [
            (int(self.type[start]), int(self.domain[start]), slice(start, stop))
            for start, stop in zip(starts.tolist(), stops, strict=False)
        ]

    def only(self, kept: Bools) -> GangOptions:
        """Return some of the options."""
        return GangOptions(*(getattr(self, field.name)[kept] for field in fields(GangOptions)))


def all_options(problem: PalArrays) -> GangOptions:
    """Return every option that a job of each type may get, and the kept placements."""
    blocks = [_options_of_type(problem, t) for t in range(len(problem.types))]
    return _joined([*blocks, _keeps(problem)])


def _options_of_type(problem: PalArrays, t: int) -> GangOptions:
    jobs, domains = problem.types[t], problem.domains
    every = problem.thresholds[jobs.row]
    is_open = np.isfinite(jobs.factor)[domains.level]
    if jobs.gpus == 1:
        is_open &= ~domains.has_children  # a single GPU stands in a domain of the lowest level
    mine = np.flatnonzero((every.end >= jobs.gpus) & is_open[every.domain])
    domain, slowdown = every.domain[mine], every.slowdown[mine]
    return GangOptions(
        type=np.full(len(mine), t, dtype=np.intp),
        domain=domain,
        end=every.end[mine],
        slowdown=slowdown,
        cost=jobs.cost(domains.level[domain], slowdown),
        job=np.full(len(mine), -1, dtype=np.intp),
    )


def _keeps(problem: PalArrays) -> GangOptions:
    keeps = problem.keeps
    return GangOptions(
        type=np.array([keep.type for keep in keeps], dtype=np.intp),
        domain=np.array([keep.domain for keep in keeps], dtype=np.intp),
        end=np.zeros(len(keeps), dtype=np.intp),
        slowdown=np.array([keep.slowdown for keep in keeps], dtype=np.float64),
        cost=np.array([keep.cost for keep in keeps], dtype=np.float64),
        job=np.array([keep.job for keep in keeps], dtype=np.intp),
    )


def _joined(blocks: list[GangOptions]) -> GangOptions:
    names = [field.name for field in fields(GangOptions)]
    return GangOptions(
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in names)
    )


def relaxation(problem: PalArrays, options: GangOptions, reward: Floats) -> Program:
    """Return F7; `reward` is what leaving out a job of each type costs, a finite (types,) array.

    Its columns are options, jobs left out by type, and then g and S; its rows are types, GPUs
    and then chains.
    """
    builder = MatrixBuilder(problem, options, np.ones(len(problem.gpus)))
    builder.add_types()
    if options.first_keep:
        builder.add_chains()
    return builder.program(reward)


class MatrixBuilder:
    """Collects the entries of the matrix, block by block.

    Columns are options, jobs left out by type, and then GPUs that are given to options or chains;
    rows are types, GPUs, and then what options need.

    Parameters
    ----------
    copies
        Shape (GPUs,): how many there are of each.
    """

    def __init__(self, problem: PalArrays, options: GangOptions, copies: Floats) -> None:
        self.problem, self.options, self.copies = problem, options, copies
        self.first_given = self.columns = len(options.type) + len(problem.types)
        self.rows = len(problem.types) + len(copies)
        self.loose: list[Indices] = []  # rows that are at most 0; others of what options need are 0
        self.entries: list[tuple[Indices, Indices, Floats]] = []

    def add(self, rows: Indices, columns: Indices, value: float) -> None:
        """Add entries of one value."""
        self.entries.append((rows, columns, np.full(len(rows), value)))

    def add_types(self) -> None:
        """Add what options and jobs left out count for in the rows of types, and kept GPUs."""
        count, types = len(self.options.type), np.arange(len(self.problem.types))
        self.add(self.options.type, np.arange(count), 1.0)
        self.add(types, count + types, 1.0)
        gpus = {keep.job: keep.gpus for keep in self.problem.keeps}
        for column in range(self.options.first_keep, count):
            rows = len(types) + gpus[int(self.options.job[column])]
            self.add(rows, np.full(len(rows), column), 1.0)

    def add_chains(self) -> None:
        """Add the rows of all chains, one for each number of GPUs that some options may take.

        A chain has columns g, its GPUs, and then S, one for each of its rows.
        """
        options, first, chains = self.options, self.options.first_keep, self.problem.chains
        users, sizes, counts = dict[tuple[int, int], int](), [], []
        chain_of_block = []
        for t, d, columns in options.blocks:
            jobs = self.problem.types[t]
            chain_of_block.append(users.setdefault((jobs.row, d), len(users)))
            sizes.append(jobs.gpus)
            counts.append(columns.stop - columns.start)
        chain, stride = np.repeat(chain_of_block, counts), int(options.end.max()) + 1
        ends, need = np.unique(chain * stride + options.end[:first], return_inverse=True)
        self.entries.append(
            (self.rows + need, np.arange(first), -np.repeat(np.array(sizes, dtype=float), counts))
        )
        of_row = ends // stride
        rows, numbers = self.rows + np.arange(len(ends)), np.arange(len(users))
        begin, stop = np.searchsorted(of_row, numbers), np.searchsorted(of_row, numbers, "right")
        width = ends[stop - 1] % stride
        column = self.columns + np.r_[0, np.cumsum(width + stop - begin)[:-1]]
        at = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        of_gpu = np.repeat(numbers, width)
        order = [chains[row][d].order[:reach] for (row, d), reach in zip(users, width, strict=True)]
        given = column[of_gpu] + at
        self.add(rows[np.searchsorted(ends, of_gpu * stride + at, side="right")], given, 1.0)
        self.add(len(self.problem.types) + np.concatenate(order), given, 1.0)
        carried = (column + width - begin)[of_row] + np.arange(len(ends))
        self.add(rows, carried, -1.0)
        is_last = np.r_[of_row[1:] != of_row[:-1], True]
        self.add(rows[1:][~is_last[:-1]], carried[:-1][~is_last[:-1]], 1.0)
        self.rows += len(ends)
        self.columns = int(column[-1] + width[-1] + stop[-1] - begin[-1])

    def program(self, reward: Floats) -> Program:
        """Return the program; `reward` is what leaving out a job of each type costs."""
        counts = np.array([len(jobs.jobs) for jobs in self.problem.types], dtype=float)
        needs = np.zeros(self.rows - len(counts) - len(self.copies))
        row_lower = np.concatenate([counts, np.full(len(self.copies), -np.inf), needs])
        for loose in self.loose:
            row_lower[loose] = -np.inf
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self.entries, strict=True))
        given = np.zeros(self.columns - self.first_given)
        return Program(
            cost=np.concatenate([self.options.cost, reward, given]),
            offset=0.0,
            lower=np.zeros(self.columns),
            upper=np.full(self.columns, np.inf),
            integer=np.arange(self.columns) < self.first_given,
            matrix=csr_array((values, (rows, columns)), shape=(self.rows, self.columns)),
            row_lower=row_lower,
            row_upper=np.concatenate([counts, self.copies, needs]),
        )
