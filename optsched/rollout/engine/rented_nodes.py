"""Nodes that are rented and given back."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.events import NODE
from optsched.rollout.engine.random_streams import stream
from optsched.rollout.engine.state import OFF, READY, STARTING
from optsched.rollout.prices.markets import interruption_rates
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.events import EventQueue
    from optsched.rollout.engine.state import State
    from optsched.rollout.scenario import Scenario

NEVER_H = 1e6  # hours: longer than any rollout, and still a whole number of microseconds


class Fleet(Restorable):
    """The nodes that are paid for: all of them, if the cluster is not rented.

    Attributes
    ----------
    rented
        Nodes that are ready or starting.
    dirty
        Nodes that changed in this moment.
    losses
        Heap of (time, node): when spot nodes are taken away. Entries of nodes that are no longer
        what they were, by `loss_of`, are dropped when they come up.
    """

    changing = ("rented", "dirty", "losses", "loss_of")

    def __init__(self, scenario: Scenario, state: State, events: EventQueue, seed: int) -> None:
        rented = scenario.rented
        self.state, self.events = state, events
        self.provision_us = 0 if rented is None else round(rented.provision_s * US)
        self.rented = sum(status != OFF for status in state.node_state)
        self.dirty: list[int] = []
        self._seed, self._rates = seed, interruption_rates(scenario)
        self.losses: list[tuple[int, int]] = []
        self.loss_of: dict[int, int] = {}
        for node, status in enumerate(state.node_state if self._rates else ()):
            if status == READY:
                self._await_loss(node, 0)
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
        self.loss_of.pop(node, None)
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

    def make_ready(self, node: int, now: int) -> None:
        """Let a node that was starting be used from now on."""
        self._set(node, READY)
        if self._rates:
            self._await_loss(node, now)

    def _await_loss(self, node: int, now: int) -> None:
        """Draw when a node will be taken away: a Poisson process while it is ready."""
        if self._rates[node]:
            draw = stream(self._seed, "interruption", node, now).exponential(1 / self._rates[node])
            self.loss_of[node] = now + max(1, round(min(draw, NEVER_H) * 3600 * US))
            heappush(self.losses, (self.loss_of[node], node))

    def next_loss(self) -> int | None:
        """Return when the next node is taken away."""
        while self.losses:
            time, node = self.losses[0]
            if self.loss_of.get(node) == time:
                return time
            heappop(self.losses)
        return None

    def pop_loss(self, now: int) -> int | None:
        """Return a node that is taken away now, and forget that it is."""
        if self.next_loss() != now:
            return None
        _, node = heappop(self.losses)
        del self.loss_of[node]
        return node

    def replace(self, node: int, now: int) -> None:
        """Order another node in place of one that was taken away, which holds no jobs any more."""
        self._order(node, now)

    def _is_empty(self, node: int) -> bool:
        return self.state.free_of[node] == self.state.cluster.size[node]

    def _set(self, node: int, status: int) -> None:
        self.rented += (status != OFF) - (self.state.node_state[node] != OFF)
        self.state.set_node(node, status)
        self.dirty.append(node)
