"""What places waiting gangs accept, as they relax; the engine is told when that changes."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.rollout.policies.free_nodes import FreeNodes

    Place = tuple[int, int]


class Relaxing(Restorable):
    """Gangs that accept a worse place after each step of waiting.

    Parameters
    ----------
    step_us
        How long a step is; 0: any place will do at once, and nothing is told.

    Attributes
    ----------
    before_us
        How long gangs wait before the first step begins.
    since
        When the wait of each waiting job began.
    due
        A heap of (when, job, stage): what is to be told next.
    """

    changing = ("since", "due")

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

    def reached_us(self, stage: int) -> int:
        """Return after how long a gang is at a stage."""
        return self.before_us + stage * self.step_us if stage else 0

    def stage(self, waited_us: int) -> int:
        """Return the stage of a gang that has waited for so long."""
        return max(0, waited_us - self.before_us) // self.step_us

    def news(self, now: int, demand: Callable[[int], int]) -> dict[int, Place]:
        """Return what waiting jobs accept from now on, of those for which that has changed."""
        told: dict[int, Place] = {}
        while self.due and self.due[0][0] <= now:
            moment, job, stage = heappop(self.due)
            since = self.since.get(job)
            if since is None or since + self.reached_us(stage) != moment:
                continue
            told[job] = self.nodes.worst_place(demand(job), stage)
            if self.nodes.worst_place(demand(job), stage + 1) != told[job]:
                heappush(self.due, (since + self.reached_us(stage + 1), job, stage + 1))
        return told
