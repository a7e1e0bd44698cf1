"""When nodes are closed, and what they are at a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.events import DOWNTIME
from optsched.rollout.engine.state import DOWN, DRAINING, READY
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.events import EventQueue
    from optsched.rollout.scenario import Scenario


class ClosedNodes:
    """The scenario's downtime by node. An outage counts for more than a drain."""

    def __init__(self, scenario: Scenario) -> None:
        self._of: dict[int, list[tuple[int, int | None, int]]] = {}
        for entry in scenario.downtime:
            end = None if entry.to_s is None else round(entry.to_s * US)
            status = DOWN if entry.kind == "outage" else DRAINING
            for node in entry.nodes:
                self._of.setdefault(node, []).append((round(entry.from_s * US), end, status))

    def announce(self, events: EventQueue) -> None:
        """Add an event for every moment at which a node may become something else."""
        for node, entries in sorted(self._of.items()):
            moments = {time for start, end, _ in entries for time in (start, end)}
            for time in sorted(moment for moment in moments if moment is not None):
                events.add_of_node(time, DOWNTIME, node)

    def status(self, node: int, now: int) -> int:
        """Return what a node is from now on: READY, DRAINING or DOWN."""
        present = (
            status
            for start, end, status in self._of[node]
            if start <= now and (end is None or now < end)
        )
        return max(present, default=READY)
