"""Rounds in which every job may move: which jobs there are, and who holds what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.placement_round import GangJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableSequence

    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData

    Gpus = tuple[int, ...]


class ActiveJobs(ABC):
    """Jobs that run or wait in a cluster without quotas whose nodes are ready all the time.

    Parameters
    ----------
    by_class
        Whether there is a queue for each class, in the order of the profile; else one for all.
    queue
        What makes an empty queue.
    """

    def __init__(
        self,
        view: View,
        world: ClusterData,
        order: Order,
        backfill: bool,
        by_class: bool,
        queue: Callable[[], MutableSequence[int]] = list,
    ) -> None:
        self.world, self.order, self.backfill = world, order, backfill
        self._rank = {name: n for n, name in enumerate(world.classes)} if by_class else {}
        self._rank_of: dict[int, int] = {}
        self._queues = [queue() for _ in self._rank or (0,)]  # in order of submission
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
        self._join(view, view.arrived)

    def release(self, job: int) -> None:
        """Let a job hold GPUs no more."""
        self.held.pop(job, None)

    def decide(self, view: View) -> Decision:
        """Place the admitted jobs; running ones that are not among them are stopped."""
        chosen, moved = self._placed(view)
        held = self.held
        held.update(moved)
        stops: list[int] = []
        if len(held) > len(chosen):
            stops = sorted(held.keys() - chosen)
            for job in stops:
                self.release(job)
        return Decision(place=moved, stop=tuple(stops)) if moved or stops else NOTHING

    @abstractmethod
    def _placed(self, view: View) -> tuple[list[int] | Integers, dict[int, Gpus]]:
        """Return the jobs that are admitted, and what those get that do not hold it already."""

    def _join(self, view: View, jobs: Iterable[int]) -> None:
        for job in jobs:
            if job in self.active:
                self._leave(job)
            model = view.model(job)
            self._enter(job, GangJob(view.demand(job), self.world.class_of(model), model))

    def _enter(self, job: int, gang: GangJob) -> None:
        self.active[job] = gang
        self.wanted += gang.gpus
        self._rank_of[job] = self._rank.get(gang.application_class, 0)
        insort(self._queues[self._rank_of[job]], job)

    def _leave(self, job: int) -> None:
        self.wanted -= self.active.pop(job).gpus
        queue = self._queues[self._rank_of.pop(job)]
        del queue[bisect_left(queue, job)]
