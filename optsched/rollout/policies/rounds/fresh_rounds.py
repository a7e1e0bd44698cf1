"""Rounds in which every admitted job is placed again, where what it depends on has changed.

A rule places jobs one after the other, and each gets what depends on those before it alone. So
jobs that come in the same order as in the last round, up to some point, get the same GPUs again.
From there on the rounds are gone through side by side, with the GPUs that are free in one of them
only; a job for which these do not matter gets the same GPUs again without a look at the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.placement_round import GangJob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.moving_places import MovingPlaces, Place

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
        places: MovingPlaces,
        order: Order,
        backfill: bool,
        by_class: bool,
    ) -> None:
        self.world, self.places, self.order, self.backfill = world, places, order, backfill
        self.rank = {name: n for n, name in enumerate(world.classes)} if by_class else {}
        self.active: dict[int, GangJob] = {}
        self.wanted = 0  # GPUs of all of them
        self.held: dict[int, Gpus] = {}
        self.sequence: list[tuple[int, Place | None]] = []  # None: no place was found
        self.joined: set[int] = set()  # since the last round: they hold no GPUs
        self._join(view, [*view.running.tolist(), *view.pending.tolist()])
        self.held.update((job, view.gpus_of(job)) for job in view.running.tolist())
        self._strangers = list(self.held)  # who hold GPUs that no round here has given them

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        for job in (*view.ended, *view.failed):
            gang = self.active.pop(job, None)
            if gang is not None:
                self.wanted -= gang.gpus
            self.held.pop(job, None)
        self._join(view, list(view.arrived))

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        chosen = self._chosen(view)
        same = 0
        for job, (other, _) in zip(chosen, self.sequence, strict=False):
            if job != other:
                break
            same += 1
        joined, self.joined = self.joined, set()
        places = {}
        if joined:
            begin = self.sequence[:same]
            places = {job: at.gpus for job, at in begin if at is not None and job in joined}
        if same == len(chosen) == len(self.sequence) and not places:
            return NOTHING
        before = self.sequence[same:]
        after = self._placed(chosen[same:], before)
        self.sequence[same:] = after
        held, kept = self.held, set()
        for job, at in after:
            if at is not None:
                kept.add(job)
                if at.gpus != held.get(job):
                    places[job] = at.gpus
        left, self._strangers = [*(job for job, _ in before), *self._strangers], []
        stops = sorted(job for job in left if job in held and job not in kept)
        for job in stops:
            del held[job]
        held.update(places)
        return Decision(place=places, stop=tuple(stops))

    def _placed(
        self, chosen: list[int], before: list[tuple[int, Place | None]]
    ) -> list[tuple[int, Place | None]]:
        """Return the places of jobs in their order, beside which the last round had others."""
        places, active = self.places, self.active
        release, take, stays = places.release, places.take, places.stays
        for _, place in before:
            if place is not None:
                release(place)
        choose = places.begin()
        left, gone_through, after = set(chosen), 0, []
        changed: dict[int, int] = {}
        for job in chosen:
            last: Place | None = None
            while gone_through < len(before):
                other, last = before[gone_through]
                if other == job:
                    gone_through += 1
                    break
                if other in left:
                    last = None
                    break
                _turn(changed, last)
                gone_through, last = gone_through + 1, None
            left.remove(job)
            place, gang = last, active[job]
            if last is None or (changed and not stays(gang, last, changed)):
                place = choose(gang) if gang.gpus <= places.free else None
                if place is None or last is None or place.masks != last.masks:
                    _turn(changed, last)
                    _turn(changed, place)
            if place is not None:
                take(place)
            after.append((job, place))
        return after

    def _chosen(self, view: View) -> list[int]:
        """Return the jobs that are admitted, the one that chooses first first."""
        active, room = self.active, len(self.world.node_of)
        chosen = self.order.sort(view, list(active))
        if self.wanted > room:
            chosen = self._admitted(chosen, room)
        if self.rank:
            chosen.sort(key=self._class_of)
        return chosen

    def _admitted(self, jobs: Iterable[int], room: int) -> list[int]:
        active, admitted = self.active, []
        for job in jobs:
            size = active[job].gpus
            if size <= room:
                room -= size
                admitted.append(job)
                if not room:
                    break
            elif not self.backfill:
                break
        return admitted

    def _class_of(self, job: int) -> int:
        return self.rank[self.active[job].application_class]

    def _join(self, view: View, jobs: list[int]) -> None:
        self.joined.update(jobs)
        for job in jobs:
            model = view.model(job)
            gang = GangJob(view.demand(job), self.world.class_of(model), model)
            self.wanted += gang.gpus - (self.active[job].gpus if job in self.active else 0)
            self.active[job] = gang


def _turn(changed: dict[int, int], place: Place | None) -> None:
    """Note that one round has taken a place where the other one is gone through to."""
    if place is None:
        return
    for node, mask in place.masks:
        change = changed.pop(node, 0) ^ mask
        if change:
            changed[node] = change
