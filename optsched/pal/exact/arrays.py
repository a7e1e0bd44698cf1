"""A PAL instance as arrays: free GPUs, domains, job types and the options of a job.

GPUs are numbered from 0 in the order of `PalInstance.free_gpus`, so those of a domain stand
together. An *option* (domain d, slowdown v) stands for every set of GPUs whose lowest common domain
is d and whose slowest GPU has the slowdown v for the job's class: all of them cost the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.job_types import GangType, job_types, slowdown_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.pal.instance import PalInstance


@dataclass(frozen=True)
class Domains:
    """Domains that hold free GPUs, children before parents, without those that equal a child.

    Attributes
    ----------
    start, stop
        Shape (domains,): GPUs from `start` to `stop` stand in the domain.
    level
        Shape (domains,): number of the level, 0 for the lowest.
    parent
        Shape (domains,): the next domain around; -1 for the root.
    names
        Ids.
    """

    start: Indices
    stop: Indices
    level: Indices
    parent: Indices
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def has_children(self) -> Bools:
        """Shape (domains,): whether there are domains inside."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[self.parent[self.parent >= 0]] = True
        return mask

    def around(self, domain: int) -> Iterator[int]:
        """Yield a domain and those around it, up to the root."""
        while domain >= 0:
            yield domain
            domain = int(self.parent[domain])


class SlowdownChain(NamedTuple):
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


class ChainThresholds(NamedTuple):
    """The thresholds of all chains of a class, domain after domain.

    Attributes
    ----------
    domain, end
        Shape (thresholds,): where each is, and how many GPUs there are at most as slow.
    slowdown
        Shape (thresholds,).
    """

    domain: Indices
    end: Indices
    slowdown: Floats

    @classmethod
    def of(cls, chains: Sequence[SlowdownChain]) -> ChainThresholds:
        """Return those of the chains of all domains."""
        counts = np.array([len(chain.ends) for chain in chains], dtype=np.intp)
        end = np.concatenate([np.zeros(0, dtype=np.intp), *(chain.ends for chain in chains)])
        slowdown = np.concatenate([np.zeros(0), *(chain.slowdown for chain in chains)])
        return cls(np.repeat(np.arange(len(chains)), counts), end, slowdown)


class KeepOption(NamedTuple):
    """A running job that may keep its GPUs: its number, type, GPUs, option and cost."""

    job: int
    type: int
    gpus: Indices
    domain: int
    slowdown: float
    cost: float


@dataclass(frozen=True)
class PalArrays:
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
    types: tuple[GangType, ...]
    keeps: tuple[KeepOption, ...]
    chains: tuple[tuple[SlowdownChain, ...], ...]

    @cached_property
    def thresholds(self) -> tuple[ChainThresholds, ...]:
        """For each row of `slowdown` the thresholds of its chains."""
        return tuple(map(ChainThresholds.of, self.chains))

    @cached_property
    def widths(self) -> Indices:
        """Shape (classes, domains): GPUs of each chain."""
        return np.array([[len(chain.order) for chain in chains] for chains in self.chains])

    @cached_property
    def orders(self) -> dict[int, tuple[Indices, Indices]]:
        """The GPUs of all chains of equally many, by how many.

        For each number of GPUs the numbers of the chains, row x domains + domain, ascending, and
        their GPUs, shape (chains, GPUs).
        """
        flat = [chain.order for chains in self.chains for chain in chains]
        widths = self.widths.ravel()
        by_width = {int(w): np.flatnonzero(widths == w) for w in np.unique(widths)}
        return {w: (at, np.stack([flat[n] for n in at.tolist()])) for w, at in by_width.items()}


def arrays(instance: PalInstance) -> PalArrays:
    """Return the arrays of an instance."""
    domains = domain_arrays(instance)
    names = dict.fromkeys(job.application_class for job in instance.jobs)
    slowdown, rows = slowdown_rows(instance, names)
    types = job_types(instance, rows)
    return PalArrays(
        gpus=instance.free_gpus,
        slowdown=slowdown,
        domains=domains,
        types=types,
        keeps=tuple(_keeps(instance, domains, slowdown, types)),
        chains=tuple(_chains(domains, values) for values in slowdown),
    )


def domain_arrays(instance: PalInstance) -> Domains:
    """Return the domains that hold free GPUs, as arrays."""
    topology = instance.topology
    free = set(instance.free_gpus)
    count = np.cumsum([0] + [gpu in free for gpu in topology.gpus])
    height = {level: n for n, level in enumerate(topology.levels)}
    by_span: dict[tuple[int, int], tuple[int, str]] = {}
    for n in sorted(range(len(topology.domains)), key=lambda n: height[topology.domains[n].level]):
        inside = topology.gpus_in(n)
        if len(inside):
            span = int(count[inside[0]]), int(count[inside[-1] + 1])
            if span[0] < span[1]:
                domain = topology.domains[n]
                by_span.setdefault(span, (height[domain.level], domain.id))
    spans = np.array(list(by_span), dtype=np.intp).reshape(-1, 2)
    return Domains(
        start=spans[:, 0],
        stop=spans[:, 1],
        level=np.array([level for level, _ in by_span.values()], dtype=np.intp),
        parent=_parents(spans),
        names=tuple(name for _, name in by_span.values()),
    )


def _parents(spans: Indices) -> Indices:
    """Return the narrowest span around each; spans are nested or disjoint, children first."""
    parent = np.full(len(spans), -1, dtype=np.intp)
    latest: dict[int, int] = {}  # by first GPU of a topmost span so far
    ends: dict[int, int] = {}
    for n, (start, stop) in enumerate(spans.tolist()):
        here = start
        while here < stop and here in latest:
            parent[latest.pop(here)] = n
            here = ends.pop(here)
        latest[start], ends[start] = n, stop
    return parent


def _keeps(
    instance: PalInstance, domains: Domains, slowdown: Floats, types: tuple[GangType, ...]
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
            cost = float(jobs.cost(domains.level[domain], slowest, is_kept=True))
            if cost < np.inf:
                yield KeepOption(n, t, gpus, domain, slowest, cost)


def _chains(domains: Domains, values: Floats) -> tuple[SlowdownChain, ...]:
    chains = dict(_lowest_chains(domains, values))
    for d in np.flatnonzero(domains.has_children).tolist():
        chains[d] = _chain(domains, values, d)
    return tuple(chains[d] for d in range(len(domains)))


def _lowest_chains(domains: Domains, values: Floats) -> Iterator[tuple[int, SlowdownChain]]:
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
            yield d, SlowdownChain(gpus_of, ends[start:stop], slowdown[start:stop])
            start = stop


def _chain(domains: Domains, values: Floats, d: int) -> SlowdownChain:
    """Return the chain of a domain with others inside."""
    start, stop = int(domains.start[d]), int(domains.stop[d])
    order = start + np.argsort(values[start:stop], kind="stable")
    ascending = values[order]
    ends = np.flatnonzero(np.r_[np.diff(ascending) > 0, True]) + 1
    children = np.flatnonzero(domains.parent == d)
    child = np.searchsorted(np.sort(domains.start[children]), order, side="right")
    others = np.flatnonzero(child != child[0])
    ends = ends[ends > others[0]]
    return SlowdownChain(order, ends, ascending[ends - 1])
