"""A partition of a large cluster into blocks (POP, SOSP 2021), and its jobs dealt out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.exact.subinstance import restricted
from optsched.pal.job_types import JobDemand, slowdown_rows

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.instance import Job, PalInstance


@dataclass(frozen=True)
class GpuBlock:
    """Some GPUs of a cluster, and the jobs that are dealt to it.

    Attributes
    ----------
    gpus
        Numbers of its free GPUs; of alike blocks in an order in which they are alike.
    likeness
        Equal for blocks whose GPUs, in this order, are alike and stand alike, and run no job now.
    jobs
        In the order of their demand, so that equal demands are met alike.
    share
        Of the jobs that run nowhere now.
    running
        Ids of the jobs of the whole cluster that run within one block now.
    spanning
        Jobs of the whole cluster that run in several blocks now, and keep their GPUs.
    taken
        Numbers of these GPUs, in any block.
    """

    gpus: Indices
    likeness: object
    jobs: tuple[Job, ...]
    share: float
    running: frozenset[str]
    spanning: tuple[Job, ...]
    taken: frozenset[int]

    @cached_property
    def open(self) -> Indices:
        """Those of `gpus`, in their order, that no job keeps which runs in several blocks."""
        return np.array([n for n in self.gpus.tolist() if n not in self.taken], dtype=np.intp)

    @cached_property
    def demand(self) -> tuple[object, ...]:
        """What the jobs ask for; of alike blocks with equal demand one plan fits all."""
        return tuple(JobDemand.of(job) for job in self.jobs)

    @cached_property
    def rank(self) -> Indices:
        """Position of each of `gpus` among them by number, as an instance of the block has them."""
        return np.argsort(np.argsort(self.gpus))

    def instance(self, whole: PalInstance, jobs: Sequence[Job]) -> PalInstance:
        """Return the instance of some jobs on all of this block's GPUs."""
        return _on(whole, jobs, self.gpus)

    def to_place(self, whole: PalInstance) -> PalInstance:
        """Return the instance of the block's own jobs on its open GPUs."""
        return _on(whole, self.jobs, self.open)


def _on(whole: PalInstance, jobs: Sequence[Job], gpus: Indices) -> PalInstance:
    names = whole.free_gpus
    return restricted(whole, jobs, {names[n] for n in gpus.tolist()})


def partitioned(instance: PalInstance, most: int) -> list[GpuBlock]:
    """Return blocks of at most so many GPUs each, with all jobs dealt out to them.

    Domains are kept whole as far up the tree as they are small enough; neighbours share a block
    while it is not full. Where the parts are equal nodes of a few classes and no job runs, as many
    blocks as possible get the same of each class, so that one plan serves them all.
    """
    units = _units(instance, most)
    groups = _neighbours(units, most)
    if len(groups) > 1 and _are_nodes_of_one_domain(instance, units):
        groups = _alike(instance, units, most, len(groups)) or groups
    return _dealt(instance, [np.concatenate(group) for group in groups])


def _neighbours(units: list[Indices], most: int) -> list[list[Indices]]:
    """Return units in groups of at most so many GPUs, in their order."""
    groups: list[list[Indices]] = []
    filled = most
    for unit in units:
        if filled + len(unit) > most:
            groups.append([])
            filled = 0
        groups[-1].append(unit)
        filled += len(unit)
    return groups


def _are_nodes_of_one_domain(instance: PalInstance, units: list[Indices]) -> bool:
    topology = instance.topology
    lowest = [domain for domain in topology.domains if domain.level == topology.levels[0]]
    return len({domain.parent for domain in lowest}) == 1 and len(units) <= len(lowest)


