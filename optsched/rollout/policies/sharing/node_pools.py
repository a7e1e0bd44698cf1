"""The cluster as an instance of EaCO has it at a moment: pools of nodes, and jobs outside of them.

An instance knows gangs within a node, or on whole nodes side by side. A gang that stands in any
other way, and one on a node that is closed, is outside: nobody shares its GPUs, and it is
not moved.
"""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.free_nodes import FreeNodes

    Gpus = tuple[int, ...]

WHOLE = "nodes"
"""The pool of the nodes of which jobs outside hold nothing; each other node is a pool."""


class NodePools:
    """Pools of equal nodes, as they are now.

    Parameters
    ----------
    ready
        Whether each node can be used; None: all can.
    held
        By running job its GPUs.
    apart
        By job the GPUs that it is to get outside of the instance.

    Attributes
    ----------
    width
        GPUs of a whole node.
    outside
        Running jobs that the instance does not know.
    taken
        Their GPUs.
    nodes
        By pool the numbers of its nodes, those with the fewest GPUs first, whole ones last.
    gpus
        By pool the GPUs of each of its nodes that jobs outside do not hold.
    """

    def __init__(
        self,
        cluster: Cluster,
        ready: Sequence[bool] | None,
        held: Mapping[int, Gpus],
        apart: Mapping[int, Gpus] = MappingProxyType({}),
    ) -> None:
        self.cluster, self.width = cluster, cluster.largest
        held = {**held, **apart}
        is_open = [True] * cluster.nodes if ready is None else list(ready)
        node_of = cluster.node_of  # GPUs ascend, and a node's stand together
        on = {
            job: [node_of[gpus[0]]] if node_of[gpus[0]] == node_of[gpus[-1]] else self._on(gpus)
            for job, gpus in held.items()
        }
        self.outside = {
            job
            for job, nodes in on.items()
            if job in apart
            or not all(is_open[node] for node in nodes)
            or not self._is_regular(held[job], nodes)
        }
        room = [size if open_ else 0 for size, open_ in zip(cluster.size, is_open, strict=True)]
        self.whole = self._whole(room, held)
        torn = {job for job in on.keys() - self.outside if not self._is_together(on[job])}
        if torn:
            self.outside |= torn
            self.whole = self._whole(room, held)
        self.taken = {gpu for job in self.outside for gpu in held[job]}
        left = self._left(room, held)
        rest = sorted((gpus, node) for node, gpus in enumerate(left) if 0 < gpus < self.width)
        self.nodes = {f"node-{node}": [node] for _, node in rest}
        self.gpus = {f"node-{node}": gpus for gpus, node in rest}
        if self.whole:
            self.nodes[WHOLE], self.gpus[WHOLE] = self.whole, self.width
        self.at = {
            node: (pool, n) for pool, row in self.nodes.items() for n, node in enumerate(row)
        }

    def _on(self, gpus: Gpus) -> list[int]:
        return sorted({self.cluster.node_of[gpu] for gpu in gpus})

    def _is_regular(self, gpus: Gpus, nodes: Sequence[int]) -> bool:
        """Tell whether a gang stands on one node, or on nodes that it fills."""
        return len(nodes) == 1 or len(gpus) == len(nodes) * self.width

    def _left(self, room: Sequence[int], held: Mapping[int, Gpus]) -> list[int]:
        if not self.outside:
            return list(room)
        left = list(room)
        for gpu in {gpu for job in self.outside for gpu in held[job]}:
            node = self.cluster.node_of[gpu]
            left[node] -= bool(room[node])
        return left

    def _whole(self, room: Sequence[int], held: Mapping[int, Gpus]) -> list[int]:
        return [node for node, gpus in enumerate(self._left(room, held)) if gpus == self.width]

    def _is_together(self, nodes: Sequence[int]) -> bool:
        """Tell whether the nodes of a gang stand side by side among the whole ones."""
        if len(nodes) == 1:
            return True
        place = {node: n for n, node in enumerate(self.whole)}
        if not all(node in place for node in nodes):
            return False
        return all(place[b] == place[a] + 1 for a, b in pairwise(nodes))

    def hosts(self, size: int) -> bool:
        """Tell whether a gang of a size fits into some pool, if that were empty."""
        if any(size <= gpus for gpus in self.gpus.values()):
            return True
        return size % self.width == 0 and size // self.width <= len(self.whole)

    def has_room(self, free: FreeNodes, usable: int, size: int) -> bool:
        """Tell whether a gang finds room within a node, or on whole nodes side by side."""
        if size <= self.width:
            return free.best_fit(size, usable) >= 0
        many, rest = divmod(size, self.width)
        row = 0
        for node in self.whole if not rest else ():
            row = row + 1 if free.count[node] == self.width else 0
            if row == many:
                return True
        return False

    def free_gpus(self, pool: str, first: int, size: int, taken: Iterable[int]) -> Gpus:
        """Return the lowest free GPUs of a node of a pool, or of several from that one on."""
        cluster, busy = self.cluster, self.taken.union(taken)
        nodes = self.nodes[pool][first : first + max(1, size // self.gpus[pool])]
        inside = (cluster.first[node] + n for node in nodes for n in range(cluster.size[node]))
        return tuple([gpu for gpu in inside if gpu not in busy][:size])
