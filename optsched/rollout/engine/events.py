"""Events to come: a heap ordered by time, kind and the order in which they were added."""

from __future__ import annotations

from heapq import heappop, heappush

from optsched.rollout.checkpoints.restorable import Restorable

FINISH, FAILURE, NODE, DOWNTIME, ARRIVAL = range(5)
"""Kinds, in the order in which those of equal time are delivered.

finish: of a phase, a job or a trial; node: rented ones become ready; downtime: nodes are closed or
opened; arrival: back in the queue after a failure or an outage. New jobs come after these, and
epochs last.
"""
OF_NODES = (NODE, DOWNTIME)


class EventQueue(Restorable):
    """A heap of events (time, kind, number, subject, version).

    Events of a subject (a job or a node) that were added before its version was last raised are
    stale: they are dropped when they come up.
    """

    changing = ("heap", "job_version", "node_version", "count")

    def __init__(self, jobs: int, nodes: int) -> None:
        self.heap: list[tuple[int, int, int, int, int]] = []
        self.job_version = [0] * jobs
        self.node_version = [0] * nodes
        self.count = 0

    def add(self, time: int, kind: int, subject: int) -> None:
        """Add an event of a subject, beside those that it has."""
        version = (self.node_version if kind in OF_NODES else self.job_version)[subject]
        self.count += 1
        heappush(self.heap, (time, kind, self.count, subject, version))

    def forget(self, job: int) -> None:
        """Make all events of a job stale."""
        self.job_version[job] += 1

    def forget_node(self, node: int) -> None:
        """Make all events of a node stale."""
        self.node_version[node] += 1

    def next_time(self) -> int | None:
        """Return the time of the next event that is not stale."""
        heap = self.heap
        while heap:
            time, kind, _, subject, version = heap[0]
            if version == (self.node_version if kind in OF_NODES else self.job_version)[subject]:
                return time
            heappop(heap)
        return None

    def pop_at(self, now: int) -> tuple[int, int] | None:
        """Remove the next event if it is due and return its kind and subject."""
        heap = self.heap
        while heap and heap[0][0] == now:
            _, kind, _, subject, version = heappop(heap)
            if version == (self.node_version if kind in OF_NODES else self.job_version)[subject]:
                return kind, subject
        return None
