"""Bin packing of gangs, best fit decreasing (Johnson et al., SIAM Journal on Computing 3, 1974)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.greedy.group_costs import Draft, GroupCosts


def fits(estimates: GroupCosts, drafts: Sequence[Draft], pool: int) -> bool:
    """Tell whether the groups on a pool of nodes can be packed, by best fit if need be."""
    nodes = estimates.nodes[pool]
    inside = [draft for draft in drafts if draft.nodes == pool]
    gangs = [estimates.gang(draft) for draft in inside]
    if sum(gangs) > nodes.gpus * nodes.count:
        return False
    is_free = all(draft.location is None for draft in inside)
    sizes = sorted(set(gangs) | {nodes.gpus})
    if is_free and all(large % small == 0 for small, large in itertools.pairwise(sizes)):
        return True  # sorted, each gang finds room that is a multiple of it
    return pack(estimates, inside) is not None


def pack(estimates: GroupCosts, drafts: Sequence[Draft]) -> list[int] | None:
    """Return the first node of each group, or None if some group finds no room.

    Groups at running locations keep these. The others come in order of size, the largest first,
    each on the fullest node in use that has room, else on one that is on, else on one that must be
    woken.
    """
    numbers = [0] * len(drafts)
    for pool in range(len(estimates.nodes)):
        inside = [n for n, draft in enumerate(drafts) if draft.nodes == pool]
        if inside and not _pack_pool(estimates, drafts, inside, numbers):
            return None
    return numbers


def _pack_pool(
    estimates: GroupCosts, drafts: Sequence[Draft], inside: list[int], numbers: list[int]
) -> bool:
    """Write the nodes of the groups on one pool; return whether all of them found room."""
    nodes = estimates.pool(drafts[inside[0]])
    free = [nodes.gpus] * nodes.count
    inside.sort(key=lambda n: (drafts[n].location is None, -estimates.gang(drafts[n])))
    for n in inside:
        gang, location = estimates.gang(drafts[n]), drafts[n].location
        if location is not None:
            first: int | None = estimates.places[location].node
        elif gang > nodes.gpus:
            first = _empty_run(free, nodes.gpus, gang // nodes.gpus)
        else:
            first = _best_fit(free, nodes.gpus, gang)
        if first is None:
            return False
        for number in range(first, first + max(1, gang // nodes.gpus)):
            free[number] -= min(gang, nodes.gpus)
        numbers[n] = first
    return True


def _best_fit(free: list[int], whole: int, gang: int) -> int | None:
    """Return the fullest node that has room; nodes that are on come first, being numbered so."""
    partly_free = [gpus for gpus in free if gang <= gpus < whole]
    wanted = min(partly_free) if partly_free else whole
    return free.index(wanted) if wanted in free else None


def _empty_run(free: list[int], whole: int, count: int) -> int | None:
    """Return the first of so many empty nodes in a row."""
    for first in range(len(free) - count + 1):
        if all(gpus == whole for gpus in free[first : first + count]):
            return first
    return None
