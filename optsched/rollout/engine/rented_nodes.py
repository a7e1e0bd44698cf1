"""Nodes that are rented and given back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.events import NODE
from optsched.rollout.engine.state import OFF, READY, STARTING
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.events import EventQueue
    from optsched.rollout.engine.state import State
    from optsched.rollout.scenario import Scenario


class Fleet(Restorable):
    """The nodes that are paid for: all of them, if the cluster is not rented.

    Attributes
    ----------
    rented
        Nodes that are ready or starting.
    dirty
        Nodes that changed in this moment.
    """

    changing = ("rented", "dirty")

    def __init__(self, scenario: Scenario, state: State, events: EventQueue) -> None:
        rented = scenario.rented
        self.state, self.events = state, events
        self.provision_us = 0 if rented is None else round(rented.provision_s * US)
        self.rented = sum(status != OFF for status in state.node_state)
        self.dirty: list[int] = []
        self._nodes_of: dict[str, list[int]] = {}
        for node, name in enumerate(state.cluster.types.of_node):
            self._nodes_of.setdefault(name, []).append(node)

    def rent(self, wanted: int | Mapping[str, int], now: int) -> int:
        """Ask for nodes, or give some back; return how many. By type, where there are several.

        New ones are those of the lowest numbers. Given back are first those that are still
        starting, then those without jobs, from the highest number down; nodes with jobs stay.
        """
        if isinstance(wanted, Mapping):
            return sum(self._rent_of_type(*each, now) for each in wanted.items())
        before = self.rented
        self._rent(wanted, now)
        return abs(self.rented - before)

    def rented_of(self, gpu_type: str) -> int:
        """Return how many nodes of a type are ready or starting."""
        return sum(self.state.node_state[node] != OFF for node in self._nodes_of[gpu_type])

    def _rent_of_type(self, gpu_type: str, wanted: int, now: int) -> int:
        nodes, status = self._nodes_of[gpu_type], self.state.node_state
        more = wanted - self.rented_of(gpu_type)
        found = [node for node in nodes if status[node] == OFF]
        if more <= 0:
            back = [node for node in reversed(nodes) if self._is_empty(node)]
            found = [node for kind in (STARTING, READY) for node in back if status[node] == kind]
        for node in found[: abs(more)]:
            if more > 0:
                self._order(node, now)
            else:
                self._give_back(node)
        return min(abs(more), len(found))

    def _order(self, node: int, now: int) -> None:
        self._set(node, STARTING)
        self.events.add_of_node(now + self.provision_us, NODE, node)

    def _give_back(self, node: int) -> None:
        self._set(node, OFF)
        self.events.forget_node(node)

    def _rent(self, wanted: int, now: int) -> None:
        status = self.state.node_state
        node = status.find(OFF)
        while self.rented < wanted and node >= 0:
            self._order(node, now)
            node = status.find(OFF, node)
        for kind in (STARTING, READY):
            node = status.rfind(kind)
            while self.rented > wanted and node >= 0:
                if self._is_empty(node):
                    self._give_back(node)
                node = status.rfind(kind, 0, node)

    def make_ready(self, node: int) -> None:
        """Let a node that was starting be used from now on."""
        self._set(node, READY)

    def _is_empty(self, node: int) -> bool:
        return self.state.free_of[node] == self.state.cluster.size[node]

    def _set(self, node: int, status: int) -> None:
        self.rented += (status != OFF) - (self.state.node_state[node] != OFF)
        self.state.set_node(node, status)
        self.dirty.append(node)
