"""Events to come: a heap ordered by time, kind and the order in which they were added."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Iterable

FINISH, FAILURE, NODE, DOWNTIME, ARRIVAL = range(5)
"""Kinds, in the order in which those of equal time are delivered.

finish: of a phase, a job or a trial; node: rented ones become ready; downtime: nodes are closed or
opened; arrival: back in the queue after a failure or an outage. New jobs come after these, and
epochs last.
"""
OF_NODES = (NODE, DOWNTIME)

Event = tuple[int, int, int, int]


class EventQueue(Restorable):
    """Events (time, kind, number, subject), numbered as they are added.

    A job has one event at most, and a job that moves has a new one each time, mostly about as late
    as the one before. So the heap has one entry of a job that is no later than its event: which of
    its events that is shows when the entry comes up. Events of a node that were added before they
    were last forgotten are dropped when they come up.

    Attributes
    ----------
    next_of
        By job its event.
    entered
        By job its entry in the heap; other ones of it are dropped when they come up.
    node_since
        By node the number of the last event before its events were last forgotten.
    """

    changing = ("heap", "next_of", "entered", "node_since", "count")

    def __init__(self, nodes: int) -> None:
        self.heap: list[Event] = []
        self.next_of: dict[int, Event] = {}
        self.entered: dict[int, Event] = {}
        self.node_since = [0] * nodes
        self.count = 0

    def set_all(self, times: Iterable[tuple[int, int, int]]) -> None:
        """Give each of some jobs one event in place of what it has: (time, kind, job)."""
        next_of, entered, count = self.next_of, self.entered, self.count
        for time, kind, job in times:
            count += 1
            next_of[job] = event = (time, kind, count, job)
            entry = entered.get(job)
            if entry is None or event < entry:
                entered[job] = event
                heappush(self.heap, event)
        self.count = count

    def renew(self, jobs: Iterable[int]) -> None:
        """Give each of some jobs a new event in place of the one it has, at the same time."""
        next_of, count = self.next_of, self.count
        for job in jobs:
            count += 1
            time, kind, _, _ = next_of[job]
            next_of[job] = (time, kind, count, job)  # no sooner than its entry, which stays
        self.count = count

    def add_of_node(self, time: int, kind: int, node: int) -> None:
        """Add an event of a node, beside those that it has."""
        self.count += 1
        heappush(self.heap, (time, kind, self.count, node))

    def forget(self, job: int) -> None:
        """Forget the event of a job."""
        self.next_of.pop(job, None)

    def forget_node(self, node: int) -> None:
        """Forget all events of a node."""
        self.node_since[node] = self.count

    def next_time(self) -> int | None:
        """Return the time of the next event."""
        event = self._first()
        return None if event is None else event[0]

    def pop_at(self, now: int) -> tuple[int, int] | None:
        """Remove the next event if it is due and return its kind and subject."""
        if not self.heap or self.heap[0][0] > now:
            return None
        event = self._first()
        if event is None or event[0] != now:
            return None
        heappop(self.heap)
        _, kind, _, subject = event
        if kind not in OF_NODES:
            del self.next_of[subject], self.entered[subject]
        return kind, subject

    def _first(self) -> Event | None:
        """Return the next event, with what came up before it dropped or put where it belongs."""
        heap, next_of, entered = self.heap, self.next_of, self.entered
        while heap:
            entry = heap[0]
            _, kind, number, subject = entry
            if kind in OF_NODES:
                if number > self.node_since[subject]:
                    return entry
                heappop(heap)
                continue
            event = next_of.get(subject)
            if event == entry:
                return entry
            if entered.get(subject) != entry:
                heappop(heap)
            elif event is None:
                heappop(heap)
                del entered[subject]
            else:
                heapreplace(heap, event)
                entered[subject] = event
        return None
