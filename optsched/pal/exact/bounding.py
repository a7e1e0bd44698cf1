"""Root bound, reduced-cost fixing, primal heuristics and tree (Achterberg, TU Berlin 2007)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.branch_and_bound import NodeRelaxation, PlacementTree
from optsched.pal.exact.heuristics import HEURISTICS
from optsched.pal.exact.lagrangian_bound import (
    DualSolution,
    Lagrangian,
    PricedDuals,
    without_cuts,
)
from optsched.pal.exact.relaxation import all_options
from optsched.pal.exact.smallest_first import sorted_bound, sorted_certificate, stronger
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from highspy import HighsBasis

    from optsched.documents.arrays import Floats
    from optsched.pal.exact.branch_and_bound import PlacementNode
    from optsched.pal.exact.cuts_and_branching import LpPoint
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.search import Search


class PlacementSolver:
    """Solves one instance to a proven gap: root, reduced-cost fixing, heuristics, tree.

    Parameters
    ----------
    claimed
        A bound that is enough; infinite if only the gap that is asked for counts.
    basis
        Of the relaxation for nearly as many jobs, to begin with; no harm if it is of another one.
    is_thorough
        Whether plans are also sought by HiGHS' branch and bound, and by reoptimising parts.
    """

    def __init__(
        self,
        instance: PalInstance,
        search: Search,
        claimed: float = np.inf,
        basis: HighsBasis | None = None,
        *,
        is_thorough: bool = False,
    ) -> None:
        self.instance, self.search, self.claimed = instance, search, claimed
        self.problem = arrays(instance)
        self.options = all_options(self.problem)
        self.reward = np.array([jobs.reward for jobs in self.problem.types])
        self.exclusions: list[DualSolution] = []
        self.limit = np.inf  # of what the exclusions prove
        self._inherited = 0  # exclusions by duals that no tree of this solver found
        self._previous: PricedDuals | None = None
        self._sorted = sorted_bound(instance)
        self._basis, self._is_thorough = basis, is_thorough

    def goal(self) -> float:
        """Return the bound that would do."""
        return min(self.claimed, self.search.goal(SETTINGS.gap_share))

    def resume(self) -> PalCertificate | None:
        """Offer the plan of the previous epoch, and improve it while its duals do not prove it.

        Returns
        -------
        PalCertificate | None
            If that reaches the goal.
        """
        if self.search.start is None:
            return None
        packing = HEURISTICS["repair"](self.instance, self.problem, self.search.start).packing
        self.search.offer(packing.plan(self.instance))
        certificate = self._proven_by_previous_duals()
        if certificate is None and self.search.plan is not None:
            packing.reinsert()
            self.search.offer(packing.plan(self.instance))
            certificate = self._proven_by_previous_duals()
        return certificate or self._resume_thoroughly()

    def _resume_thoroughly(self) -> PalCertificate | None:
        """Reoptimise the worst jobs at the duals of the previous epoch."""
        is_coarse = self.search.gap >= SETTINGS.coarse_gap
        if not self._is_thorough or self._previous is None or not is_coarse:
            return None
        HEURISTICS["worst removal"](self, self.options, self._previous)
        self.search.out_of_time()  # parts may have been cut short
        return self._proven_by_previous_duals()

    def start_from(self, bound: PricedDuals) -> None:
        """Begin with duals that are known, as if they were of the previous epoch."""
        if self._previous is None or self._previous.value < bound.value:
            self._previous = bound

    def is_closed(self, tree: PlacementTree) -> bool:
        """Tell whether a tree, or duals that are known besides, prove the goal."""
        known = max(self._sorted, -np.inf if self._previous is None else self._previous.value)
        self.search.bounded(max(min(tree.bound, self.limit), known))
        return max(tree.bound, known) >= self.goal()

    def proven_by_sorting(self) -> PalCertificate | None:
        """Return the certificate of sorted slowdowns, if they reach the goal."""
        is_enough = self._sorted >= self.goal()
        return sorted_certificate(self._sorted, self.search) if is_enough else None

    def at_duals(self, gpus: Floats) -> PricedDuals:
        """Return what duals of the GPUs alone prove."""
        solution = without_cuts(gpus)
        lagrangian = Lagrangian(self.problem, self.options, self.reward)
        return PricedDuals(solution, solution.priced(self.problem, self.options, lagrangian))

    def prices_first(self) -> PalCertificate | None:
        """Begin with prices, where options are many; return a certificate if they reach the goal.

        What they prove is what there is if the tree is stopped.
        """
        parts = self.instance, self.search, self.problem, self.options, self.reward
        bound = HEURISTICS["prices first"](*parts) if self._is_thorough else None
        if bound is None:
            return None
        self._previous = max(bound, self._previous or bound, key=lambda each: each.value)
        self.search.certificate = certificate = self.at_zero_duals()
        return certificate if bound.value >= self.goal() else None

    def _proven_by_previous_duals(self) -> PalCertificate | None:
        """Return a certificate by duals of the previous epoch, if they reach the goal."""
        start, objective = self.search.start, self.search.objective
        if start is None or objective is None:
            return None
        if self._previous is None:
            lagrangian = Lagrangian(self.problem, self.options, self.reward)
            arguments = self.instance, self.problem, self.options, lagrangian, start, objective
            self._previous = HEURISTICS["previous duals"](*arguments)
        if self._previous is None or self._previous.value < self.goal():
            return None
        self.search.is_warm = True
        bound = min(self._previous.value, objective)
        return self._previous.solution.certificate(self.instance, self.problem, bound)

    def _fix_at_zero_duals(self) -> None:
        """Leave out what better plans cannot use, as others cost what they cost alone at least."""
        self._fix(self.at_duals(np.zeros(len(self.problem.gpus))))

    def _fix(self, duals: PricedDuals) -> None:
        """Leave out what is only in plans that reach the goal at some duals, if that is much."""
        lagrangian = Lagrangian(self.problem, self.options, self.reward)
        kept = ~lagrangian.fixed_by_reduced_cost(duals.priced, self.goal())
        if kept.size and kept.mean() <= 1 - SETTINGS.worth_fixing:
            self._inherited += 1
            self.limit = min(self.goal(), self.limit)
            self.options = self.options.only(kept)
            self.exclusions.append(duals.solution)

    def offer(self, point: LpPoint, options: GangOptions) -> None:
        """Round a solution of the relaxation to a plan, and offer that."""
        packing = HEURISTICS["rounding"](self.problem, options, point)
        packing.reinsert()
        self.search.offer(packing.plan(self.instance))

    def tree(self, options: GangOptions) -> PlacementTree | None:
        """Return a tree with its root; None if there is no time for that."""
        assert self.search.objective is not None
        penalty = SETTINGS.penalty * self.search.objective
        relaxation = NodeRelaxation(self.problem, options, self.reward, penalty, self.search.seed)
        if self._basis is not None:
            relaxation.begin_from(self._basis)
            self._basis = None
        tree = PlacementTree(relaxation, self.search.seconds_left)
        return tree if tree.solve_root() else None

    def root(self) -> PlacementTree | None:
        """Return a tree for as few options as need be, with the plans that its root suggests."""
        tree = self.tree(self.options)
        has_parts = False
        while tree is not None and not self.is_closed(tree):
            self._offer_near(tree)
            if self.is_closed(tree):
                break
            smaller = self._not_fixed(tree)
            if smaller is None and not has_parts:
                self._improve_parts(tree)
                has_parts, smaller = True, self._not_fixed(tree)
            next_tree = None if smaller is None else self.tree(smaller)
            if smaller is None or next_tree is None:
                break
            self.exclusions.append(DualSolution(tree.relaxation.rules, tree.nodes[0].duals))
            self.options, self.limit, tree = smaller, min(self.goal(), self.limit), next_tree
        return tree

    def _offer_near(self, tree: PlacementTree) -> None:
        """Offer the plans that the root of a tree suggests."""
        point = tree.nodes[0].point
        self.offer(point, self.options)
        if not self.is_closed(tree):
            dived = HEURISTICS["diving"](tree.relaxation, point, self.search.seconds_left)
            self.offer(dived, self.options)
            self._improve(tree, [point, dived])

    def _not_fixed(self, tree: PlacementTree) -> GangOptions | None:
        """Return the options that plans below the goal may need; None if that is nearly all."""
        kept = ~tree.fixed_by_reduced_cost(min(self.goal(), self.limit))
        is_last = self._fixing_rounds() == SETTINGS.fixing_rounds
        if is_last or kept.mean() > 1 - SETTINGS.worth_fixing:
            return None
        return self.options.only(kept)

    def _fixing_rounds(self) -> int:
        """Return how often the roots of this solver were used to fix options."""
        return len(self.exclusions) - self._inherited

    def _improve(self, tree: PlacementTree, points: list[LpPoint]) -> None:
        """Look for better plans near some points of the first root; nothing for few jobs."""
        are_few = len(self.instance.jobs) < SETTINGS.many_jobs
        if not self._is_thorough or are_few or self._fixing_rounds():
            return
        if self.is_closed(tree) or self.search.seconds_left() == 0:
            return
        if self.search.gap >= SETTINGS.coarse_gap:
            self._improve_parts(tree)
        if not self.is_closed(tree):
            HEURISTICS["restricted MIP"](self, tree, points)

    def _improve_parts(self, tree: PlacementTree) -> None:
        """Reoptimise parts of the jobs for as long as it pays; nothing for few jobs."""
        if not self._is_thorough:
            return
        relaxation, root = tree.relaxation, tree.nodes[0]
        solution = DualSolution(relaxation.rules, root.duals)
        bound = PricedDuals(solution, relaxation.priced(root.path, root.duals))
        HEURISTICS["worst removal"](self, relaxation.options, bound)
        lns = HEURISTICS["large neighbourhood search"]
        lns(self.instance, self.search, lambda: self.is_closed(tree))

    def solve(self) -> PalCertificate | None:
        """Grow a tree to the goal, or as far as the limits allow; return what it proves."""
        certificate = self.proven_by_sorting() or self._proven_by_previous_duals()
        if certificate is not None:
            return certificate
        if self._previous is not None and not self._inherited:
            self._fix(self._previous)
        if len(self.problem.gpus) > SETTINGS.large_gpus and not self.exclusions:
            self._fix_at_zero_duals()
        tree = self.root()
        if tree is None:
            self.search.out_of_time()
            self.search.gave_up = "the first linear program was not solved"
            return self.at_zero_duals()
        usual = max(SETTINGS.least_nodes, SETTINGS.work // max(1, len(self.options.type)))
        most_nodes = self.search.program_limit or usual
        try:
            tree.explore(
                lambda: self._goal_of(tree), lambda node: self._visit(tree, node), most_nodes
            )
        except KeyboardInterrupt:
            self.search.interrupt()
        if not self.is_closed(tree):
            self.search.out_of_time()
            self.search.gave_up = tree.ended
        assert self.search.objective is not None
        stated = min(self.limit, self.search.objective)  # an empty tree proves what was asked
        return self._better(tree.certificate(self.instance, "prices", self.exclusions, stated))

    def at_zero_duals(self) -> PalCertificate:
        """Return what is proven without any duals, when there is no time to find some."""
        solution = without_cuts(np.zeros(len(self.problem.gpus)))
        options = all_options(self.problem)
        lagrangian = Lagrangian(self.problem, options, self.reward)
        value = solution.priced(self.problem, options, lagrangian).value
        assert self.search.objective is not None
        bound = min(value, self.search.objective)
        return self._better(solution.certificate(self.instance, self.problem, bound))

    def _better(self, certificate: PalCertificate) -> PalCertificate:
        """Return a certificate; or that of the previous epoch, or of a sort, if it proves more."""
        objective = self.search.objective
        assert objective is not None
        assert certificate.bound is not None
        if self._previous is not None and self._previous.value > certificate.bound:
            bound = min(self._previous.value, objective)
            certificate = self._previous.solution.certificate(self.instance, self.problem, bound)
        return stronger(self.instance, self.search, certificate)

    def _goal_of(self, tree: PlacementTree) -> float:
        """Return the bound that a tree has to prove; none if it is known already."""
        return -np.inf if self.is_closed(tree) else self.goal()

    def _visit(self, tree: PlacementTree, node: PlacementNode) -> None:
        number = len(tree.nodes)
        if number <= SETTINGS.rounded_nodes or number % 10 == 0 or node.point.is_whole:
            self.offer(node.point, self.options)
