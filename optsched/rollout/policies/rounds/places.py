"""Free GPUs that are kept from round to round, and the rule that picks some for a gang."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from optsched.pal.greedy.free_gpus import FreeGpus
from optsched.pal.greedy.packing_rules import consolidate
from optsched.registry import loaded
from optsched.rollout.policies.free_nodes import FreeNodes
from optsched.rollout.policies.node_sets import members
from optsched.rollout.policies.placement_rules import RoundRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.placement_round import ClusterData, GangJob

    Gpus = tuple[int, ...]
    Pick = Callable[[GangJob], Gpus | None]  # free GPUs, ascending; None if there is no place


class OpenPlaces(Protocol):
    """Free GPUs; all of the cluster at first."""

    @property
    def free(self) -> int:
        """How many are free."""
        ...

    def take(self, gpus: Gpus) -> None:
        """Mark free GPUs as in use."""
        ...

    def release(self, gpus: Gpus) -> None:
        """Mark GPUs in use as free."""
        ...


class Places(OpenPlaces, Protocol):
    """Free GPUs, and a rule that picks some for a gang."""

    def rule(self) -> Pick:
        """Return the rule for a round."""
        ...


class PackedPlaces:
    """The rule `packing_rules.consolidate` without caps, on sets of nodes: no array is made."""

    def __init__(self, view: View) -> None:
        self.nodes = FreeNodes(view.cluster)
        self.take, self.release = self.nodes.take, self.nodes.release

    @property
    def free(self) -> int:
        """How many are free."""
        return self.nodes.total

    def rule(self) -> Pick:
        """Return the rule for a round."""
        return self._pick

    def _pick(self, gang: GangJob) -> Gpus | None:
        """Return the GPUs of the best fit of a node, else of the nodes with the most free ones."""
        nodes, left = self.nodes, gang.gpus
        node = nodes.best_fit(left)
        if node >= 0:
            return nodes.gpus(node, left)
        if left > nodes.total:
            return None
        chosen: list[int] = []
        for count, group in reversed(list(enumerate(nodes.nodes_with))):
            for node in members(group):
                chosen += nodes.gpus(node, min(count, left))
                left -= count
                if left <= 0:
                    return tuple(sorted(chosen))
        return None


class RuledPlaces:
    """Any rule of PAL's table, on arrays."""

    def __init__(self, world: ClusterData, make: Callable[[FreeGpus], Rule]) -> None:
        everywhere = np.ones(len(world.node_of), dtype=np.bool_)
        self.state = FreeGpus(world.levels, world.columns, everywhere)
        self.free = len(everywhere)
        self._make = make

    def take(self, gpus: Gpus) -> None:
        """Mark free GPUs as in use."""
        self.state.take(np.array(gpus, dtype=np.intp))
        self.free -= len(gpus)

    def release(self, gpus: Gpus) -> None:
        """Mark GPUs in use as free."""
        self.state.release(np.array(gpus, dtype=np.intp))
        self.free += len(gpus)

    def rule(self) -> Pick:
        """Return the rule for a round."""
        self.state.changes.clear()
        rule = self._make(self.state)

        def pick(gang: GangJob) -> Gpus | None:
            gpus = rule(self.state, gang)
            return None if gpus is None else tuple(sorted(gpus.tolist()))

        return pick


def places_of(view: View, world: ClusterData, rules: RoundRule) -> Places:
    """Return all GPUs of a cluster as free, for the rule of a policy."""
    if type(rules) is RoundRule and loaded(rules.row.entry) is consolidate:
        return PackedPlaces(view)
    return ruled(world, rules)


def ruled(world: ClusterData, rules: RoundRule) -> RuledPlaces:
    """Return all GPUs of a cluster as free, for any rule, on arrays."""
    return RuledPlaces(world, partial(rules.rule, world, ModelPenalties(world)))


class ModelPenalties(dict[str, tuple[float, ...]]):
    """Penalties by model, those that the scenario does not know included."""

    def __init__(self, world: ClusterData) -> None:
        super().__init__()
        self.world = world

    def __missing__(self, model: str) -> tuple[float, ...]:
        self[model] = found = self.world.penalties(model)
        return found
