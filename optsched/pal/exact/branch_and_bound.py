"""PAL's tree: branch and bound (Land & Doig, Econometrica 28, 1960) on the type-chain relaxation.

Every node is solved as a linear program; what a leaf proves is the Lagrangian value of its duals,
not the word of HiGHS, so a verifier can follow the tree. A node that does not prove enough is split
by a rule whose count is not whole there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from optsched.mip.branch_and_bound import BranchAndBound, TreeNode
from optsched.pal.exact.cuts_and_branching import CountRule, LpPoint, splits
from optsched.pal.plan import Leaf, PalCertificate, Split
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from optsched.documents.arrays import Bools
    from optsched.pal.exact.node_relaxation import NodeDuals, NodeRelaxation, Path
    from optsched.pal.instance import PalInstance


@dataclass(eq=False)
class PlacementNode(TreeNode[int]):
    """A node of the tree; `point` is the solution of the relaxation there."""

    duals: NodeDuals
    point: LpPoint

    def inherit(self, parent: Self) -> None:
        """Take the duals of the parent, which prove more."""
        self.bound = parent.bound
        self.duals = parent.duals._replace(branches=(*parent.duals.branches, 0.0))


class Exclusion(NamedTuple):
    """Duals at which some options are only in plans that cost a limit or more."""

    rules: list[CountRule]
    duals: NodeDuals


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
        exclusions: list[Exclusion],
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
