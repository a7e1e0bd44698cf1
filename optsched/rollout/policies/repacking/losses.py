"""What a place costs a gang, and its neighbours: seconds that are lost until a horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.physics.distance import Distances

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.placement_round import ClusterData
    from optsched.rollout.scenario import Scenario

    Gpus = tuple[int, ...]


MOST_KNOWN = 100_000
"""Places of which the factor is remembered."""


class Mover(NamedTuple):
    """A gang that is to have a place.

    Attributes
    ----------
    width
        How many GPUs it takes.
    application_class, model
        What its slowdowns and its factors by distance are of.
    left_s
        Seconds that it still needs at reference speed; infinite if nobody knows.
    held
        The GPUs that it holds now; none if it waits.
    """

    width: int
    application_class: str
    model: str
    left_s: float
    held: Gpus


class PlaceLosses:
    """GPU-seconds that gangs lose to the places that they have, as the scenario tells them.

    A gang that is slowed down by a factor f gets on at 1 / f of its speed; it loses the rest, as
    long as it lasts, or until the horizon. A gang that moves loses what a move takes.

    Parameters
    ----------
    horizon_s
        For how long a placement is taken to stand.
    """

    def __init__(
        self, scenario: Scenario, cluster: Cluster, world: ClusterData, horizon_s: float
    ) -> None:
        self.node_of, self.horizon_s = cluster.node_of, horizon_s
        self.values = {name: row.tolist() for name, row in world.slowdown.items()}
        self.rank = {
            name: [(value, gpu) for gpu, value in enumerate(row)]
            for name, row in self.values.items()
        }
        self.differs: dict[str, bool] = {
            name: min(row) < max(row) for name, row in self.values.items()
        }
        self.move_s = scenario.costs.restore_s + scenario.costs.checkpoint_s
        self.beside = 1.0
        self._distances: Distances | None = None
        if scenario.reference_place != "recorded":
            self.beside = 1 / scenario.neighbours.shared_server
            self._distances = Distances(scenario, cluster)
        self._locality = {
            name: tuple(model.locality or scenario.locality)
            for name, model in scenario.models.items()
        }
        self._other = tuple(scenario.locality)
        self._known: dict[tuple[str, str, Gpus], float] = {}

    def alone(self, gang: Mover, gpus: Gpus) -> float:
        """Return the factor on a gang's iteration time on some GPUs, without neighbours."""
        key = gang.application_class, gang.model, gpus
        factor = self._known.get(key)
        if factor is None:
            values = self.values[gang.application_class]
            factor = max([values[gpu] for gpu in gpus])
            if self._distances is not None and len(gpus) > 1:
                locality = self._locality.get(gang.model, self._other)
                factor *= self._distances.factor(locality or None, gpus)
            if len(self._known) == MOST_KNOWN:
                self._known.clear()
            self._known[key] = factor
        return factor

    def loss(self, gang: Mover, factor: float) -> float:
        """Return the GPU-seconds that a gang loses if it is slowed down by a factor."""
        lasts_s = min(gang.left_s * factor, self.horizon_s)
        return gang.width * lasts_s * (1 - 1 / factor)

    def of_move(self, gang: Mover, gpus: Gpus) -> float:
        """Return the GPU-seconds that a gang loses by going to some GPUs."""
        return gang.width * self.move_s if gang.held and gang.held != gpus else 0.0

    def total(self, gangs: list[Mover], places: Mapping[int, Gpus]) -> float:
        """Return the GPU-seconds that gangs lose at their places, neighbours and moves included."""
        lost, crowded = 0.0, self._crowded(places)
        for n, gpus in places.items():
            factor = self.alone(gangs[n], gpus) * (self.beside if n in crowded else 1.0)
            lost += self.loss(gangs[n], factor) + self.of_move(gangs[n], gpus)
        return lost

    def slowed(self, gangs: list[Mover], places: Mapping[int, Gpus]) -> set[int]:
        """Return the gangs that lose anything by their places or their neighbours."""
        slow = {n for n, gpus in places.items() if self.alone(gangs[n], gpus) > 1}
        return slow | self._crowded(places)

    def _crowded(self, places: Mapping[int, Gpus]) -> set[int]:
        """Return the gangs of two GPUs or more that have such a gang beside them on a node."""
        if self.beside == 1:
            return set()
        on_node: dict[int, list[int]] = {}
        for n, gpus in places.items():
            for node in self.nodes(gpus) if len(gpus) > 1 else ():
                on_node.setdefault(node, []).append(n)
        return {n for gangs in on_node.values() if len(gangs) > 1 for n in gangs}

    def nodes(self, gpus: Iterable[int]) -> set[int]:
        """Return the nodes of some GPUs."""
        return {self.node_of[gpu] for gpu in gpus}
