"""Which GPUs are still free while a greedy rule places one job after the other.

GPUs are numbered from 0 in the order of `topology.gpus`. Every level of the topology is one column
of `topology.ancestors`: at each level the domains part the GPUs into runs that stand together, and
they are numbered in that order. So the order of nodes is that of their GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from optsched.pal.instance import Job, PalInstance

    Indices = NDArray[np.intp]


class LevelColumn(NamedTuple):
    """The domains at one level, in the order of their GPUs.

    Attributes
    ----------
    owner
        Shape (GPUs,): the domain around each GPU.
    starts
        Shape (domains,): the first GPU of each domain.
    """

    owner: Indices
    starts: Indices

    def span(self, domain: int) -> slice:
        """Return where the GPUs of a domain stand."""
        stop = self.starts[domain + 1] if domain + 1 < len(self.starts) else len(self.owner)
        return slice(int(self.starts[domain]), int(stop))


class Gang(Protocol):
    """What a rule has to know of a job; see `optsched.pal.instance.Job`."""

    @property
    def gpus(self) -> int:
        """Size of the gang."""
        ...

    @property
    def application_class(self) -> str:
        """A class of the profile."""
        ...

    @property
    def model(self) -> str:
        """A key of the penalties."""
        ...

    @property
    def highest_level(self) -> str | None:
        """Hard cap: the job stays within one domain of this level."""
        ...


class FreeGpus:
    """Which GPUs of a tree of domains are free.

    Attributes
    ----------
    levels
        Names of the levels, from the lowest up.
    columns
        The domains of each level; the last one has a single domain.
    free
        Shape (GPUs,): whether each GPU is free; changed by `take` and `release` only.
    changes
        GPUs that were taken, at once or one after the other; oldest first.
    released
        How often GPUs were released.
    """

    def __init__(
        self, levels: tuple[str, ...], columns: tuple[LevelColumn, ...], free: NDArray[np.bool_]
    ) -> None:
        self.levels = levels
        self.columns = columns
        self.free = free
        self.changes: list[Indices] = []
        self.released = 0
        self._counts: dict[int, Indices] = {}

    def take(self, gpus: Indices) -> None:
        """Mark free GPUs as in use."""
        self.free[gpus] = False
        self.changes.append(gpus)
        for level, counts in self._counts.items():
            np.subtract.at(counts, self.columns[level].owner[gpus], 1)

    def release(self, gpus: Indices) -> None:
        """Mark GPUs that are in use as free."""
        self.free[gpus] = True
        self.released += 1
        for level, counts in self._counts.items():
            np.add.at(counts, self.columns[level].owner[gpus], 1)

    def free_count(self) -> int:
        """Return how many GPUs are free."""
        return int(np.count_nonzero(self.free))

    def counts(self, level: int) -> Indices:
        """Return how many GPUs are free in each domain of a level; it changes with the state."""
        if level not in self._counts:
            self._counts[level] = self.count_marked(level, self.free)
        return self._counts[level]

    def count_marked(self, level: int, marked: NDArray[np.bool_]) -> Indices:
        """Return how many GPUs are marked in each domain of a level."""
        return np.add.reduceat(marked, self.columns[level].starts, dtype=np.intp)

    def free_in(self, level: int, domain: int) -> Indices:
        """Return the numbers of the free GPUs of a domain, ascending."""
        span = self.columns[level].span(domain)
        numbers: Indices = span.start + np.flatnonzero(self.free[span])
        return numbers

    def inside(self, level: int, domain: int, lower: int) -> range:
        """Return the domains of a lower level within a domain of some level."""
        span = self.columns[level].span(domain)
        owner = self.columns[lower].owner
        return range(int(owner[span.start]), int(owner[span.stop - 1]) + 1)

    def gather(self, shares: Iterable[tuple[int, int]]) -> Indices:
        """Return the first free GPUs of nodes, so many of each as the shares (node, GPUs) say."""
        return np.concatenate([self.free_in(0, node)[:size] for node, size in shares])

    def cap(self, job: Gang) -> int:
        """Return the number of the highest level at which a job's GPUs may meet."""
        if job.highest_level is None:
            return len(self.levels) - 1
        return self.levels.index(job.highest_level)

    def meeting_level(self, gpus: Indices) -> int:
        """Return the level of the lowest domain around GPUs whose numbers ascend."""
        first, last = gpus[0], gpus[-1]
        return next(n for n, c in enumerate(self.columns) if c.owner[first] == c.owner[last])


class ClusterState(FreeGpus):
    """The free GPUs of an instance; at first all that may be used, whoever holds them now."""

    def __init__(self, instance: PalInstance) -> None:
        topology = instance.topology
        self.gpus = topology.gpus
        self.number = {gpu: n for n, gpu in enumerate(self.gpus)}
        columns = tuple(column_of(column) for column in topology.ancestors.T)
        super().__init__(tuple(topology.levels), columns, np.zeros(len(self.gpus), dtype=np.bool_))
        self.free[self.numbers(instance.free_gpus)] = True

    def numbers(self, gpus: Iterable[str]) -> Indices:
        """Return the numbers of GPUs, ascending."""
        return np.sort(np.array([self.number[gpu] for gpu in gpus], dtype=np.intp))

    def held(self, job: Job) -> Indices | None:
        """Return the GPUs that a running job can keep; None if it is waiting or has to move.

        It has to move if one of its GPUs may not be used any more or they lie beyond its cap.
        """
        if not job.current or not all(gpu in self.number for gpu in job.current):
            return None
        gpus = self.numbers(job.current)
        if not self.free[gpus].all() or self.meeting_level(gpus) > self.cap(job):
            return None
        return gpus


def best_fit(counts: Indices, size: int) -> int | None:
    """Return the first domain with the fewest free GPUs of those with enough; None without one."""
    fitting = np.flatnonzero(counts >= size)
    if not len(fitting):
        return None
    return int(fitting[np.argmin(counts[fitting])])


def most_free_first(counts: Indices, size: int) -> Iterator[tuple[int, int]]:
    """Yield (domain, GPUs): all GPUs of the domain with the most, again and again.

    The counts must add up to `size` at least.
    """
    for domain in np.argsort(-counts, kind="stable").tolist():
        share = min(int(counts[domain]), size)
        yield domain, share
        size -= share
        if not size:
            return


def fewest_domains(counts: Indices, size: int) -> Iterator[tuple[int, int]]:
    """Yield (domain, GPUs) as `most_free_first`, but with the best fit as the last domain."""
    left = counts.copy()
    while size:
        last = best_fit(left, size)
        domain = int(np.argmax(left)) if last is None else last
        share = min(int(left[domain]), size)
        yield domain, share
        left[domain] = 0
        size -= share


def column_of(domains: Indices) -> LevelColumn:
    """Return the column of a level from the domain around each GPU; those of one stand together."""
    is_first = np.r_[True, domains[1:] != domains[:-1]]
    return LevelColumn(np.cumsum(is_first) - 1, np.flatnonzero(is_first))
