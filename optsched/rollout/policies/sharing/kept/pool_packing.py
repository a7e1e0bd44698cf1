"""Gangs on pools of nodes, some where they run and the others by best fit decreasing.

As `optsched.eaco.greedy.node_packing` does it, with sets of nodes by their free GPUs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from optsched.rollout.policies.sharing.node_pools import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.policies.free_nodes import FreeNodes
    from optsched.rollout.policies.sharing.node_pools import NodePools

    Gpus = tuple[int, ...]
    Free = list[int]  # by number of GPUs, the set of the whole nodes with so many free


def put(free: Free, gang: int, whole: Sequence[int]) -> list[int] | None:
    """Return the nodes for a gang, which takes them: the fullest that has room; None if none has.

    Parameters
    ----------
    whole
        The nodes; a gang that is larger than one needs some that stand side by side among them.
    """
    width = len(free) - 1
    if gang > width:
        return _put_wide(free, gang // width, whole) if not gang % width else None
    for count in range(gang, width + 1):
        nodes = free[count]
        if nodes:
            bit = nodes & -nodes
            free[count] ^= bit
            free[count - gang] ^= bit
            return [bit.bit_length() - 1]
    return None


def _put_wide(free: Free, many: int, whole: Sequence[int]) -> list[int] | None:
    empty = free[-1]
    row: list[int] = []
    for node in whole if empty.bit_count() >= many else ():
        row = [*row, node] if empty >> node & 1 else []
        if len(row) == many:
            for each in row:
                free[-1] ^= 1 << each
                free[0] ^= 1 << each
            return row
    return None


class PoolPacking:
    """Gangs that hold the GPUs that they have, and others that are still to be put somewhere.

    A pool is told by its node, -1 standing for that of the whole nodes. At first all gangs that run
    hold what they have.
    """

    def __init__(self, pools: NodePools, cluster: Cluster, whole: int, free: FreeNodes) -> None:
        self.pools, self.cluster = pools, cluster
        self._rest = [
            (pools.gpus[pool], nodes[0]) for pool, nodes in pools.nodes.items() if pool != WHOLE
        ]
        self._used = {node: gpus - free.count[node] for gpus, node in self._rest}
        self._free = [nodes & whole for nodes in free.nodes_with]
        self._left = list(free.count)
        self._gangs: list[int] = []  # those to be put on whole nodes, negative, ascending

    def pool_of(self, gpus: Gpus) -> int:
        """Return the pool of GPUs."""
        node = self.cluster.node_of[gpus[0]]
        return -1 if self.pools.at[node][0] == WHOLE else node

    def gpus_of(self, pool: int) -> int:
        """Return how many GPUs each node of a pool has."""
        return self.pools.width if pool < 0 else self.pools.gpus[self.pools.at[pool][0]]

    # --- questions ----------------------------------------------------------------------------

    def has_room_at(self, gpus: Gpus, without: int = 0) -> bool:
        """Tell whether a gang may hold GPUs that nobody holds, if the others find room beside it.

        Parameters
        ----------
        without
            The size of one of the others on the same pool that needs no room; 0: of none.
        """
        pool = self.pool_of(gpus)
        if pool >= 0:
            return self._used[pool] + len(gpus) - without <= self.gpus_of(pool)
        gangs = self._gangs
        if without:
            gangs = list(gangs)
            del gangs[bisect_left(gangs, -without)]
        if not gangs:
            return True
        free, left = list(self._free), list(self._left)
        self._change(gpus, -1, free, left)
        return all(put(free, -gang, self.pools.whole) is not None for gang in gangs)

    def host(self, gang: int) -> int | None:
        """Return the first pool that has room for one more gang; None if none has."""
        for gpus, node in self._rest[bisect_left(self._rest, (gang,)) :]:
            if self._used[node] + gang <= gpus:
                return node
        if not self.pools.whole:
            return None
        gangs, free = list(self._gangs), list(self._free)
        insort(gangs, -gang)
        return -1 if all(put(free, -each, self.pools.whole) is not None for each in gangs) else None

    # --- changes ------------------------------------------------------------------------------

    def hold(self, gpus: Gpus) -> None:
        """Let a gang hold GPUs."""
        pool = self.pool_of(gpus)
        if pool >= 0:
            self._used[pool] += len(gpus)
        else:
            self._change(gpus, -1, self._free, self._left)

    def release(self, gpus: Gpus) -> None:
        """Let a gang hold its GPUs no more."""
        pool = self.pool_of(gpus)
        if pool >= 0:
            self._used[pool] -= len(gpus)
        else:
            self._change(gpus, 1, self._free, self._left)

    def add(self, pool: int, gang: int) -> None:
        """Let a gang be put somewhere on a pool."""
        if pool >= 0:
            self._used[pool] += gang
        else:
            insort(self._gangs, -gang)

    def remove(self, pool: int, gang: int) -> None:
        """Let a gang that was added be nowhere."""
        if pool >= 0:
            self._used[pool] -= gang
        else:
            del self._gangs[bisect_left(self._gangs, -gang)]

    def _change(self, gpus: Gpus, sign: int, free: Free, left: list[int]) -> None:
        node_of, count = self.cluster.node_of, sign * min(len(gpus), self.pools.width)
        first, last = node_of[gpus[0]], node_of[gpus[-1]]
        nodes = [first] if first == last else sorted({node_of[gpu] for gpu in gpus})
        for node in nodes:
            before = left[node]
            after = left[node] = before + count
            free[before] ^= 1 << node
            free[after] ^= 1 << node

    # --- the end ------------------------------------------------------------------------------

    def nodes(self, added: Sequence[tuple[int, int]]) -> list[list[int]]:
        """Return the nodes of gangs that were added, each told by its pool and size."""
        chosen = [[pool] for pool, _ in added]
        on_whole = [n for n, (pool, _) in enumerate(added) if pool < 0]
        free = list(self._free)
        for n in sorted(on_whole, key=lambda n: -added[n][1]):
            nodes = put(free, added[n][1], self.pools.whole)
            assert nodes is not None
            chosen[n] = nodes
        return chosen
