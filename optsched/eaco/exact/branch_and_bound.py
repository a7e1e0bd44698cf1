"""Branch and bound with strong branching (Achterberg, Koch & Martin, OR Letters 33, 2005).

What a node proves is the Lagrangian value of its duals, not the word of HiGHS, so that a verifier
can follow. The root is cut; a node that does not prove enough is split by a count that is not whole
there, and one whose groups do not fit on the cluster's nodes by the counts that this hangs on.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import (
    GroupCountRow,
    Rank1CutRow,
    Rule,
    best_splits,
)
from optsched.eaco.exact.farkas import PenaltyFreeRelaxation
from optsched.eaco.exact.heuristics import needed_odd_sets, violated_cuts
from optsched.eaco.exact.lp_solution import Branch
from optsched.eaco.exact.node import Node
from optsched.eaco.exact.relaxation import Relaxation

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from optsched.eaco.exact.lp_solution import Path, Point
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Clock = Callable[[], float | None]

CUT_ROUNDS = 400  # at the root
BLOSSOM_ROUNDS = 10  # at the root of pairs
PATIENCE = 3  # rounds without a rise
CUTS_PER_ROUND = 100
ROUNDS_BELOW = 8  # at other nodes
FIRST = 800  # columns in the program once those of no use are dropped
TRIED = 15  # splits that are probed before one of them is chosen
SETTLED = 1e-5  # relative rise of the bound below which cutting ends
SETTLED_PAIRS = 1e-7  # odd sets of pairs close all of the gap in the end


class Tree:
    """A tree that is explored until the bound is proven.

    Attributes
    ----------
    root
        Optimum of the relaxation of the root, with the cuts of the root: its duals hold
        everywhere.
    limit
        Columns that only costlier plans have are fixed at 0, so that the tree proves no more.
    """

    def __init__(
        self,
        frame: Frame,
        pool: Columns,
        penalty: float,
        seed: int,
        first: Indices | None = None,
    ) -> None:
        self.frame, self._penalty, self._seed = frame, penalty, seed
        self.relaxation = Relaxation(frame, pool, penalty, seed, first)
        self._penalty_free = PenaltyFreeRelaxation(self.relaxation, seed)
        self.root: Point | None = None
        self.limit = np.inf
        self.nodes: list[Node] = []
        self._open: list[tuple[float, int]] = []

    @property
    def bound(self) -> float:
        """The least value of a leaf: what the tree proves."""
        return min(self.limit, *(node.value for node in self.nodes if node.split is None))

    @property
    def pool(self) -> Columns:
        """The columns that are still possible."""
        return self.relaxation.pool

    def solve_root(self, clock: Clock) -> bool:
        """Solve the root without cuts; return whether it could be solved in time."""
        point = self.relaxation.solve((), clock)
        self._set_root(self.relaxation.floor() if point is None else point)
        return point is not None

    def begin(self, point: Point) -> None:
        """Take duals of old for the root; if they are too low, it begins with what they favour."""
        self._set_root(point)
        self.relaxation.first = np.argsort(self.reduced(), kind="stable")[:FIRST]

    def tighten(self, clock: Clock, enough: float) -> None:
        """Cut the root, which was solved, until it proves enough."""
        point = self.root
        assert point is not None
        pairs = self.pool.members.shape[1] == 2
        point = self._blossomed(point, clock, enough) if pairs else point
        point = self._cut(point, (), clock, CUT_ROUNDS, enough)
        self._set_root(self._penalty_free.solve(point, (), np.inf, clock))

    def reduced(self) -> Floats:
        """Return the reduced costs of all columns at the root."""
        assert self.root is not None
        return self.relaxation.reduced(self.root.proof.duals, self.root.cuts)

    def fixed_by_reduced_cost(self, limit: float) -> Tree:
        """Return a tree of this root alone, over the columns that plans below a limit may have."""
        assert self.root is not None
        reduced = self.reduced()
        kept = reduced <= limit - self.root.value + 1e-9 * abs(limit)
        kept[self.root.columns] = True
        first = np.argsort(reduced[kept], kind="stable")[:FIRST]
        tree = Tree(self.frame, self.pool.take(kept), self._penalty, self._seed, first)
        positions = np.cumsum(kept) - 1
        tree._set_root(replace(self.root, columns=positions[self.root.columns]))
        tree.limit = limit
        for rule in self.root.cuts:
            assert isinstance(rule, Rank1CutRow)
            tree.relaxation.add_cut(rule)
        return tree

    def explore(
        self,
        goal: Callable[[], float],
        visit: Callable[[Node], int | None],
        clock: Clock,
        most: int,
    ) -> None:
        """Split nodes, the one that proves least first, until the goal is proven.

        Parameters
        ----------
        goal
            What must be proven; it may fall as better plans are found.
        visit
            Called with each node that is whole; returns the index of nodes on which its groups do
            not fit for certain, or None.
        most
            Number of nodes at which to stop.
        """
        while self._open and len(self.nodes) < most:
            if self._open[0][0] >= goal() or clock() == 0:
                return
            node = self.nodes[-heapq.heappop(self._open)[1]]
            pool = visit(node) if node.point.is_whole else None
            if node.value >= goal():
                self._reopen(node)
                continue
            chosen = self._split_of(node, pool, clock)
            if chosen is None and pool is not None:
                node.unpackable, node.value = pool, np.inf
                continue
            if chosen is not None and not self._divide(node, chosen, goal, clock):
                return

    # --- nodes ---------------------------------------------------------------------------------

    def _reopen(self, node: Node) -> None:
        heapq.heappush(self._open, (node.value, -self.nodes.index(node)))

    def _split_of(self, node: Node, pool: int | None, clock: Clock) -> tuple[Rule, int] | None:
        if pool is not None:
            return self._packing_split(node, pool)
        support = self.pool.take(node.point.columns)
        candidates = best_splits(self.frame, support, node.point.x, node.point.nodes)
        decided = {(b.rule, b.at_most) for b in node.path}  # and missed, at a penalty
        splits = [(rule, int(np.floor(count))) for rule, count in candidates]
        splits = [split for split in splits if split not in decided][:TRIED]
        if len(splits) < 2:
            return splits[0] if splits else None
        self._restore(node)
        rises = self.relaxation.probed(node.path, splits, clock)
        least = 1e-9 * abs(node.value)
        gains = [max(down, least) * max(up, least) for down, up in rises]
        return splits[gains.index(max(gains))]

    def _packing_split(self, node: Node, pool: int) -> tuple[Rule, int] | None:
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

    def _divide(
        self, node: Node, split: tuple[Rule, int], goal: Callable[[], float], clock: Clock
    ) -> bool:
        children = []
        for is_above in (False, True):
            path = (*node.path, Branch(*split, is_above))
            self._restore(node)
            point = self.relaxation.solve(path, clock)
            if point is None:
                self._reopen(node)
                return False
            if point.value < goal() and not point.is_whole:
                point = self._cut(point, path, clock, ROUNDS_BELOW, goal())
            point = self._penalty_free.solve(point, path, goal(), clock)
            children.append(Node(path, self._inherited(point, node), max(point.value, node.value)))
        node.split, node.branches = split, (len(self.nodes), len(self.nodes) + 1)
        for child in children:
            self._keep(child)
        return True

    def _restore(self, node: Node) -> None:
        """Put the cuts that hold up a node back where they were dropped for other nodes."""
        self.relaxation.drop_loose()
        for rule in node.point.cuts:
            assert isinstance(rule, Rank1CutRow)
            self.relaxation.add_cut(rule)

    def _inherited(self, point: Point, parent: Node) -> Point:
        """Give a node the duals of its parent, if they prove more."""
        if point.value < parent.point.value:
            old = parent.point
            proof = old.proof._replace(split_duals=(*old.proof.split_duals, 0.0))
            point.value, point.proof = old.value, proof
        return point

    def _set_root(self, point: Point) -> None:
        self.root, self.nodes, self._open = point, [], []
        self._keep(Node((), point, point.value))

    def _keep(self, node: Node) -> None:
        heapq.heappush(self._open, (node.value, -len(self.nodes)))
        self.nodes.append(node)

    def _blossomed(self, point: Point, clock: Clock, enough: float) -> Point:
        """Return the point of the root once no blossom of a matching calls for an odd set."""
        relaxation = self.relaxation
        for _ in range(BLOSSOM_ROUNDS):
            if point.is_whole or point.value >= enough or clock() == 0:
                break
            reduced = relaxation.reduced(point.proof.duals, {})
            cuts = needed_odd_sets(self.frame, self.pool, reduced, self._penalty, point)
            if not any([relaxation.add_cut(rule) for rule in cuts]):
                break
            tighter = relaxation.solve((), clock)
            if tighter is None or tighter.value <= point.value:
                break
            point = tighter
        return point

    def _cut(self, point: Point, path: Path, clock: Clock, rounds: int, enough: float) -> Point:
        """Return the point after rounds of cuts; some of them may be of no avail."""
        patience, last = PATIENCE, point
        settled = SETTLED if self.pool.members.shape[1] > 2 else SETTLED_PAIRS
        for _ in range(rounds):
            if point.value >= enough:
                break
            self.relaxation.drop_loose()
            cuts = violated_cuts(self.frame, self.pool.take(last.columns), last.x)
            if not any([self.relaxation.add_cut(rule) for rule in cuts[:CUTS_PER_ROUND]]):
                break
            tighter = self.relaxation.solve(path, clock)
            if tighter is None:
                break
            last, rise = tighter, tighter.value - point.value
            point = tighter if rise >= 0 else point
            patience = patience - 1 if rise < settled * abs(point.value) else PATIENCE
            if not patience:
                break
        return point
