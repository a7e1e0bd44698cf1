r"""EaCO, the nodes of the specification: which of them must be told apart, and what gangs take.

Which node a group has makes no difference, if it does not stay, but how many are in use,
and how many sleep. If the gangs that fit a node divide each other and :math:`K_p`, and nothing runs
on the nodes p now, they are one part: by falling size, from node 0 on, gangs fill node after node,
since what is left of a node is a multiple of every gang to come. If something runs on them, its
nodes are parts of their own; so are all nodes where sizes do not divide, or where gangs of several
nodes, which follow each other, could be cut in two by what stays. (Five gangs of 3 do not fit two
nodes of 8.) Of nodes that are parts of their own only the first (A + B + 1) L are needed, and those
where something runs: A is how many nodes the gangs of all jobs would take one by one, B on how
many something runs, and L how many the largest gang takes; among these nodes there is always a free
stretch of L. Moving a group to a lower number wakes no more nodes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from optsched.models.eaco_figures import fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from optsched.eaco.instance import EacoInstance, Nodes

Key = tuple[str, int]  # of a part: id of the nodes, and the least number in it


class NodePart(NamedTuple):
    """Nodes among which it makes no difference where groups begin.

    Attributes
    ----------
    numbers
        Of its nodes, ascending.
    awake
        How many of them are on now.
    """

    numbers: tuple[int, ...]
    awake: int


def parts_of(instance: EacoInstance, nodes: Nodes) -> dict[int, NodePart]:
    """Return Q: the parts of nodes of one kind, by their least numbers."""
    sizes = [job.gpus for job in instance.jobs if fits(job.gpus, nodes)]
    held = _held(instance, nodes)
    ladder = [*sorted({g for g in sizes if g <= nodes.gpus}), nodes.gpus]
    divide = all(large % small == 0 for small, large in pairwise(ladder))
    longest = max([1, *(g // nodes.gpus for g in sizes)])
    if divide and (longest == 1 or not held):
        rest = [n for n in range(nodes.count) if n not in held]
        groups = [[n] for n in sorted(held)] + ([rest] if rest else [])
    else:
        wanted = sum(max(1, g // nodes.gpus) for g in sizes)
        first = range(min(nodes.count, (wanted + len(held) + 1) * longest))
        groups = [[n] for n in sorted({*first, *held})]
    return {g[0]: NodePart(tuple(g), sum(n < nodes.awake for n in g)) for g in groups}


def _held(instance: EacoInstance, nodes: Nodes) -> set[int]:
    """Return the numbers of nodes on which something runs now."""
    gang = {job.id: job.gpus for job in instance.jobs}
    return {
        place.node + n
        for place in instance.running
        if place.nodes == nodes.id
        for n in range(max(1, gang[place.jobs[0]] // nodes.gpus))
    }


def take(g: int, nodes: Nodes, first: int, parts: Mapping[Key, NodePart]) -> dict[Key, int]:
    """Return k: how many GPUs a gang takes in which parts, if it begins in one of them.

    Nothing if it would end beyond the last node.
    """
    if g <= nodes.gpus or len(parts[nodes.id, first].numbers) > 1:
        return {(nodes.id, first): g}
    keys = [(nodes.id, first + n) for n in range(g // nodes.gpus)]
    return dict.fromkeys(keys, nodes.gpus) if all(key in parts for key in keys) else {}


def beginnings(nodes: Nodes, part: NodePart, gangs: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the size of each gang that begins in a part, and the number of its first node."""
    free = dict.fromkeys(part.numbers, nodes.gpus)
    for g in sorted(gangs, reverse=True):
        yield g, _next(g, nodes, free)


def _next(g: int, nodes: Nodes, free: dict[int, int]) -> int:
    """Take GPUs of the first nodes that have enough; of the last one if none has."""
    need = min(g, nodes.gpus)
    first = next((n for n in free if free[n] >= need), max(free))
    for n in range(first, first + max(1, g // nodes.gpus)):
        free[n] = free.get(n, 0) - need
    return first
