"""What places waiting gangs accept, as they relax; the engine is told when that changes."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.free_nodes import MOST_STAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.policies.free_nodes import FreeNodes

    Place = tuple[int, int]


class Relaxing(Restorable):
    """Gangs that accept a worse place after each step of waiting.

    Parameters
    ----------
    step_us
        How long a step is; 0: any place will do at once, and nothing is told. Where gangs accept
        one node more at each step, it is of those that need one node; n nodes take n times as long.

    Attributes
    ----------
    before_us
        How long gangs wait before the first step begins.
    since
        When the wait of each waiting job began.
    due
        A heap of (when, job, stage): what is to be told next.
    """

    changing: ClassVar[tuple[str, ...]] = ("since", "due")

    def __init__(self, nodes: FreeNodes, step_us: int) -> None:
        self.nodes, self.step_us, self.before_us = nodes, step_us, 0
        self.since: dict[int, int] = {}
        self.due: list[tuple[int, int, int]] = []

    def enter(self, job: int, since: int) -> None:
        """Take note of a job that waits."""
        if self.step_us:
            self.since[job] = since
            heappush(self.due, (since, job, 0))

    def leave(self, job: int) -> None:
        """Take note of a job that waits no more."""
        self.since.pop(job, None)

    def reached_us(self, stage: int, size: int) -> int:
        """Return after how long a gang is at a stage."""
        return self.before_us + stage * self._step(size) if stage else 0

    def stage(self, waited_us: int, size: int) -> int:
        """Return the stage of a gang that has waited for so long."""
        return max(0, waited_us - self.before_us) // self._step(size)

    def _step(self, size: int) -> int:
        return self.step_us if self.nodes.doubles else self.step_us * self.nodes.least_nodes(size)

    def news(self, now: int, demand: Callable[[int], int]) -> dict[int, Place]:
        """Return what waiting jobs accept from now on, of those for which that has changed."""
        told: dict[int, Place] = {}
        while self.due and self.due[0][0] <= now:
            moment, job, stage = heappop(self.due)
            since, size = self.since.get(job), demand(job)
            if since is None or since + self.reached_us(stage, size) != moment:
                continue
            place = self.nodes.worst_place(size, stage)
            if not stage or place != self.nodes.worst_place(size, stage - 1):
                told[job] = place
            if stage < MOST_STAGES and place != self.nodes.worst_place(size, MOST_STAGES):
                heappush(self.due, (since + self.reached_us(stage + 1, size), job, stage + 1))
        return told


class RelaxingByTries(Relaxing):
    """Gangs that accept a worse place after tries for which GPUs were enough, but no place.

    Attributes
    ----------
    tries
        By waiting job how many such tries there were.
    """

    changing: ClassVar[tuple[str, ...]] = (*Relaxing.changing, "tries")

    def __init__(self, nodes: FreeNodes, tries_per_stage: int) -> None:
        super().__init__(nodes, tries_per_stage)
        self.tries: dict[int, int] = {}

    def leave(self, job: int) -> None:
        """Take note of a job that waits no more."""
        super().leave(job)
        self.tries.pop(job, None)

    def stage_of(self, job: int, size: int) -> int:
        """Return the stage of a waiting gang."""
        return self.tries.get(job, 0) // self._step(size)

    def count(self, job: int, size: int, now: int) -> None:
        """Take note of a try for which there was no place."""
        before = self.stage_of(job, size)
        self.tries[job] = self.tries.get(job, 0) + 1
        if (stage := self.stage_of(job, size)) > before and stage <= MOST_STAGES:
            heappush(self.due, (now, job, stage))

    def news(self, now: int, demand: Callable[[int], int]) -> dict[int, Place]:
        """Return what waiting jobs accept from now on, of those for which that has changed."""
        told: dict[int, Place] = {}
        for _, job, stage in sorted(self.due):
            if job in self.since and stage == min(MOST_STAGES, self.stage_of(job, demand(job))):
                told[job] = self.nodes.worst_place(demand(job), stage)
        self.due.clear()
        return told
