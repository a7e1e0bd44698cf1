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
    # A place, what was free when it was known to be chosen, and what is taken and looked at by it.
    Known = tuple[Place, int, int, int]

NOBODY = -1
"""In the place of a job that has lost its GPUs."""


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
        self._known: dict[int, Known] = {}  # by job

    def release(self, job: int) -> None:
        """Let a job hold GPUs no more."""
        super().release(job)
        if self._known.pop(job, None) is not None and job in self._jobs:
            self._jobs[self._jobs.index(job)] = NOBODY

    def placed_anew(self, chosen: list[int]) -> dict[int, Gpus]:
        """Place jobs in their order, and return those that get other GPUs than they hold."""
        same = self._in_common(chosen)
        if same == len(chosen) == len(self._jobs):
            return {}
        moved: dict[int, Gpus] = {}
        active, held, known, free_at = self.active, self.held, self._known, self._free_at
        choose, again = self.places.begin(), self.places.again
        del free_at[same + 1 :]
        free = free_at[same]
        for job in chosen[same:]:
            entry = known.get(job)
            if entry is None:
                place = choose(active[job], free)
            else:
                last, then, taken, looked_at = entry
                changed = free ^ then
                if not changed & looked_at:  # what was free then stays the one it is compared with
                    free ^= taken
                    free_at.append(free)
                    continue
                place = again(active[job], last, free, changed)
            if place.gpus != held.get(job):
                moved[job] = place.gpus
            known[job] = place, free, place.taken, place.looked_at
            free ^= place.taken
            free_at.append(free)
        self._jobs = chosen
        return moved

    def _in_common(self, chosen: list[int]) -> int:
        """Return how many of the first jobs come as the last time, and hold what they got then."""
        differing = map(ne, chosen, self._jobs)
        return next(compress(count(), differing), min(len(chosen), len(self._jobs)))
