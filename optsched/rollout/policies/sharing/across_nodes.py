"""Gangs for which no node has room: across nodes, as `fifo` puts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.free_nodes import FreeNodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.node_pools import NodePools

    Gpus = tuple[int, ...]


def next_across(
    view: View,
    pools: NodePools,
    queue: Sequence[int],
    held: Mapping[int, Gpus],
    places: Mapping[int, Sequence[int]],
    *,
    in_order: bool,
) -> dict[int, Gpus]:
    """Return GPUs of its own for the first job that a rule found no place for; {} if none has any.

    What jobs behind it were given does not count: it comes before them. GPUs that running jobs give
    up by the same decision are not taken.

    Parameters
    ----------
    queue
        The jobs that wait, in order.
    held
        By running job its GPUs.
    places
        By job the GPUs that the rule gives it.
    in_order
        Whether a job that finds no GPUs holds up those behind it. If not, a job that the rule lets
        wait though it has room keeps waiting.
    """
    waiting = [view.demand(job) for job in queue if job not in places]
    asked = waiting[:1] if in_order else waiting
    if not asked or min(asked) > int(view.free.sum()):
        return {}
    free = FreeNodes(pools.cluster)
    moved = (gpus for job, gpus in places.items() if job in held)
    taken = {gpu for gpus in (*held.values(), *moved) for gpu in gpus} | pools.taken
    free.take(sorted(taken))
    usable = sum(1 << node for node, ready in enumerate(view.ready) if ready)
    for job in queue:
        if job in places:
            new = sorted(set(places[job]) - taken)  # it may share those of others
            taken.update(new)
            free.take(new)
            continue
        size = view.demand(job)
        gpus = None
        if _has_memory(view, job) and (in_order or not pools.has_room(free, usable, size)):
            gpus = free.gang(size, usable)
        if gpus is not None:
            return {job: gpus}
        if in_order:
            break
    return {}


def _has_memory(view: View, job: int) -> bool:
    """Tell whether a GPU has the memory that a job takes."""
    most, model = view.scenario.sharing.memory_gb, view.scenario.models.get(view.model(job))
    return most is None or model is None or model.memory_gb <= most
