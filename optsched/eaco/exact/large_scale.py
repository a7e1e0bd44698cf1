"""Column generation for set partitioning (Lübbecke & Desrosiers, Operations Research 53, 2005).

The method "columns", for more jobs than all groups of which can be listed. Source: EaCO, arXiv
2412.08294, docs/math/eaco.md. Where a gap stays open, all groups that a better plan can have are
listed, for branch and bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.gang_cuts import CutBound, lowered
from optsched.eaco.exact import listed_groups, proving
from optsched.eaco.exact.certificate_writer import Writer
from optsched.eaco.exact.column_generation import ColumnGeneration
from optsched.eaco.exact.heuristics import offer_columns, quick_start
from optsched.eaco.exact.master import frame
from optsched.eaco.exact.warm_start import WarmStart, matched_start
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.groups.pricing_scope import has_pricing_problems
from optsched.eaco.primal.annealing import annealed
from optsched.eaco.primal.batch_greedy import filled
from optsched.eaco.primal.diving import dive, held
from optsched.eaco.primal.large_neighbourhood_search import repaired, repaired_by_gangs, total
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.exact.master import Duals
    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate
    from optsched.mip.incremental_lp import Solved
    from optsched.search import Search


def columns(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Part the jobs into groups that column generation finds, and prove a bound.

    Where groups cannot be priced, as at power levels, all of them are listed, as by `exact`.

    Raises
    ------
    Infeasible
        If the nodes or the tolerances leave no room for all jobs.
    """
    listed_groups.refuse_below_idle_power(instance)
    search.begin()
    if not has_pricing_problems(instance):
        return listed_groups.over_all(instance, search)
    return _Columns(instance, search).run()


def certify(instance: EacoInstance, search: Search) -> EacoCertificate | None:
    """Certify what duals prove, after as many rounds as the gap asks for."""
    return _Columns(instance, search).relaxed()


