"""The judge of EaCO: whether gangs that a case asks for can be packed on the nodes it allows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from optsched.check import BrokenRule
from optsched.eaco.plan import NodesUsed, Together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, Nodes
    from optsched.eaco.plan import Rounded, Split

    Rule = Together | Rounded | NodesUsed

MOST_STEPS = 200_000


class Turn(NamedTuple):
    """A split on the way to a node, and which of its cases the way takes."""

    rules: Sequence[Rule]
    split: Split
    side: int

    @property
    def rule(self) -> Rule:
        """The rule that the split counts by."""
        return self.rules[self.split.rule]


class Asked(NamedTuple):
    """What a case asks for on some nodes.

    Attributes
    ----------
    kept
        Locations that are kept.
    gangs
        Sizes of gangs at least, the largest first, besides the locations.
    used, woken
        Nodes in use and woken ones at most.
    """

    kept: frozenset[str]
    gangs: tuple[int, ...]
    used: int
    woken: int


def packing_faults(
    instance: EacoInstance, name: str, way: list[Turn], number: int
) -> Iterator[BrokenRule]:
    """Yield why a case is not proven to be empty by what it asks for on some nodes."""
    nodes = next(entry for entry in instance.nodes if entry.id == name)
    packing = _Packing(instance, nodes, _asked(nodes, way))
    if packing.is_possible():
        text = f"nodes[{number}]: what it asks for on '{name}' can be packed"
        yield BrokenRule("unpackable", text)
    elif packing.steps >= MOST_STEPS:
        text = f"nodes[{number}]: too many ways to pack '{name}' to go through"
        yield BrokenRule("unpackable", text)


def _asked(nodes: Nodes, way: list[Turn]) -> Asked:
    """Read off the way what the plans of a case have at least and at most."""
    kept, gangs = set(), Counter[int]()
    used, woken = nodes.count, nodes.count - nodes.awake
    for turn in way:
        rule, count = turn.rule, turn.split.at_most
        if isinstance(rule, NodesUsed) and rule.nodes == nodes.id and not turn.side:
            used, woken = (used, min(woken, count)) if rule.asleep else (min(used, count), woken)
        if not isinstance(rule, Together) or not turn.side or rule.nodes != nodes.id:
            continue
        if rule.location:
            kept.add(rule.location)
        elif rule.location == "" and rule.gpus is not None:
            gangs[rule.gpus] = max(gangs[rule.gpus], count + 1)
    sizes = sorted(gangs.elements(), reverse=True)
    return Asked(frozenset(kept), tuple(sizes), used, woken)


class _Packing:
    """A search through all ways to pack; nodes behind the last that can be needed are left out."""

    def __init__(self, instance: EacoInstance, nodes: Nodes, asked: Asked) -> None:
        self.nodes, self.asked = nodes, asked
        self.steps = 0
        self._failed: set[tuple[int, tuple[int, ...]]] = set()
        size = {job.id: job.gpus for job in instance.jobs}
        kept = [place for place in instance.running if place.id in asked.kept]
        kept = [place for place in kept if place.nodes == nodes.id]
        spans = [(place.node, self._width(size[place.jobs[0]])) for place in kept]
        needed = max((first + width for first, width in spans), default=0)
        needed += sum(self._width(gang) for gang in asked.gangs)
        free = [nodes.gpus] * min(nodes.count, needed)
        for place, (first, width) in zip(kept, spans, strict=True):
            for number in range(first, first + width):
                free[number] -= min(size[place.jobs[0]], nodes.gpus)
        self._free = tuple(free)

    def is_possible(self) -> bool:
        """Tell whether a way was found within the steps."""
        return self._within(self._free) and self._rest(0, self._free)

    def _width(self, gang: int) -> int:
        return max(1, gang // self.nodes.gpus)

    def _within(self, free: tuple[int, ...]) -> bool:
        used = [n for n, room in enumerate(free) if room < self.nodes.gpus]
        woken = sum(1 for n in used if n >= self.nodes.awake)
        return len(used) <= self.asked.used and woken <= self.asked.woken

    def _rest(self, n: int, free: tuple[int, ...]) -> bool:
        """Tell whether the gangs from the n-th on can be packed into what is free."""
        if n == len(self.asked.gangs):
            return True
        if (n, free) in self._failed or self.steps >= MOST_STEPS or n > 500:
            self.steps += MOST_STEPS if n > 500 else 0
            return False
        self.steps += 1
        gang = self.asked.gangs[n]
        width, part = self._width(gang), min(gang, self.nodes.gpus)
        tried = set()
        for first in range(len(free) - width + 1):
            if any(room < part for room in free[first : first + width]):
                continue
            after = tuple(
                room - part if first <= at < first + width else room for at, room in enumerate(free)
            )
            alike = (free[first], first >= self.nodes.awake) if width == 1 else first
            if gang <= self.nodes.gpus and alike in tried:
                continue
            tried.add(alike)
            if self._within(after) and self._rest(n + 1, after):
                return True
        self._failed.add((n, free))
        return False
