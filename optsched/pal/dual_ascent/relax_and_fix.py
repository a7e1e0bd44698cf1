"""Relax and fix (Dillenberger et al., EJOR 1994) on the smoothed dual; and parts of it again.

At prices jobs ask for shares of gangs. Those that are asked for most are placed, and the others are
priced again on what is left, until all jobs are placed. The plan is annealed. Large neighbourhood
search (Shaw, CP 1998) then takes the jobs of some nodes away, those where most is paid above the
duals, places them anew in the same way, and anneals what is around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.dual_ascent.annealing import GangAnnealing
from optsched.pal.dual_ascent.ascent import OutOfTime, ascended
from optsched.pal.exact.rounding import GangPacking
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats
    from optsched.pal.dual_ascent.smoothed_dual import GangShare, SmoothedDual


class RelaxAndFix:
    """Places jobs as the smoothed dual of an instance suggests.

    Parameters
    ----------
    seconds_left
        Until the deadline, when jobs that are left are placed where it is cheapest; None for none.
    """

    def __init__(
        self, dual: SmoothedDual, seed: int, seconds_left: Callable[[], float | None]
    ) -> None:
        self.dual, self.problem = dual, dual.problem
        self.seconds_left = seconds_left
        self._draw = np.random.default_rng(seed)

    def packed(self, prices: Floats) -> GangPacking:
        """Return all jobs on GPUs, from prices (GPUs,) on."""
        packing = GangPacking(self.problem)
        for keep, share in zip(self.dual.keeps, self.dual.kept_shares(prices), strict=True):
            if share > 0.5:
                packing.put(keep.job, keep.gpus)
        self.fill(packing, prices, 0.0)
        return packing

    def fill(self, packing: GangPacking, prices: Floats, noise: float) -> None:
        """Place all jobs that are not placed, from prices on; with some noise in their order."""
        waiting = [
            [job for job in jobs.jobs if job not in packing.placed] for jobs in self.problem.types
        ]
        while any(waiting):
            counts = np.array([len(jobs) for jobs in waiting], dtype=float)
            part = self.dual.only(packing.free, counts)
            steps, smoothing = SETTINGS.fix_steps, SETTINGS.fix_smoothing
            try:
                prices = ascended(part, prices, smoothing, steps, self.seconds_left, packing.free)
            except OutOfTime:
                break
            if not self._fix(packing, waiting, part.shares(prices, smoothing), noise):
                break
        packing.fill()

    def _fix(
        self, packing: GangPacking, waiting: list[list[int]], asked: list[GangShare], noise: float
    ) -> bool:
        """Place jobs on gangs that are asked for most; return whether there were some."""
        sizes = [jobs.gpus for jobs in self.problem.types]
        wanted = sum(size * len(jobs) for size, jobs in zip(sizes, waiting, strict=True))
        drawn = self._draw.normal(0.0, noise, len(asked)) if noise else np.zeros(len(asked))
        worth = [
            min(gang.share, 1.0) * sizes[gang.type] ** 0.5 * np.exp(more)
            for gang, more in zip(asked, drawn.tolist(), strict=True)
        ]
        placed = 0
        for n in np.argsort(-np.array(worth), kind="stable").tolist():
            gang = asked[n]
            if waiting[gang.type] and packing.free[gang.gpus].all():
                packing.put(waiting[gang.type].pop(0), gang.gpus)
                placed += len(gang.gpus)
                if placed >= SETTINGS.fix_share * wanted:
                    break
        return placed > 0


class NodeNeighbourhoods:
    """Draws jobs that stand on nodes where much is paid above the duals."""

    def __init__(self, dual: SmoothedDual, seed: int) -> None:
        self._problem = dual.problem
        domains = dual.problem.domains
        self._lowest = np.flatnonzero(~domains.has_children)
        widths = (domains.stop - domains.start)[self._lowest]
        self._node = np.zeros(len(dual.problem.gpus), dtype=np.intp)
        for n, d in enumerate(self._lowest.tolist()):
            self._node[domains.start[d] : domains.stop[d]] = n
        self._parent = domains.parent[self._lowest]
        self._gpus = widths
        self._draw = np.random.default_rng(seed)

    def _inside(self, node: int) -> slice:
        """Return the GPUs of a node."""
        domains, d = self._problem.domains, int(self._lowest[node])
        return slice(int(domains.start[d]), int(domains.stop[d]))

    def draw(self, packing: GangPacking, duals: Floats, excess: Floats, size: int) -> list[int]:
        """Return jobs whose GPUs, with the idle ones of their nodes, are about so many.

        Parameters
        ----------
        duals
            Shape (GPUs,): what is paid for idle ones.
        excess
            Shape (jobs,): what each pays above its least.
        """
        paid = np.where(packing.free, duals, 0.0)
        owner = np.full(len(paid), -1, dtype=np.intp)
        for job, gpus in packing.placed.items():
            paid[gpus] += max(0.0, float(excess[job])) / len(gpus)
            owner[gpus] = job
        by_node = np.bincount(self._node, paid, len(self._lowest))
        by_node = np.log(by_node + by_node.mean() * 0.1 + 1e-300)
        order = np.argsort(-by_node - self._draw.gumbel(size=len(by_node)))
        if self._draw.random() < 0.5:  # neighbours first
            order = order[np.argsort(self._parent[order] != self._parent[order[0]], kind="stable")]
        chosen: dict[int, None] = {}
        count = 0
        for n in order.tolist():
            inside = self._inside(n)
            count += int(packing.free[inside].sum())
            for job in np.unique(owner[inside]).tolist():
                if job >= 0 and job not in chosen:
                    held = len(packing.placed[job])
                    if held <= self._gpus[n] or self._draw.random() < 0.5:
                        chosen[job] = None
                        count += held
            if count >= size:
                break
        return list(chosen)


class Improvement:
    """Makes a packing cheaper: annealing; then parts are placed anew, and annealed again.

    Parts differ from annealing in that gangs change domains, which single exchanges cannot do for
    all that has to give way.

    Parameters
    ----------
    prices
        Shape (GPUs,), in the unit of the dual.
    goal
        Cost at which it may end.
    """

    def __init__(
        self, packing: GangPacking, fixing: RelaxAndFix, prices: Floats, goal: float, seed: int
    ) -> None:
        self._packing, self._fixing, self._prices, self._goal = packing, fixing, prices, goal
        self._drawn = NodeNeighbourhoods(fixing.dual, seed)
        self._annealing = GangAnnealing(packing, seed, fixing.seconds_left)

    def run(
        self,
        excess_of: Callable[[GangPacking], Floats],
        is_done: Callable[[GangPacking], bool],
    ) -> None:
        """Go on for as long as it pays.

        Parameters
        ----------
        excess_of
            Returns what each job pays above its least.
        is_done
            Told of each better packing.
        """
        packing, moves = self._packing, SETTINGS.anneal_per_gpu * len(self._packing.free)
        self._annealing.run(moves, SETTINGS.anneal_hot, self._goal)
        failures = 0
        while failures < SETTINGS.fix_patience and (failures or not is_done(packing)):
            excess = excess_of(packing) / self._fixing.dual.unit
            drawn = self._drawn.draw(packing, self._prices, excess, SETTINGS.fix_gpus)
            failures = 0 if self._anew(drawn) else failures + 1

    def _anew(self, drawn: list[int]) -> bool:
        """Place some jobs anew, and anneal what is around; return whether that is cheaper."""
        packing, before = self._packing, dict(self._packing.placed)
        cost = sum(map(packing.cost, before))
        for job in drawn:
            packing.take(job)
        self._fixing.fill(packing, self._prices, SETTINGS.fix_noise)
        if packing.placed.keys() == before.keys():
            self._annealing.read()
            changed = [gpu for held in (before, packing.placed) for job in drawn
                       for gpu in held[job].tolist()]  # fmt: skip
            jobs = self._annealing.near(changed)
            self._annealing.run(SETTINGS.anneal_part, SETTINGS.anneal_part_hot, self._goal, jobs)
            if sum(map(packing.cost, before)) < cost * (1 - SETTINGS.better):
                return True
        for job in list(packing.placed):
            packing.take(job)
        for job, gpus in before.items():
            packing.put(job, gpus)
        self._annealing.read()
        return False
