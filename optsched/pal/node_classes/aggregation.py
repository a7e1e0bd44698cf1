"""Symmetry aggregation (Liberti, Math. Programming 2012): equal nodes form one node class.

Two nodes are in one node class if their free GPUs are equally fast for every application class, in
some order, if the same domains are around them as far up as any gang may spread, and if jobs of the
same types hold the same of their GPUs. Such nodes can change places in any plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.job_types import job_types, slowdown_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.instance import PalInstance
    from optsched.pal.job_types import GangType


NONE = np.iinfo(np.intp).max  # of a GPU that a node does not have


class Held(NamedTuple):
    """A running job of some type that may keep its GPUs of a node, by their positions."""

    type: int
    positions: tuple[int, ...]


class WideKeep(NamedTuple):
    """A running job that may keep its GPUs in several nodes: its number, type, GPUs and level."""

    job: int
    type: int
    gpus: Indices
    level: int


@dataclass(frozen=True)
class NodeClass:
    """Equal nodes.

    Attributes
    ----------
    gpus
        Shape (nodes, positions): numbers of free GPUs; those of one position are equal.
    slowdown
        Shape (rows, positions).
    around
        Domains around the nodes at the levels 1, 2, ..., as far up as a gang may spread.
    keeps, jobs
        What may be kept in each of the nodes; and for each node the numbers of these jobs.
    """

    gpus: Indices
    slowdown: Floats
    around: tuple[int, ...]
    keeps: tuple[Held, ...]
    jobs: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.gpus)


@dataclass(frozen=True)
class NodeClasses:
    """The nodes of a cluster by classes, and the types of jobs.

    Attributes
    ----------
    slowdown
        Shape (rows, GPUs): of each free GPU; classes with equal data share a row.
    wide_keeps
        Nodes in which such a job stands are each of a class of their own.
    """

    types: tuple[GangType, ...]
    slowdown: Floats
    classes: tuple[NodeClass, ...]
    wide_keeps: tuple[WideKeep, ...]

    @property
    def type_keys(self) -> list[object]:
        """What types of jobs have in common with those of other epochs."""
        return [jobs.key for jobs in self.types]

    @property
    def class_keys(self) -> list[object]:
        """What node classes have in common with those of other epochs."""
        return [(each.slowdown.tobytes(), each.keeps) for each in self.classes]

    @property
    def largest(self) -> int:
        """Free GPUs of the largest node."""
        return max(len(node_class.gpus[0]) for node_class in self.classes)

    def besides(self, gpus: int) -> list[Indices]:
        """Return the numbers of the nodes of each class, but for some with so many GPUs in all.

        Those in which wide jobs run are set aside first, those in which others run last.
        """
        if gpus <= 0:
            return [np.arange(node_class.count) for node_class in self.classes]
        wide = {int(gpu) for keep in self.wide_keeps for gpu in keep.gpus}
        listed = []
        for k, node_class in enumerate(self.classes):
            is_wide = bool(wide) and not wide.isdisjoint(node_class.gpus.ravel().tolist())
            order = -1 if is_wide else len(node_class.keeps)
            listed += [(order, int(node[0]), k, n) for n, node in enumerate(node_class.gpus)]
        aside: list[set[int]] = [set() for _ in self.classes]
        for _, _, k, n in sorted(listed):
            if gpus <= 0:
                break
            aside[k].add(n)
            gpus -= self.classes[k].gpus.shape[1]
        return [
            np.array([n for n in range(node_class.count) if n not in aside[k]], dtype=np.intp)
            for k, node_class in enumerate(self.classes)
        ]


def aggregated(instance: PalInstance) -> NodeClasses:
    """Return the nodes of an instance by classes."""
    names = sorted({job.application_class for job in instance.jobs})  # whatever the order of jobs
    slowdown, rows = slowdown_rows(instance, names)
    types = tuple(sorted(job_types(instance, rows), key=lambda jobs: jobs.key))
    homes = _homes(instance)
    gpus, codes = _positions(homes[:, 0], _codes(slowdown))
    narrow, wide = _keeps(instance, types, homes, gpus)
    running = _running(narrow, wide, gpus)
    top = max((_reach(jobs) for jobs in types), default=0)
    around = homes[gpus[:, 0], 1 : top + 1]
    keys = np.concatenate([around[:, ::-1], codes, running[:, None]], axis=1)
    class_of = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    members = np.split(np.argsort(class_of, kind="stable"), np.cumsum(np.bincount(class_of))[:-1])
    classes = tuple(_node_class(slowdown, gpus[same], around, same, narrow) for same in members)
    return NodeClasses(types, slowdown, classes, tuple(wide))


def _node_class(
    slowdown: Floats,
    gpus: Indices,
    around: Indices,
    nodes: Indices,
    narrow: dict[int, list[tuple[Held, int]]],
) -> NodeClass:
    gpus = gpus[:, gpus[0] != NONE]
    held = [narrow.get(n, []) for n in nodes.tolist()] if int(nodes[0]) in narrow else []
    return NodeClass(
        gpus=gpus,
        slowdown=slowdown[:, gpus[0]],
        around=tuple(around[nodes[0]].tolist()),
        keeps=tuple(keep for keep, _ in held[0]) if held else (),
        jobs=tuple(tuple(job for _, job in one) for one in held),
    )


def _reach(jobs: GangType) -> int:
    """Return the highest level at which a gang's GPUs may meet."""
    return int(np.isfinite(jobs.factor).sum()) - 1 if jobs.gpus > 1 else 0


