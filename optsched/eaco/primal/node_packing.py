"""From columns to a plan: which jobs of equal ones, and which node for each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.eaco.greedy.node_packing import packed
from optsched.eaco.group_figures import group_of
from optsched.eaco.plan import EacoPlan
from optsched.mip.failures import note_failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.greedy.node_packing import NodeLimits
    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import Group
    from optsched.search import Search

    Floats = NDArray[np.float64]


def offer_columns(
    search: Search,
    classes: list[JobClass],
    columns: Columns,
    x: Floats,
    limits: Mapping[str, NodeLimits],
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
    if _takes_too_many(classes, columns, x):
        note_failure("a point that takes a job twice")
        return None
    groups, waiting = groups_of(instance, classes, columns, np.rint(x).astype(int).tolist())
    packed, where, is_certain = placed(instance, groups, limits)
    if packed is None and limits:
        offer_columns(search, classes, columns, x, {})
    if packed is not None:
        search.offer(EacoPlan(groups=tuple(packed), waiting=tuple(waiting)))
        return None
    return where if is_certain else None


def _takes_too_many(classes: list[JobClass], columns: Columns, x: Floats) -> bool:
    """Tell whether a point, as only a faulty solver has it, takes more jobs than there are."""
    taken = np.zeros(len(classes) + 1)
    np.add.at(taken, columns.members, np.rint(x)[:, np.newaxis])
    return bool((taken[:-1] > [len(c.jobs) for c in classes]).any())


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
    instance: EacoInstance, groups: list[Group], limits: Mapping[str, NodeLimits]
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
        packing = packed(nodes, taken, sizes, limit)
        if packing.nodes is None:
            return None, nodes.id, packing.is_certain
        done += kept
        for group, node in zip(free, packing.nodes, strict=True):
            done.append(group.model_copy(update={"node": node}))
    return done, None, True
