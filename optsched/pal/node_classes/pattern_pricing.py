"""The pricing problem: the best pattern of a node, by DP over sets (Held & Karp, SIAM 1962).

It is solved exactly, for all node classes at once: the first GPU of a set is idle, or in a gang of
that set; a gang's slowdown is that of its slowest GPU. Nodes have few GPUs, so there are few sets.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.job_types import GangType
    from optsched.pal.node_classes.aggregation import NodeClass, NodeClasses


class PlacedGang(NamedTuple):
    """A job of a type in a node, by the positions of its GPUs; and whether it keeps them."""

    type: int
    positions: tuple[int, ...]
    is_kept: bool


class Pattern(NamedTuple):
    """What nodes of a class may run, and what that costs."""

    node_class: int
    gangs: tuple[PlacedGang, ...]
    cost: float


class Fillings(NamedTuple):
    """The best fillings: their cost minus the duals of their jobs, and a way to read them."""

    values: Floats
    patterns: list[Pattern]


class PatternPricing:
    """Fills nodes."""

    def __init__(self, nodes: NodeClasses) -> None:
        self._classes = len(nodes.classes)
        members: dict[int, list[int]] = {}
        for k, node_class in enumerate(nodes.classes):
            members.setdefault(len(node_class.gpus[0]), []).append(k)
        self._groups = [
            _SizeGroup(size, numbers, [nodes.classes[k] for k in numbers], nodes.types)
            for size, numbers in members.items()
        ]

    def fill(self, duals: Floats, least: Floats) -> Fillings:
        """Return the best filling of each class, and those that are worth less than `least`.

        Parameters
        ----------
        duals
            Shape (types,): what placing a job saves.
        least
            Shape (classes,): patterns are given only for classes whose value is below it.
        """
        values = np.zeros(self._classes)
        patterns: list[Pattern] = []
        for group in self._groups:
            values[group.numbers], chosen = group.fill(duals)
            wanted = np.flatnonzero(values[group.numbers] < least[group.numbers])
            patterns += (group.pattern(n, chosen) for n in wanted.tolist())
        return Fillings(values, patterns)


class _Chosen(NamedTuple):
    """For each class and set the gang that is best for just that set, and the one to begin with."""

    option: Indices
    first: Indices


class _SizeGroup:
    """Kinds of nodes with equally many GPUs."""

    def __init__(
        self,
        size: int,
        numbers: list[int],
        classes: list[NodeClass],
        types: tuple[GangType, ...],
    ) -> None:
        self.numbers, self._classes, self._types = numbers, classes, types
        self._sets = 1 << size
        sets = np.arange(self._sets)
        bits = (sets[:, None] >> np.arange(size)) & 1
        count = bits.sum(axis=1)
        self._positions = [tuple(np.flatnonzero(row).tolist()) for row in bits]
        gangs = {jobs.gpus for jobs in types if jobs.gpus <= size}
        self._of_size = {gang: np.flatnonzero(count == gang) for gang in gangs}
        self._slowest = self._slowest_of_sets()
        self._steps = [_Step.of(np.flatnonzero(count == n), gangs) for n in range(1, size + 1)]

    def fill(self, duals: Floats) -> tuple[Floats, _Chosen]:
        """Return the value of each class's best filling, and what to read it from."""
        best, option = self._best_gangs(duals)
        count = len(self._classes)
        values, first = np.zeros((count, self._sets)), np.zeros((count, self._sets), dtype=np.intp)
        for step in self._steps:
            sums = values[:, step.rest] + best[:, step.gang]
            choice = sums.argmin(axis=2)
            values[:, step.sets] = np.take_along_axis(sums, choice[:, :, None], 2)[:, :, 0]
            first[:, step.sets] = step.gang[np.arange(len(step.sets)), choice]
        return values[:, -1], _Chosen(option, first)

    def pattern(self, n: int, chosen: _Chosen) -> Pattern:
        """Return the best filling of one of the classes."""
        gangs, cost, left = [], 0.0, self._sets - 1
        while left:
            taken = int(chosen.first[n, left])
            if not taken:
                left &= left - 1
                continue
            left ^= taken
            gang = self._gang(n, taken, int(chosen.option[n, taken]))
            gangs.append(gang)
            cost += gang_cost(self._types, self._classes[n], gang)
        return Pattern(self.numbers[n], tuple(sorted(gangs)), cost)

    def _gang(self, n: int, taken: int, option: int) -> PlacedGang:
        positions = self._positions[taken]
        if option < len(self._types):
            return PlacedGang(option, positions, is_kept=False)
        keep = self._classes[n].keeps[option - len(self._types)]
        return PlacedGang(keep.type, positions, is_kept=True)

    def _slowest_of_sets(self) -> Floats:
        """Return the slowdown of the slowest GPU of each set, an array of classes x rows x sets."""
        slowdown = np.stack([node_class.slowdown for node_class in self._classes])
        slowest = np.zeros((*slowdown.shape[:2], self._sets))
        for position in range(slowdown.shape[2]):
            half = 1 << position
            here = slowdown[:, :, position, None]
            slowest[:, :, half : 2 * half] = np.maximum(slowest[:, :, :half], here)
        return slowest

    def _best_gangs(self, duals: Floats) -> tuple[Floats, Indices]:
        """Return for each class and set the value of the best gang for it, and the option it is.

        Options are the types, and then what the class keeps; the empty set is worth nothing.
        """
        best = np.full((len(self._classes), self._sets), np.inf)
        option = np.zeros(best.shape, dtype=np.intp)
        best[:, 0] = 0.0
        for t, jobs in enumerate(self._types):
            if jobs.gpus not in self._of_size or not np.isfinite(jobs.factor[0]):
                continue
            sets = self._of_size[jobs.gpus]
            values = jobs.cost(0, self._slowest[:, jobs.row][:, sets]) - duals[t]
            before = best[:, sets]
            best[:, sets] = np.minimum(values, before)
            option[:, sets] = np.where(values < before, t, option[:, sets])
        for n, node_class in enumerate(self._classes):
            for s, keep in enumerate(node_class.keeps):
                taken = sum(1 << position for position in keep.positions)
                jobs = self._types[keep.type]
                slowest = self._slowest[n, jobs.row, taken]
                value = jobs.cost(0, slowest, is_kept=True) - duals[keep.type]
                if value < best[n, taken]:
                    best[n, taken], option[n, taken] = value, len(self._types) + s
        return best, option


