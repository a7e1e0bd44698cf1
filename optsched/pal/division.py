"""Pods: a large cluster divided into parts that stand together, and the jobs dealt out to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.instance import PalInstance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.pal.instance import Job

    Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Pod:
    """Some GPUs of a cluster, and the jobs that are dealt to it.

    Attributes
    ----------
    gpus
        Numbers of its free GPUs, ascending.
    kind
        Equal for pods whose GPUs are alike and stand alike, and on which no job runs now.
    jobs
        In the order of their demand, so that equal demands are met alike.
    share
        Of the jobs that run nowhere now.
    rooted
        Ids of the jobs of the whole cluster that run within one pod now.
    """

    gpus: Indices
    kind: object
    jobs: tuple[Job, ...]
    share: float
    rooted: frozenset[str]

    @cached_property
    def demand(self) -> tuple[object, ...]:
        """What the jobs ask for; of pods of one kind and equal demand one plan fits all."""
        return tuple(_demand(job) for job in self.jobs)

    def instance(self, whole: PalInstance, jobs: Sequence[Job]) -> PalInstance:
        """Return the instance of some jobs on this pod's GPUs."""
        inside = set(self.gpus.tolist())
        others = (gpu for n, gpu in enumerate(whole.free_gpus) if n not in inside)
        fields = {name: getattr(whole, name) for name in type(whole).model_fields}
        fields |= {"jobs": tuple(jobs), "unavailable": (*whole.unavailable, *others)}
        return PalInstance.model_construct(**fields)


def divided(instance: PalInstance, most: int) -> list[Pod]:
    """Return pods of at most so many GPUs each, with all jobs dealt out to them.

    Domains are kept whole as far up the tree as they are small enough; neighbours share a pod while
    there is room. Where the parts are equal nodes of a few kinds below one domain, each pod gets
    the same mix of them.
    """
    units = _mixed(instance, _units(instance, most), most)
    spans, filled = [[units[0]]], len(units[0])
    for unit in units[1:]:
        if filled + len(unit) > most:
            spans.append([])
            filled = 0
        spans[-1].append(unit)
        filled += len(unit)
    return _dealt(instance, [np.sort(np.concatenate(span)) for span in spans])


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


def _mixed(instance: PalInstance, units: list[Indices], most: int) -> list[Indices]:
    """Return units in an order in which equal ones are spread evenly, if there are few kinds."""
    slowdown = _slowdowns(instance)
    kinds = [slowdown[:, unit].tobytes() for unit in units]
    count = Counter(kinds)
    per_pod = max(1, most // max(len(unit) for unit in units))
    if len(count) > per_pod or any(job.current for job in instance.jobs):
        return units
    seen: Counter[bytes] = Counter()
    places = []
    for n, kind in enumerate(kinds):
        places.append(((seen[kind] + 0.5) / count[kind], n))
        seen[kind] += 1
    return [units[n] for _, n in sorted(places)]


def _slowdowns(instance: PalInstance) -> NDArray[np.float64]:
    number = {gpu: n for n, gpu in enumerate(instance.profile.gpus)}
    chosen = np.array([number[gpu] for gpu in instance.free_gpus], dtype=np.intp)
    return np.array([instance.profile.array(name)[chosen] for name in instance.profile.classes])


def _dealt(instance: PalInstance, spans: list[Indices]) -> list[Pod]:
    """Return pods with the jobs dealt out: running ones stay, of others each gets its share."""
    pod_of = np.concatenate([np.full(len(span), p) for p, span in enumerate(spans)])
    pod_of = pod_of[np.argsort(np.concatenate(spans))]
    number = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
    room = np.array([float(len(span)) for span in spans])
    jobs: list[list[Job]] = [[] for _ in spans]
    rooted = set()
    waiting: dict[object, list[Job]] = {}
    for job in instance.jobs:
        homes = {int(pod_of[number[gpu]]) if gpu in number else -1 for gpu in job.current}
        if len(homes) == 1 and min(homes) >= 0:
            (home,) = homes
            jobs[home].append(job)
            room[home] -= job.gpus
            rooted.add(job.id)
        else:
            waiting.setdefault(_demand(job), []).append(job)
    for alike in sorted(waiting.values(), key=lambda alike: -alike[0].gpus):
        for job, home in zip(alike, _homes(alike, room), strict=True):
            jobs[home].append(job)
    slowdown = _slowdowns(instance)
    shape = _shape(instance)
    return [
        Pod(
            gpus=span,
            kind=p if rooted else (slowdown[:, span].tobytes(), shape[span].tobytes()),
            jobs=tuple(jobs[p]),
            share=len(span) / len(number),
            rooted=frozenset(rooted),
        )
        for p, span in enumerate(spans)
    ]


def _homes(alike: list[Job], room: NDArray[np.float64]) -> list[int]:
    """Return a pod for each of some equal jobs: evenly, and those left over where most is free."""
    size = alike[0].gpus
    homes = []
    given = np.zeros(len(room))
    for _ in alike:
        fits = room >= size
        key = np.where(fits, given * room.sum() - room, np.inf) if fits.any() else -room
        home = int(np.argmin(key))
        given[home] += 1
        room[home] -= size
        homes.append(home)
    return homes


def _shape(instance: PalInstance) -> Indices:
    """Return for each free GPU at which level it meets the one before it."""
    ancestors = instance.topology.ancestors
    free = set(instance.free_gpus)
    kept = ancestors[[gpu in free for gpu in instance.topology.gpus]]
    before = np.r_[kept[:1], kept[:-1]]
    return np.asarray((kept != before).sum(axis=1), dtype=np.intp)


def _demand(job: Job) -> tuple[object, ...]:
    return (
        -job.gpus,
        job.application_class,
        job.model,
        job.weight,
        job.remaining_s,
        job.reward,
        job.highest_level,
        job.restart_s if job.current else None,
    )
