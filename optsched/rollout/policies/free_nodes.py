"""Free GPUs by node, kept up to date by a policy itself: finding a place takes no array.

A whole number stands for a set: bit n for node n, or for the n-th GPU of a node.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.policies.node_sets import domain_sets, members

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.rollout.physics.cluster import Cluster

ALL = -1
"""The set of all nodes."""

NO_LIMIT = 1 << 40
MOST_STAGES = 20  # of relaxing: from the last one on a gang accepts any place
STAGES_OF_A_LEVEL = 10


class FreeNodes(Restorable):
    """Which GPUs are free, by node, and which nodes have so many of them.

    Attributes
    ----------
    count
        By node, how many of its GPUs are free.
    nodes_with
        By number of GPUs, the set of nodes with exactly so many free.
    total
        Free GPUs of the cluster.
    is_spread
        Whether a gang of two GPUs or more on one node gets the emptiest one, not the fullest that
        has room as single GPUs do.
    doubles
        Whether a gang that relaxes accepts twice as many nodes, not one more.
    released
        How often GPUs were released: what did not fit cannot fit before this changes.
    """

    changing = ("count", "total", "released", "_free")

    def __init__(self, cluster: Cluster, is_spread: bool = False, doubles: bool = True) -> None:
        self.is_spread, self.doubles = is_spread, doubles
        self.first = cluster.first
        self.node_of = cluster.node_of
        self.count = list(cluster.size)
        self.total = sum(self.count)
        self.released = 0
        self.nodes_with = [0] * (cluster.largest + 1)
        for node, size in enumerate(cluster.size):
            self.nodes_with[size] |= 1 << node
        self._all = (1 << cluster.nodes) - 1
        self._free = [(1 << size) - 1 for size in cluster.size]
        self._domains = [domain_sets(column) for column in cluster.ancestors[1:]]
        self._sizes = list(cluster.size)
        self._largest_first = sorted(cluster.size, reverse=True)
        self._least: dict[int, int] = {}
        self._levels: dict[int, int] = {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; which nodes have so many free GPUs follows from it."""
        super().restore(state)
        self.nodes_with = [0] * len(self.nodes_with)
        for node, count in enumerate(self.count):
            self.nodes_with[count] |= 1 << node

    @property
    def some_free(self) -> int:
        """The set of nodes with free GPUs."""
        return self._all ^ self.nodes_with[0]

    def take(self, gpus: Sequence[int]) -> None:
        """Mark free GPUs as in use."""
        for node, mask in self._by_node(gpus):
            self._free[node] -= mask
            self._count(node, -mask.bit_count())
        self.total -= len(gpus)

    def release(self, gpus: Sequence[int]) -> None:
        """Mark GPUs in use as free."""
        for node, mask in self._by_node(gpus):
            self._free[node] += mask
            self._count(node, mask.bit_count())
        self.total += len(gpus)
        self.released += 1

    def are_free(self, gpus: Sequence[int]) -> bool:
        """Tell whether none of some GPUs is in use."""
        return all(self._free[node] & mask == mask for node, mask in self._by_node(gpus))

    def _by_node(self, gpus: Sequence[int]) -> list[tuple[int, int]]:
        """Return which GPUs of which node they are; they come in ascending order."""
        first, node_of, count = self.first, self.node_of, len(gpus)
        last = node_of[gpus[-1]] if count else -1
        if count and last == node_of[gpus[0]] and gpus[-1] - gpus[0] == count - 1:  # mostly
            return [(last, (1 << count) - 1 << gpus[0] - first[last])]
        nodes, begin = [], 0
        while begin < count:
            lowest = gpus[begin]
            node = node_of[lowest]
            upto = first[node] + self._sizes[node]
            end = count if node == last else bisect_left(gpus, upto, begin)
            if gpus[end - 1] - lowest == end - begin - 1:  # side by side
                mask = (1 << end - begin) - 1 << lowest - first[node]
            else:
                mask = sum([1 << gpu - first[node] for gpu in gpus[begin:end]])
            nodes.append((node, mask))
            begin = end
        return nodes

    def _count(self, node: int, change: int) -> None:
        count, bit = self.count[node], 1 << node
        self.nodes_with[count] ^= bit
        self.nodes_with[count + change] ^= bit
        self.count[node] = count + change

    def best_fit(self, size: int, nodes: int = ALL) -> int:
        """Return the first node with the fewest free GPUs of those with enough; -1 without one."""
        for candidates in self.nodes_with[size:]:
            candidates &= nodes
            if candidates:
                return (candidates & -candidates).bit_length() - 1
        return -1

    def emptiest(self, size: int, nodes: int = ALL) -> int:
        """Return the first node with the most free GPUs if they are enough; -1 without one."""
        for candidates in reversed(self.nodes_with[size:]):
            candidates &= nodes
            if candidates:
                return (candidates & -candidates).bit_length() - 1
        return -1

    def gpus(self, node: int, size: int) -> tuple[int, ...]:
        """Return the first free GPUs of a node."""
        free, first = self._free[node], self.first[node] - 1
        lowest, side_by_side = free & -free, (1 << size) - 1
        if free // (lowest or 1) & side_by_side == side_by_side:
            begin = first + lowest.bit_length()
            return tuple(range(begin, begin + size))
        chosen = []
        for _ in range(size):
            lowest = free & -free
            chosen.append(first + lowest.bit_length())
            free -= lowest
        return tuple(chosen)

    def lowest(self, count: int, nodes: int = ALL) -> list[int]:
        """Return the first free GPUs of a set of nodes, all if too few."""
        chosen: list[int] = []
        for node in members(self.some_free & nodes):
            left = count - len(chosen)
            if not left:
                break
            chosen += self.gpus(node, min(left, self.count[node]))
        return chosen

    def exchange(self, back: list[int], count: int, nodes: int = ALL) -> list[int]:
        """Mark GPUs in use as free, then the first free ones of a set of nodes as in use.

        Return the latter, all if too few. What comes back and is taken again is left alone.
        """
        back.sort()
        found = self.lowest(count, nodes)
        if nodes != ALL:
            node_of = self.node_of
            self.release([gpu for gpu in back if not nodes >> node_of[gpu] & 1])
            back = [gpu for gpu in back if nodes >> node_of[gpu] & 1]
        chosen = sorted(found + back)[:count]
        last = chosen[-1] if chosen else -1
        self.take(found[: bisect_right(found, last)])
        self.release(back[bisect_right(back, last) :])
        return chosen

    def gang(
        self, size: int, nodes: int = ALL, most_nodes: int = NO_LIMIT, level: int = NO_LIMIT
    ) -> tuple[int, ...] | None:
        """Return free GPUs for a gang: the best fit of one node, or else few nodes close together.

        Several nodes are sought in one domain of the lowest level that has room, the domain with
        the fewest free GPUs that suffice. In it the nodes with the most free GPUs are used up,
        until one suffices for what is left: the best fit.

        Parameters
        ----------
        nodes
            The set of nodes that may be used.
        most_nodes
            Over how many nodes the gang may be spread.
        level
            The highest level at which its nodes may meet; 0: one node.
        """
        if size > self.total:
            return None
        seek = self.emptiest if self.is_spread and size > 1 else self.best_fit
        node = seek(size, nodes)
        if node >= 0:
            return self.gpus(node, size)
        if most_nodes == 1:
            return None
        for domains in self._domains[:level]:
            for domain in self._fullest_first(domains, nodes, size):
                shares = self._shares(size, domain, most_nodes)
                if shares is not None:
                    chosen = (gpu for n, share in shares for gpu in self.gpus(n, share))
                    return tuple(sorted(chosen))
        return None

    def domains(self, level: int) -> Iterator[int]:
        """Yield the set of nodes of each domain up to a level, the lowest level first."""
        for domains in self._domains[:level]:
            yield from domains

    def least_nodes(self, size: int) -> int:
        """Return how many nodes a gang needs in an empty cluster."""
        if size not in self._least:
            left, count = size, 0
            while left > 0 and count < len(self._sizes):
                left -= self._largest_first[count]
                count += 1
            self._least[size] = count
        return self._least[size]

    def least_level(self, size: int) -> int:
        """Return the lowest level with a domain that is large enough for a gang."""
        if size not in self._levels:
            self._levels[size] = self._find_level(size)
        return self._levels[size]

    def _find_level(self, size: int) -> int:
        if not self._sizes or size <= self._largest_first[0]:
            return 0
        for level, domains in enumerate(self._domains, start=1):
            if any(sum(self._sizes[n] for n in members(nodes)) >= size for nodes in domains):
                return level
        return len(self._domains)

    def worst_place(self, size: int, stage: int) -> tuple[int, int]:
        """Return over how many nodes, in a domain of which level, a gang at a stage may be spread.

        At first it wants as few nodes as hold it, in a domain of the lowest level that is large
        enough. At each stage it accepts twice as many nodes and one level more; or one node more,
        where it leaves one node for a domain of them, but this domain only after ten stages.
        """
        least, level = self.least_nodes(size), self.least_level(size)
        if self.doubles:
            nodes, level = least << stage, level + stage
        else:
            nodes = least + stage if stage < MOST_STAGES else size
            level = max(level, min(stage, 1)) + stage // STAGES_OF_A_LEVEL
        return min(nodes, size, len(self._sizes)), min(level, len(self._domains))

    def _fullest_first(self, domains: list[int], nodes: int, size: int) -> list[int]:
        """Return nodes of the domains that have room, those with the fewest free GPUs first."""
        found = []
        for domain in domains:
            within = domain & nodes
            free = self._free_in(within)
            if free >= size:
                found.append((free, within))
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        return [within for _, within in found]

    def _free_in(self, nodes: int) -> int:
        total = 0
        for free, group in enumerate(self.nodes_with[1:], start=1):
            total += free * (group & nodes).bit_count()
        return total

    def _shares(self, size: int, nodes: int, most: int) -> list[tuple[int, int]] | None:
        """Return (node, GPUs), the node with the most free GPUs first; None if on too many nodes.

        They have room.
        """
        shares = list[tuple[int, int]]()
        while size and len(shares) < most:
            node = self.best_fit(size, nodes)
            if node < 0:
                node = self._fullest(nodes)
            share = min(size, self.count[node])
            shares.append((node, share))
            nodes &= ~(1 << node)
            size -= share
        return None if size else shares

    def _fullest(self, nodes: int) -> int:
        """Return the first of the nodes with the most free GPUs."""
        for group in reversed(self.nodes_with):
            if group & nodes:
                common = group & nodes
                return (common & -common).bit_length() - 1
        raise LookupError("there is no node to choose from")
