"""Verifier of PAL: where a gang can stand, as options of its domain and its slowest GPU.

All sets of GPUs with the same lowest common domain and the same greatest slowdown cost a job the
same. They are priced by the cheapest gang among the GPUs of that domain up to that slowdown, so one
pass over them in ascending order prices all options of a domain. Free GPUs go by their number in
`PalInstance.free_gpus`.
"""

from __future__ import annotations

from heapq import heapreplace
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.pal.instance import PalInstance


class DomainOptions(NamedTuple):
    """The options that gangs of one size and class can have in one domain.

    Attributes
    ----------
    slowdowns
        Of the slowest GPU, ascending, one for each option.
    groups
        A gang of option i stands on GPUs of the groups 0 to i.
    """

    domain: str
    level: int
    size: int
    slowdowns: list[float]
    groups: list[list[int]]

    def gang_prices(self, negated: Sequence[int]) -> list[int]:
        """Return for each option the least price of a gang; prices of all GPUs come negated."""
        first, *rest = self.groups
        heap = sorted(negated[gpu] for gpu in first)[-self.size :]  # the highest one comes first
        total = -sum(heap)
        prices = [total]
        for group in rest:
            for gpu in group:
                if negated[gpu] > heap[0]:
                    total += heapreplace(heap, negated[gpu])
                    total -= negated[gpu]
            prices.append(total)
        return prices


class FreeCluster:
    """The free GPUs, by the domains around them.

    Attributes
    ----------
    levels
        Number of the level of each domain.
    inside
        For each domain the domains in it, itself included.
    numbers
        Number of each free GPU.
    """

    def __init__(self, instance: PalInstance) -> None:
        topology = instance.topology
        heights = {level: n for n, level in enumerate(topology.levels)}
        parents = {domain.id: domain.parent for domain in topology.domains}
        home = {gpu: domain.id for domain in topology.domains for gpu in domain.gpus}
        self.levels = {domain.id: heights[domain.level] for domain in topology.domains}
        around = {name: tuple(_climb(name, parents)) for name in parents}
        self.numbers = {gpu: n for n, gpu in enumerate(instance.free_gpus)}
        self._slowdowns = {
            name: [values[gpu] for gpu in instance.free_gpus]
            for name, values in instance.slowdowns.items()
        }
        self._homes = [around[home[gpu]] for gpu in instance.free_gpus]
        self.inside: dict[str, set[str]] = {name: set() for name in parents}
        for name, domains in around.items():
            for domain in domains:
                self.inside[domain].add(name)

    def fast(self, application_class: str, domain: str, slowest: float) -> int:
        """Count the GPUs in a domain up to a slowdown."""
        slowdowns = self._slowdowns[application_class]
        around = zip(self._homes, slowdowns, strict=True)
        return sum(domain in home and slowdown <= slowest for home, slowdown in around)

    def common(self, gpus: Iterable[int]) -> str:
        """Return the lowest common domain of GPUs, by number."""
        first, *others = [self._homes[gpu] for gpu in gpus]
        return next(d for d in first if all(d in around for around in others))

    def slowest(self, application_class: str, gpus: Iterable[int]) -> float:
        """Return the greatest slowdown of GPUs, by number."""
        slowdowns = self._slowdowns[application_class]
        return max(slowdowns[gpu] for gpu in gpus)

    def slowdowns(self, application_class: str) -> list[float]:
        """Return the slowdowns of the free GPUs."""
        return self._slowdowns[application_class]

    def members(self) -> dict[int, list[list[int]]]:
        """Return the GPUs of each domain that has some, by level."""
        gpus: dict[str, list[int]] = {}
        for around, members in groupby(range(len(self._homes)), key=self._homes.__getitem__):
            inside = list(members)
            for domain in around:
                gpus.setdefault(domain, []).extend(inside)
        by_level: dict[int, list[list[int]]] = {}
        for domain, inside in gpus.items():
            by_level.setdefault(self.levels[domain], []).append(inside)
        return by_level

    def places(self, application_class: str, sizes: Iterable[int]) -> Iterator[DomainOptions]:
        """Yield every place of a class, for gangs of some sizes."""
        slowdowns = self._slowdowns[application_class]
        gpus: dict[str, list[int]] = {}
        children: dict[str, list[str | None]] = {}
        for gpu in sorted(range(len(slowdowns)), key=slowdowns.__getitem__):
            child = None
            for domain in self._homes[gpu]:
                gpus.setdefault(domain, []).append(gpu)
                children.setdefault(domain, []).append(child)
                child = domain
        for domain, ascending in gpus.items():
            alone = _before_second_child(children[domain])
            for size in sizes:
                first = max(alone, size - 1)
                if first < len(ascending) and (size > 1 or self.levels[domain] == 0):
                    options = _options(ascending, slowdowns, first)
                    yield DomainOptions(domain, self.levels[domain], size, *options)


def _climb(name: str, parents: dict[str, str | None]) -> Iterator[str]:
    here: str | None = name
    while here is not None:
        yield here
        here = parents[here]


def _before_second_child(children: list[str | None]) -> int:
    """Return how many of the first GPUs share a child: no set of them meets in the domain only."""
    if children[0] is None:
        return 0
    return len(list(takewhile(lambda child: child == children[0], children)))


def _options(
    ascending: list[int], slowdowns: list[float], first: int
) -> tuple[list[float], list[list[int]]]:
    values, groups = [slowdowns[ascending[first]]], [ascending[: first + 1]]
    for gpu in ascending[first + 1 :]:
        if slowdowns[gpu] == values[-1]:
            groups[-1].append(gpu)
        else:
            values.append(slowdowns[gpu])
            groups.append([gpu])
    return values, groups
