"""Sets of a cluster's GPUs as one integer, in which nodes are counted all at once.

Arithmetic on a word of several fields: Knuth, The Art of Computer Programming 4A, 7.1.3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from optsched.rollout.policies.node_sets import members
from optsched.rollout.policies.rounds.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.rollout.physics.cluster import Cluster

    Part = tuple[int, tuple[int, ...]]  # a set of GPUs of one node, and their numbers

MOST_MASKS, MOST_PARTS = 1 << 12, 1 << 14
"""For how many of which what follows from them is remembered: masks, and masks of a node."""


class Lanes:
    """A lane of bits for each node: one for each GPU, and above them the guard of the lane.

    No set of GPUs has a guard in it, so sums and differences of lanes do not reach the next one. A
    set of nodes is that of their guards.

    Attributes
    ----------
    bits
        Of all lanes.
    everything
        All GPUs.
    first_gpu
        By node the number of its first GPU.
    guard
        By node the set of it alone.
    part
        By node and which of its GPUs, these as a set and their numbers.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.first_gpu = cluster.first
        self._most = cluster.largest
        self._width = cluster.largest + 1
        self.bits = cluster.nodes * self._width
        self._lane = (1 << cluster.largest) - 1
        self._lowest = sum(1 << node * self._width for node in range(cluster.nodes))
        self._full = self._lowest * self._lane
        self._guards = self._lowest << cluster.largest
        self.guard = [1 << node * self._width + cluster.largest for node in range(cluster.nodes)]
        self._bit_of = [
            node * self._width + n for node, size in enumerate(cluster.size) for n in range(size)
        ]
        self.everything = self.set_of(range(cluster.gpus))
        self.part: Remembered[tuple[int, int], Part] = Remembered(self._part, MOST_PARTS)

    def set_of(self, gpus: Iterable[int]) -> int:
        """Return the set of GPUs with some numbers."""
        return sum(1 << self._bit_of[gpu] for gpu in gpus)

    def nodes(self, gpus: int) -> int:
        """Return the nodes of a set of GPUs."""
        return (gpus + self._full) & self._guards

    def whole(self, nodes: int) -> int:
        """Return the lanes of some nodes."""
        return nodes - (nodes >> self._most)

    def upto(self, node: int) -> int:
        """Return the lanes of the nodes up to one of them, with their guards."""
        return (1 << (node + 1) * self._width) - 1

    def rest(self, gpus: int) -> int:
        """Return a set without the first GPU of each node."""
        return gpus & ((gpus | self._guards) - self._lowest)

    def with_at_least(self, gpus: int, count: int) -> int:
        """Return a set without the first GPUs of each node: those with so many of it are left."""
        for _ in range(count - 1):
            if not gpus:
                break
            gpus = self.rest(gpus)
        return gpus

    def having(self, gpus: int, count: int) -> int:
        """Return the nodes that have at least so many GPUs of a set."""
        missing = self._most - count
        if missing < 0:
            return 0
        if missing + 1 < count:  # it is quicker to count those that are not in the set
            return self._guards ^ self.nodes(self.with_at_least(self._full ^ gpus, missing + 1))
        return self.nodes(self.with_at_least(gpus, count))

    def scarcest(self, gpus: int) -> tuple[int, bool]:
        """Return the first node of those with the fewest GPUs of a set; whether it has just one.

        It is what `fewest` would tell, with fewer steps where it has one, as is usual.
        """
        rest = gpus & ((gpus | self._guards) - self._lowest)
        ones = ((gpus + self._full) ^ (rest + self._full)) & self._guards
        nodes = ones or self.fewest(rest)
        return (nodes & -nodes).bit_length() // self._width - 1, ones > 0

    def around(self, gpus: int) -> int:
        """Return the lanes of the nodes of some GPUs."""
        nodes = (gpus + self._full) & self._guards
        return nodes - (nodes >> self._most)

    def fewest(self, gpus: int) -> int:
        """Return the nodes that have the least number of GPUs of a set, at least one."""
        having = self.nodes(gpus)
        while True:
            gpus = self.rest(gpus)
            more = self.nodes(gpus)
            if more != having:
                return having ^ more

    def most(self, gpus: int) -> int:
        """Return the nodes that have the greatest number of GPUs of a set."""
        missing = self._full ^ gpus
        having = self.nodes(missing)
        while having == self._guards:
            missing = self.rest(missing)
            having = self.nodes(missing)
        return self._guards ^ having

    def by_count(self, gpus: int, least: int = 1) -> Iterator[tuple[int, int]]:
        """Yield (number, nodes that have just so many GPUs of a set), ascending."""
        gpus, count = self.with_at_least(gpus, least), least
        fitting = self.nodes(gpus)
        while fitting:
            gpus = self.rest(gpus)
            more = self.nodes(gpus)
            if more != fitting:
                yield count, fitting ^ more
            fitting = more
            count += 1

    def nearest(self, gpus: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield (distance, nodes) of a set, those first that have most nearly so many of it."""
        if size >= self._most:  # it is quicker to count those that are not in the set
            unlike, others = size - self._most, self._full ^ gpus
            whole = self._guards ^ self.nodes(others)
            if whole:
                yield unlike, whole
            for missing, nodes in self.by_count(others):
                if missing < self._most:
                    yield unlike + missing, nodes
            return
        below: list[tuple[int, int]] = []  # the nearest one last
        for count, nodes in self.by_count(gpus):
            if count < size:
                below.append((size - count, nodes))
                continue
            distance, having = count - size, nodes
            while below and below[-1][0] <= distance:
                nearer, others = below.pop()
                if nearer == distance:
                    having |= others
                else:
                    yield nearer, others
            yield distance, having
        yield from reversed(below)

    def first(self, nodes: int) -> int:
        """Return the first node of a set."""
        return (nodes & -nodes).bit_length() // self._width - 1

    def members(self, nodes: int) -> Iterator[int]:
        """Yield the nodes of a set, ascending."""
        while nodes:
            lowest = nodes & -nodes
            yield lowest.bit_length() // self._width - 1
            nodes ^= lowest

    def mask(self, gpus: int, node: int) -> int:
        """Return which GPUs of a node are in a set: bit n for its n-th one."""
        return gpus >> node * self._width & self._lane

    def _part(self, node: int, mask: int) -> Part:
        """Return some GPUs of a node."""
        first = self.first_gpu[node]
        return mask << node * self._width, tuple([first + n for n in members(mask)])

    def numbers(self, gpus: int) -> tuple[int, ...]:
        """Return the numbers of the GPUs of a set, ascending."""
        nodes = self.members(self.nodes(gpus))
        return tuple([gpu for node in nodes for gpu in self.part[node, self.mask(gpus, node)][1]])


@lru_cache(MOST_MASKS)
def lowest(mask: int, count: int) -> int:
    """Return the first GPUs of a mask, so many of them."""
    rest = mask
    for _ in range(count):
        rest &= rest - 1
    return mask ^ rest
