"""Better packings: annealing, nodes filled anew, and jobs placed anew by relax and fix.

Large neighbourhood search (Shaw, CP 1998): the nodes where most is paid above the duals are filled
anew by an integer program; and where that finds nothing, jobs of some nodes are taken away and
placed anew as the dual suggests. What changed is annealed with what is around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.dual_ascent.annealing import GangAnnealing
from optsched.pal.dual_ascent.node_filling import NodeFilling
from optsched.pal.dual_ascent.node_part import NodePart
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.dual_ascent.relax_and_fix import RelaxAndFix
    from optsched.pal.dual_ascent.smoothed_dual import SmoothedDual
    from optsched.pal.exact.rounding import GangPacking, Placed


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

    def nodes(self, packing: GangPacking, duals: Floats, excess: Floats, size: int) -> list[int]:
        """Return nodes with about so many GPUs, as domains; see `jobs`."""
        order = self._order(packing, duals, excess, self._owner(packing))
        chosen = order[: 1 + np.searchsorted(np.cumsum(self._gpus[order]), size)]
        return sorted(self._lowest[chosen].tolist())

    def jobs(self, packing: GangPacking, duals: Floats, excess: Floats, size: int) -> list[int]:
        """Return jobs whose GPUs, with the idle ones of their nodes, are about so many.

        Parameters
        ----------
        duals
            Shape (GPUs,): what is paid for idle ones.
        excess
            Shape (jobs,): what each pays above its least.
        """
        owner = self._owner(packing)
        order = self._order(packing, duals, excess, owner)
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

    def _owner(self, packing: GangPacking) -> Indices:
        """Return the job on each GPU, or -1."""
        owner = np.full(len(packing.free), -1, dtype=np.intp)
        for job, gpus in packing.placed.items():
            owner[gpus] = job
        return owner

    def _order(
        self, packing: GangPacking, duals: Floats, excess: Floats, owner: Indices
    ) -> Indices:
        """Return the nodes, drawn by what is paid there."""
        paid = np.where(packing.free, duals, 0.0)
        held = owner >= 0
        shares = np.array([max(0.0, float(excess[job])) / len(packing.placed[job])
                           for job in owner[held].tolist()])  # fmt: skip
        paid[held] += shares
        by_node = np.bincount(self._node, paid, len(self._lowest))
        by_node = np.log(by_node + by_node.mean() * 0.1 + 1e-300)
        order = np.argsort(-by_node - self._draw.gumbel(size=len(by_node)))
        if self._draw.random() < 0.5:  # neighbours first
            order = order[np.argsort(self._parent[order] != self._parent[order[0]], kind="stable")]
        return order


class Improvement:
    """Makes a packing cheaper.

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
        self._draw = np.random.default_rng(seed)
        domains = packing.problem.domains
        width = (domains.stop - domains.start)[~domains.has_children]
        self._can_fill = int(width.max()) <= SETTINGS.most_node_gpus

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
            if self._fixing.seconds_left() == 0:
                break
            excess = excess_of(packing) / self._fixing.dual.unit
            if self._can_fill and failures % 2 == 0:
                better = self._filled(excess, is_new=not failures)
            else:
                better = self._fixed(excess)
            failures = 0 if better else failures + 1

    def _filled(self, excess: Floats, *, is_new: bool) -> bool:
        """Fill some nodes anew; return whether that is cheaper."""
        packing, size = self._packing, SETTINGS.filling_gpus
        lowest = self._drawn.nodes(packing, self._prices, excess, size)
        part = NodePart(packing, lowest, None if is_new else self._shift)
        within, total = (sum(map(packing.cost, jobs)) for jobs in (part.within, packing.placed))
        if not part.within:
            return False
        target = self._goal - (total - within)
        cutoff = within * (1 - SETTINGS.better)
        if is_new:
            cutoff = min(cutoff, target + SETTINGS.filling_slack * total)
        missing = SETTINGS.filling_missing * max(map(packing.cost, part.within))
        filling = NodeFilling(
            part, missing, int(self._draw.integers(2**31)), self._fixing.seconds_left
        )
        placed = filling.run(target, cutoff)
        return placed is not None and self._kept(placed)

    def _shift(self) -> int:
        return int(self._draw.integers(-SETTINGS.filling_shift, SETTINGS.filling_shift + 1))

    def _fixed(self, excess: Floats) -> bool:
        """Place some jobs anew by relax and fix; return whether that is cheaper."""
        packing, before = self._packing, dict(self._packing.placed)
        drawn = self._drawn.jobs(packing, self._prices, excess, SETTINGS.fix_gpus)
        for job in drawn:
            packing.take(job)
        self._fixing.fill(packing, self._prices, SETTINGS.fix_noise)
        after = {job: packing.placed.get(job) for job in drawn}
        self._put(before)
        placed = {job: gpus for job, gpus in after.items() if gpus is not None}
        return len(placed) == len(after) and self._kept(placed)

    def _kept(self, placed: Placed) -> bool:
        """Put some jobs elsewhere, and anneal what is around; return whether that is cheaper."""
        packing, before = self._packing, dict(self._packing.placed)
        cost = sum(map(packing.cost, before))
        self._put(before | placed)
        self._annealing.read()
        changed = [gpu for held in (before, packing.placed) for job in placed
                   for gpu in held[job].tolist()]  # fmt: skip
        jobs = self._annealing.near(changed)
        self._annealing.run(SETTINGS.anneal_part, SETTINGS.anneal_part_hot, self._goal, jobs)
        if sum(map(packing.cost, before)) < cost * (1 - SETTINGS.better):
            return True
        self._put(before)
        self._annealing.read()
        return False

    def _put(self, placed: Placed) -> None:
        """Place jobs as they are to be, and take the others away."""
        for job in list(self._packing.placed):
            self._packing.take(job)
        for job, gpus in placed.items():
            self._packing.put(job, gpus)
