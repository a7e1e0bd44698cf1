"""The verifier of EaCO: whether gangs that a node asks for can be packed on the nodes it allows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.plan import NodesUsed, Together
from optsched.eaco.verify.limits import LIMITS
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.certificates.bound_tree import PathStep
    from optsched.eaco.instance import EacoInstance, Nodes
    from optsched.eaco.plan import Rounded

    Rule = Together | Rounded | NodesUsed
    Free = tuple[int, ...]


class Asked(NamedTuple):
    """What a node of the tree asks for on nodes of the cluster.

    Attributes
    ----------
    kept
        Locations that are kept.
    gangs
        How many gangs of each size at least, besides the locations.
    used, woken
        Nodes in use and woken ones at most.
    """

    kept: frozenset[str]
    gangs: dict[int, int]
    used: int
    woken: int


def packing_faults(
    instance: EacoInstance, name: str, rules: Sequence[Rule], path: list[PathStep], number: int
) -> Iterator[BrokenRule]:
    """Yield why a leaf is not proven to be empty by what it asks for on some nodes."""
    nodes = next(entry for entry in instance.nodes if entry.id == name)
    asked = _asked(nodes, rules, path)
    if sum(gang * count for gang, count in asked.gangs.items()) > nodes.gpus * nodes.count:
        return
    text = f"nodes[{number}]: too many packings of '{name}' to go through"
    if sum(asked.gangs.values()) > LIMITS.gangs:
        yield BrokenRule("unpackable", text)
        return
    packing = _Packing(instance, nodes, asked)
    if packing.is_possible():
        text = f"nodes[{number}]: what it asks for on '{name}' can be packed"
        yield BrokenRule("unpackable", text)
    elif packing.looks >= LIMITS.looks:
        yield BrokenRule("unpackable", text)


def _asked(nodes: Nodes, rules: Sequence[Rule], path: list[PathStep]) -> Asked:
    """Read off the path what the plans of a leaf have at least and at most."""
    kept, gangs = set(), Counter[int]()
    used, woken = nodes.count, nodes.count - nodes.awake
    for step in path:
        rule, count = rules[step.split.rule], step.split.at_most
        if isinstance(rule, NodesUsed) and rule.nodes == nodes.id and not step.side:
            used, woken = (used, min(woken, count)) if rule.asleep else (min(used, count), woken)
        if not isinstance(rule, Together) or not step.side or rule.nodes != nodes.id:
            continue
        if rule.location:
            kept.add(rule.location)
        elif rule.location == "" and rule.gpus is not None:
            gangs[rule.gpus] = max(gangs[rule.gpus], count + 1)
    return Asked(frozenset(kept), gangs, used, woken)


class _Packing:
    """A search through all packings; nodes behind the last that can be needed are left out."""

    def __init__(self, instance: EacoInstance, nodes: Nodes, asked: Asked) -> None:
        self.nodes, self.asked = nodes, asked
        self.looks = 0
        self._gangs = sorted(Counter(asked.gangs).elements(), reverse=True)
        self._failed: set[tuple[int, Free]] = set()
        size = {job.id: job.gpus for job in instance.jobs}
        kept = [place for place in instance.running if place.id in asked.kept]
        kept = [place for place in kept if place.nodes == nodes.id]
        spans = [(place.node, self._width(size[place.jobs[0]])) for place in kept]
        needed = max((first + width for first, width in spans), default=0)
        needed += sum(self._width(gang) for gang in self._gangs)
        free = [nodes.gpus] * min(nodes.count, needed)
        for place, (first, width) in zip(kept, spans, strict=True):
            for number in range(first, first + width):
                free[number] -= min(size[place.jobs[0]], nodes.gpus)
        self._free = tuple(free)

    def is_possible(self) -> bool:
        """Tell whether a packing was found before too many nodes were looked at."""
        if not self._within(self._free):
            return False
        if not self._gangs:
            return True
        stack = [(self._free, self._placements(0, self._free))]
        while stack and self.looks < LIMITS.looks:
            free, placements = stack[-1]
            after = next(placements, None)
            n = len(stack)  # of the gangs, so many have their nodes now
            if after is None:
                self._failed.add((n - 1, free))
                stack.pop()
            elif n == len(self._gangs):
                return True
            elif (n, after) not in self._failed:
                stack.append((after, self._placements(n, after)))
        return False

    def _width(self, gang: int) -> int:
        return max(1, gang // self.nodes.gpus)

    def _within(self, free: Free) -> bool:
        used = [n for n, gpus in enumerate(free) if gpus < self.nodes.gpus]
        woken = sum(1 for n in used if n >= self.nodes.awake)
        return len(used) <= self.asked.used and woken <= self.asked.woken

    def _placements(self, n: int, free: Free) -> Iterator[Free]:
        """Yield what is free after the n-th gang has its nodes, by placement within the limits."""
        gang = self._gangs[n]
        width, part = self._width(gang), min(gang, self.nodes.gpus)
        tried = set()
        for first in range(len(free) - width + 1):
            self.looks += width
            if self.looks >= LIMITS.looks:
                return
            if any(gpus < part for gpus in free[first : first + width]):
                continue
            alike = (free[first], first >= self.nodes.awake) if width == 1 else first
            if gang <= self.nodes.gpus and alike in tried:
                continue
            tried.add(alike)
            self.looks += len(free)
            after = tuple(
                gpus - part if first <= at < first + width else gpus for at, gpus in enumerate(free)
            )
            if self._within(after):
                yield after
