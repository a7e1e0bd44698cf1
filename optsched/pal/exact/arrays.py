"""A PAL instance as arrays: free GPUs, domains, job types and the options of a job.

GPUs are numbered from 0 in the order of `PalInstance.free_gpus`, so those of a domain stand
together. An *option* (domain d, slowdown v) stands for every set of GPUs whose lowest common domain
is d and whose slowest GPU has the slowdown v for the job's class: all of them cost the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.exact.domain_arrays import Domains, domain_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.pal.instance import Job, PalInstance

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class Chain(NamedTuple):
    """The GPUs of one domain from the fastest for a class on, and where thresholds end.

    Attributes
    ----------
    order
        Shape (GPUs of the domain,): their numbers, ascending by slowdown.
    ends
        Shape (thresholds,): how many GPUs are at most as slow as each threshold; thresholds whose
        GPUs all stand in one child are left out.
    slowdown
        Shape (thresholds,).
    """

    order: Indices
    ends: Indices
    slowdown: Floats


@dataclass(frozen=True)
class JobType:
    """Jobs that are equal but for their ids and current GPUs.

    Attributes
    ----------
    jobs
        Their numbers in the instance.
    gpus
        Size of the gang.
    row
        Row of `Arrays.slowdown` that holds the slowdowns of their class.
    factor
        Shape (levels,): cost of one unit of slowdown at each level of the topology, infinite above
        the hard cap.
    moving
        Cost of a move, zero for waiting jobs.
    reward
        Cost of leaving one out; infinite if that is not allowed.
    """

    jobs: tuple[int, ...]
    gpus: int
    row: int
    factor: Floats
    moving: float
    reward: float


class KeepOption(NamedTuple):
    """A running job that may keep its GPUs: its number, type, GPUs, option and cost."""

    job: int
    type: int
    gpus: Indices
    domain: int
    slowdown: float
    cost: float


@dataclass(frozen=True)
class Arrays:
    """What the methods need of an instance; see the parts.

    Attributes
    ----------
    slowdown
        Shape (classes, GPUs): V; classes with equal data share a row.
    chains
        For each row of `slowdown` the chain of each domain.
    """

    gpus: tuple[str, ...]
    slowdown: Floats
    domains: Domains
    types: tuple[JobType, ...]
    keeps: tuple[KeepOption, ...]
    chains: tuple[tuple[Chain, ...], ...]


def arrays(instance: PalInstance) -> Arrays:
    """Return the arrays of an instance."""
    domains = domain_arrays(instance)
    slowdown, rows = _slowdown(instance)
    types = job_types(instance, rows)
    return Arrays(
        gpus=instance.free_gpus,
        slowdown=slowdown,
        domains=domains,
        types=types,
        keeps=tuple(_keeps(instance, domains, slowdown, types)),
        chains=tuple(_chains(domains, values) for values in slowdown),
    )


def _slowdown(instance: PalInstance) -> tuple[Floats, dict[str, int]]:
    number = {gpu: n for n, gpu in enumerate(instance.profile.gpus)}
    chosen = np.array([number[gpu] for gpu in instance.free_gpus], dtype=np.intp)
    rows: dict[str, int] = {}
    values: dict[bytes, tuple[int, Floats]] = {}
    for name in dict.fromkeys(job.application_class for job in instance.jobs):
        row = instance.profile.array(name)[chosen]
        rows[name] = values.setdefault(row.tobytes(), (len(values), row))[0]
    return np.array([row for _, row in values.values()]), rows


def job_types(instance: PalInstance, rows: dict[str, int]) -> tuple[JobType, ...]:
    """Return the types of jobs; `rows` is the row of slowdowns of each class."""
    levels = instance.topology.levels
    members: dict[tuple[object, ...], list[int]] = {}
    for n, job in enumerate(instance.jobs):
        penalty = instance.penalties[job.model]
        running = (job.restart_s,) if job.current else ()
        work = (job.weight, job.remaining_s, job.reward, job.highest_level)
        key = (job.gpus, rows[job.application_class], penalty, *work, *running)
        members.setdefault(key, []).append(n)
    types = []
    for numbers in members.values():
        job = instance.jobs[numbers[0]]
        types.append(
            JobType(
                jobs=tuple(numbers),
                gpus=job.gpus,
                row=rows[job.application_class],
                factor=_factor(job, instance.penalties[job.model], levels),
                moving=job.weight * (job.restart_s or 0.0) if job.current else 0.0,
                reward=_reward(instance, job),
            )
        )
    return tuple(types)


def _factor(job: Job, penalty: tuple[float, ...], levels: tuple[str, ...]) -> Floats:
    factor = job.weight * (job.remaining_s or 1.0) * np.array(penalty)
    if job.highest_level is not None:
        factor[levels.index(job.highest_level) + 1 :] = np.inf
    return factor


def _reward(instance: PalInstance, job: Job) -> float:
    if instance.admission == "all" or job.reward is None:
        return np.inf
    return job.reward


def _keeps(
    instance: PalInstance, domains: Domains, slowdown: Floats, types: tuple[JobType, ...]
) -> Iterator[KeepOption]:
    number = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
    for t, jobs in enumerate(types):
        for n in jobs.jobs:
            current = instance.jobs[n].current
            if not current or not all(gpu in number for gpu in current):
                continue
            gpus = np.sort(np.array([number[gpu] for gpu in current], dtype=np.intp))
            covers = (domains.start <= gpus[0]) & (domains.stop > gpus[-1])
            domain = int(np.flatnonzero(covers)[0])
            slowest = float(slowdown[jobs.row, gpus].max())
            cost = float(jobs.factor[domains.level[domain]]) * slowest
            if cost < np.inf:
                yield KeepOption(n, t, gpus, domain, slowest, cost)


def _chains(domains: Domains, values: Floats) -> tuple[Chain, ...]:
    chains = dict(_lowest_chains(domains, values))
    for d in np.flatnonzero(domains.has_children).tolist():
        chains[d] = _chain(domains, values, d)
    return tuple(chains[d] for d in range(len(domains)))


def _lowest_chains(domains: Domains, values: Floats) -> Iterator[tuple[int, Chain]]:
    """Yield the chains of domains without others inside, all of one size at once."""
    lowest = np.flatnonzero(~domains.has_children)
    sizes = domains.stop[lowest] - domains.start[lowest]
    for size in np.unique(sizes).tolist():
        members = lowest[sizes == size]
        gpus = domains.start[members, np.newaxis] + np.arange(size)
        order = np.take_along_axis(gpus, np.argsort(values[gpus], axis=1, kind="stable"), axis=1)
        ascending = values[order]
        is_end = np.ones(ascending.shape, dtype=np.bool_)
        is_end[:, :-1] = np.diff(ascending, axis=1) > 0
        ends = np.nonzero(is_end)[1] + 1
        slowdown = ascending[is_end]
        stops = np.cumsum(is_end.sum(axis=1)).tolist()
        start = 0
        for d, gpus_of, stop in zip(members.tolist(), order, stops, strict=True):
            yield d, Chain(gpus_of, ends[start:stop], slowdown[start:stop])
            start = stop


def _chain(domains: Domains, values: Floats, d: int) -> Chain:
    """Return the chain of a domain with others inside."""
    start, stop = int(domains.start[d]), int(domains.stop[d])
    order = start + np.argsort(values[start:stop], kind="stable")
    ascending = values[order]
    ends = np.flatnonzero(np.r_[np.diff(ascending) > 0, True]) + 1
    children = np.flatnonzero(domains.parent == d)
    child = np.searchsorted(np.sort(domains.start[children]), order, side="right")
    others = np.flatnonzero(child != child[0])
    ends = ends[ends > others[0]]
    return Chain(order, ends, ascending[ends - 1])
