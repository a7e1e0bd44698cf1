"""Places for gangs, one after the other: each where least is lost, by itself and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.repacking.kept_nodes import KeptNodes
    from optsched.rollout.policies.repacking.losses import Mover, PlaceLosses

    Gpus = tuple[int, ...]


class Plan:
    """GPUs by gang, and those that are free beside them.

    Attributes
    ----------
    places
        By a gang's number its GPUs.
    lost
        GPU-seconds that are lost, as far as gangs have their places.
    """

    def __init__(
        self,
        gangs: list[Mover],
        cluster: Cluster,
        losses: PlaceLosses,
        free: list[list[int]],
        places: dict[int, Gpus],
    ) -> None:
        self.gangs, self.cluster, self.losses = gangs, cluster, losses
        self.free = [list(gpus) for gpus in free]
        self.places: dict[int, Gpus] = {}
        self._on_node: list[list[int]] = [[] for _ in free]
        for n, gpus in places.items():
            self._hold(n, gpus)

    @classmethod
    def within(cls, gangs: list[Mover], losses: PlaceLosses, kept: KeptNodes) -> Plan:
        """Return a plan beside gangs that keep their places: what it adds is added to `kept`."""
        plan = cls(gangs, kept.cluster, losses, [], {})
        plan.free, plan._on_node = kept.gpus, kept.gangs
        return plan

    def add(self, n: int) -> None:
        """Give a gang the place where least is lost; there are as many free GPUs as it takes."""
        best: tuple[float, bool, int, int, Gpus] | None = None
        for gpus in self._options(self.gangs[n]):
            nodes = self.losses.nodes(gpus)
            left = sum(len(self.free[node]) for node in nodes) - len(gpus)
            lost, moves = self._lost(n, gpus, nodes), gpus != self.gangs[n].held
            key = (lost, moves, left, len(nodes), gpus)
            if best is None or key < best:
                best = key
        assert best is not None, "all GPUs are below the root, and enough of them are free"
        self._hold(n, best[4])

    def _hold(self, n: int, gpus: Gpus) -> None:
        self.places[n] = gpus
        for gpu in gpus:
            self.free[self.cluster.node_of[gpu]].remove(gpu)
        if len(gpus) > 1:
            for node in self.losses.nodes(gpus):
                self._on_node[node].append(n)

    def _lost(self, n: int, gpus: Gpus, nodes: set[int]) -> float:
        """Return what is lost by a gang at a place, and by those that have been alone there."""
        losses, gang = self.losses, self.gangs[n]
        factor, more = losses.alone(gang, gpus), 0.0
        if losses.beside > 1 and len(gpus) > 1:
            others = {other for node in nodes for other in self._on_node[node]}
            if others:
                factor *= losses.beside
            for other in others:
                more += self._more(other)
        return losses.loss(gang, factor) + losses.of_move(gang, gpus) + more

    def _more(self, n: int) -> float:
        """Return what a gang loses more if it gets a neighbour, and has none."""
        losses, gpus = self.losses, self.places[n]
        if any(len(self._on_node[node]) > 1 for node in losses.nodes(gpus)):
            return 0.0
        gang, factor = self.gangs[n], losses.alone(self.gangs[n], gpus)
        return losses.loss(gang, factor * losses.beside) - losses.loss(gang, factor)

    # --- where a gang can go ----------------------------------------------------------------------

    def _options(self, gang: Mover) -> Iterator[Gpus]:
        """Yield places of a gang: on one node, or in a domain on few nodes or on fast GPUs."""
        width, free = gang.width, self.free
        if gang.held and all(gpu in free[self.cluster.node_of[gpu]] for gpu in gang.held):
            yield gang.held
        seen: set[tuple[int, int]] = set()
        for node, gpus in enumerate(free):
            if len(gpus) < width:
                continue
            kind = len(gpus), self.cluster.size[node]
            is_alike = width == 1 or not self._on_node[node]
            if is_alike and not self._values_differ(gang):
                if kind in seen:
                    continue
                seen.add(kind)
            yield self._fastest(gang, gpus)
        if width == 1:
            return
        for level in range(1, len(self.cluster.levels)):
            for nodes in self.cluster.domains(level):
                yield from self._across(gang, nodes)

    def _across(self, gang: Mover, nodes: list[int]) -> Iterator[Gpus]:
        free, width = self.free, gang.width
        if sum(len(free[node]) for node in nodes) < width:
            return
        orders = (
            sorted(nodes, key=lambda node: (-len(free[node]), node)),
            sorted(nodes, key=lambda node: (bool(self._on_node[node]), -len(free[node]), node)),
        )
        for order in orders[: 1 if orders[0] == orders[1] else 2]:
            chosen: list[int] = []
            for node in order:
                chosen += self._fastest(gang, free[node])[: width - len(chosen)]
                if len(chosen) == width:
                    break
            yield tuple(sorted(chosen))
        if self._values_differ(gang):
            yield self._fastest(gang, [gpu for node in nodes for gpu in free[node]])

    def _values_differ(self, gang: Mover) -> bool:
        return self.losses.differs[gang.application_class]

    def _fastest(self, gang: Mover, gpus: Iterable[int]) -> Gpus:
        values = self.losses.rank[gang.application_class]
        return tuple(sorted(sorted(gpus, key=values.__getitem__)[: gang.width]))
