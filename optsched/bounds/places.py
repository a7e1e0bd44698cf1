"""At what speed a gang can get on at best, and on how few GPUs at which of its widths."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.scenario import Model, Scenario
    from optsched.rollout.spread import Ladder

OUTWARD = 1 + Fraction(1, 10**12)
"""More than what floats can lose in the products of a rate."""


class Places:
    """The nodes of a scenario as its bounds see them, from its data alone.

    Attributes
    ----------
    gpus
        How many there are, at most.
    largest_node
        How many the largest node has.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._sizes, self._ancestors = _nodes(scenario)
        self._first = [0, *accumulate(self._sizes)]
        self.gpus = self._first[-1]
        self.largest_node = max(self._sizes, default=0)
        self._slow: dict[str | None, list[Fraction]] = {}
        self._known: dict[tuple[Any, ...], Fraction] = {}

    def speed(self, model: Model | None, width: int) -> Fraction:
        """Return the greatest speed of a gang, over that of the reference at the same width.

        Where its GPUs meet in a domain, it is no faster than the slowest of so many GPUs of that
        domain, and no nearer than on as few of its nodes as can hold it.
        """
        given = () if model is None else tuple(model.locality)
        locality = given or tuple(self._scenario.locality)
        key = (None if model is None else model.application_class, locality, width)
        if key not in self._known:
            self._known[key] = self._speed(*key)
        return self._known[key]

    def _speed(self, name: str | None, locality: tuple[float, ...], width: int) -> Fraction:
        slow, best = self._slowdowns(name), Fraction(0)
        ways = []
        for level, ancestors in enumerate(self._ancestors):
            for nodes in _domains(ancestors):
                gpus = [g for n in nodes for g in range(self._first[n], self._first[n + 1])]
                if len(gpus) < width:
                    continue
                distance = self._distance(locality, level, nodes, width)
                ways.append((sorted(slow[gpu] for gpu in gpus)[width - 1], distance))
        reference = self._reference(min((far for _, far in ways), default=Fraction(1)))
        for slowest, far in ways:
            distance = Fraction(1) if reference is None else far / reference
            best = max(best, 1 / (slowest * distance))
        return best * (1 if self._is_plain(locality) else OUTWARD)

    def _is_plain(self, locality: tuple[float, ...]) -> bool:
        return self._scenario.spread is None and all(factor == 1 for factor in locality)

    def _reference(self, least: Fraction) -> Fraction | None:
        """Return what distances are divided by; None if they do not count."""
        where = self._scenario.reference_place
        if where == "recorded":
            return None
        return least if where == "best" else Fraction(1)

    def _slowdowns(self, name: str | None) -> list[Fraction]:
        """Return by GPU its least slowdown for an application class."""
        if name not in self._slow:
            profile, topology = self._scenario.profile, self._scenario.topology
            slow = [Fraction(1)] * self.gpus
            if name is not None and profile is not None:
                numbers: Sequence[int] = range(self.gpus)
                if topology is not None:
                    number = {gpu: n for n, gpu in enumerate(profile.gpus)}
                    numbers = [number[gpu] for gpu in topology.gpus]
                values = profile.slowdown[name]
                slow = [Fraction(float(values[n])) for n in numbers]
            events = self._scenario.events
            if events is not None and events.application_class in (None, name):
                least = min(Fraction(1), Fraction(events.factor[0]))
                slow = [value * least for value in slow]
            self._slow[name] = slow
        return self._slow[name]

    def _distance(
        self, locality: tuple[float, ...], level: int, nodes: Sequence[int], width: int
    ) -> Fraction:
        """Return the least factor on run times of a gang that meets in a domain of a level."""
        factor = Fraction(locality[level]) if locality else Fraction(1)
        spread = self._scenario.spread
        if spread is None:
            return factor
        factor /= _at(spread.servers, _needed((self._sizes[n] for n in nodes), width))
        if spread.domains is not None:
            above = self._ancestors[min(1, len(self._ancestors) - 1)]
            together: dict[int, int] = {}
            for node in nodes:
                together[above[node]] = together.get(above[node], 0) + self._sizes[node]
            factor /= _at(spread.domains, _needed(together.values(), width))
        return factor


def _nodes(scenario: Scenario) -> tuple[list[int], list[list[int]]]:
    """Return the GPUs of each node, and by level from the node up the domain of each."""
    topology = scenario.topology
    if topology is not None:
        paths: dict[tuple[int, ...], int] = {}
        for path in topology.ancestors.tolist():
            paths[tuple(path)] = paths.get(tuple(path), 0) + 1
        return list(paths.values()), [list(level) for level in zip(*paths, strict=True)]
    sizes = scenario.node_sizes
    levels = [list(range(len(sizes))), [0] * len(sizes)]
    groups = scenario.node_groups
    if any(group.domain is not None for group in groups):
        names = [group.domain for group in groups for _ in range(group.count)]
        number = {name: n for n, name in enumerate(dict.fromkeys(names))}
        levels.insert(1, [number[name] for name in names])
    return sizes, levels


def _domains(ancestors: Sequence[int]) -> Iterable[list[int]]:
    inside: dict[int, list[int]] = {}
    for node, domain in enumerate(ancestors):
        inside.setdefault(domain, []).append(node)
    return inside.values()


def _needed(sizes: Iterable[int], width: int) -> int:
    """Return how many of these, the largest first, have so many GPUs together."""
    upto = accumulate(sorted(sizes, reverse=True))
    return next(n for n, gpus in enumerate(upto, start=1) if gpus >= width)


def _at(ladder: Ladder, count: int) -> Fraction:
    """Return the speed on some number of servers or domains; `OUTWARD` covers its floats."""
    above = bisect_right(ladder.counts, count)
    if above == len(ladder.counts):
        return Fraction(ladder.speed[-1])
    low, high = ladder.counts[above - 1 : above + 1]
    near, far = ladder.speed[above - 1 : above + 1]
    share = math.log(count / low) / math.log(high / low)
    return Fraction(near * math.pow(far / near, share))


def speedup_at(speedup: Any, width: int) -> Fraction:
    """Return the speedup of a phase at any width; `OUTWARD` covers the floats of power laws."""
    widths: Sequence[int] = speedup.widths
    if width < widths[0]:
        return speedup_at(speedup, widths[0]) * Fraction(width, widths[0])
    width = min(width, widths[-1])
    if speedup.kind == "amdahl":
        share = Fraction(speedup.parallel_fraction)
        return 1 / (1 - share + share / width)
    if speedup.kind == "power":
        return Fraction(float(width**speedup.exponent))
    above = bisect_right(widths, width)
    if widths[above - 1] == width:
        return Fraction(speedup.measured[width])
    low, high = widths[above - 1 : above + 1]
    near, far = Fraction(speedup.measured[low]), Fraction(speedup.measured[high])
    return near + (far - near) * Fraction(width - low, high - low)
