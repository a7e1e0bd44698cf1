"""Branch and bound (Land & Doig, Econometrica 1960) on the type-chain relaxation.

Every node is solved as a linear program; what a leaf proves is the Lagrangian value of its duals,
not the word of HiGHS, so a verifier can follow the tree. A node that does not prove enough is split
by a rule whose count is not whole there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.mip.reliability_branching import Branching
from optsched.pal.exact.cuts_and_branching import Point, Rule, splits
from optsched.pal.exact.node_relaxation import Branch, Duals, Path, Relaxation
from optsched.pal.plan import Leaf, PalCertificate, Split
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from numpy.typing import NDArray

    from optsched.pal.instance import PalInstance


@dataclass
class Node:
    """A node of the tree.

    Attributes
    ----------
    bound
        Lagrangian value of its duals; infinite if the node has no plan.
    point
        Solution of the relaxation there.
    split
        The rule and number by which it is split, and the first of its two children.
    """

    path: Path
    bound: float
    duals: Duals
    point: Point
    split: tuple[Branch, int] | None = None


class Exclusion(NamedTuple):
    """Duals at which some options are only in plans that cost a limit or more."""

    rules: list[Rule]
    duals: Duals


class Tree:
    """A branch-and-bound tree that grows until the bound is proven.

    Parameters
    ----------
    seconds_left
        Asked before each linear program; None if there is no limit.

    Attributes
    ----------
    ended
        What ended its growth, if neither the goal nor time did.
    """

    def __init__(self, relaxation: Relaxation, seconds_left: Callable[[], float | None]) -> None:
        self.relaxation = relaxation
        self.nodes: list[Node] = []
        self.ended = ""
        self._seconds_left = seconds_left
        self._open: list[tuple[float, int]] = []

    @property
    def bound(self) -> float:
        """The least bound of a leaf: what the tree proves."""
        return min(node.bound for node in self.nodes if node.split is None)

    def solve_root(self) -> bool:
        """Solve the root, with rounds of cuts; return whether there was time for it."""
        node = self._node(())
        for _ in range(SETTINGS.cut_rounds):
            if node is None or not self.relaxation.cut(node.point):
                break
            tighter = self._node(())
            if tighter is None:
                break
            if tighter.bound < node.bound:  # duals of the looser program can be the better ones
                tighter.bound, tighter.duals = node.bound, node.duals
            node = tighter
        if node is None:
            return False
        self._add(node)
        return True

    def fixed_by_reduced_cost(self, limit: float) -> NDArray[np.bool_]:
        """Tell which options are only in plans that cost at least a limit."""
        root = self.nodes[0]
        priced = self.relaxation.priced(root.path, root.duals)
        return self.relaxation.fixed_by_reduced_cost(priced, limit)

    def explore(
        self, goal: Callable[[], float], visit: Callable[[Node], None], most_nodes: int
    ) -> None:
        """Split the leaf of least bound until all reach the goal, or time or nodes run out.

        Parameters
        ----------
        goal
            What must be proven; it may fall as better plans are found.
        visit
            Called with each new node; may look for plans there.
        """
        branching = Branching(self._children, most_nodes)
        while self._open and len(self.nodes) < most_nodes and self._seconds_left() != 0:
            if self._open[0][0] >= goal():
                return
            _, number = heapq.heappop(self._open)
            node = self.nodes[number]
            candidates = splits(self.relaxation.problem, self.relaxation.options, node.point)
            if not candidates:
                continue  # whole: rounding alone keeps it below the goal
            split = branching.choose(node, candidates, goal())
            if split is None:
                self.ended = "a linear program was not solved"
                return
            node.split = split.children[0].path[-1], len(self.nodes)
            for child in split.children:
                self._add(child)
            for child in split.children:
                visit(child)
        if len(self.nodes) >= most_nodes:
            self.ended = f"the branch-and-bound tree reached its limit of {most_nodes:,}"
        elif not self._open:
            self.ended = "all leaves are whole, and rounding keeps them below the goal"

    def certificate(
        self,
        instance: PalInstance,
        kind: Literal["prices", "infeasible"],
        exclusions: list[Exclusion],
        most: float,
    ) -> PalCertificate:
        """Return what the leaves prove, at most the limit of the exclusions."""
        documents: dict[Rule, int] = {}

        def numbered(rules: list[Rule], used: set[int]) -> dict[int, int]:
            return {n: documents.setdefault(rules[n], len(documents)) for n in sorted(used)}

        leaves = [
            exclusion.duals.leaf(numbered(exclusion.rules, set(exclusion.duals.cuts)))
            for exclusion in exclusions
        ]
        nodes = self._documents(numbered)
        bound = min(self.bound, most)
        problem = self.relaxation.problem
        return PalCertificate(
            kind=kind,
            bound=bound if kind == "prices" else None,
            left_out=bound if kind == "infeasible" else None,
            rules=tuple(rule.document(instance, problem) for rule in documents),
            exclusions=tuple(leaves),
            nodes=tuple(nodes),
        )

    def _documents(
        self, numbered: Callable[[list[Rule], set[int]], dict[int, int]]
    ) -> list[Split | Leaf]:
        nodes: list[Split | Leaf] = []
        splits = sum(node.split is not None for node in self.nodes)
        for node in self.nodes[: 1 + 2 * splits]:  # without a pair that Ctrl-C left behind
            if node.split is None:
                nodes.append(node.duals.leaf(numbered(self.relaxation.rules, set(node.duals.cuts))))
                continue
            branch, first = node.split
            rule = numbered(self.relaxation.rules, {branch.rule})[branch.rule]
            nodes.append(Split(rule=rule, at_most=branch.at_most, cases=(first, first + 1)))
        return nodes

    def _children(self, node: Node, rule: Rule, count: float) -> tuple[Node, Node] | None:
        number, at_most = self.relaxation.number(rule), int(np.floor(count))
        below = self._child(node, Branch(number, at_most, is_above=False))
        above = self._child(node, Branch(number, at_most, is_above=True))
        return None if below is None or above is None else (below, above)

    def _child(self, node: Node, branch: Branch) -> Node | None:
        child = self._node((*node.path, branch))
        if (
            child is not None and child.bound < node.bound
        ):  # what holds in a node holds in its children
            child.bound = node.bound
            child.duals = node.duals._replace(branches=(*node.duals.branches, 0.0))
        return child

    def _node(self, path: Path) -> Node | None:
        solved = self.relaxation.relax(path, self._seconds_left())
        if solved is None:
            return None
        duals = self.relaxation.duals(path, solved)
        bound = self.relaxation.priced(path, duals).value
        return Node(path, bound, duals, self.relaxation.point(solved))

    def _add(self, node: Node) -> None:
        heapq.heappush(self._open, (node.bound, len(self.nodes)))
        self.nodes.append(node)
