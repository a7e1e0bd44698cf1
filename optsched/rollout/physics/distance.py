"""What distance costs: by the level at which GPUs meet, and by how many servers they are on."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.scenario import Scenario

Locality = tuple[float, ...]

MOST_MEETINGS = 20_000
"""Sets of nodes of which it is remembered where they meet."""


class Distances:
    """Factors on iteration times, relative to the place that run times of the trace are told of.

    Where that is the best place (`reference_place`), a gang that can never be on one server does
    not pay for being on as few as it can: its run time holds that already.
    """

    def __init__(self, scenario: Scenario, cluster: Cluster) -> None:
        self._cluster = cluster
        self._is_to_best = scenario.reference_place != "one-node"
        self._spread = scenario.spread
        self._best: dict[tuple[Locality | None, int], float] = {}
        self._reached: dict[tuple[Locality | None, tuple[int, ...], int], float] = {}
        self._meetings: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {}

    def factor(self, locality: Locality | None, gpus: tuple[int, ...]) -> float:
        """Return the factor of a gang on some GPUs, whose model has these factors by level."""
        if locality is None and self._spread is None:
            return 1.0
        cluster, node_of = self._cluster, self._cluster.node_of
        if node_of[gpus[0]] == node_of[gpus[-1]]:  # GPUs ascend, and those of a node are together
            level, counts = 0, (1,) * len(cluster.levels)
        else:
            level, counts = self._meeting(frozenset(map(node_of.__getitem__, gpus)))
        key = (locality, counts[:2], level)
        found = self._reached.get(key)
        if found is None:
            found = self._reached[key] = self._alone(locality, level, counts)
        return found / self._of_best(locality, len(gpus)) if self._is_to_best else found

    def _meeting(self, nodes: frozenset[int]) -> tuple[int, tuple[int, ...]]:
        """Return the level at which nodes meet, and on how many domains of each level they are."""
        found = self._meetings.get(nodes)
        if found is None:
            ancestors = self._cluster.ancestors
            counts = tuple(len({domains[n] for n in nodes}) for domains in ancestors)
            if len(self._meetings) == MOST_MEETINGS:
                self._meetings.clear()
            found = self._meetings[nodes] = (counts.index(1), counts)  # all are below the root
        return found

    def _alone(self, locality: Locality | None, level: int, counts: tuple[int, ...]) -> float:
        """Return the factor relative to one server."""
        factor = 1.0 if locality is None else locality[level]
        if self._spread is not None:
            factor /= self._spread.servers.at(counts[0])
            if self._spread.domains is not None:
                factor /= self._spread.domains.at(counts[1])
        return factor

    def _of_best(self, locality: Locality | None, width: int) -> float:
        """Return the factor of the best place that so many GPUs can have in this cluster."""
        key = (locality, width)
        if key not in self._best:
            factors = (
                self._alone(locality, level, counts)
                for level in range(len(self._cluster.levels))
                for nodes in self._cluster.domains(level)
                if (counts := self._fewest(nodes, width)) is not None
            )
            self._best[key] = min(factors, default=1.0)
        return self._best[key]

    def _fewest(self, nodes: Sequence[int], width: int) -> tuple[int, int] | None:
        """Return on how few of some nodes, and of the domains above them, so many GPUs are."""
        ancestors, size = self._cluster.ancestors, self._cluster.size
        above = ancestors[min(1, len(ancestors) - 1)]
        together: dict[int, int] = {}
        for node in nodes:
            together[above[node]] = together.get(above[node], 0) + size[node]
        servers = _needed([size[node] for node in nodes], width)
        return None if servers is None else (servers, _needed(together.values(), width) or 1)


def _needed(sizes: Iterable[int], width: int) -> int | None:
    """Return how many of these, the largest first, have so many GPUs; None if all have fewer."""
    upto = accumulate(sorted(sizes, reverse=True))
    return next((n for n, gpus in enumerate(upto, start=1) if gpus >= width), None)
