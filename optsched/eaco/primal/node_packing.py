"""Bin packing of gangs into nodes, best fit decreasing (Johnson et al., SIAM J. Computing 3, 1974).

From columns to a plan: which jobs of equal ones, and which node for each group. How many GPUs are
used says little about whether gangs can be packed: where best fit fails, all packings are tried. A
gang larger than a node needs whole nodes side by side.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.groups.group_figures import group_of
from optsched.eaco.plan import EacoPlan
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance, Nodes
    from optsched.eaco.plan import Group
    from optsched.search import Search

    Floats = NDArray[np.float64]
    Limits = tuple[int, int]  # of nodes: how many may be in use, and how many of them woken


class Packing(NamedTuple):
    """Outcome of a search: the first node of each gang, or None; and whether all was tried."""

    nodes: list[int] | None
    is_certain: bool


def offer_columns(
    search: Search,
    classes: list[JobClass],
    columns: Columns,
    x: Floats,
    limits: Mapping[str, Limits],
) -> str | None:
    """Offer the plan of columns; return the nodes on which its groups do not fit for certain.

    Parameters
    ----------
    x
        How often each column is in the plan.
    limits
        By nodes, if they are limited; where they are too tight, the plan without is offered.
    """
    instance: Any = search.instance
    groups, waiting = groups_of(instance, classes, columns, np.rint(x).astype(int).tolist())
    packed, where, is_certain = placed(instance, groups, limits)
    if packed is None and limits:
        offer_columns(search, classes, columns, x, {})
    if packed is not None:
        search.offer(EacoPlan(groups=tuple(packed), waiting=tuple(waiting)))
        return None
    return where if is_certain else None


def groups_of(
    instance: EacoInstance, classes: list[JobClass], columns: Columns, times: Sequence[int]
) -> tuple[list[Group], list[str]]:
    """Return groups for columns, each some times, and the jobs that are left."""
    left = {c: list(jobs.jobs) for c, jobs in enumerate(classes)}
    groups = []
    for n, count in enumerate(times):
        for _ in range(count):
            members = columns.members[n]
            at = (int(columns.pool[n]), int(columns.level[n]), int(columns.place[n]))
            names = tuple(left[c].pop(0) for c in members.tolist() if c < len(classes))
            group = group_of(instance, classes, members, *at)
            groups.append(group.model_copy(update={"jobs": names}))
    return groups, [name for names in left.values() for name in names]


def placed(
    instance: EacoInstance, groups: list[Group], limits: Mapping[str, Limits]
) -> tuple[list[Group] | None, str | None, bool]:
    """Give each group a node.

    Returns
    -------
    tuple
        The groups, or None; the nodes of a pool on which they do not fit within the limits, or
        None; and whether that is certain.
    """
    gangs = {job.id: job.gpus for job in instance.jobs}
    done: list[Group] = []
    for nodes in instance.nodes:
        inside = [group for group in groups if group.nodes == nodes.id]
        kept = [g for g in inside if g.location is not None]
        free = sorted((g for g in inside if g.location is None), key=lambda g: -gangs[g.jobs[0]])
        taken = [(g.node, gangs[g.jobs[0]]) for g in kept]
        sizes = [gangs[g.jobs[0]] for g in free]
        limit = limits.get(nodes.id, (nodes.count, nodes.count - nodes.awake))
        packing = pack(nodes, taken, sizes, limit)
        if packing.nodes is None:
            return None, nodes.id, packing.is_certain
        done += kept
        for group, node in zip(free, packing.nodes, strict=True):
            done.append(group.model_copy(update={"node": node}))
    return done, None, True


def pack(nodes: Nodes, kept: list[tuple[int, int]], gangs: list[int], limit: Limits) -> Packing:
    """Pack gangs, the largest first, beside those that keep their nodes."""
    width = [max(1, gang // nodes.gpus) for gang in gangs]
    top = max((node + max(1, gang // nodes.gpus) for node, gang in kept), default=0)
    free = [nodes.gpus] * min(nodes.count, top + sum(width))
    for node, gang in kept:
        for number in range(node, node + max(1, gang // nodes.gpus)):
            free[number] -= min(gang, nodes.gpus)
    search = _Search(nodes, gangs, limit)
    if _over(nodes, free, limit):
        return Packing(None, True)
    first_nodes = search.straight(list(free))
    if first_nodes is not None:
        return Packing(first_nodes, True)
    if len(gangs) > SETTINGS.packed_gangs:
        return Packing(None, False)
    first_nodes = search.through(0, tuple(free))
    return Packing(first_nodes, search.steps < SETTINGS.packing_steps)


def _over(nodes: Nodes, free: Sequence[int], limit: Limits) -> bool:
    used = [n for n, gpus in enumerate(free) if gpus < nodes.gpus]
    most, woken = limit
    return len(used) > most or sum(n >= nodes.awake for n in used) > woken


class _Search:
    def __init__(self, nodes: Nodes, gangs: list[int], limit: Limits) -> None:
        self.nodes, self.gangs, self.limit = nodes, gangs, limit
        self.steps = 0
        self._seen: set[tuple[int, tuple[int, ...]]] = set()

    def straight(self, free: list[int]) -> list[int] | None:
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
