"""The aggregated LP relaxation (Boedi, Herr & Joswig, Math. Programming 2013).

It has the optimum of the whole, and its duals hold for it: equal nodes can change places, so the
mean of a solution over all such changes is one too, and one that treats equal nodes alike. So a
node class needs one set of rows, with the totals of all its nodes; and GPUs of one position get one
dual.

Inside nodes it is the relaxation F3 of docs/math/pal.md: a gang of k takes at most one GPU of each
position, x <= y, so that no part of it crowds on few GPUs. Its duals are those with the greatest
Lagrangian value. Domains above the nodes have the chains of F7, which prove a little less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.mip.incremental_lp import LinearProgram, basis_of
from optsched.pal.exact.lagrangian_bound import Lagrangian
from optsched.pal.exact.relaxation import MatrixBuilder, all_options
from optsched.pal.node_classes.aggregated_arrays import units

if TYPE_CHECKING:
    from highspy import HighsBasis

    from optsched.documents.arrays import Floats, Indices
    from optsched.mip.highs import Program
    from optsched.mip.incremental_lp import Solved
    from optsched.pal.exact.arrays import SlowdownChain
    from optsched.pal.node_classes.aggregation import NodeClasses


@dataclass(frozen=True)
class AggregatedBound:
    """Duals of units, and the Lagrangian value of them for the whole cluster."""

    duals: Floats
    value: float


class AggregatedRelaxation:
    """The relaxation of an instance by node classes, with the basis in which it was solved.

    Parameters
    ----------
    penalty
        Cost of leaving out a job where that is not allowed.
    """

    def __init__(self, nodes: NodeClasses, penalty: float, seed: int) -> None:
        self._nodes, self._units = nodes, units(nodes)
        self._options = all_options(self._units.arrays)
        self._reward = np.array([jobs.reward for jobs in nodes.types])
        copies = self._units.copies, self._units.keep_nodes
        self._lagrangian = Lagrangian(self._units.arrays, self._options, self._reward, *copies)
        self._penalty, self._seed = penalty, seed
        self._basis: HighsBasis | None = None

    def to_plain(self) -> list[Any]:
        """Return what it was made of, and the basis, by which the next one begins."""
        basis = self._basis
        both = () if basis is None else (basis.col_status, basis.row_status)
        return [self._nodes, self._penalty, self._seed, *([int(s) for s in part] for part in both)]

    @classmethod
    def of_plain(cls, parts: list[Any]) -> AggregatedRelaxation:
        """Return the relaxation that `to_plain` described."""
        nodes, penalty, seed, *basis = parts
        made = cls(nodes, penalty, seed)
        if basis:
            made._basis = basis_of(*basis)
        return made

    @cached_property
    def _program(self) -> Program:
        finite = np.where(np.isfinite(self._reward), self._reward, self._penalty)
        builder = _AggregatedBuilder(self._units.arrays, self._options, self._units.copies)
        return builder.program(finite)

    def solve(self, time_limit_s: float | None) -> Solved | None:
        """Solve the linear program; return None if there is no time for it."""
        program = LinearProgram(self._program, self._seed)
        if self._basis is not None:
            program.begin_from(self._basis)
        solved = program.solve(time_limit_s)
        if solved is not None:
            self._basis = program.basis()
        return solved

    def renewed(self, nodes: NodeClasses) -> AggregatedRelaxation | None:
        """Return that of other nodes, solved from the basis of this one; None if it is no such."""
        if self._basis is None or not _are_alike(self._nodes, nodes):
            return None
        new = AggregatedRelaxation(nodes, self._penalty, self._seed)
        counts = [len(jobs.jobs) for jobs in nodes.types]
        known = np.concatenate([counts, new._units.copies])
        lower, upper = self._program.row_lower.copy(), self._program.row_upper.copy()
        lower[: len(counts)], upper[: len(known)] = counts, known
        new._program = replace(self._program, row_lower=lower, row_upper=upper)
        new._basis = self._basis
        return new

    def bound_of(self, solved: Solved | None) -> AggregatedBound:
        """Return the duals of a solution and what they prove; none without a solution."""
        first, count = len(self._nodes.types), len(self._units.copies)
        if solved is None:
            return self.bound(np.zeros(count))
        return self.bound(np.maximum(-solved.row_duals[first : first + count], 0.0))

    def bound_of_gpus(self, duals: Floats) -> AggregatedBound:
        """Return what duals of all free GPUs prove, if equal GPUs take their mean."""
        means = [duals[node_class.gpus].mean(axis=0) for node_class in self._nodes.classes]
        return self.bound(np.concatenate(means))

    def bound(self, duals: Floats) -> AggregatedBound:
        """Return what duals of units prove for the whole cluster."""
        priced = self._lagrangian.priced(duals, np.zeros(len(self._options.type)), 0.0)
        return AggregatedBound(duals, priced.value)

    def gpu_prices(self, bound: AggregatedBound) -> Floats:
        """Return the dual of each free GPU."""
        duals = np.zeros(self._nodes.slowdown.shape[1])
        for node_class, (start, stop) in zip(self._nodes.classes, self._units.spans, strict=True):
            duals[node_class.gpus] = bound.duals[start:stop]
        return duals


def _are_alike(old: NodeClasses, new: NodeClasses) -> bool:
    """Tell whether two relaxations differ in nothing but numbers of jobs and nodes."""
    if old.wide_keeps or new.wide_keeps or any(c.around for c in (*old.classes, *new.classes)):
        return False
    return old.type_keys == new.type_keys and old.class_keys == new.class_keys


class _AggregatedBuilder(MatrixBuilder):
    """The matrix for units, of which there are several, and inside nodes F3."""

    def program(self, reward: Floats) -> Program:
        """Return the program; `reward` is what leaving out a job of each type costs."""
        self.add_types()
        for (_, _, size), (chain, blocks) in self._users().items():
            if size:
                self._add_node(chain, size, blocks)
            else:
                self._add_chain(chain.order, blocks)
        return super().program(reward)

    def _users(self) -> dict[tuple[int, int, int], tuple[SlowdownChain, list[slice]]]:
        """Return the options of each class, domain and size; above the nodes, of any size."""
        users: dict[tuple[int, int, int], tuple[SlowdownChain, list[slice]]] = {}
        for t, d, columns in self.options.blocks:
            jobs = self.problem.types[t]
            size = 0 if self.problem.domains.level[d] else jobs.gpus
            chain = self.problem.chains[jobs.row][d]
            users.setdefault((jobs.row, d, size), (chain, []))[1].append(columns)
        return users

    def _add_node(self, chain: SlowdownChain, size: int, blocks: list[slice]) -> None:
        """Add what the options of gangs of a size need in nodes of a class, threshold by threshold.

        All blocks have the same thresholds: those at which there are GPUs for the gang.
        """
        first = len(self.problem.types)
        for n, end in enumerate(self.options.end[blocks[0]].tolist()):
            mine = np.array([columns.start + n for columns in blocks])
            gpus = first + chain.order[:end]
            if end == size:
                for column in mine.tolist():
                    self.add(gpus, np.full(size, column), 1.0)
                continue
            need, self.rows = self.rows, self.rows + 1
            given = self._add_given(np.full(end, need), chain.order[:end])
            self.add(np.full(len(mine), need), mine, -float(size))
            if size == 1:
                continue
            once = self.rows + np.arange(end)
            self.rows += end
            self.loose.append(once)
            self.add(once, given, 1.0)
            self.add(np.repeat(once, len(mine)), np.tile(mine, end), -1.0)

    def _add_chain(self, order: Indices, blocks: list[slice]) -> None:
        """Add the rows of a chain above the nodes, with its columns g and S.

        Units that stand in it several times are given once in each row.
        """
        options = self.options
        ends = np.unique(np.concatenate([options.end[columns] for columns in blocks]))
        rows = self.rows + np.arange(len(ends))
        self.rows += len(ends)
        for columns in blocks:
            size = self.problem.types[int(options.type[columns.start])].gpus
            mine = np.arange(columns.start, columns.stop)
            self.add(rows[np.searchsorted(ends, options.end[mine])], mine, -float(size))
        units = [np.unique(part) for part in np.split(order[: ends[-1]], ends[:-1])]
        self._add_given(np.repeat(rows, [len(part) for part in units]), np.concatenate(units))
        carried = self.columns + np.arange(len(ends))
        self.columns += len(ends)
        self.add(rows, carried, -1.0)
        self.add(rows[1:], carried[:-1], 1.0)

    def _add_given(self, rows: Indices, gpus: Indices) -> Indices:
        """Add and return columns of GPUs that are given to some rows."""
        given = self.columns + np.arange(len(gpus))
        self.columns += len(gpus)
        self.add(rows, given, 1.0)
        self.add(len(self.problem.types) + gpus, given, 1.0)
        return given
