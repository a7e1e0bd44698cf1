"""Bin packing of gangs into nodes, best fit decreasing (Johnson et al., SIAM J. Computing 3, 1974).

How many GPUs are used says little about whether gangs can be packed: where best fit fails, exact
methods try all packings. A gang larger than a node needs whole nodes side by side.
"""

from __future__ import annotations

import itertools
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.greedy.group_costs import Draft, GroupCosts
    from optsched.eaco.instance import Nodes

    NodeLimits = tuple[int, int]  # how many may be in use, and how many of them woken


def fits(costs: GroupCosts, drafts: Sequence[Draft], pool: int) -> bool:
    """Tell whether the groups on a pool of nodes can be packed, by best fit if need be."""
    nodes = costs.nodes[pool]
    inside = [draft for draft in drafts if draft.nodes == pool]
    gangs = [costs.gang(draft) for draft in inside]
    if sum(gangs) > nodes.gpus * nodes.count:
        return False
    is_free = all(draft.location is None for draft in inside)
    sizes = sorted(set(gangs) | {nodes.gpus})
    if is_free and all(large % small == 0 for small, large in itertools.pairwise(sizes)):
        return True  # sorted, each gang finds what is a multiple of it free
    return pack(costs, inside) is not None


def pack(costs: GroupCosts, drafts: Sequence[Draft]) -> list[int] | None:
    """Return the first node of each group, or None if best fit finds none for some.

    Groups at running locations keep these. The others come in order of size, the largest first,
    each on the fullest node in use that has enough, else on one that is on, else on one that must
    be woken.
    """
    numbers = [0] * len(drafts)
    for pool, nodes in enumerate(costs.nodes):
        inside = [(n, costs.gang(draft)) for n, draft in enumerate(drafts) if draft.nodes == pool]
        kept = []
        for n, gang in inside:
            location = drafts[n].location
            if location is not None:
                numbers[n] = costs.places[location].node
                kept.append((numbers[n], gang))
        free = [(n, gang) for n, gang in inside if drafts[n].location is None]
        free.sort(key=lambda entry: -entry[1])
        gangs = [gang for _, gang in free]
        search = _GangSearch(nodes, gangs, (nodes.count, nodes.count))
        first_nodes = search.best_fit(_free(nodes, kept, gangs))
        if first_nodes is None:
            return None
        for (n, _), first in zip(free, first_nodes, strict=True):
            numbers[n] = first
    return numbers


# --- gangs on one pool of nodes ---------------------------------------------------------------


class GangPacking(NamedTuple):
    """Outcome of a search: the first node of each gang, or None; and whether all was tried."""

    nodes: list[int] | None
    is_certain: bool


def packed(
    nodes: Nodes, kept: list[tuple[int, int]], gangs: list[int], limit: NodeLimits
) -> GangPacking:
    """Pack gangs, the largest first, beside those that keep their nodes."""
    free = _free(nodes, kept, gangs)
    search = _GangSearch(nodes, gangs, limit)
    if _over(nodes, free, limit):
        return GangPacking(None, True)
    first_nodes = search.best_fit(list(free))
    if first_nodes is not None:
        return GangPacking(first_nodes, True)
    if len(gangs) > SETTINGS.packed_gangs:
        return GangPacking(None, False)
    first_nodes = search.through(0, tuple(free))
    return GangPacking(first_nodes, search.steps < SETTINGS.packing_steps)


def _free(nodes: Nodes, kept: Sequence[tuple[int, int]], gangs: Sequence[int]) -> list[int]:
    """Return the free GPUs of nodes beside what keeps its own, but for those never needed."""
    top = max((node + max(1, gang // nodes.gpus) for node, gang in kept), default=0)
    wide = sum(max(1, gang // nodes.gpus) for gang in gangs)
    free = [nodes.gpus] * min(nodes.count, top + wide)
    for node, gang in kept:
        for number in range(node, node + max(1, gang // nodes.gpus)):
            free[number] -= min(gang, nodes.gpus)
    return free


def _over(nodes: Nodes, free: Sequence[int], limit: NodeLimits) -> bool:
    used = [n for n, gpus in enumerate(free) if gpus < nodes.gpus]
    most, woken = limit
    return len(used) > most or sum(n >= nodes.awake for n in used) > woken


class _GangSearch:
    def __init__(self, nodes: Nodes, gangs: list[int], limit: NodeLimits) -> None:
        self.nodes, self.gangs, self.limit = nodes, gangs, limit
        self.steps = 0
        self._seen: set[tuple[int, tuple[int, ...]]] = set()

    def best_fit(self, free: list[int]) -> list[int] | None:
        """Put each gang where it fits best, without a second thought."""
        heaps: dict[tuple[int, bool], list[int]] = {}
        for n, gpus in enumerate(free):
            heaps.setdefault((gpus, n >= self.nodes.awake), []).append(n)
        first_nodes = []
        for gang in self.gangs:
            first = self._fullest(gang, free, heaps)
            if first is None:
                return None
            self._take(gang, first, free)
            for n in range(first, first + max(1, gang // self.nodes.gpus)):
                heappush(heaps.setdefault((free[n], n >= self.nodes.awake), []), n)
            first_nodes.append(first)
        return None if _over(self.nodes, free, self.limit) else first_nodes

    def _fullest(
        self, gang: int, free: Sequence[int], heaps: dict[tuple[int, bool], list[int]]
    ) -> int | None:
        """Return the first node for a gang, the fullest; nodes that changed leave their heaps."""
        if gang > self.nodes.gpus:
            return next(self._starts(gang, free), None)
        for key in sorted(key for key in heaps if key[0] >= gang):
            heap = heaps[key]
            while heap and free[heap[0]] != key[0]:
                heappop(heap)
            if heap:
                return heap[0]
        return None

    def through(self, n: int, free: tuple[int, ...]) -> list[int] | None:
        """Try every node for each gang, from the n-th on."""
        if n == len(self.gangs):
            return []
        if (n, free) in self._seen or self.steps >= SETTINGS.packing_steps:
            return None
        self._seen.add((n, free))
        self.steps += 1
        for first in self._starts(self.gangs[n], free):
            after = list(free)
            self._take(self.gangs[n], first, after)
            if _over(self.nodes, after, self.limit):
                continue
            rest = self.through(n + 1, tuple(after))
            if rest is not None:
                return [first, *rest]
        return None

    def _starts(self, gang: int, free: Sequence[int]) -> Iterator[int]:
        """Yield first nodes for a gang, the fullest first; of nodes that are alike only one."""
        whole = self.nodes.gpus
        if gang > whole:
            many = gang // whole
            for n in range(len(free) - many + 1):
                if all(gpus == whole for gpus in free[n : n + many]):
                    yield n
            return
        alike: dict[tuple[int, bool], int] = {}
        for n, gpus in enumerate(free):
            if gpus >= gang:
                alike.setdefault((gpus, n >= self.nodes.awake), n)
        yield from (alike[key] for key in sorted(alike))

    def _take(self, gang: int, first: int, free: list[int]) -> None:
        for n in range(first, first + max(1, gang // self.nodes.gpus)):
            free[n] -= min(gang, self.nodes.gpus)
