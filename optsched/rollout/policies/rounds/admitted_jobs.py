"""Rounds in which every job may move: who is admitted, in which order, and who holds what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from itertools import chain
from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.job_orders import Fifo
from optsched.rollout.policies.placement_round import GangJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData

    Gpus = tuple[int, ...]


class AdmittedJobs(ABC):
    """Jobs in a cluster without quotas whose nodes are ready all the time.

    Parameters
    ----------
    by_class
        Whether jobs choose by class, in the order of the profile.
    """

    def __init__(
        self, view: View, world: ClusterData, order: Order, backfill: bool, by_class: bool
    ) -> None:
        self.world, self.order, self.backfill = world, order, backfill
        self._rank = {name: n for n, name in enumerate(world.classes)} if by_class else {}
        self._rank_of: dict[int, int] = {}
        self._queues: list[list[int]] = [[] for _ in self._rank or (0,)]  # of FIFO, by class
        self.active: dict[int, GangJob] = {}
        self.wanted = 0  # GPUs of all of them
        self._join(view, [*view.running.tolist(), *view.pending.tolist()])
        self.held: dict[int, Gpus] = {job: view.gpus_of(job) for job in view.running.tolist()}

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        for job in (*view.ended, *view.failed):
            if job in self.active:
                self._leave(job)
            self.release(job)
        self._join(view, list(view.arrived))

    def release(self, job: int) -> None:
        """Let a job hold GPUs no more."""
        self.held.pop(job, None)

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        chosen, held = self._chosen(view), self.held
        moved = self.placed_anew(chosen)
        held.update(moved)
        stops: list[int] = []
        if len(held) > len(chosen):
            stops = sorted(held.keys() - chosen)
            for job in stops:
                self.release(job)
        return Decision(place=moved, stop=tuple(stops)) if moved or stops else NOTHING

    @abstractmethod
    def placed_anew(self, chosen: list[int]) -> dict[int, Gpus]:
        """Place jobs in their order, and return those that get other GPUs than they hold."""

    def _chosen(self, view: View) -> list[int]:
        """Return the jobs that are admitted, the one that chooses first first."""
        room = len(self.world.node_of)
        if self.wanted <= room and type(self.order) is Fifo:
            return list(chain.from_iterable(self._queues))
        chosen = self.order.sort(view, self._in_order())
        if self.wanted > room:
            active = self.active
            chosen = fitting(chosen, lambda job: active[job].gpus, room, self.backfill)
        if self._rank:
            chosen.sort(key=self._rank_of.__getitem__)
        return chosen

    def _join(self, view: View, jobs: list[int]) -> None:
        for job in jobs:
            if job in self.active:
                self._leave(job)
            model = view.model(job)
            self.active[job] = gang = GangJob(view.demand(job), self.world.class_of(model), model)
            self.wanted += gang.gpus
            self._rank_of[job] = self._rank.get(gang.application_class, 0)
            insort(self._queues[self._rank_of[job]], job)

    def _in_order(self) -> list[int]:
        """Return all jobs; ascending, as orders begin with them, if there is one class."""
        return self._queues[0] if len(self._queues) == 1 else list(self.active)

    def _leave(self, job: int) -> None:
        self.wanted -= self.active.pop(job).gpus
        queue = self._queues[self._rank_of.pop(job)]
        del queue[bisect_left(queue, job)]


def fitting(
    jobs: Iterable[int], width: Callable[[int], int], room: int, backfill: bool
) -> list[int]:
    """Return the first jobs of an order whose gangs fit together on so many GPUs.

    Parameters
    ----------
    backfill
        Whether jobs that fit may overtake a gang that does not.
    """
    found = []
    for job in jobs:
        size = width(job)
        if size <= room:
            room -= size
            found.append(job)
            if not room:
                break
        elif not backfill:
            break
    return found
