"""The method "exact": the type-chain relaxation by HiGHS, rounding, and a tree of cases.

Source: PAL, SC'24, arXiv 2408.11919, as the integer program F7 of pal.md 4.5; the bound is the
Lagrangian one of 4.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.pal.exact.bounding import PENALTY as PENALTY
from optsched.pal.exact.bounding import Prover as Prover
from optsched.pal.exact.feasibility import find_any
from optsched.pal.exact.reoptimisation import MANY_JOBS, place_parts_anew
from optsched.pal.exact.restricted_mip import near, whole_below_root
from optsched.pal.exact.warm_start import Known, Left, Proof
from optsched.pal.exact.worst_removal import Fees, place_dear_anew
from optsched.pal.greedy import methods

if TYPE_CHECKING:
    from optsched.pal.exact.branch_and_bound import Tree
    from optsched.pal.exact.cuts_and_branching import Point
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalCertificate
    from optsched.search import Search

COARSE = 5e-4  # gaps from which on parts placed anew are likely to be enough, and quicker
MIP_SHARE = 0.5  # of the gap that is asked for, at which HiGHS stops; rounding takes the rest


class WholeProver(Prover):
    """A prover that also looks for plans by HiGHS' branch and bound, and by placing parts anew."""

    def resume(self) -> PalCertificate | None:
        """Do so, and place jobs anew that pay too much at the prices of the epoch before."""
        certificate, before = super().resume(), self._before
        if certificate is not None or before is None or self.search.gap < COARSE:
            return certificate
        fees = Fees(self.problem, self.labels, before)
        place_dear_anew(
            self.instance, self.search, fees, lambda: before.options.value >= self.goal()
        )
        self.search.out_of_time()  # parts may have been cut short
        return self._proven_before()

    def improve(self, tree: Tree, points: list[Point]) -> None:
        """Look for better plans near some points of the first root; nothing for few jobs."""
        if len(self.instance.jobs) < MANY_JOBS or self.excluded():
            return
        if tree.bound >= self.goal() or self.search.seconds_left() == 0:
            return
        if self.search.gap >= COARSE:
            self.improve_parts(tree)
        if tree.bound >= self.goal():
            return
        assert self.search.objective is not None
        kept = self.labels.only(near(tree, self.search.objective, points))
        penalty = PENALTY * self.search.objective
        seconds, seed = self.search.seconds_left(), self.search.seed
        gap = MIP_SHARE * self.search.gap
        point = whole_below_root(tree, kept, penalty, gap, seconds, seed)
        if point is not None:
            self.offer(point, kept)

    def improve_parts(self, tree: Tree) -> None:
        """Place parts of the jobs anew for as long as it pays; nothing for few jobs."""
        cases, root = tree.cases, tree.nodes[0]
        known = Known(cases.rules, root.prices)
        proof = Proof(known, cases.options(root.path, root.prices))
        fees = Fees(self.problem, cases.labels, proof)
        place_dear_anew(self.instance, self.search, fees, lambda: tree.bound >= self.goal())
        place_parts_anew(self.instance, self.search, lambda: tree.bound >= self.goal())


def exact(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Place the jobs at least cost, from the best greedy plan on, and prove the bound.

    Raises
    ------
    Infeasible
        If hard caps or the number of GPUs leave no room for all jobs.
    """
    prover = WholeProver(instance, search)
    search.state = Left(prover.problem.gpus)
    certificate = prover.resume()
    if certificate is not None:
        return certificate
    start(instance, search)
    return _certified(prover)


def certify(instance: PalInstance, search: Search) -> PalCertificate | None:
    """Certify what the root of a tree proves.

    Raises
    ------
    Infeasible
        If it is proven that there is no plan.
    """
    if search.plan is None:
        start(instance, search)
    prover = Prover(instance, search)
    if search.plan is None:
        find_any(instance, search, prover.problem)
    if search.plan is None:
        return None
    tree = prover.tree(prover.labels)
    if tree is None:
        return prover.unpriced()
    return tree.certificate(instance, "prices", [], tree.bound)


def certify_claim(instance: PalInstance, search: Search, claimed: float) -> PalCertificate | None:
    """Prove a bound that a solver claims, or as much of it as time and nodes allow.

    Raises
    ------
    Infeasible
        If that is proven instead.
    """
    return _certified(WholeProver(instance, search, claimed))


def _certified(prover: Prover) -> PalCertificate | None:
    instance, search = prover.instance, prover.search
    if search.plan is None:
        find_any(instance, search, prover.problem)
    return None if search.plan is None else prover.prove()


def start(instance: PalInstance, search: Search) -> None:
    """Offer the best of some quick greedy plans."""
    plan = methods.quick_start(instance)
    if plan is not None:
        search.offer(plan)
