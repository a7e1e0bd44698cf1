"""What a second of each job's work costs in groups of some types, in the order of their work.

For few types, whatever watts and rates they have side by side: power curves that are bent, power
levels, measured groups. Why groups cost no less: docs/math/eaco.md, "Few types".
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.cluster.power import Affine
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from optsched.eaco.group_figures import TypeFigures
    from optsched.eaco.instance import EacoInstance, GpuType, Nodes, PowerLevel

Types = tuple[str, ...]


class TypeSequence(NamedTuple):
    """Types of a group in the order of its jobs' work, the longest first.

    Attributes
    ----------
    watts
        Of a second of each one's work: no group costs less than the sum over its jobs.
    rates
        Of each, while all run.
    """

    types: Types
    watts: tuple[float, ...]
    rates: tuple[float, ...]


class _SideBySide(NamedTuple):
    """Watts of a GPU and its share of the node, and rates by type."""

    watts: float
    rates: Mapping[str, float]


def has_few_sequences(instance: EacoInstance) -> bool:
    """Tell whether the types are few enough to look at all sequences of them."""
    types, most = len({job.type for job in instance.jobs}), instance.max_jobs_per_gpu
    return bool(sum(types**size for size in range(1, most + 1)) <= SETTINGS.most_sequences)


def needs_sequences(gpu: GpuType) -> bool:
    """Tell whether watts on a GPU type are other than affine in utilisation."""
    return bool(gpu.levels) or not isinstance(gpu.power.curve, Affine)


class TypeSequences:
    """Sequences of types on some nodes at some power level.

    Parameters
    ----------
    least
        By type the least rate that any of its jobs bears; all types that are looked at.
    """

    def __init__(
        self,
        figures: TypeFigures,
        nodes: Nodes,
        level: PowerLevel | None,
        least: Mapping[str, float],
    ) -> None:
        self._figures, self._nodes, self._level, self._least = figures, nodes, level, least
        self._share = float(figures.node_share_w(nodes))
        instance = figures.instance
        self._table = instance.rates[nodes.gpu]
        self._known: dict[Types, _SideBySide] = self.kept("side by side")
        self._fitting: dict[Types, _SideBySide | None] = self.kept("fitting")
        self._sequences: dict[Types, tuple[TypeSequence, ...]] = self.kept("sequences")

    def kept(self, *what: Hashable) -> dict[Any, Any]:
        """Return figures, to be added to, of nodes like these at this level."""
        level = None if self._level is None else self._level.id
        return self._figures.kept(*what, self._nodes.gpu, self._share, level)

    def all(self) -> Iterator[TypeSequence]:
        """Yield every sequence that a group may have."""
        names, most = sorted(self._least), self._figures.instance.max_jobs_per_gpu
        stack: list[Types] = [(name,) for name in reversed(names)]
        while stack:
            key = stack.pop()
            if not self._may_be_inside(key):
                continue
            yield from self._of(key)
            if len(key) < most:
                stack += [(*key, name) for name in names if name >= key[-1]]

    def _may_be_inside(self, key: Types) -> bool:
        """Tell whether some jobs of these types fit and bear each other: rates never rise."""
        if key not in self._fitting:
            fits = self._figures.memory_fits(key, self._nodes.gpu) and self._table.of(key).fits
            self._fitting[key] = self.side_by_side(key) if fits else None
        own, least = self._fitting[key], self._least
        if own is None:
            return False
        return all(rate * (1 + SETTINGS.near) >= least[t] for t, rate in own.rates.items())

    def side_by_side(self, key: Types) -> _SideBySide:
        """Return the figures of types, ascending, that fit together."""
        if key not in self._known:
            level = self._level
            factor = 1.0 if level is None else level.rate
            watts = float(self._figures.gpu_w(key, self._nodes.gpu, level)) + self._share
            rates = {t: float(r) * factor for t, r in self._table.of(key).by_type.items()}
            self._known[key] = _SideBySide(watts, rates)
        return self._known[key]

    def _of(self, key: Types) -> tuple[TypeSequence, ...]:
        """Return the sequences of a multiset of types; none if these may not share GPUs."""
        if key not in self._sequences:
            may_share = self._figures.may_share(key, self._nodes.gpu)
            self._sequences[key] = tuple(self._in_order(key)) if may_share else ()
        return self._sequences[key]

    def _in_order(self, key: Types) -> Iterator[TypeSequence]:
        """Yield the sequences of a multiset of types."""
        size = len(key)
        inside = [
            self.side_by_side(tuple(t for n, t in enumerate(key) if mask >> n & 1))
            for mask in range(1, 1 << size)
        ]
        second = self._least_seconds(inside, size)
        whole, seen = inside[-1].rates, set[Types]()
        for order in permutations(range(size)):
            types = tuple(key[n] for n in order)
            if types in seen:
                continue
            seen.add(types)
            prefixes = np.cumsum([1 << n for n in order])
            steps = np.diff(second[prefixes], prepend=0.0)
            rates = tuple(whole[t] for t in types)
            if any(len({*s.rates.values()}) > 1 for s in inside):
                steps *= _borne(key, dict(zip(order, steps.tolist(), strict=True)), inside)
            yield TypeSequence(types, tuple(steps.tolist()), rates)

    @staticmethod
    def _least_seconds(inside: list[_SideBySide], size: int) -> np.ndarray:
        """Return what a second of work costs with each set of jobs, or any with more of them."""
        second = [0.0, *(s.watts / max(s.rates.values()) for s in inside)]
        for n in range(size):
            for mask in range(1, 1 << size):
                if not mask >> n & 1:
                    second[mask] = min(second[mask], second[mask | 1 << n])
        return np.array(second)


def _borne(key: Types, steps: Mapping[int, float], inside: list[_SideBySide]) -> float:
    """Return which share of what jobs cost a second all sets of them draw, if rates differ."""
    shares = []
    for mask, s in enumerate(inside, start=1):
        paid = sum(steps[n] * s.rates[t] for n, t in enumerate(key) if mask >> n & 1)
        if paid > 0:
            shares.append(s.watts / paid)
    return min(shares, default=1.0)