class _Step(NamedTuple):
    """All sets of one size, and for each the gangs to begin with and what they leave over.

    Attributes
    ----------
    sets
        Shape (sets,).
    gang, rest
        Shape (sets, choices); the first choice is the empty gang, which leaves the first GPU idle.
    """

    sets: Indices
    gang: Indices
    rest: Indices

    @classmethod
    def of(cls, sets: Indices, sizes: Iterable[int]) -> _Step:
        """Return the step of sets that are equally large."""
        choices = [list(_beginnings(number, sorted(sizes))) for number in sets.tolist()]
        gang = np.array(choices, dtype=np.intp)
        rest = sets[:, None] ^ gang
        rest[:, 0] = sets & (sets - 1)
        return cls(sets, gang, rest)


def _beginnings(number: int, sizes: list[int]) -> Iterator[int]:
    """Yield 0, and the subsets of a set with its first GPU that have some sizes."""
    yield 0
    first, *others = [1 << bit for bit in range(number.bit_length()) if number >> bit & 1]
    for size in sizes:
        for chosen in combinations(others, size - 1):
            yield first + sum(chosen)


def gang_cost(types: tuple[GangType, ...], node_class: NodeClass, gang: PlacedGang) -> float:
    """Return what a job costs in a node of a class."""
    jobs = types[gang.type]
    slowest = float(node_class.slowdown[jobs.row, list(gang.positions)].max())
    return float(jobs.cost(0, slowest, is_kept=gang.is_kept))