class _Columns:
    def __init__(self, instance: EacoInstance, search: Search) -> None:
        self.instance, self.search = instance, search
        self.classes = job_classes(instance)
        self.frame = frame(instance, self.classes)
        self.generation = ColumnGeneration(instance, self.classes, self.frame, search.seed)
        self.first = self.generation.bound.duals.jobs
        self.best: NDArray[np.float64] | None = None  # the best plan to repair, over the program
        self.cuts = CutBound(self.generation, search)
        self.last = matched_start(search.start, self.classes, self.first, instance.max_jobs_per_gpu)
        self.is_warm = self.last is not None and self.last.jobs is not None
        self.has_parts = (
            len(np.unique(self.generation.gangs)) > 1 and search.gap > SETTINGS.tight_gap
        )

    def relaxed(self) -> EacoCertificate:
        """Return what the relaxation proves; offer the plans that dives from it find.

        After a warm start its plan is annealed, or parted anew by gang sizes, and not made anew.
        """
        search, is_quick = self.search, self.is_warm and self.has_parts
        self._begin()
        if self.is_warm and not is_quick:
            self._anneal_again()
        search.enter("column generation")
        for margin, step in SETTINGS.trials:
            if self._is_closed() or search.out_of_time():
                break
            solved = self._solved(margin)
            self.cuts.tighten()
            search.certificate = self.certificate()
            if solved is not None and not self._is_closed():
                self._improve(solved, step)
        if search.gap > SETTINGS.tight_gap and not is_quick:  # else a tree follows, with plans
            self._repair()
        search.certificate = self.certificate()
        search.state = WarmStart.of(self.classes, self.first, self.generation)
        return search.certificate

    def _solved(self, margin: float) -> Solved | None:
        """Return an optimum of the program near the bound; nearer if that closes the gap.

        A few rounds more take less time than a dive.
        """
        clock, nearest = self._clock, SETTINGS.trials[-1][0] * self.search.gap
        solved = self.generation.run(margin * self.search.gap, clock)
        if solved is None or self._is_closed():
            return solved
        bound = solved.objective - nearest * abs(solved.objective)
        if not self.search.is_closed(bound, SETTINGS.gap_share):
            return solved
        return self.generation.run(nearest, clock) or solved

    def _clock(self) -> float | None:
        """Tell the caller what is proven, and count a program as `Search` does."""
        self.search.bounded(self.generation.bound.value)
        return self.search.seconds_for_program()

    def _begin(self) -> None:
        """Prove a first bound and offer a first plan, in little time."""
        search, generation = self.search, self.generation
        planned = None
        if self.last is not None:
            planned = generation.begin(self.last)  # whatever the time, and so is what follows
        if not self.is_warm:
            generation.prove_first_bound()
        for pricing in generation.pricing_problems:
            pricing.stops = search.out_of_time
        search.certificate = self.certificate()
        if self.is_warm and search.plan is not None and search.out_of_time():
            return
        self._fill(self.first)
        if planned is not None and not self._is_closed():
            self._fill(generation.bound.duals.jobs, planned)
        if search.plan is None and len(self.instance.jobs) <= SETTINGS.most_started_jobs:
            search.begin(quick_start)
        if not search.out_of_time() and not self._is_closed():
            generation.seed(SETTINGS.seed_shares[:1] if self.is_warm else SETTINGS.seed_shares)

    def _fill(self, pays: NDArray[np.float64], kept: Columns | None = None) -> None:
        """Offer a greedy plan by what jobs are worth, with groups that are kept.

        What the first duals pay makes better groups than what those pay that prove most.
        """
        problems = self.generation.pricing_problems
        filling = filled(self.instance, self.classes, problems, pays, kept)
        self.generation.add(filling)
        offer_columns(self.search, self.classes, filling, np.ones(len(filling.cost)), {})
        if self.is_warm:  # else a dive's plan, too dear in a few groups only, is repaired sooner
            self._keep(self.generation.amounts_of(filling))

    def _improve(self, solved: Solved, step: float) -> None:
        """Part jobs of a known plan anew, those of a gang size at once; dive if there is none."""
        if not (self.is_warm and self.has_parts) or self.best is None:
            self._dive(solved, step)
        elif not self._part_anew(self.best):
            self._anneal_again()
            self._part_anew(self.best)

    def _part_anew(self, x: NDArray[np.float64]) -> bool:
        """Part the jobs of a plan anew, those of a gang size at once; tell whether that is enough.

        Where all jobs have one gang size, annealing is quicker.
        """
        if self._is_closed() or not self.has_parts:
            return self._is_closed()
        search, goal = self.search, self._goal()
        x = repaired_by_gangs(self.generation, x, goal, search.seed, search.seconds_for_program)
        self._take(x)
        self._keep(x)
        return self._is_closed()

    def _dive(self, solved: Solved, step: float) -> None:
        """Offer the plan of a dive."""
        search, clock = self.search, self.search.seconds_for_program
        x = dive(self.generation, solved, step, clock)
        if x is None:
            return
        self._take(x)
        self._keep(x)
        if not self._part_anew(x) and self.best is not None:
            x, clock = self.best, search.seconds_left
            x = annealed(self.generation, x, self._goal(), search.seed, clock)
            self._take(x)
            self._keep(x)

    def _anneal_again(self) -> None:
        """Anneal the plan of the epoch before: cool, and for the next ones below the gap."""
        search, (heat, share, sweeps) = self.search, SETTINGS.annealing_warm
        if self.best is None or self._is_closed() or search.out_of_time():
            return
        goal, clock = self._goal(share), search.seconds_left
        x = annealed(self.generation, self.best, goal, search.seed, clock, heat, sweeps)
        self._take(x)
        self._keep(x)

    def _keep(self, x: NDArray[np.float64]) -> None:
        """Keep a plan to repair if it is the best of these, and leaves no job out that must run."""
        generation = self.generation
        left = self.frame.copies - held(generation.pool.members[: len(x)], x, len(self.classes))
        if (left[self.frame.must] > SETTINGS.whole).any():
            return
        if self.best is None or total(generation, x) < total(generation, self.best):
            self.best = x

    def _repair(self) -> None:
        """Offer what the best plan is repaired to."""
        if self.best is None or self._is_closed() or self.search.out_of_time():
            return
        search, generation, x = self.search, self.generation, self.best
        goal = self._goal(SETTINGS.late_gap_share)  # near enough: a program takes too long
        for trial in range(1, SETTINGS.annealing_tries + 1):
            x = annealed(generation, x, goal, search.seed + trial, search.seconds_left)
        self._take(repaired(generation, x, goal, search.seed, search.seconds_for_program))

    def _goal(self, share: float = SETTINGS.gap_share) -> float:
        """Return what a plan may cost that closes so much of the gap."""
        return self.cuts.proof[1] / (1 - share * self.search.gap)

    def run(self) -> EacoCertificate | None:
        """Solve the relaxation, find a plan, and close the gap between them."""
        instance, search = self.instance, self.search
        self.relaxed()
        if self._is_closed(SETTINGS.late_gap_share) or search.out_of_time():
            return self.certificate()
        if search.plan is None:
            return listed_groups.over_all(instance, search)
        self.generation.run(0.0, self._clock)
        if self._is_closed() or search.out_of_time():
            return self.certificate()
        certificate = self._through()
        if certificate is None and search.gap <= SETTINGS.tight_gap:
            self._repair()
            certificate = None if self._is_closed() else self._through()
        if certificate is None and not self._is_closed() and not search.out_of_time():
            search.gave_up = (
                f"more than {SETTINGS.most_near:,} groups cost so little more than their jobs pay "
                "that a better plan may have them, too many for branch and bound"
            )
        return certificate or self.certificate()

    def _through(self) -> EacoCertificate | None:
        """Branch and bound over all groups that better plans may have; None if they are too many.

        The duals of the root hold at all nodes, so every group that pays at them must be there.
        """
        duals, value = self.generation.bound.duals, self.generation.bound.value
        solver: proving.Solver | None = None
        listed = 0
        for _ in range(SETTINGS.listing_tries):
            pool = self._near(duals, value)
            if pool is None:
                return None
            if solver is not None and len(pool.cost) == listed:
                solver.finish(SETTINGS.most_nodes)
                return solver.certificate()
            listed = len(pool.cost)
            solver = proving.Solver(self.instance, self.search, pool)
            if not solver.solve_root(np.inf):
                return None
            root = solver.tree.root
            assert root is not None
            duals, value = root.proof.duals, root.value
        return None

    def _near(self, duals: Duals, value: float) -> Columns | None:
        """Put all groups into the program that pay at some duals; return it, None if too many."""
        best = self.search.objective
        assert best is not None
        slack = best - value + SETTINGS.listing_tolerance * abs(best)
        is_quick = self.is_warm and self.has_parts
        most = SETTINGS.most_near_warm if is_quick else SETTINGS.most_near
        fresh = self.generation.near(duals, slack, most)
        if fresh is None:
            return None
        self.generation.add(fresh)
        return self.generation.pool

    def _is_closed(self, share: float = SETTINGS.gap_share) -> bool:
        return self.search.is_closed(self.cuts.proof[1], share)

    def certificate(self) -> EacoCertificate:
        """Return what is proven so far."""
        best = self.search.objective
        proof, value = self.cuts.proof
        most = np.inf if best is None else best
        if self._is_closed():
            slack = SETTINGS.gap_share * self.search.gap * most - (most - value)
            proof, value = lowered(self.frame, proof, value, slack)
        return Writer(self.instance, self.classes).single(proof, value, most)

    def _take(self, x: NDArray[np.float64]) -> None:
        """Offer the plan that has each group so often; of those that came later, none."""
        taken = np.flatnonzero(x > 0.5)
        offer_columns(self.search, self.classes, self.generation.pool.take(taken), x[taken], {})
