"""Rounds of a placement that may move gangs, step by step: while nothing is lost, nobody moves.

Who waits, who runs and who is admitted is kept as in `rounds.sticky_rounds`. As long as no running
gang loses anything by its place, and those that start do not either, the first plan of
`Repacking` is the last one it looks at; it places only those that start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.placement_round import Batch
from optsched.rollout.policies.repacking.kept_nodes import KeptNodes
from optsched.rollout.policies.repacking.losses import Mover
from optsched.rollout.policies.repacking.plan import Plan
from optsched.rollout.policies.rounds.sticky_rounds import KeptJobs
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order, SteadyOrder
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.repacking.placement import Repacking
    from optsched.rollout.policies.rounds.running_jobs import Standing

    Gpus = tuple[int, ...]


class RepackingRounds(KeptJobs):
    """Who waits and who runs, and which of them lose by their places.

    Parameters
    ----------
    order
        Sorts all jobs, as `steady` does step by step.
    """

    def __init__(
        self,
        view: View,
        world: ClusterData,
        placement: Repacking,
        steady: SteadyOrder,
        order: Order,
        backfill: bool,
    ) -> None:
        self.nodes = KeptNodes(view.cluster)
        super().__init__(view, world, self.nodes, steady, backfill)
        self.placement, self.sorting = placement, order
        self.losses = placement.losses(view, world)
        self._slowed: set[int] = set()
        self._has_changed = sorted(self.running.gpus) != placement.settled_jobs
        self._see(view, self.running.gpus)

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        left = [job for job in (*view.ended, *view.failed) if self._runs(job)]
        self._has_changed |= bool(left)
        self._slowed.difference_update(left)
        super().note(view)

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        admitted, stops = self._admitted(view)
        if not (admitted or stops or self._has_changed):
            return NOTHING
        self._has_changed = False
        places = None
        if self.losses.beside == 1 and self._slowed.issubset(stops):
            places = self._beside(view, admitted, stops)
        if places is None:
            return self._anew(view, admitted, set(stops))
        self._go_on(places, stops)
        self.placement.settled_jobs = sorted([*self.running.gpus, *places])
        return Decision(place=places, stop=tuple(sorted(stops)))

    def _held_up(self, standing: Standing, view: View) -> list[int]:
        """Return who runs behind a gang that may not be overtaken: they are stopped."""
        behind = self.running.behind(standing, view.now_us)
        if behind is None:
            return []
        return [job for _, job in self.running.tail(standing, behind, view).standings]

    def _beside(
        self, view: View, admitted: list[int], stops: Sequence[int]
    ) -> dict[int, Gpus] | None:
        """Return places beside gangs that stay and lose nothing; None if anybody would."""
        gpus_of, nodes, losses = self.running.gpus, self.nodes, self.losses
        for job in stops:
            nodes.release(gpus_of[job])
        movers = self._movers(view, admitted)
        plan = Plan.within(movers, losses, nodes)
        for n in sorted(range(len(movers)), key=lambda n: -movers[n].width):
            plan.add(n)
            nodes.free -= movers[n].width
            if losses.alone(movers[n], plan.places[n]) != 1:
                for gpus in plan.places.values():
                    nodes.release(gpus)
                for job in stops:
                    nodes.take(gpus_of[job])
                return None
        for job in stops:
            self.running.remove(job)
        return {admitted[n]: gpus for n, gpus in plan.places.items()}

    def _anew(self, view: View, admitted: list[int], stops: Collection[int]) -> Decision:
        """Look at all jobs."""
        running = sorted(self.running.gpus)
        jobs = self._in_order(view, [*(set(running) - set(stops)), *admitted])
        held = [self.running.gpus.get(job, ()) for job in jobs]
        batch = Batch(view, self.world, jobs, held, self.world.usable(view.ready))
        decision = self.placement.place(batch).decision(batch, running)
        for job in decision.stop:
            self.nodes.release(self.running.remove(job))
        places = {job: tuple(gpus) for job, gpus in decision.place.items()}
        moves = [job for job in places if job in self.running.gpus]
        for job in moves:
            self.nodes.release(self.running.remove(job))
        for gpus in places.values():
            self.nodes.take(gpus)
        self._slowed.difference_update(moves)
        self._go_on(places, decision.stop, moves)
        self._see(view, places)
        return decision

    def _in_order(self, view: View, jobs: list[int]) -> list[int]:
        return self.sorting.sort(view, jobs)

    def _go_on(
        self, places: dict[int, Gpus], stops: Sequence[int], moves: Collection[int] = ()
    ) -> None:
        """Take note of a decision. Who moves may lose work, and is seen anew as who starts."""
        for job in places:
            if job not in moves:
                self.waiting.remove(job)
        self._slowed.difference_update(stops)
        self._started, self._stopped = places.copy(), list(stops)

    def _see(self, view: View, places: dict[int, Gpus]) -> None:
        """Take note of which jobs lose by their places."""
        for gang, (job, gpus) in zip(self._movers(view, list(places)), places.items(), strict=True):
            if self.losses.alone(gang, gpus) != 1:
                self._slowed.add(job)

    def _movers(self, view: View, jobs: list[int]) -> list[Mover]:
        left_s = np.nan_to_num(view.remaining_us(jobs) / US, nan=np.inf).tolist()
        models = [view.model(job) for job in jobs]
        return [
            Mover(view.demand(job), self.world.class_of(model), model, seconds, ())
            for job, model, seconds in zip(jobs, models, left_s, strict=True)
        ]

    def _runs(self, job: int) -> bool:
        return job in self.running.gpus or job in self._started
