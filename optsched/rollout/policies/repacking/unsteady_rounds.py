"""Rounds of a placement that may move gangs, of an order that is asked for anew at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.job_orders import Fifo
from optsched.rollout.policies.repacking.kept_rounds import RepackingRounds
from optsched.rollout.policies.rounds.admitted_jobs import fitting

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.repacking.placement import Repacking


class UnsteadyRounds(RepackingRounds):
    """As `RepackingRounds`, where jobs may overtake each other while they wait.

    Who waits and who runs is kept in the order of submission. An order that changes by being asked
    is asked about all of them once at each call; another one only if it matters.
    """

    def __init__(
        self, view: View, world: ClusterData, placement: Repacking, order: Order, backfill: bool
    ) -> None:
        super().__init__(view, world, placement, Fifo(), order, backfill)
        self._is_changed_by_asking = bool(order.changing)
        self._sorted: list[int] | None = None  # all jobs, at this call

    def _admitted(self, view: View) -> tuple[list[int], list[int]]:
        running, waiting = self.running.gpus, self.waiting.jobs
        room = self.nodes.free - sum(view.demand(job) for job in waiting)
        self._sorted = None
        if room >= 0 and len(waiting) < 2 and not self._is_changed_by_asking:
            return list(waiting), []
        jobs = self._all_in_order(view)
        if room >= 0:
            return [job for job in jobs if job in waiting], []
        chosen = fitting(jobs, view.demand, self.nodes.cluster.gpus, self.backfill)
        stops = running.keys() - set(chosen)
        return [job for job in chosen if job in waiting], list(stops)

    def _in_order(self, view: View, jobs: list[int]) -> list[int]:
        chosen = set(jobs)
        return [job for job in self._all_in_order(view) if job in chosen]

    def _all_in_order(self, view: View) -> list[int]:
        if self._sorted is None:
            self._sorted = self.sorting.sort(view, [*self.running.gpus, *self.waiting.jobs])
        return self._sorted
