"""The cluster of a rollout as arrays, GPUs in nodes and nodes in domains; who holds which GPUs."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from optsched.rollout.node_groups import DOMAIN_LEVELS, UNIFORM_LEVELS
from optsched.rollout.physics.gpu_types import GpuTypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.scenario import Scenario


class Cluster:
    """GPUs numbered from 0, those of a node together, and nodes in the same order.

    Attributes
    ----------
    node_of
        The node of each GPU.
    first, size
        Of each node, the number of its first GPU, and how many it has.
    levels
        Names of the levels of domains, from the node up.
    ancestors
        By level the domain of each node; level 0 is the node itself.
    types
        Their types; `types.of_node` has that of each node.
    """

    def __init__(self, scenario: Scenario) -> None:
        topology = scenario.topology
        if topology is None:
            self.levels: tuple[str, ...] = UNIFORM_LEVELS
            self.size = scenario.node_sizes
            nodes = len(self.size)
            self.ancestors = [list(range(nodes)), [0] * nodes]
            if domains := _domains(scenario):
                self.levels = DOMAIN_LEVELS
                self.ancestors.insert(1, domains)
            self.names = [f"node-{n}" for n in range(nodes)]
        else:
            paths: dict[tuple[int, ...], int] = {}
            for path in topology.ancestors.tolist():
                paths[tuple(path)] = paths.get(tuple(path), 0) + 1
            self.levels = tuple(topology.levels)
            self.size = list(paths.values())
            self.ancestors = [list(column) for column in zip(*paths, strict=True)]
            self.names = [topology.domains[path[0]].id for path in paths]
        self.types = GpuTypes(scenario)
        self.nodes = len(self.size)
        self.node_of = [n for n, width in enumerate(self.size) for _ in range(width)]
        self.gpus = len(self.node_of)
        self.first = [0] * self.nodes
        for n in range(1, self.nodes):
            self.first[n] = self.first[n - 1] + self.size[n - 1]

    def level(self, gpus: Sequence[int]) -> int:
        """Return the level at which GPUs meet: 0 if they are in one node."""
        first, last = self.node_of[gpus[0]], self.node_of[gpus[-1]]
        if first == last:  # the GPUs of a node are together, and `gpus` ascends
            return 0
        nodes = {self.node_of[gpu] for gpu in gpus}
        for level, domains in enumerate(self.ancestors):
            if len({domains[node] for node in nodes}) == 1:
                return level
        return len(self.levels) - 1

    def shares(self, gpus: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return (node, how many of some GPUs it has) for each of their nodes; the GPUs ascend."""
        first, last = self.node_of[gpus[0]], self.node_of[gpus[-1]]
        if first == last:
            return ((first, len(gpus)),)
        return tuple(Counter(self.node_of[gpu] for gpu in gpus).items())

    def type_of(self, gpus: Sequence[int]) -> str | None:
        """Return the type of GPUs; None if they are of several."""
        if not self.types.are_several:
            return self.types.reference
        of_node, node_of = self.types.of_node, self.node_of
        first = of_node[node_of[gpus[0]]]
        return first if all(of_node[node_of[gpu]] == first for gpu in gpus) else None

    def domains(self, level: int) -> list[list[int]]:
        """Return the nodes of each domain of a level."""
        inside: dict[int, list[int]] = {}
        for node, domain in enumerate(self.ancestors[level]):
            inside.setdefault(domain, []).append(node)
        return list(inside.values())

    @cached_property
    def largest(self) -> int:
        """GPUs of the largest node."""
        return max(self.size, default=0)


def _domains(scenario: Scenario) -> list[int]:
    """Return the number of the domain of each node; empty if its groups are in none."""
    groups = scenario.node_groups
    if all(group.domain is None for group in groups):
        return []
    number: dict[str | None, int] = {}
    return [
        number.setdefault(group.domain, len(number)) for group in groups for _ in range(group.count)
    ]


class Occupancy(Protocol):
    """What the physics looks at: the part of the engine's state that rates and watts depend on."""

    @property
    def gpus_of(self) -> Sequence[tuple[int, ...]]:
        """By job the GPUs that it holds, ascending; empty if it holds none."""
        ...

    @property
    def jobs_on(self) -> Sequence[tuple[int, ...]]:
        """By GPU the jobs on it."""
        ...

    @property
    def phase(self) -> Sequence[int]:
        """By job the number of its phase."""
        ...

    @property
    def node_state(self) -> Sequence[int]:
        """By node OFF, ..., DOWN, as in `engine/state.py`."""
        ...