def _alike(
    instance: PalInstance, units: list[Indices], most: int, groups: int
) -> list[list[Indices]]:
    """Return groups with equally many units of each class, and of those left over; or none."""
    slowdown = slowdown_rows(instance, instance.profile.classes)[0]
    units_alike: dict[bytes, list[Indices]] = {}
    for unit in units:
        units_alike.setdefault(slowdown[:, unit].tobytes(), []).append(unit)
    each = {look: len(members) // groups for look, members in units_alike.items()}
    is_spread = all(count > 0 for count in each.values())
    if not is_spread or any(job.current for job in instance.jobs):
        return []
    alike = [
        [unit for look, members in units_alike.items() for unit in members[n::groups][: each[look]]]
        for n in range(groups)
    ]
    rest = [
        unit for look, members in units_alike.items() for unit in members[each[look] * groups :]
    ]
    return [*alike, *_neighbours(rest, most)]


def _units(instance: PalInstance, most: int) -> list[Indices]:
    """Return the free GPUs of the largest domains that have at most so many."""
    topology = instance.topology
    free = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
    number = np.array([free.get(gpu, -1) for gpu in topology.gpus], dtype=np.intp)
    inside: dict[str | None, list[int]] = {}
    for n, domain in enumerate(topology.domains):
        inside.setdefault(domain.parent, []).append(n)

    def parts(domain: int) -> Iterator[Indices]:
        numbers = number[topology.gpus_in(domain)]
        numbers = numbers[numbers >= 0]
        children = inside.get(topology.domains[domain].id, [])
        if len(numbers) > most and children:
            for child in children:
                yield from parts(child)
        elif len(numbers):
            yield numbers

    units = [unit for root in inside[None] for unit in parts(root)]
    return sorted(units, key=lambda unit: int(unit[0]))


def _dealt(instance: PalInstance, spans: list[Indices]) -> list[GpuBlock]:
    """Return blocks with the jobs dealt out: running ones keep theirs, others are shared out."""
    number = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
    block_of = np.concatenate([np.full(len(span), p) for p, span in enumerate(spans)])
    block_of = block_of[np.argsort(np.concatenate(spans))]
    free = np.array([float(len(span)) for span in spans])
    jobs: list[list[Job]] = [[] for _ in spans]
    running, spanning = set(), []
    waiting: dict[object, list[Job]] = {}
    for job in instance.jobs:
        if not _can_keep(instance, job, number):
            waiting.setdefault(JobDemand.of(job), []).append(job)
            continue
        homes = block_of[[number[gpu] for gpu in job.current]]
        np.subtract.at(free, homes, 1.0)
        if len(set(homes.tolist())) > 1:
            spanning.append(job)
            continue
        jobs[int(homes[0])].append(job)
        running.add(job.id)
    slowdown, shape = slowdown_rows(instance, instance.profile.classes)[0], _shape(instance)
    for alike in sorted(waiting.values(), key=lambda alike: -alike[0].gpus):
        for job, home in zip(alike, _homes(alike[0].gpus, len(alike), free), strict=True):
            jobs[home].append(job)
    is_idle = not running and not spanning
    return [
        GpuBlock(
            gpus=span,
            likeness=(slowdown[:, span].tobytes(), shape[span[1:]].tobytes()) if is_idle else p,
            jobs=tuple(jobs[p]),
            share=len(span) / len(number),
            running=frozenset(running),
            spanning=tuple(spanning),
            taken=frozenset(number[gpu] for job in spanning for gpu in job.current),
        )
        for p, span in enumerate(spans)
    ]


def _can_keep(instance: PalInstance, job: Job, free: Container[str]) -> bool:
    """Tell whether a job runs, and may go on where it does."""
    if not job.current or any(gpu not in free for gpu in job.current):
        return False
    levels = instance.topology.levels
    top = len(levels) - 1 if job.highest_level is None else levels.index(job.highest_level)
    return instance.topology.lowest_common_level(job.current) <= top


def _homes(size: int, count: int, free: Floats) -> list[int]:
    """Return a block for each of some equal jobs: its share to each, the rest where it fits.

    Blocks with as many free GPUs get equally many, as far as possible; `free` is used up.
    """
    shares = np.floor(count * np.maximum(free, 0) / max(1.0, np.maximum(free, 0).sum()))
    shares = np.minimum(shares, np.maximum(free, 0) // size).astype(int)
    homes = np.repeat(np.arange(len(free)), shares).tolist()
    free -= size * shares
    for _ in range(count - len(homes)):
        fits = np.flatnonzero(free >= size)
        home = int(fits[-1] if len(fits) else np.argmax(free))
        free[home] -= size
        homes.append(home)
    return homes


def _shape(instance: PalInstance) -> Indices:
    """Return for each free GPU at which level it meets the one before it."""
    ancestors = instance.topology.ancestors
    free = set(instance.free_gpus)
    kept = ancestors[[gpu in free for gpu in instance.topology.gpus]]
    before = np.r_[kept[:1], kept[:-1]]
    return np.asarray((kept != before).sum(axis=1), dtype=np.intp)
