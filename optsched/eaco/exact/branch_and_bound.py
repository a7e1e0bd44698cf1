"""EaCO's tree: branch and cut (Padberg & Rinaldi, SIAM Review 33, 1991) over a pool of groups.

What a node proves is the Lagrangian value of its duals, not the word of HiGHS, so that a verifier
can follow. The root is cut; a node that does not prove enough is split by a count that is not whole
there, and one whose groups do not fit on the cluster's nodes by the counts that this hangs on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from optsched.eaco.cuts.cut_pool import CutPool
from optsched.eaco.cuts.cuts_and_branching import GroupCountRow, Rule, best_splits
from optsched.eaco.exact.farkas import PenaltyFreeRelaxation
from optsched.eaco.exact.heuristics import needed_odd_sets, violated_cuts
from optsched.eaco.exact.node_bases import NodeBases, NodeBasis
from optsched.eaco.exact.relaxation import Relaxation
from optsched.eaco.settings import SETTINGS
from optsched.mip.branch_and_bound import Branch, BranchAndBound, TreeNode
from optsched.mip.reliability_branching import ReliabilitySettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.exact.lp_solution import Path, Point
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns
    from optsched.mip.reliability_branching import Candidate

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Bools = NDArray[np.bool_]
    Clock = Callable[[], float | None]


@dataclass(eq=False)
class GroupingNode(TreeNode[Rule]):
    """A node of the tree.

    Attributes
    ----------
    point
        Optimum of the relaxation there, with its duals.
    unpackable
        Index of the nodes on which its groups do not fit.
    basis
        Of the last program that was solved there.
    """

    point: Point
    unpackable: int | None = None
    basis: NodeBasis | None = None

    def inherit(self, parent: Self) -> None:
        """Take the duals of the parent, which prove more."""
        self.bound = self.point.value = parent.bound
        proof = parent.point.proof
        self.point.proof = proof._replace(split_duals=(*proof.split_duals, 0.0))


class GroupingTree(BranchAndBound[GroupingNode]):
    """A tree that is explored until the bound is proven.

    Parameters
    ----------
    pack
        Asked about each node that is whole, when it is the next to be branched; may offer a plan.
        Returns the index of nodes on which its groups do not fit for certain, or None.

    Attributes
    ----------
    root
        Optimum of the relaxation of the root, with the cuts of the root: its duals hold
        everywhere.
    limit
        Columns that only costlier plans have are fixed at 0, so that the tree proves no more.
    """

    newest_first = True
    reliability = ReliabilitySettings(  # a probe takes a fraction of what a node takes
        most_tried=SETTINGS.probed_splits,
        nodes_per_trial=1,
        patience=3,
        trials=np.inf,
    )

    def __init__(
        self,
        frame: Frame,
        pool: Columns,
        penalty: float,
        seed: int,
        seconds_left: Clock,
        pack: Callable[[GroupingTree, GroupingNode], int | None],
        first: Indices | None = None,
        cut_pool: CutPool | None = None,
    ) -> None:
        super().__init__(seconds_left)
        self.frame, self._penalty, self._seed, self._pack = frame, penalty, seed, pack
        self.relaxation = Relaxation(frame, pool, penalty, seed, first)
        self._bases = NodeBases(self.relaxation)
        self.cut_pool = CutPool(frame.copies) if cut_pool is None else cut_pool
        self._penalty_free = PenaltyFreeRelaxation(self.relaxation, seed)
        self.root: Point | None = None
        self.limit = np.inf

    @property
    def bound(self) -> float:
        """What the tree proves: no more than its limit."""
        return min(self.limit, super().bound)

    @property
    def pool(self) -> Columns:
        """The columns that are still possible."""
        return self.relaxation.pool

    def solve_root(self) -> bool:
        """Solve the root without cuts; return whether it could be solved in time."""
        point = self.relaxation.solve((), self.seconds_left)
        self._set_root(self.relaxation.floor() if point is None else point)
        return point is not None

    def begin(self, point: Point) -> None:
        """Take duals of old for the root; if they are too low, it begins with what they favour."""
        self._set_root(point)
        self.relaxation.first = np.argsort(self.reduced(), kind="stable")[: SETTINGS.kept_columns]

    def tighten(self, enough: float) -> None:
        """Cut the root, which was solved, until it proves enough."""
        point = self.root
        assert point is not None
        pairs = self.pool.members.shape[1] == 2
        point = self._blossomed(point, enough) if pairs else point
        point = self._cut_root(point, enough)
        self._set_root(self._penalty_free.solve(point, (), np.inf, self.seconds_left))

    def reduced(self) -> Floats:
        """Return the reduced costs of all columns at the root."""
        assert self.root is not None
        return self.relaxation.reduced(self.root.proof.duals, self.root.cuts)

    def fixed_by_reduced_cost(self, limit: float) -> GroupingTree:
        """Return a tree of this root alone, over the columns that plans below a limit may have."""
        assert self.root is not None
        reduced = self.reduced()
        tree = self._over(reduced <= limit - self.root.value + 1e-9 * abs(limit), reduced)
        tree.limit = limit
        return tree

    def _over(self, kept: Bools, reduced: Floats) -> GroupingTree:
        """Return a tree of this root alone, over those columns, and those of the root."""
        assert self.root is not None
        kept[self.root.columns] = True
        first = np.argsort(reduced[kept], kind="stable")[: SETTINGS.kept_columns]
        own = self._penalty, self._seed, self.seconds_left, self._pack
        tree = GroupingTree(self.frame, self.pool.take(kept), *own, first, self.cut_pool)
        positions = np.cumsum(kept) - 1
        tree._set_root(replace(self.root, columns=positions[self.root.columns]))
        tree.relaxation.add_cuts(self.root.cuts)
        return tree

    # --- nodes ---------------------------------------------------------------------------------

    def branch(self, node: GroupingNode) -> tuple[GroupingNode, GroupingNode] | None:
        """Return the branches of a node, after the packing of its groups if it is whole."""
        pool = self._pack(self, node) if node.point.is_whole else None
        if node.bound >= self.goal():
            return None
        if pool is None:
            return super().branch(node)
        split = self._packing_split(node, pool)
        if split is None:
            node.unpackable, node.bound = pool, np.inf
            return None
        return self.children(node, *split)

    def candidates(self, node: GroupingNode) -> list[tuple[Rule, float]]:
        """Return counts that are not whole at a node."""
        support = self.pool.take(node.point.columns)
        splits = best_splits(self.frame, support, node.point.x, node.point.nodes)
        decided = {(b.rule, b.at_most) for b in node.path}  # and missed, at a penalty
        return [split for split in splits if (split[0], int(split[1])) not in decided]

    def probe(
        self, node: GroupingNode, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[float, float]]:
        """Yield about how much the optimum of a node rises in both branches of each rule."""
        self._restore(node, node.basis)
        splits = [(rule, int(count)) for rule, count in candidates]
        yield from self._bases.probed(node.path, splits, self.seconds_left)

    def relax(self, path: Path, parent: GroupingNode) -> GroupingNode | None:
        """Solve the relaxation of a node, with cuts; None if there is no time for it."""
        clock = self.seconds_left
        self._restore(parent, self._bases.of_probe(path) or parent.basis)
        point = self.relaxation.solve(path, clock)
        if point is None:
            return None
        if point.value < self.goal() and not point.is_whole:
            point = self._cut(point, path, SETTINGS.cut_rounds_below, self.goal())
        point = self._penalty_free.solve(point, path, self.goal(), clock)
        return GroupingNode(path, point.value, point, basis=self._bases.here())

    def _packing_split(self, node: GroupingNode, pool: int) -> tuple[Rule, int] | None:
        """Return a count that the packing hangs on and that the path does not fix yet."""
        fixed = set(node.path)
        for rule, count in node.point.nodes.items():
            most = round(count)
            if rule.pool == pool and Branch(rule, most, is_above=False) not in fixed:
                return rule, most
        chosen = self.pool.take(node.point.columns)
        amounts = np.rint(node.point.x).astype(int)
        asked: dict[Rule, int] = {}
        for n in np.flatnonzero((chosen.pool == pool) & (amounts > 0)):
            place = int(chosen.place[n])
            gangs = GroupCountRow(pool=pool, gang=int(chosen.gang[n]), place=place)
            asked[gangs] = asked.get(gangs, 0) + int(amounts[n])
        for counted, total in asked.items():
            if Branch(counted, total - 1, is_above=True) not in fixed:
                return counted, total - 1
        return None

    def _restore(self, node: GroupingNode, basis: NodeBasis | None) -> None:
        """Put the cuts that hold up a node back where they were dropped for other nodes."""
        self.relaxation.drop_loose()
        self.relaxation.add_cuts(node.point.cuts)
        if basis is not None:
            self._bases.start_from(basis)

    def _set_root(self, point: Point) -> None:
        self.root = point
        self.plant(GroupingNode((), point.value, point))

    def _blossomed(self, point: Point, enough: float) -> Point:
        """Return the point of the root once no blossom of a matching calls for an odd set."""
        relaxation = self.relaxation
        for _ in range(SETTINGS.odd_set_rounds):
            if point.is_whole or point.value >= enough or self.seconds_left() == 0:
                break
            reduced = relaxation.reduced(point.proof.duals, {})
            cuts = needed_odd_sets(self.frame, self.pool, reduced, self._penalty, point)
            if not relaxation.add_cuts(cuts):
                break
            tighter = relaxation.solve((), self.seconds_left)
            if tighter is None or tighter.value <= point.value:
                break
            point = tighter
        return point

    def _cut_root(self, point: Point, enough: float) -> Point:
        """Return the point of the root after rounds of cuts.

        Where there are many columns, those of least reduced cost are cut; the cuts that hold up
        their bound, and the columns that this took, are then solved with all the others.
        """
        rounds, reduced = SETTINGS.root_cut_rounds, self.reduced()
        if len(reduced) <= 2 * SETTINGS.cut_columns:
            return self._cut(point, (), rounds, enough)
        kept = reduced <= np.partition(reduced, SETTINGS.cut_columns)[SETTINGS.cut_columns]
        few = self._over(kept, reduced)
        assert few.root is not None
        cut = few._cut(few.root, (), rounds, enough)
        self.relaxation.add_cuts(cut.cuts)
        self.relaxation.add(np.flatnonzero(kept)[few.relaxation.program])
        again = self.relaxation.solve((), self.seconds_left)
        if again is None or again.value < point.value:
            return point
        if again.value >= cut.value - SETTINGS.settled * abs(cut.value):
            return again
        return self._cut(again, (), rounds, enough)  # columns that were left out matter

    def _cut(self, point: Point, path: Path, rounds: int, enough: float) -> Point:
        """Return the point after rounds of cuts; some of them may be of no avail."""
        patience, last = SETTINGS.cut_patience, point
        settled = SETTINGS.settled if self.pool.members.shape[1] > 2 else SETTINGS.settled_pairs
        for _ in range(rounds):
            if point.value >= enough:
                break
            self.relaxation.drop_loose()
            support = self.pool.take(last.columns)
            cuts = violated_cuts(self.frame, self.cut_pool, support, last.x)
            if not self.relaxation.add_cuts(cuts[: SETTINGS.cuts_per_round]):
                break
            tighter = self.relaxation.solve(path, self.seconds_left)
            if tighter is None:
                break
            last, rise = tighter, tighter.value - point.value
            point = tighter if rise >= 0 else point
            patience = patience - 1 if rise < settled * abs(point.value) else SETTINGS.cut_patience
            if not patience:
                break
        return point
