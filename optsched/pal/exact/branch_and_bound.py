"""PAL's tree: branch and bound (Land & Doig, Econometrica 28, 1960) on the type-chain relaxation.

Every node is solved as a linear program; what a leaf proves is the Lagrangian value of its duals,
not the word of HiGHS, so a verifier can follow the tree. A node that does not prove enough is split
by a rule whose count is not whole there. A branch bounds what a rule counts; cuts bound it always.
All of them are rows of one linear program that stays in HiGHS, so that going from one node to
another changes bounds alone (Dakin, Computer Journal 1965).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from optsched.mip.branch_and_bound import Branch, BranchAndBound, TreeNode, tightest
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal.exact.cuts_and_branching import (
    CountRule,
    LpPoint,
    capacity,
    splits,
    violated_cuts,
)
from optsched.pal.exact.lagrangian_bound import Lagrangian, NodeDuals
from optsched.pal.exact.relaxation import relaxation
from optsched.pal.plan import Leaf, PalCertificate, Split
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from highspy import HighsBasis

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.mip.incremental_lp import Solved
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import DualSolution, PricedOptions
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance


Path = tuple[Branch[int], ...]  # rules by number


class NodeRelaxation:
    """The relaxation of an instance, at any node.

    Parameters
    ----------
    reward
        Shape (types,): cost of leaving a job of a type out; infinite where that is not allowed.
    penalty
        Finite cost of missing a job or the lower bound of a rule, so that no node is infeasible. A
        bound that is missed in part costs more and more, until it is kept or the node costs this.
    """

    def __init__(
        self,
        problem: PalArrays,
        options: GangOptions,
        reward: Floats,
        penalty: float,
        seed: int,
    ) -> None:
        self.problem, self.options = problem, options
        self.rules: list[CountRule] = []
        finite = np.where(np.isfinite(reward), reward, penalty)
        self._penalty = penalty
        self._lp = LinearProgram(relaxation(problem, options, finite), seed=seed)
        self._lagrangian = Lagrangian(problem, options, reward)
        self._numbers: dict[CountRule, int] = {}
        self._rows: list[int] = []
        self._missing: list[tuple[int, float]] = []  # the column of missing a rule, what it costs
        self._columns: list[Indices] = []
        self._capacity: dict[int, int] = {}  # of the rules that are cuts
        self._bounded: set[int] = set()  # rules that the last path bounded

    def begin_from(self, basis: HighsBasis) -> None:
        """Let the first relaxation start from a basis, if it is of one with as many rows."""
        self._lp.begin_from(basis)

    def number(self, rule: CountRule) -> int:
        """Return the number of a rule; a new one gets a row without bounds."""
        if rule not in self._numbers:
            columns = rule.columns(self.problem, self.options)
            self._numbers[rule] = len(self.rules)
            self.rules.append(rule)
            self._missing.append((self._lp.columns, self._penalty))
            self._rows.append(self._lp.add_elastic_row(columns, self._penalty))
            self._columns.append(columns)
        return self._numbers[rule]

    def cut(self, point: LpPoint) -> bool:
        """Add the cuts that a point violates; return whether there were new ones."""
        before = len(self._capacity)
        for rule in violated_cuts(self.problem, self.options, point):
            number = self.number(rule)
            if number not in self._capacity:
                self._capacity[number] = capacity(self.problem, rule)
                self._lp.bound_row(self._rows[number], -np.inf, self._capacity[number])
        return len(self._capacity) > before

    def relax(self, path: Path, time_limit_s: float | None) -> Solved | None:
        """Solve the relaxation under the branches of a path; None if there is no time for it."""
        bounds = tightest(path)
        for rule in self._bounded | {rule for rule, _ in bounds}:
            low, high = -np.inf, float(self._capacity.get(rule, np.inf))
            if (rule, True) in bounds:
                low = path[bounds[rule, True]].at_most + 1
            if (rule, False) in bounds:
                high = min(high, path[bounds[rule, False]].at_most)
            self._lp.bound_row(self._rows[rule], low, high)
        self._bounded = {rule for rule, _ in bounds}
        begun = time.perf_counter()
        solved = self._lp.solve(time_limit_s)
        lower = [rule for rule, is_above in bounds if is_above]
        for _ in range(SETTINGS.most_rises):
            if solved is None or not self._raised(lower, solved):
                break
            past = time.perf_counter() - begun
            left = None if time_limit_s is None else max(0.0, time_limit_s - past)
            solved = self._lp.solve(left)
        return solved

    def _raised(self, lower: list[int], solved: Solved) -> bool:
        """Raise the costs of lower bounds that a solution misses; tell whether it missed any.

        A cheap part of a job that is missed would be split by the same rule again, without end.
        """
        if solved.objective >= self._penalty:
            return False
        missed = [rule for rule in lower if solved.x[self._missing[rule][0]] > SETTINGS.integral]
        for rule in missed:
            column, cost = self._missing[rule]
            self._missing[rule] = column, SETTINGS.penalty_rise * cost
            self._lp.cost_columns(np.array([column]), np.array([SETTINGS.penalty_rise * cost]))
        return bool(missed)

    def point(self, solved: Solved) -> LpPoint:
        """Return where a solution of the relaxation lies."""
        return LpPoint.of(solved.x, self.options)

    def duals(self, path: Path, solved: Solved) -> NodeDuals:
        """Return the duals of a solution; what a branch bounds is charged to it, not to a cut."""
        row_duals = solved.row_duals
        types, gpus = len(self.problem.types), len(self.problem.gpus)
        bounds = tightest(path)
        branch_duals = []
        for n, branch in enumerate(path):
            is_tightest = bounds[branch.rule, branch.is_above] == n
            dual = float(row_duals[self._rows[branch.rule]]) if is_tightest else 0.0
            branch_duals.append(max(0.0, dual if branch.is_above else -dual))
        cuts = {
            rule: -float(row_duals[self._rows[rule]])
            for rule in self._capacity
            if (rule, False) not in bounds and row_duals[self._rows[rule]] < 0
        }
        return NodeDuals(
            np.maximum(-row_duals[types : types + gpus], 0.0), tuple(branch_duals), cuts
        )

    def priced(self, path: Path, duals: NodeDuals) -> PricedOptions:
        """Return the options priced at some duals, and what the duals prove."""
        extra = np.zeros(len(self.options.type))
        constant = 0.0
        for branch, dual in zip(path, duals.branches, strict=True):
            signed = -dual if branch.is_above else dual
            extra[self._columns[branch.rule]] += signed
            constant -= signed * (branch.at_most + branch.is_above)
        for rule, dual in duals.cuts.items():
            extra[self._columns[rule]] += dual
            constant -= dual * self._capacity[rule]
        return self._lagrangian.priced(duals.gpus, extra, constant)

    def fixed_by_reduced_cost(self, priced: PricedOptions, limit: float) -> Bools:
        """Tell which options are only in plans that cost at least a limit."""
        return self._lagrangian.fixed_by_reduced_cost(priced, limit)


# --- the tree ----------------------------------------------------------------------------------


@dataclass(eq=False)
class PlacementNode(TreeNode[int]):
    """A node of the tree; `point` is the solution of the relaxation there."""

    duals: NodeDuals
    point: LpPoint

    def inherit(self, parent: Self) -> None:
        """Take the duals of the parent, which prove more."""
        self.bound = parent.bound
        self.duals = parent.duals._replace(branches=(*parent.duals.branches, 0.0))


class PlacementTree(BranchAndBound[PlacementNode]):
    """A branch-and-bound tree that grows until the bound is proven."""

    def __init__(
        self, relaxation: NodeRelaxation, seconds_left: Callable[[], float | None]
    ) -> None:
        super().__init__(seconds_left)
        self.relaxation = relaxation

    def solve_root(self) -> bool:
        """Solve the root, with rounds of cuts; return whether there was time for it."""
        node = self.relax(())
        for _ in range(SETTINGS.cut_rounds):
            if node is None or not self.relaxation.cut(node.point):
                break
            tighter = self.relax(())
            if tighter is None:
                break
            if tighter.bound < node.bound:  # duals of the looser program can be the better ones
                tighter.bound, tighter.duals = node.bound, node.duals
            node = tighter
        if node is None:
            return False
        self.plant(node)
        return True

    def fixed_by_reduced_cost(self, limit: float) -> Bools:
        """Tell which options are only in plans that cost at least a limit."""
        root = self.nodes[0]
        priced = self.relaxation.priced(root.path, root.duals)
        return self.relaxation.fixed_by_reduced_cost(priced, limit)

    def certificate(
        self,
        instance: PalInstance,
        kind: Literal["prices", "infeasible"],
        exclusions: list[DualSolution],
        most: float,
    ) -> PalCertificate:
        """Return what the leaves prove, at most the limit of the exclusions."""
        documents: dict[CountRule, int] = {}

        def numbered(rules: list[CountRule], used: set[int]) -> dict[int, int]:
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
        self, numbered: Callable[[list[CountRule], set[int]], dict[int, int]]
    ) -> list[Split | Leaf]:
        nodes: list[Split | Leaf] = []
        rules = self.relaxation.rules
        for node in self.standing:
            if node.disjunction is None:
                nodes.append(node.duals.leaf(numbered(rules, set(node.duals.cuts))))
                continue
            rule, at_most, cases = node.disjunction
            nodes.append(Split(rule=numbered(rules, {rule})[rule], at_most=at_most, cases=cases))
        return nodes

    def candidates(self, node: PlacementNode) -> list[tuple[CountRule, float]]:
        """Return the rules whose counts are not whole at a node; none if it is whole."""
        return splits(self.relaxation.problem, self.relaxation.options, node.point)

    def children(
        self, node: PlacementNode, rule: Any, count: float
    ) -> tuple[PlacementNode, PlacementNode]:
        """Return the two branches of a node; a rule gets its row once it is tried."""
        return super().children(node, self.relaxation.number(rule), count)

    def relax(self, path: Path, parent: PlacementNode | None = None) -> PlacementNode | None:
        """Solve the relaxation of a node; None if there is no time for it."""
        solved = self.relaxation.relax(path, self.seconds_left())
        if solved is None:
            return None
        duals = self.relaxation.duals(path, solved)
        bound = self.relaxation.priced(path, duals).value
        return PlacementNode(path, bound, duals, self.relaxation.point(solved))
