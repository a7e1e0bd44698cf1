"""Whether a gang that accepts only some places would find one now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.state import State


class FreePlaces:
    """The nodes by how many GPUs are free on them; a whole number stands for a set of nodes.

    Nothing is kept before the first question, so rollouts without one pay nothing.
    """

    def __init__(self, state: State) -> None:
        cluster = state.cluster
        self.state = state
        self.top = len(cluster.levels) - 1
        self.is_known = False
        self.count = [0] * cluster.nodes
        self.nodes_with = [0] * (cluster.largest + 1)
        self.domains = [
            [sum(1 << node for node in domain) for domain in cluster.domains(level)]
            for level in range(len(cluster.levels))
        ]

    def note(self, gpus: Iterable[int], nodes: Iterable[int]) -> None:
        """Look again at nodes on which something has changed."""
        if self.is_known:
            node_of = self.state.cluster.node_of
            for node in {*nodes, *(node_of[gpu] for gpu in gpus)}:
                self._look_at(node)

    def has_room(self, size: int, most_nodes: int, level: int) -> bool:
        """Tell whether a gang fits on so many nodes in one domain of a level; level 0: one node."""
        if not self.is_known:
            self._look_at_all()
        if level == 0 or most_nodes == 1:
            return any(self.nodes_with[size:])
        return any(self._least_nodes(size, domain) <= most_nodes for domain in self.domains[level])

    def _least_nodes(self, size: int, domain: int) -> float:
        """Return on how few nodes of a domain a gang fits: those with the most free GPUs."""
        used, left = 0, size
        for free in range(len(self.nodes_with) - 1, 0, -1):
            count = (self.nodes_with[free] & domain).bit_count()
            if count * free >= left:
                return used - (-left // free)
            used += count
            left -= count * free
        return float("inf")

    def _look_at_all(self) -> None:
        self.is_known = True
        self.count = [0] * len(self.count)
        self.nodes_with = [(1 << len(self.count)) - 1, *(0 for _ in self.nodes_with[1:])]
        for node in range(len(self.count)):
            self._look_at(node)

    def _look_at(self, node: int) -> None:
        new, old = self.state.free_of[node] if self.state.ready[node] else 0, self.count[node]
        if new != old:
            self.nodes_with[old] ^= 1 << node
            self.nodes_with[new] ^= 1 << node
            self.count[node] = new
