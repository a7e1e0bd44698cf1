"""The tree of domains as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.pal.instance import PalInstance

    Indices = NDArray[np.intp]


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
    def has_children(self) -> NDArray[np.bool_]:
        """Shape (domains,): whether there are domains inside."""
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[self.parent[self.parent >= 0]] = True
        return mask

    def around(self, domain: int) -> Iterator[int]:
        """Yield a domain and those around it, up to the root."""
        while domain >= 0:
            yield domain
            domain = int(self.parent[domain])


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
