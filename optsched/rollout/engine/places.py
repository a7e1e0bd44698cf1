"""Whether a gang that accepts only some places would find one now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.state import State


class _Domain:
    """Nodes of one domain, counted by how many of their GPUs are free.

    Attributes
    ----------
    gained
        The last note that told of more free GPUs on one of them.
    """

    __slots__ = ("gained", "with_free")

    def __init__(self, largest: int) -> None:
        self.with_free = [0] * (largest + 1)
        self.gained = 0

    def least_nodes(self, size: int) -> float:
        """Return on how few nodes a gang fits: those with the most free GPUs; infinity if not."""
        used, left, free = 0, size, len(self.with_free) - 1
        while free:
            count = self.with_free[free]
            if count * free >= left:
                return used - (-left // free)
            used += count
            left -= count * free
            free -= 1
        return float("inf")


class FreePlaces:
    """The nodes of each domain by how many GPUs are free on them.

    Nothing is kept before the first question, so rollouts without one pay nothing.
    """

    def __init__(self, state: State) -> None:
        cluster = state.cluster
        self.state = state
        self.top = len(cluster.levels) - 1
        self.is_known = False
        self.count = [0] * cluster.nodes
        self.largest = cluster.largest
        self._domains_of: list[list[_Domain]] = [[] for _ in range(cluster.nodes)]
        self._with_free = [0] * (cluster.largest + 1)  # nodes by how many of their GPUs are free
        self._levels = [  # level 0, single nodes, needs no domains
            [self._domain(nodes) for nodes in cluster.domains(level)] if level else []
            for level in range(len(cluster.levels))
        ]
        self._told: dict[tuple[int, int, int], tuple[int, _Domain | None]] = {}
        self._gains = 0

    def note(self, gpus: Iterable[int], nodes: Iterable[int]) -> None:
        """Look again at nodes on which something has changed."""
        if self.is_known:
            node_of = self.state.cluster.node_of
            self._gains += 1
            for node in {*nodes, *(node_of[gpu] for gpu in gpus)}:
                self._look_at(node)

    def has_room(self, size: int, most_nodes: int, level: int) -> bool:
        """Tell whether a gang fits on so many nodes in one domain of a level; level 0: one node.

        What was told before holds for all domains but those where GPUs were freed since then.
        """
        if not self.is_known:
            self._look_at_all()
        if most_nodes == 1 or not level:
            return any(self._with_free[size:])
        key = (size, most_nodes, level)
        since, room = self._told.get(key, (-1, None))
        if room is None or room.least_nodes(size) > most_nodes:
            since = since if room is None else -1
            room = None
            for domain in self._levels[level]:
                if domain.gained > since and domain.least_nodes(size) <= most_nodes:
                    room = domain
                    break
            self._told[key] = (self._gains, room)
        return room is not None

    def _domain(self, nodes: Sequence[int]) -> _Domain:
        made = _Domain(self.largest)
        for node in nodes:
            self._domains_of[node].append(made)
        return made

    def _look_at_all(self) -> None:
        self.is_known = True
        self._told.clear()
        for domains in self._levels:
            for domain in domains:
                domain.with_free = [0] * (self.largest + 1)
        self.count = [0] * len(self.count)
        self._with_free = [len(self.count), *[0] * self.largest]
        for node in range(len(self.count)):
            self._look_at(node)

    def _look_at(self, node: int) -> None:
        new, old = self.state.free_of[node] if self.state.ready[node] else 0, self.count[node]
        if new != old:
            self.count[node] = new
            self._with_free[old] -= 1
            self._with_free[new] += 1
            for domain in self._domains_of[node]:
                domain.with_free[old] -= 1
                domain.with_free[new] += 1
                if new > old:
                    domain.gained = self._gains