def _homes(instance: PalInstance) -> Indices:
    """Return the domain around each free GPU at each level."""
    topology = instance.topology
    if len(instance.free_gpus) == len(topology.gpus):
        return topology.ancestors
    free = set(instance.free_gpus)
    return np.asarray(topology.ancestors[[gpu in free for gpu in topology.gpus]])


def _codes(slowdown: Floats) -> Indices:
    """Return a number for each GPU, equal for GPUs that are equally fast for every class."""
    codes = np.zeros(slowdown.shape[1], dtype=np.intp)
    for row in slowdown:
        values, inverse = np.unique(row, return_inverse=True)
        codes = np.unique(codes * len(values) + inverse, return_inverse=True)[1]
    return codes


def _positions(homes: Indices, codes: Indices) -> tuple[Indices, Indices]:
    """Return GPUs and their codes by node and position, from the least code on."""
    starts, sizes = _lengths(homes)
    gpus = starts[:, None] + np.arange(sizes.max())
    exists = np.arange(sizes.max()) < sizes[:, None]
    padded = np.where(exists, codes[np.minimum(gpus, len(codes) - 1)], NONE)
    order = np.argsort(padded, axis=1, kind="stable")
    gpus = np.where(exists, gpus, NONE)
    return np.take_along_axis(gpus, order, 1), np.take_along_axis(padded, order, 1)


# --- running jobs -----------------------------------------------------------------------------


def _keeps(
    instance: PalInstance, types: tuple[GangType, ...], homes: Indices, gpus: Indices
) -> tuple[dict[int, list[tuple[Held, int]]], list[WideKeep]]:
    """Return what may be kept by node, in an order in which alike nodes are alike; and wide."""
    narrow: dict[int, list[tuple[Held, int]]] = {}
    wide: list[WideKeep] = []
    node_of, position_of = np.empty(len(homes), dtype=np.intp), np.empty(len(homes), dtype=np.intp)
    exists = gpus != NONE
    node_of[gpus[exists]], position_of[gpus[exists]] = np.nonzero(exists)
    for job, t, held in _holdings(instance, types):
        level = int(np.flatnonzero((homes[held] == homes[held[0]]).all(axis=0))[0])
        if types[t].factor[level] == np.inf:
            continue
        if level:
            wide.append(WideKeep(job, t, held, level))
            continue
        keep = Held(t, tuple(sorted(position_of[held].tolist())))
        narrow.setdefault(int(node_of[held[0]]), []).append((keep, job))
    for keeps in narrow.values():
        keeps.sort()
    return narrow, wide


def _holdings(
    instance: PalInstance, types: tuple[GangType, ...]
) -> Iterator[tuple[int, int, Indices]]:
    """Yield the number, type and GPUs of each running job for which staying is worth something."""
    number: dict[str, int] = {}
    for t, jobs in enumerate(types):
        if not jobs.moving:
            continue  # keeping then costs as much as being placed there again
        number = number or {gpu: n for n, gpu in enumerate(instance.free_gpus)}
        for n in jobs.jobs:
            current = instance.jobs[n].current
            if all(gpu in number for gpu in current):
                yield n, t, np.sort(np.array([number[gpu] for gpu in current], dtype=np.intp))


def _running(
    narrow: dict[int, list[tuple[Held, int]]], wide: list[WideKeep], gpus: Indices
) -> Indices:
    """Return a number for each node, equal where the same may be kept; 0 if nothing."""
    numbers: dict[object, int] = {}
    running = np.zeros(len(gpus), dtype=np.intp)
    for node, keeps in narrow.items():
        key = tuple(keep for keep, _ in keeps)
        running[node] = numbers.setdefault(key, len(numbers) + 1)
    for keep in wide:
        for node in np.flatnonzero(np.isin(gpus, keep.gpus).any(axis=1)).tolist():
            running[node] = numbers.setdefault(node, len(numbers) + 1)
    return running


def sizes(instance: PalInstance) -> Indices:
    """Return the number of free GPUs of each node."""
    homes = _homes(instance)[:, 0]
    return _lengths(homes)[1]


def _lengths(homes: Indices) -> tuple[Indices, Indices]:
    """Return where each node begins, and how many GPUs it has."""
    starts = np.flatnonzero(np.r_[True, homes[1:] != homes[:-1]])
    return starts, np.diff(starts, append=len(homes))
