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

from optsched.linear import LinearProgram
from optsched.pal.lagrange import Lagrangian
from optsched.pal.plan import Cut, Leaf, PalCertificate, Split
from optsched.pal.relaxation import relaxation
from optsched.pal.rules import Point, Rule, best_split, capacity, violated_cuts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from numpy.typing import NDArray

    from optsched.linear import Solved
    from optsched.pal.arrays import Arrays
    from optsched.pal.instance import PalInstance
    from optsched.pal.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

CUT_ROUNDS = 12  # at the root
CUTS_PER_ROUND = 200


class Case(NamedTuple):
    """A rule and a number: its count is at most that, or at least one more."""

    rule: int
    at_most: int
    is_above: bool


@dataclass
class Node:
    """A case of the tree, with what its prices prove and where its relaxation lies.

    Attributes
    ----------
    path
        The cases on the way from the root.
    bound
        Lagrangian value of its prices; infinite if the case is empty.
    prices, split_prices, cuts
        Of GPUs, of the cases on the path, and of cuts by rule.
    point, children
        Solution of the relaxation; and the split, once there is one.
    """

    path: tuple[Case, ...]
    bound: float
    prices: Floats
    split_prices: tuple[float, ...]
    cuts: dict[int, float]
    point: Point
    children: tuple[Case, int, int] | None = None


