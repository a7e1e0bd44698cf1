"""Farkas rays of infeasible nodes (Farkas, J. für die reine und angewandte Mathematik 124, 1902).

Where the relaxation breaks a rule at its penalty, either no point of the node keeps all rules, of
which duals for groups without cost are the proof: many times over (a ray of the dual program), they
prove any bound. Or the penalty was too low, and the node is solved without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.exact.relaxation import Relaxation
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.eaco.exact.lp_solution import Path, Point

    Clock = Callable[[], float | None]


class PenaltyFreeRelaxation:
    """Solves nodes of a relaxation without penalties.

    Parameters
    ----------
    relaxation
        The one with penalties; columns and cuts are shared.
    """

    def __init__(self, relaxation: Relaxation, seed: int) -> None:
        self._priced, self._seed = relaxation, seed
        self._free: Relaxation | None = None

    def solve(self, point: Point, path: Path, enough: float, clock: Clock) -> Point:
        """Return a point of a node that breaks no rule, or one that proves enough.

        Parameters
        ----------
        point
            Optimum of the relaxation at the node.
        enough
            What there is to prove at most.
        """
        if point.missed <= SETTINGS.missed_count or point.value >= enough:
            return point
        free = self._free_relaxation()
        ray = free.solve(path, clock)
        if ray is None:
            return point
        if ray.value > SETTINGS.least_ray:
            target = min(enough, self._priced.penalty + abs(point.value))
            times = SETTINGS.ray_margin * (target - point.value) / ray.value
            proof = point.proof.plus(ray.proof, times)
            point.proof, point.value = self._priced.proven(path, proof)
            return point
        self._priced.add(ray.columns)
        return self._without_misses(path, clock) or point

    def _without_misses(self, path: Path, clock: Clock) -> Point | None:
        self._priced.master.allow_misses(0.0)
        try:
            return self._priced.solve(path, clock)
        finally:
            self._priced.master.allow_misses(np.inf)

    def _free_relaxation(self) -> Relaxation:
        """Return the relaxation in which nothing costs but what is missed, with all cuts."""
        if self._free is None:
            frame, pool = self._priced.frame, self._priced.pool
            nothing = np.zeros(len(frame.gpus))
            waiting = np.where(np.isinf(frame.waiting), np.inf, 0.0)
            frame = frame._replace(waiting=waiting, node_cost=nothing, wake_cost=nothing)
            pool = pool._replace(cost=np.zeros(len(pool.cost)))
            self._free = Relaxation(frame, pool, 1.0, self._seed)
        self._free.add_cuts(self._priced.capacity)
        return self._free
