"""Rounds in which every admitted job is placed again, from the first one that stands elsewhere on.

A rule places jobs one after the other, and each gets what depends on those before it alone. So
jobs that come in the same order as in the last round, up to some point, get the same GPUs again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.placement_round import GangJob

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.places import Pick, Places

    Gpus = tuple[int, ...]


class FreshRounds:
    """What the last round placed, in a cluster without quotas whose nodes are ready all the time.

    Parameters
    ----------
    by_class
        Whether jobs choose by class, in the order of the profile.
    """

    def __init__(
        self,
        view: View,
        world: ClusterData,
        places: Places,
        order: Order,
        backfill: bool,
        by_class: bool,
    ) -> None:
        self.world, self.places, self.order, self.backfill = world, places, order, backfill
        self.rank = {name: n for n, name in enumerate(world.classes)} if by_class else {}
        self.active: dict[int, GangJob] = {}
        self.held: dict[int, Gpus] = {}
        self.sequence: list[tuple[int, Gpus | None]] = []  # None: no place was found
        self.joined: set[int] = set()  # since the last round: they hold no GPUs
        self._join(view, [*view.running.tolist(), *view.pending.tolist()])
        self.held.update((job, view.gpus_of(job)) for job in view.running.tolist())

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        for job in (*view.ended, *view.failed):
            self.active.pop(job, None)
            self.held.pop(job, None)
        self._join(view, list(view.arrived))

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        chosen = self._chosen(view)
        same = 0
        for job, (before, _) in zip(chosen, self.sequence, strict=False):
            if job != before:
                break
            same += 1
        joined, self.joined = self.joined, set()
        places = {job: gpus for job, gpus in self.sequence[:same] if job in joined and gpus}
        if same == len(chosen) == len(self.sequence) and not places:
            return NOTHING
        for _, gpus in self.sequence[same:]:
            if gpus is not None:
                self.places.release(gpus)
        del self.sequence[same:]
        pick = self.places.rule()
        for job in chosen[same:]:
            gpus = self._picked(self.active[job], pick)
            self.sequence.append((job, gpus))
            if gpus is not None and gpus != self.held.get(job):
                places[job] = gpus
        kept = {job for job, gpus in self.sequence if gpus is not None}
        stops = sorted(job for job in self.held if job not in kept)
        for job in stops:
            del self.held[job]
        self.held.update(places)
        return Decision(place=places, stop=tuple(stops))

    def _picked(self, gang: GangJob, pick: Pick) -> Gpus | None:
        if gang.gpus > self.places.free:
            return None
        gpus = pick(gang)
        if gpus is not None:
            self.places.take(gpus)
        return gpus

    def _chosen(self, view: View) -> list[int]:
        """Return the jobs that are admitted, the one that chooses first first."""
        active, room, chosen = self.active, len(self.world.node_of), []
        for job in self.order.sort(view, list(active)):
            size = active[job].gpus
            if size <= room:
                room -= size
                chosen.append(job)
            elif not self.backfill:
                break
        if self.rank:
            chosen.sort(key=lambda job: self.rank[active[job].application_class])
        return chosen

    def _join(self, view: View, jobs: list[int]) -> None:
        self.joined.update(jobs)
        for job in jobs:
            model = view.model(job)
            self.active[job] = GangJob(view.demand(job), self.world.class_of(model), model)
