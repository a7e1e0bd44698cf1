"""The relaxation over listed groups, by sifting (Bixby et al., Operations Research 40, 1992)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from optsched.eaco.cuts.cuts_and_branching import NodeCountRow, Rank1CutRow, Rule
from optsched.eaco.exact.lp_solution import Point, Proof, lagrangian, nodes_used, priced
from optsched.eaco.exact.master import Duals, Master, least_shares
from optsched.eaco.exact.rule_counts import RuleCounts, count_matrix
from optsched.eaco.settings import SETTINGS
from optsched.mip.branch_and_bound import tightest
from optsched.mip.column_generation import Priced, generate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from optsched.eaco.exact.lp_solution import Path
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns
    from optsched.mip.incremental_lp import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Bools = NDArray[np.bool_]
    RowDuals = tuple[Duals, dict[Rule, float]]


class Relaxation:
    """The relaxation over a pool of columns, with rules whose counts may be bounded.

    Attributes
    ----------
    pool
        All columns that are still possible.
    capacity
        Greatest count of each rule that is a cut.
    rows, frame_rows
        The row of each rule that has one; rows of the frame, which come first.
    first
        Which columns the program begins with; by default those that save most.
    """

    def __init__(
        self, frame: Frame, pool: Columns, penalty: float, seed: int, first: Indices | None = None
    ) -> None:
        self.frame, self.pool, self.penalty = frame, pool, penalty
        self.master = Master(frame, penalty, seed)
        self.capacity: dict[Rule, float] = {}
        self.rows: dict[Rule, int] = {}
        self.frame_rows = self.master.rows
        self.counts = RuleCounts(pool, self.master.classes)
        self._bounded: list[Rule] = []
        self._inside = np.zeros(0, dtype=np.intp)  # columns of the pool that are in the program
        self._at = np.zeros(0, dtype=np.intp)  # and as which ones
        self._program = pool.take(self._inside)
        self._is_inside = np.zeros(len(pool.cost), dtype=bool)
        self.first = first

    # --- rules ---------------------------------------------------------------------------------

    def row_of(self, rule: Rule) -> int:
        """Return the row of a rule that splits; it gets one when it is first asked for."""
        if rule in self.rows:
            return self.rows[rule]
        assert not isinstance(rule, Rank1CutRow)
        if isinstance(rule, NodeCountRow):
            column = self.master.classes + rule.asleep * self.master.pools + rule.pool
            where, values = np.array([column]), np.ones(1)
        else:
            counts = rule.counts(self._program)
            where, values = self._at[counts > 0], counts[counts > 0]
        self.rows[rule] = self.master.add_rule(where, values)
        return self.rows[rule]

    def add_cuts(self, rules: Iterable[Rule]) -> int:
        """Bound the counts of rules for good; return how many were not bounded before."""
        new = [rule for rule in dict.fromkeys(rules) if rule not in self.rows]
        if not new:
            return 0
        for rule in new:
            assert isinstance(rule, Rank1CutRow)
            if rule not in self.capacity:
                self.capacity[rule] = rule.most(self.frame.copies)
        upper = np.array([self.capacity[rule] for rule in new])
        counts = count_matrix(new, self._program, self.master.classes)
        cut, column = np.nonzero(counts.T)
        entries = counts[column, cut], (cut, self._at[column])
        first = self.master.add_rows(
            upper, csr_array(entries, shape=(len(new), self.master.columns))
        )
        self.rows.update(zip(new, range(first, first + len(new)), strict=True))
        return len(new)

    def drop_loose(self) -> None:
        """Drop rules that do not bind at the last point, so that the next ones are found sooner."""
        cuts = {row: rule for rule, row in self.rows.items() if rule not in self._bounded}
        gone = np.sort(self.master.drop_loose_rows(np.array(list(cuts), dtype=np.intp)))
        if not len(gone):
            return
        dropped = [cuts[row] for row in gone.tolist()]
        for rule in dropped:
            del self.rows[rule]
        self.counts.forget(dropped)
        rows = np.array(list(self.rows.values()), dtype=np.intp)
        rows -= np.searchsorted(gone, rows)
        self.rows = dict(zip(self.rows, rows.tolist(), strict=True))

    # --- solving -------------------------------------------------------------------------------

    def solve(self, path: Path, seconds_left: Callable[[], float | None]) -> Point | None:
        """Solve a node; return None if there is no optimum in time."""
        if not len(self._inside):
            self.add(self._cheap() if self.first is None else self.first)
        self.bound_rows(path)
        self._clock = seconds_left
        outcome = generate(self, self.priced)
        solved = outcome.solved
        if solved is None or outcome.reason == "unsolved":
            return None
        return self._point(path, solved, self.master.duals(solved))

    def optimum(self) -> Solved | None:
        """Return an optimum over the columns in the program, if there is one in time."""
        return self.master.solve(self._clock())

    def duals(self, solved: Solved) -> RowDuals:
        """Return the duals of the frame's rows, and those of rules."""
        return self.master.duals(solved), self._charges(solved)

    def priced(self, duals: RowDuals, among: Bools | None = None) -> Priced[RowDuals, Indices]:
        """Return the columns to add, of all that are listed or of some: sifting."""
        reduced = self.reduced(*duals)
        costliest = float(np.abs(self.pool.cost).max(initial=0.0)) or self.penalty
        is_low = reduced < -SETTINGS.pricing_tolerance * costliest
        is_low = is_low if among is None else is_low & among
        wanting = np.flatnonzero(is_low & ~self._is_inside)
        chosen = self._chosen(wanting, reduced[wanting]) if len(wanting) else wanting
        return Priced(chosen, len(chosen), duals)

    def reduced(self, duals: Duals, charges: dict[Rule, float]) -> Floats:
        """Return the reduced cost of every column of the pool."""
        return duals.reduced(self.pool) + self.counts.summed(charges)

    def _chosen(self, wanting: Indices, reduced: Floats) -> Indices:
        """Return the columns with least reduced cost, in all and of each class."""
        order = wanting[np.argsort(reduced, kind="stable")]
        first = [np.unique(self.pool.members[order, n], return_index=True)[1] for n in (0, -1)]
        best = np.arange(min(SETTINGS.round_columns, len(order)))
        chosen = np.unique(np.concatenate([best, *first]))
        return np.asarray(order[chosen])

    def _cheap(self) -> Indices:
        """Return the columns of single jobs, and those that cost least of what these cost."""
        pool, classes = self.pool, self.master.classes
        single = (pool.members < classes).sum(axis=1) == 1
        alone = np.full(classes + 1, np.inf)
        np.minimum.at(alone, pool.members[single].min(axis=1), pool.cost[single])
        alone[-1] = 0.0
        saved = pool.cost - alone[pool.members].sum(axis=1)
        size = np.maximum(np.abs(alone[pool.members]).sum(axis=1), 1e-300)
        known = np.isfinite(saved) & ~single
        share = np.divide(saved, size, out=np.zeros(len(saved)), where=known)
        rank = np.argsort(np.where(single, -np.inf, share), kind="stable")
        return rank[: SETTINGS.first_columns + int(single.sum())]

    def add(self, which: Indices) -> int:
        """Put columns of the pool into the program; return how many were not in it."""
        which = which[~self._is_inside[which]]
        if not len(which):
            return 0
        new = self.pool.take(which)
        counts = np.zeros((self.master.rows - self.frame_rows, len(which)))
        rows = np.array(list(self.rows.values()), dtype=np.intp) - self.frame_rows
        counts[rows] = count_matrix(list(self.rows), new, self.master.classes).T
        first = self.master.columns
        self.master.add_groups(new, csr_array(counts))
        self._inside = np.append(self._inside, which)
        self._program = self.pool.take(self._inside)
        self._at = np.append(self._at, first + np.arange(len(which)))
        self._is_inside[which] = True
        return len(which)

    @property
    def program(self) -> Indices:
        """The columns of the pool that are in the program."""
        return self._inside

    def fix(self, least: Floats) -> None:
        """Let each point have so much of each column of the pool, as far as these are in."""
        self.master.limit_columns(self._at, least[self._inside], np.full(len(self._at), np.inf))

    def amounts(self, solved: Solved) -> Floats:
        """Return how much of each column of the program a solution has, of newer ones nothing."""
        return np.append(solved.x, np.zeros(self.master.columns - len(solved.x)))[self._at]

    # --- nodes ---------------------------------------------------------------------------------

    def bound_rows(self, path: Path) -> None:
        """Bound the rows of a path's rules, and of no others but cuts."""
        for rule in self._bounded:
            most = self.capacity.get(rule, np.inf)
            self.master.bound_row(self.row_of(rule), -np.inf, most)
        bounds = tightest(path)
        self._bounded = list(dict.fromkeys(rule for rule, _ in bounds))
        for rule in self._bounded:
            lower, upper = bounds.get((rule, True)), bounds.get((rule, False))
            low = -np.inf if lower is None else path[lower].at_most + 1
            high = np.inf if upper is None else path[upper].at_most
            high = min(high, self.capacity.get(rule, np.inf))
            self.master.bound_row(self.row_of(rule), low, max(low, high))

    def _charges(self, solved: Solved) -> dict[Rule, float]:
        charges = (-solved.row_duals[list(self.rows.values())]).tolist()
        return {rule: charge for rule, charge in zip(self.rows, charges, strict=True) if charge}

    def _point(self, path: Path, solved: Solved, duals: Duals) -> Point:
        charges = self._charges(solved)
        split_duals = [0.0] * len(path)
        for n in tightest(path).values():
            charge = charges.get(path[n].rule, 0.0)
            split_duals[n] = max(0.0, -charge if path[n].is_above else charge)
        cuts = {
            rule: charge
            for rule, charge in charges.items()
            if rule in self.capacity and rule not in self._bounded and charge > 0
        }
        proof, value = self.proven(path, Proof(duals, tuple(split_duals), cuts))
        x = self.amounts(solved)
        used = x > 1e-9
        unplaced = float(solved.x[: self.master.classes][self.frame.must].sum())
        missed = self.master.missed(solved)
        return Point(
            value,
            proof,
            self._inside[used],
            x[used],
            nodes_used(self.master, solved),
            unplaced,
            missed,
        )

    def proven(self, path: Path, proof: Proof) -> tuple[Proof, float]:
        """Lower duals of jobs until no group pays too much; return the value, too.

        Rounding may have raised reduced costs by the doubt. What is taken off the bound for it is
        that of columns that pay, not of the costliest ones.
        """
        duals, charges = proof.duals, proof.charges(path)
        charged = self.counts.summed(charges)
        reduced = duals.reduced(self.pool) + charged
        low = np.flatnonzero(reduced < 0)
        if len(low):
            drop = np.zeros(self.master.classes)
            np.maximum.at(drop, self.pool.members[low, 0], -reduced[low])
            duals = duals._replace(jobs=duals.jobs - drop)
            reduced = duals.reduced(self.pool) + charged
        if min(charges.values(), default=0.0) < 0:
            charged = self.counts.summed({rule: abs(charge) for rule, charge in charges.items()})
        doubt = SETTINGS.column_doubt * (duals.summands(self.pool) + charged)
        least = float((reduced - doubt).min(initial=0.0))
        proof = proof._replace(duals=duals)
        return proof, lagrangian(self.frame, self.capacity, path, proof, least)

    def floor(self) -> Point:
        """Return a point whose duals need no solver: each job pays its least share of a group."""
        duals = least_shares(self.frame, self.pool)
        return priced(*self.proven((), Proof(duals, (), {})))
