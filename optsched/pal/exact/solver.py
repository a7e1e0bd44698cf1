"""The method "exact": Lagrangian branch and bound for PAL's problem (Jain et al., SC 2024).

Source: PAL, SC'24, arXiv 2408.11919, as the integer program F7 of docs/math/pal.md (type chains);
the bound is the Lagrangian one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.exact.bounding import Solver as Solver
from optsched.pal.exact.heuristics import HEURISTICS
from optsched.pal.exact.warm_start import DualBound, DualSolution, WarmStart
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.pal.exact.branch_and_bound import PlacementTree
    from optsched.pal.exact.cuts_and_branching import LpPoint
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.search import Search


class FullSolver(Solver):
    """A solver that also looks for plans by HiGHS' branch and bound, and by reoptimising parts."""

    def resume(self) -> PalCertificate | None:
        """Do so, and reoptimise the worst jobs at the duals of the previous epoch."""
        certificate, previous = super().resume(), self._previous
        if certificate is not None or previous is None or self.search.gap < SETTINGS.coarse_gap:
            return certificate
        HEURISTICS["worst removal"](self, self.options, previous)
        self.search.out_of_time()  # parts may have been cut short
        return self._proven_by_previous_duals()

    def improve(self, tree: PlacementTree, points: list[LpPoint]) -> None:
        """Look for better plans near some points of the first root; nothing for few jobs."""
        if len(self.instance.jobs) < SETTINGS.many_jobs or self.fixing_rounds():
            return
        if tree.bound >= self.goal() or self.search.seconds_left() == 0:
            return
        if self.search.gap >= SETTINGS.coarse_gap:
            self.improve_parts(tree)
        if tree.bound >= self.goal():
            return
        HEURISTICS["restricted MIP"](self, tree, points)

    def improve_parts(self, tree: PlacementTree) -> None:
        """Reoptimise parts of the jobs for as long as it pays; nothing for few jobs."""
        relaxation, root = tree.relaxation, tree.nodes[0]
        solution = DualSolution(relaxation.rules, root.duals)
        bound = DualBound(solution, relaxation.priced(root.path, root.duals))
        HEURISTICS["worst removal"](self, relaxation.options, bound)
        lns = HEURISTICS["large neighbourhood search"]
        lns(self.instance, self.search, lambda: tree.bound >= self.goal())


def exact(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs at least cost, from the best greedy plan on, and prove the bound.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no plan with all jobs.
    """
    kind = FullSolver if search.program_limit is None else Solver  # one tree is all that it counts
    solver = kind(instance, search)
    search.state = WarmStart.of(solver.problem)
    certificate = solver.resume()
    if certificate is not None:
        return certificate
    search.begin(HEURISTICS["greedy"].__call__)
    return _certified(solver)


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify what the root of a tree proves.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    if search.plan is None:
        start(instance, search)
    solver = Solver(instance, search)
    if search.plan is None:
        HEURISTICS["any plan"](instance, search, solver.problem)
    if search.plan is None:
        return None
    tree = solver.tree(solver.options)
    if tree is None:
        return solver.at_zero_duals()
    return tree.certificate(instance, "prices", [], tree.bound)


def certify_claim(instance: PalInstance, search: Search, claimed: float) -> PalCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow.

    Raises
    ------
    Infeasible
        If that is proven instead.
    """
    return _certified(FullSolver(instance, search, claimed))


def _certified(solver: Solver) -> PalCertificate | None:
    instance, search = solver.instance, solver.search
    if search.plan is None:
        HEURISTICS["any plan"](instance, search, solver.problem)
    return None if search.plan is None else solver.solve()


def start(instance: PalInstance, search: Search) -> None:
    """Offer the best of some quick greedy plans."""
    plan = HEURISTICS["greedy"](instance)
    if plan is not None:
        search.offer(plan)
