"""Free GPUs by node and the gangs beside them, kept from round to round."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.rollout.physics.cluster import Cluster

    Gpus = tuple[int, ...]

SOME_GANG = -1


class KeptNodes:
    """Free GPUs, all of the cluster at first.

    Attributes
    ----------
    gpus
        By node, those that are free, in any order.
    gangs
        By node, one entry for each gang of two GPUs or more that has some there.
    free
        How many are free.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.free = cluster, cluster.gpus
        self.gpus: list[list[int]] = [[] for _ in cluster.size]
        for gpu, node in enumerate(cluster.node_of):
            self.gpus[node].append(gpu)
        self.gangs: list[list[int]] = [[] for _ in cluster.size]

    def take(self, gpus: Gpus) -> None:
        """Mark free GPUs as in use."""
        node_of = self.cluster.node_of
        for gpu in gpus:
            self.gpus[node_of[gpu]].remove(gpu)
        for node in {node_of[gpu] for gpu in gpus} if len(gpus) > 1 else ():
            self.gangs[node].append(SOME_GANG)
        self.free -= len(gpus)

    def release(self, gpus: Gpus) -> None:
        """Mark GPUs in use as free."""
        node_of = self.cluster.node_of
        for gpu in gpus:
            self.gpus[node_of[gpu]].append(gpu)
        for node in {node_of[gpu] for gpu in gpus} if len(gpus) > 1 else ():
            self.gangs[node].pop()
        self.free += len(gpus)