class Tree:
    """A tree of cases that grows until the bound is proven.

    Parameters
    ----------
    reward
        Shape (types,): cost of leaving a job of a type out; infinite where that is not allowed.
    penalty
        Finite cost of leaving out where it is not allowed: more than any plan costs that matters.
    """

    def __init__(
        self, problem: Arrays, found: Labels, reward: Floats, penalty: float, seed: int
    ) -> None:
        self.problem, self.labels = problem, found
        finite = np.where(np.isfinite(reward), reward, penalty)
        self._penalty = penalty
        self._first_gpu_row = len(problem.types)
        self._lp = LinearProgram(relaxation(problem, found, finite).program, seed=seed)
        self._lagrangian = Lagrangian(problem, found, reward)
        self.rules: list[Rule] = []
        self._numbers: dict[Rule, int] = {}
        self._rows: list[int] = []
        self._counted: list[tuple[Indices, Floats]] = []  # labels, and how often
        self._capacity: dict[int, int] = {}  # of the rules that are cuts
        self._bounded: list[int] = []  # rules whose rows the last case bounded
        self.nodes: list[Node] = []
        self._open: list[tuple[float, int]] = []

    @property
    def bound(self) -> float:
        """The least bound of a leaf: what the tree proves."""
        return min(node.bound for node in self.nodes if node.children is None)

    def plant(self, seconds_left: Callable[[], float | None]) -> bool:
        """Solve the root, with rounds of cuts; return whether it could be solved in time."""
        node = self._solve((), seconds_left())
        for _ in range(CUT_ROUNDS):
            if node is None or not self._cut(node.point):
                break
            tighter = self._solve((), seconds_left())
            if tighter is None:
                break
            node = tighter
        if node is None:
            return False
        self._keep(node)
        return True

    def grow(
        self,
        goal: Callable[[], float],
        visit: Callable[[Node], None],
        seconds_left: Callable[[], float | None],
        most_nodes: int,
    ) -> None:
        """Split the leaf of least bound until all reach the goal, or time or nodes run out.

        Parameters
        ----------
        goal
            What must be proven; it may fall as better plans are found.
        visit
            Called with each new node; may look for plans there.
        """
        while self._open and len(self.nodes) < most_nodes:
            bound, number = self._open[0]
            if bound >= goal() or seconds_left() == 0:
                return
            heapq.heappop(self._open)
            node = self.nodes[number]
            split = best_split(self.problem, self.labels, node.point)
            if split is None:
                continue  # whole: rounding alone keeps it below the goal
            children = self._split(node, *split, seconds_left)
            if children is None:
                return
            for child in children:
                visit(child)

    def certificate(
        self, instance: PalInstance, kind: Literal["prices", "misfit"]
    ) -> PalCertificate:
        """Return what the leaves prove."""
        bound = self.bound
        used = sorted(self._used_rules())
        number = {rule: n for n, rule in enumerate(used)}
        return PalCertificate(
            kind=kind,
            bound=bound if kind == "prices" else None,
            left_out=bound if kind == "misfit" else None,
            rules=tuple(self.rules[n].document(instance, self.problem) for n in used),
            nodes=tuple(_document(node, number) for node in self.nodes),
        )

    def _used_rules(self) -> set[int]:
        used: set[int] = set()
        for node in self.nodes:
            if node.children is None:
                used |= set(node.cuts)
            else:
                used.add(node.children[0].rule)
        return used

    # --- nodes --------------------------------------------------------------------------------

    def _split(
        self, node: Node, rule: Rule, count: float, seconds_left: Callable[[], float | None]
    ) -> tuple[Node, Node] | None:
        number, at_most = self._number(rule), int(np.floor(count))
        cases = [Case(number, at_most, is_above) for is_above in (False, True)]
        children = []
        for case in cases:
            child = self._solve((*node.path, case), seconds_left())
            if child is None:
                return None
            if child.bound < node.bound:  # what the node proves holds in its cases too
                unchanged = (*node.split_prices, 0.0)
                child.bound, child.prices, child.cuts = node.bound, node.prices, node.cuts
                child.split_prices = unchanged
            children.append(child)
        node.children = (cases[0], len(self.nodes), len(self.nodes) + 1)
        for child in children:
            self._keep(child)
        return children[0], children[1]

    def _keep(self, node: Node) -> None:
        heapq.heappush(self._open, (node.bound, len(self.nodes)))
        self.nodes.append(node)

    def _solve(self, path: tuple[Case, ...], time_limit_s: float | None) -> Node | None:
        tightest = self._bound_rows(path)
        solved = self._lp.solve(time_limit_s)
        if solved is None:
            return None
        prices = np.maximum(-solved.row_duals[self._gpu_rows()], 0.0)
        split_prices = self._split_prices(path, tightest, solved)
        cuts = self._cut_prices(solved)
        bound = self._value(path, prices, split_prices, cuts)
        point = Point.of(solved.x, self.labels)
        return Node(path, bound, prices, split_prices, cuts, point)

    def _gpu_rows(self) -> slice:
        return slice(self._first_gpu_row, self._first_gpu_row + len(self.problem.gpus))

    def _bound_rows(self, path: tuple[Case, ...]) -> set[int]:
        """Bound the rows of a path's rules; return the indices of the cases that are tightest."""
        for rule in self._bounded:
            self._lp.bound_row(self._rows[rule], -np.inf, self._capacity.get(rule, np.inf))
        lower: dict[int, int] = {}
        upper: dict[int, int] = {}
        for n, case in enumerate(path):
            if case.is_above:
                kept = lower.setdefault(case.rule, n)
                lower[case.rule] = n if case.at_most >= path[kept].at_most else kept
            else:
                kept = upper.setdefault(case.rule, n)
                upper[case.rule] = n if case.at_most <= path[kept].at_most else kept
        for rule in {*lower, *upper}:
            low = path[lower[rule]].at_most + 1 if rule in lower else -np.inf
            high = path[upper[rule]].at_most if rule in upper else self._capacity.get(rule, np.inf)
            self._lp.bound_row(self._rows[rule], low, high)
        self._bounded = list({*lower, *upper})
        return {*lower.values(), *upper.values()}

    def _split_prices(
        self, path: tuple[Case, ...], tightest: set[int], solved: Solved
    ) -> tuple[float, ...]:
        prices = []
        for n, case in enumerate(path):
            dual = float(solved.row_duals[self._rows[case.rule]]) if n in tightest else 0.0
            prices.append(max(0.0, dual if case.is_above else -dual))
        return tuple(prices)

    def _cut_prices(self, solved: Solved) -> dict[int, float]:
        """Return the prices of cuts; where a case bounds a cut's row, the case has the price."""
        prices = {
            rule: -float(solved.row_duals[self._rows[rule]])
            for rule in self._capacity
            if rule not in self._bounded
        }
        return {rule: price for rule, price in prices.items() if price > 0}

    def _value(
        self,
        path: tuple[Case, ...],
        prices: Floats,
        split_prices: tuple[float, ...],
        cuts: dict[int, float],
    ) -> float:
        extra = np.zeros(len(self.labels.type))
        constant = 0.0
        for case, price in zip(path, split_prices, strict=True):
            sign = -1.0 if case.is_above else 1.0
            columns, weights = self._counted[case.rule]
            extra[columns] += sign * price * weights
            constant -= sign * price * (case.at_most + case.is_above)
        for rule, price in cuts.items():
            columns, weights = self._counted[rule]
            extra[columns] += price * weights
            constant -= price * self._capacity[rule]
        return self._lagrangian.value(prices, extra, constant)

    # --- rules --------------------------------------------------------------------------------

    def _cut(self, point: Point) -> bool:
        """Add the cuts that a point violates; return whether there were any."""
        fresh = False
        for n, rule in enumerate(violated_cuts(self.problem, self.labels, point)):
            if n >= CUTS_PER_ROUND:
                break
            number = self._number(rule)
            if number not in self._capacity:
                self._capacity[number] = capacity(self.problem, rule)
                self._lp.bound_row(self._rows[number], -np.inf, self._capacity[number])
                fresh = True
        return fresh

    def _number(self, rule: Rule) -> int:
        if rule not in self._numbers:
            columns = rule.columns(self.problem, self.labels)
            self._numbers[rule] = len(self.rules)
            self.rules.append(rule)
            weights = rule.weights(self.problem, self.labels, columns)
            self._rows.append(self._lp.add_elastic_row(columns, weights, self._penalty))
            self._counted.append((columns, weights))
        return self._numbers[rule]


def _document(node: Node, number: dict[int, int]) -> Split | Leaf:
    if node.children is not None:
        case, below, above = node.children
        return Split(rule=number[case.rule], at_most=case.at_most, cases=(below, above))
    return Leaf(
        gpu_prices=tuple(node.prices.tolist()),
        split_prices=node.split_prices,
        cuts=tuple(Cut(rule=number[rule], price=price) for rule, price in node.cuts.items()),
    )
