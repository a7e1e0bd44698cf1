"""The cluster as an instance of EaCO has it at a moment: pools of nodes, and jobs outside of them.

An instance knows gangs within a node, or on whole nodes side by side. A gang that stands in any
other way, and one on a node that is closed, is outside: nobody shares its GPUs, and it is
not moved.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.free_nodes import FreeNodes

    Gpus = tuple[int, ...]
    Shares = tuple[tuple[int, int], ...]

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
    shares
        By job, how many of its GPUs each node has, as far as that is known already.

    Attributes
    ----------
    width
        GPUs of a whole node.
    outside
        Running jobs that the instance does not know.
    nodes
        By pool the numbers of its nodes, those with the fewest GPUs first, whole ones last.
    gpus
        By pool the GPUs of each of its nodes that jobs outside do not hold.
    torn
        (these GPUs, node) of the nodes that are pools of their own, ascending.
    """

    def __init__(
        self,
        cluster: Cluster,
        ready: Sequence[bool] | None,
        held: Mapping[int, Gpus],
        apart: Mapping[int, Gpus] = MappingProxyType({}),
        shares: Mapping[int, Shares] = MappingProxyType({}),
    ) -> None:
        self.cluster, self.width = cluster, cluster.largest
        self._held = held = {**held, **apart}
        is_all_open = ready is None or all(ready)
        room = list(cluster.size)
        if ready is not None and not is_all_open:
            room = [size if open_ else 0 for size, open_ in zip(room, ready, strict=True)]
        on = {job: shares.get(job) or cluster.shares(gpus) for job, gpus in held.items()}
        self.outside = {
            job
            for job, nodes in on.items()
            if job in apart
            or not (len(nodes) == 1 or len(held[job]) == len(nodes) * self.width)
            or not (is_all_open or ready is None or all(ready[node] for node, _ in nodes))
        }
        left = self._without(room, on)
        self.whole = self._whole(left)
        wide = {job for job in on.keys() - self.outside if len(on[job]) > 1}
        strewn = wide and self._not_in_a_row({job: on[job] for job in wide})
        if strewn:
            self.outside |= strewn
            left = self._without(room, on)
            self.whole = self._whole(left)
        self.torn = sorted((gpus, node) for node, gpus in enumerate(left) if 0 < gpus < self.width)
        self.nodes = {f"node-{node}": [node] for _, node in self.torn}
        self.gpus = {f"node-{node}": gpus for gpus, node in self.torn}
        if self.whole:
            self.nodes[WHOLE], self.gpus[WHOLE] = self.whole, self.width
        self._widest = max(self.gpus.values(), default=0)

    def _without(self, room: Sequence[int], on: Mapping[int, Shares]) -> list[int]:
        """Return the GPUs of each node that jobs outside do not hold; 0 where it is closed."""
        left = list(room)
        for shares in {self._held[job]: on[job] for job in self.outside}.values():
            for node, count in shares:
                if room[node]:
                    left[node] -= count
        return left

    def _whole(self, left: Sequence[int]) -> list[int]:
        return [node for node, gpus in enumerate(left) if gpus == self.width]

    def _not_in_a_row(self, on: Mapping[int, Shares]) -> set[int]:
        """Return the jobs whose nodes do not stand side by side among the whole ones."""
        place = {node: n for n, node in enumerate(self.whole)}
        never = -len(place)
        return {
            job
            for job, nodes in on.items()
            if any(
                a not in place or place.get(b, never) != place[a] + 1
                for (a, _), (b, _) in pairwise(nodes)
            )
        }

    @cached_property
    def taken(self) -> set[int]:
        """The GPUs of the running jobs that the instance does not know."""
        return {gpu for job in self.outside for gpu in self._held[job]}

    @cached_property
    def at(self) -> dict[int, tuple[str, int]]:
        """By node its pool, and which of its nodes it is."""
        return {node: (pool, n) for pool, row in self.nodes.items() for n, node in enumerate(row)}

    def hosts(self, size: int) -> bool:
        """Tell whether a gang of a size fits into some pool, if that were empty."""
        if size <= self._widest:
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
