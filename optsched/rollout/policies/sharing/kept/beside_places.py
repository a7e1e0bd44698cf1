"""Gangs without a place where a rule parts all jobs anew: across nodes, over kept groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.free_nodes import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from optsched.rollout.policies.sharing.kept.groups import KeptGroups, Member

    Gpus = tuple[int, ...]


def usable_nodes(ready: Sequence[bool]) -> int:
    """Return the set of nodes that are ready."""
    return ALL if all(ready) else sum(1 << n for n, is_ready in enumerate(ready) if is_ready)


def next_beside(
    groups: KeptGroups,
    line: Iterable[Member],
    place: Mapping[int, Gpus],
    usable: int,
    has_memory: Callable[[Member], bool],
    *,
    in_order: bool,
) -> tuple[Member, Gpus] | None:
    """Return the first job without a place that finds GPUs of its own, and these.

    As `optsched.rollout.policies.sharing.across_nodes.next_across`, which begins from who holds
    what; here the GPUs that are free are known.

    Parameters
    ----------
    line
        The jobs that wait, in order.
    place
        By job the GPUs that the rule gives it.
    usable
        The set of nodes that may be used.
    """
    free, pools = groups.free, groups.pools
    taken: list[Gpus] = []
    vain = set[int]()  # sizes for which there is nothing, since GPUs were last taken

    def take(gpus: Gpus) -> None:
        taken.append(tuple(gpu for gpu in gpus if free.are_free((gpu,))))
        free.take(taken[-1])
        vain.clear()

    def found() -> tuple[Member, Gpus] | None:
        for member in line:
            size = member.gang
            if member.job in place:
                take(place[member.job])
                continue
            if size not in vain and has_memory(member):
                is_sought = in_order or not pools.has_room(free, usable, size)
                gpus = free.gang(size, usable) if is_sought else None
                if gpus is not None:
                    return member, gpus
                vain.add(size)
            if in_order:
                break
        return None

    for job, gpus in place.items():
        if job in groups.of:
            take(gpus)
    chosen = found()
    for gpus in taken:
        free.release(gpus)
    return chosen
