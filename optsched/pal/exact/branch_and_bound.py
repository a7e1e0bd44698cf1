"""Branch and bound on the type-chain relaxation, as a tree of cases that a judge can follow.

Every case is solved as a linear program whose duals are the prices of a leaf; what a leaf proves is
its Lagrangian value, not the word of HiGHS. A case that does not prove enough is split by a rule
whose count is not whole there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.mip.reliability_branching import Branching
from optsched.pal.exact.cuts_and_branching import Point, Rule, splits
from optsched.pal.exact.node_relaxation import Case, Cases, Path, Prices
from optsched.pal.plan import Leaf, PalCertificate, Split

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from numpy.typing import NDArray

    from optsched.pal.instance import PalInstance

CUT_ROUNDS = 12


@dataclass
class Node:
    """A case of the tree.

    Attributes
    ----------
    bound
        Lagrangian value of its prices; infinite if the case is empty.
    point
        Solution of the relaxation there.
    split
        The rule and number by which it is split, and the first of the two nodes for its cases.
    """

    path: Path
    bound: float
    prices: Prices
    point: Point
    split: tuple[Case, int] | None = None


class Exclusion(NamedTuple):
    """Prices at which some labels are only in plans that cost a limit or more."""

    rules: list[Rule]
    prices: Prices


class Tree:
    """A tree of cases that grows until the bound is proven.

    Parameters
    ----------
    seconds_left
        Asked before each linear program; None if there is no limit.

    Attributes
    ----------
    ended
        What ended its growth, if neither the goal nor time did.
    """

    def __init__(self, cases: Cases, seconds_left: Callable[[], float | None]) -> None:
        self.cases = cases
        self.nodes: list[Node] = []
        self.ended = ""
        self._seconds_left = seconds_left
        self._open: list[tuple[float, int]] = []

    @property
    def bound(self) -> float:
        """The least bound of a leaf: what the tree proves."""
        return min(node.bound for node in self.nodes if node.split is None)

    def plant(self) -> bool:
        """Solve the root, with rounds of cuts; return whether there was time for it."""
        node = self._node(())
        for _ in range(CUT_ROUNDS):
            if node is None or not self.cases.cut(node.point):
                break
            tighter = self._node(())
            if tighter is None:
                break
            if tighter.bound < node.bound:  # prices of the looser program can be the better ones
                tighter.bound, tighter.prices = node.bound, node.prices
            node = tighter
        if node is None:
            return False
        self._keep(node)
        return True

    def too_dear(self, limit: float) -> NDArray[np.bool_]:
        """Tell which labels and stays are only in plans that cost at least a limit."""
        root = self.nodes[0]
        return self.cases.too_dear(self.cases.options(root.path, root.prices), limit)

    def grow(
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
        branching = Branching(self._cases, most_nodes)
        while self._open and len(self.nodes) < most_nodes and self._seconds_left() != 0:
            if self._open[0][0] >= goal():
                return
            _, number = heapq.heappop(self._open)
            node = self.nodes[number]
            candidates = splits(self.cases.problem, self.cases.labels, node.point)
            if not candidates:
                continue  # whole: rounding alone keeps it below the goal
            split = branching.choose(node, candidates, goal())
            if split is None:
                self.ended = "a linear program was not solved"
                return
            node.split = split.children[0].path[-1], len(self.nodes)
            for child in split.children:
                self._keep(child)
            for child in split.children:
                visit(child)
        if len(self.nodes) >= most_nodes:
            self.ended = f"the tree of cases reached its limit of {most_nodes:,}"
        elif not self._open:
            self.ended = "all cases are whole, and rounding keeps them below the goal"

    def certificate(
        self,
        instance: PalInstance,
        kind: Literal["prices", "misfit"],
        exclusions: list[Exclusion],
        most: float,
    ) -> PalCertificate:
        """Return what the leaves prove, at most the limit of the exclusions."""
        documents: dict[Rule, int] = {}

        def numbered(rules: list[Rule], used: set[int]) -> dict[int, int]:
            return {n: documents.setdefault(rules[n], len(documents)) for n in sorted(used)}

        leaves = [
            exclusion.prices.leaf(numbered(exclusion.rules, set(exclusion.prices.cuts)))
            for exclusion in exclusions
        ]
        nodes = self._documents(numbered)
        bound = min(self.bound, most)
        problem = self.cases.problem
        return PalCertificate(
            kind=kind,
            bound=bound if kind == "prices" else None,
            left_out=bound if kind == "misfit" else None,
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
                nodes.append(node.prices.leaf(numbered(self.cases.rules, set(node.prices.cuts))))
                continue
            case, first = node.split
            rule = numbered(self.cases.rules, {case.rule})[case.rule]
            nodes.append(Split(rule=rule, at_most=case.at_most, cases=(first, first + 1)))
        return nodes

    def _cases(self, node: Node, rule: Rule, count: float) -> tuple[Node, Node] | None:
        number, at_most = self.cases.number(rule), int(np.floor(count))
        below = self._child(node, Case(number, at_most, is_above=False))
        above = self._child(node, Case(number, at_most, is_above=True))
        return None if below is None or above is None else (below, above)

    def _child(self, node: Node, case: Case) -> Node | None:
        child = self._node((*node.path, case))
        if (
            child is not None and child.bound < node.bound
        ):  # what holds in a node holds in its cases
            child.bound = node.bound
            child.prices = node.prices._replace(cases=(*node.prices.cases, 0.0))
        return child

    def _node(self, path: Path) -> Node | None:
        solved = self.cases.relax(path, self._seconds_left())
        if solved is None:
            return None
        prices = self.cases.prices(path, solved)
        bound = self.cases.options(path, prices).value
        return Node(path, bound, prices, self.cases.point(solved))

    def _keep(self, node: Node) -> None:
        heapq.heappush(self._open, (node.bound, len(self.nodes)))
        self.nodes.append(node)
