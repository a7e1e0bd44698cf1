"""Branch and bound (Land & Doig, Econometrica 28, 1960), for relaxations that give duals.

A tree is kept as it stands in certificates (`optsched.certificates.bound_tree`): what a leaf proves
is the value of its duals, not the word of a solver. The leaf that proves least is branched next, by
a rule whose count is not whole there: at most a number in one branch, at least one more in the
other. A problem says how a node is relaxed and which rules there are to branch by.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from optsched.mip.reliability_branching import ReliabilityBranching, ReliabilitySettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from optsched.mip.reliability_branching import Candidate

Rule = TypeVar("Rule")


class Branch(NamedTuple, Generic[Rule]):
    """A rule whose count is bounded: at most a number, or at least one more."""

    rule: Rule
    at_most: int
    is_above: bool


def tightest(path: Sequence[Branch[Rule]]) -> dict[tuple[Rule, bool], int]:
    """Return for each rule and side the last branch of a path that is tightest, by its place."""
    places: dict[tuple[Rule, bool], int] = {}
    for n, branch in enumerate(path):
        key = branch.rule, branch.is_above
        if key in places:
            other = path[places[key]].at_most
            if (branch.at_most < other) if branch.is_above else (branch.at_most > other):
                continue
        places[key] = n
    return places


class Disjunction(NamedTuple):
    """The rule and number by which a node is branched, and the places of its two branches."""

    rule: Any
    at_most: int
    cases: tuple[int, int]


@dataclass(eq=False)
class TreeNode(ABC, Generic[Rule]):
    """A node of a tree.

    Attributes
    ----------
    bound
        What its duals prove; infinite if it holds no plan.
    disjunction
        How it is branched, once it is.
    """

    path: tuple[Branch[Rule], ...]
    bound: float
    disjunction: Disjunction | None = field(default=None, init=False)

    @abstractmethod
    def inherit(self, parent: Self) -> None:
        """Take the duals of the parent, which hold here, too, and prove more."""


Node = TypeVar("Node", bound=TreeNode[Any])


class OutOfTime(Exception):
    """Raised where the relaxation of a node is not solved, for want of time."""


class BranchAndBound(ABC, Generic[Node]):
    """A tree that grows until what it proves reaches a goal.

    Parameters
    ----------
    seconds_left
        Asked before each node is branched; None if there is no limit.

    Attributes
    ----------
    nodes
        The root first, both branches of a node behind it.
    goal
        What must be proven; it may fall as better plans come up.
    most_nodes
        That the tree may have.
    ended
        What ended its growth, if neither the goal nor time did.
    tell
        Called with what is proven, before each node is branched.
    """

    newest_first = False  # of nodes that prove the same; the oldest otherwise
    dives = False  # into the second branch of a node that was just branched
    reliability = ReliabilitySettings()

    def __init__(self, seconds_left: Callable[[], float | None]) -> None:
        self.seconds_left = seconds_left
        self.nodes: list[Node] = []
        self.goal: Callable[[], float] = lambda: np.inf
        self.most_nodes = 1
        self.ended = ""
        self.tell: Callable[[float], object] = lambda bound: None
        self._open: list[tuple[float, int]] = []
        self._branching = ReliabilityBranching(self.children, self.probe, self.reliability)

    # --- what a problem says ------------------------------------------------------------------

    @abstractmethod
    def relax(self, path: tuple[Branch[Any], ...], parent: Node) -> Node | None:
        """Solve the relaxation of a node; None if there is no time for it."""

    @abstractmethod
    def candidates(self, node: Node) -> Sequence[Candidate]:
        """Return rules that a node may be branched by and their counts, the best ones first."""

    def probe(
        self, node: Node, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[float, float]] | None:
        """Yield about how much the bounds of both branches rise; None where these are solved."""
        return None

    # --- the tree -----------------------------------------------------------------------------

    @property
    def solved(self) -> int:
        """How many of the nodes are solved: what the limit of nodes is about."""
        return len(self.nodes)

    @property
    def bound(self) -> float:
        """The least bound of a leaf: what the tree proves."""
        return min(node.bound for node in self.nodes if node.disjunction is None)

    @property
    def standing(self) -> list[Node]:
        """The nodes, without a pair that an interrupt left behind before it was joined on."""
        return self.nodes[: 1 + 2 * sum(node.disjunction is not None for node in self.nodes)]

    def plant(self, root: Node) -> None:
        """Begin anew with a root."""
        self.nodes, self._open = [], []
        self._push(root.bound, 0)
        self.nodes.append(root)

    def explore(
        self, goal: Callable[[], float], visit: Callable[[Node], object], most_nodes: int
    ) -> None:
        """Branch the leaf of least bound until all reach the goal, or time or nodes run out.

        Parameters
        ----------
        visit
            Called with each new node; may look for plans there.
        """
        self.goal, self.most_nodes = goal, most_nodes
        while self._open and self.solved < most_nodes and self.seconds_left() != 0:
            self.tell(min(self._open[0][0], goal()))
            if self._open[0][0] >= goal():
                return
            leaf = heapq.heappop(self._open)
            node = self.nodes[abs(leaf[1])]
            if node.bound >= goal():  # the end of a dive
                continue
            try:
                branched = self.branch(node)
            except OutOfTime:
                heapq.heappush(self._open, leaf)
                self.ended = "a linear program was not solved"
                return
            if branched is not None:
                self._join(node, branched)
                for child in branched:
                    visit(child)
        if self.solved >= most_nodes:
            self.ended = f"the branch-and-bound tree reached its limit of {most_nodes:,}"
        elif not self._open:
            self.ended = "all leaves are whole, and rounding keeps them below the goal"

    def branch(self, node: Node) -> tuple[Node, Node] | None:
        """Return the two branches of a node by the best rule; None to keep the leaf."""
        candidates = self.candidates(node)
        if not candidates:
            return None
        return self._branching.choose(node, candidates, self.goal(), self.most_nodes)

    def children(self, node: Node, rule: Any, count: float) -> tuple[Node, Node]:
        """Return the two branches of a node by a rule, at a count."""
        at_most = int(np.floor(count))
        below = self._child(node, Branch(rule, at_most, is_above=False))
        return below, self._child(node, Branch(rule, at_most, is_above=True))

    def _child(self, node: Node, branch: Branch[Any]) -> Node:
        child = self.relax((*node.path, branch), node)
        if child is None:
            raise OutOfTime
        if child.bound < node.bound:  # what holds in a node holds in its branches
            child.inherit(node)
        return child

    def _join(self, node: Node, children: tuple[Node, Node]) -> None:
        """Put two branches below a node, so that Ctrl-C at any moment leaves a whole tree."""
        first = len(self.nodes)
        self.nodes += children
        rule, at_most, _ = children[0].path[-1]
        node.disjunction = Disjunction(rule, at_most, (first, first + 1))
        self._push(children[0].bound, first)
        self._push(-np.inf if self.dives else children[1].bound, first + 1)

    def _push(self, bound: float, place: int) -> None:
        heapq.heappush(self._open, (bound, -place if self.newest_first else place))
