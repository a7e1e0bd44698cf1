"""Rounds in which every admitted job is placed again, where what it depends on has changed.

A rule places jobs one after the other, and each gets what depends on those before it alone. So
jobs that come in the same order as in the last round, up to some point, get the same GPUs again.
From there on each job's place is remembered, and what was free when it was chosen. If what is free
now differs from that only where it does not matter, the rule would choose the place again.
"""

from __future__ import annotations

from itertools import compress, count
from operator import ne
from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.admitted_jobs import AdmittedJobs

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.policies.rounds.moving_places import MovingPlaces, Place

    Gpus = tuple[int, ...]


class FreshRounds(AdmittedJobs):
    """Jobs that are placed by a rule that chooses the same again among the same GPUs."""

    def __init__(
        self,
        view: View,
        world: ClusterData,
        places: MovingPlaces,
        order: Order,
        backfill: bool,
        by_class: bool,
    ) -> None:
        super().__init__(view, world, order, backfill, by_class)
        self.places = places
        self._jobs: list[int] = []  # that were placed in the last round, in their order
        self._free_at = [places.everything]  # when each of them was placed, and at the end
        self._placed: dict[int, Place] = {}  # by job
        self._seen: dict[int, int] = {}  # by job, what was free when its place was chosen
        self._lost: set[int] = set()  # jobs that have lost their places since the last round

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        super().note(view)
        for job in (*view.ended, *view.failed):
            if self._placed.pop(job, None) is not None:
                del self._seen[job]
                self._lost.add(job)

    def placed_anew(self, chosen: list[int]) -> dict[int, Gpus]:
        """Place jobs in their order, and return those that get other GPUs than they hold."""
        same = self._in_common(chosen)
        if same == len(chosen) == len(self._jobs):
            return {}
        free_at, free = self._free_at[:same], self._free_at[same]
        moved: dict[int, Gpus] = {}
        active, held, placed, seen = self.active, self.held, self._placed, self._seen
        choose, again = self.places.begin(), self.places.again
        for job in chosen[same:]:
            last = placed.get(job) if job in held else None
            if last is None:
                place = choose(active[job], free)
            else:
                place, changed = last, free ^ seen[job]
                if changed & last.looked_at:
                    place = again(active[job], last, free, changed)
            if place is not last:
                placed[job] = place
                if place.gpus != held.get(job):
                    moved[job] = place.gpus
            seen[job] = free
            free_at.append(free)
            free ^= place.taken
        self._jobs, self._free_at = chosen, [*free_at, free]
        return moved

    def _in_common(self, chosen: list[int]) -> int:
        """Return how many of the first jobs come as the last time, and hold what they got then."""
        differing = map(ne, chosen, self._jobs)
        same = next(compress(count(), differing), min(len(chosen), len(self._jobs)))
        lost, self._lost = self._lost.intersection(chosen[:same]), set()
        return min(map(chosen.index, lost), default=same)
