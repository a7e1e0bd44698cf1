"""From rows of job classes to groups, and whether one near to a limit keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.groups.enumeration import memory_fits
from optsched.eaco.plan import Group

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.verify.group_energy import ExactFigures

    Indices = NDArray[np.intp]


def group_of(
    instance: EacoInstance,
    classes: list[JobClass],
    members: Indices,
    pool: int,
    level: int,
    place: int,
) -> Group:
    """Return a group of the first jobs of the classes, on the first node that is possible."""
    names: list[str] = []
    for c in members.tolist():
        if c < len(classes):
            names.append(next(name for name in classes[c].jobs if name not in names))
    nodes = instance.nodes[pool]
    gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
    return Group(
        jobs=tuple(names),
        nodes=nodes.id,
        node=0 if place < 0 else instance.running[place].node,
        level=None if level < 0 else gpu.levels[level].id,
        location=None if place < 0 else instance.running[place].id,
    )


def is_allowed(
    figures: ExactFigures,
    classes: list[JobClass],
    members: Indices,
    pool: int,
    level: int = -1,
    place: int = -1,
) -> bool:
    """Decide exactly about a group that is near to a limit."""
    instance = figures.instance
    nodes = instance.nodes[pool]
    group = group_of(instance, classes, members, pool, level, place)
    if not memory_fits(figures, group.jobs, nodes.gpu):
        return False
    rates = figures.rates(group.jobs, nodes)
    limit = instance.utilisation_limit
    if len(group.jobs) > 1 and (
        not rates.fits or (limit is not None and figures.utilisation(group.jobs, nodes) > limit)
    ):
        return False
    for jobs in (classes[c] for c in dict.fromkeys(members.tolist()) if c < len(classes)):
        most = jobs.job.max_slowdown
        if most is not None and figures.slowdown(jobs.job, group) > most:
            return False
        if jobs.due is not None and figures.latest_s(jobs.job, group) > jobs.due:
            return False
    return True
