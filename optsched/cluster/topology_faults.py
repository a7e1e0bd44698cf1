"""Faults of a topology that concern several fields, found in the raw document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optsched.documents.faults import Fault, mapping, near_name, nearest, sequence, shown
from optsched.documents.limits import LIMITS


def some(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name that is nearest to a misspelt one, or a few of those that there are."""
    known = list(known)
    few = known if len(known) <= 8 else [*known[:7], "..."]
    near = near_name(name, known)
    return few if near is None else [near]


@dataclass(frozen=True)
class _Tree:
    """What of a raw document is as it should be."""

    heights: dict[str, int]
    entries: list[tuple[int, Mapping[str, Any]]]
    first: dict[str, int]
    hints: dict[str, str] = field(default_factory=dict)

    def hint(self, name: str) -> str:
        """Say which domain may be meant; many domains may name the same wrong parent."""
        if name not in self.hints:
            self.hints[name] = nearest(name, some(name, self.first))
        return self.hints[name]

    @cached_property
    def height_of(self) -> dict[str, int]:
        """The number of the level of each domain that has one."""
        levels = {n: entry.get("level") for n, entry in self.entries}
        return {
            name: self.heights[level]
            for name, n in self.first.items()
            if isinstance(level := levels[n], str) and level in self.heights
        }


def tree_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield every fault of a topology that concerns several fields, with its path."""
    levels, domains = document.get("levels"), document.get("domains")
    many = list(_size_faults(levels, domains))
    if many:
        yield from many
        return
    heights: dict[str, int] = {}
    for n, level in enumerate(levels if isinstance(levels, list | tuple) else ()):
        if isinstance(level, str) and heights.setdefault(level, n) != n:
            yield ("levels", n), f"{shown(level)} is already the name of levels[{heights[level]}]"
    if not isinstance(domains, list | tuple):
        return
    entries = [(n, entry) for n, entry in enumerate(domains) if isinstance(entry, Mapping)]
    first: dict[str, int] = {}
    for n, entry in entries:
        name = entry.get("id")
        if isinstance(name, str) and first.setdefault(name, n) != n:
            text = f"{shown(name)} is already the id of domains[{first[name]}]"
            yield ("domains", n, "id"), text
    tree = _Tree(heights, entries, first)
    yield from _level_faults(tree)
    yield from _parent_faults(tree)
    yield from _gpu_faults(tree)
    if entries:
        yield from _whole_faults(tree)


def _size_faults(levels: Any, domains: Any) -> Iterator[Fault]:
    """Yield what is more, or longer, than any cluster has."""
    domains = sequence(domains)
    gpus = sum(len(sequence(mapping(entry).get("gpus"))) for entry in domains)
    for name, count, most in (
        ("levels", len(sequence(levels)), LIMITS.levels),
        ("domains", max(len(domains), gpus), LIMITS.items),
    ):
        if count > most:
            text = "GPUs" if gpus == count > len(domains) else name
            yield (name,), f"{count:,} {text}, more than {most:,}"
    for n, entry in enumerate(domains):
        names = (mapping(entry).get("id"), *sequence(mapping(entry).get("gpus")))
        if any(isinstance(name, str) and len(name) > LIMITS.name_chars for name in names):
            yield ("domains", n), f"a name of more than {LIMITS.name_chars:,} characters"


def _level_faults(tree: _Tree) -> Iterator[Fault]:
    for n, entry in tree.entries:
        level = entry.get("level")
        if isinstance(level, str) and tree.heights and level not in tree.heights:
            text = f"{shown(level)} is not one of the levels; {nearest(level, tree.heights)}"
            yield ("domains", n, "level"), text


def _parent_faults(tree: _Tree) -> Iterator[Fault]:
    cycles = dict(_cycles(tree))
    in_cycles = {tree.first[name] for cycle in cycles.values() for name in cycle}
    root: str | None = None
    for n, entry in tree.entries:
        path, parent = ("domains", n, "parent"), entry.get("parent")
        if parent is None:
            if root is not None:
                yield path, f"missing: {root} is already the root, and there can be only one"
            root = root or f"domains[{n}]"
        elif not isinstance(parent, str):
            continue
        elif parent not in tree.first:
            yield path, f"there is no domain {shown(parent)}; {tree.hint(parent)}"
        elif n in cycles:
            ring = " in ".join(shown(member) for member in (*cycles[n], cycles[n][0]))
            yield path, f"a cycle: {ring}"
        elif n not in in_cycles:
            yield from _order_faults(tree, n, entry)


def _order_faults(tree: _Tree, n: int, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault if the parent's level is not above that of its child."""
    level, parent = entry.get("level"), entry["parent"]
    height = tree.heights.get(level) if isinstance(level, str) else None
    above = tree.height_of.get(parent)
    if height is not None and above is not None and above <= height:
        name = list(tree.heights)[above]
        text = f"{shown(parent)} has the level {shown(name)}, which is not above {shown(level)}"
        yield ("domains", n, "parent"), text


def _cycles(tree: _Tree) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of a domain in each cycle, and the cycle from there towards the root."""
    parents = {
        entry["id"]: entry["parent"]
        for n, entry in reversed(tree.entries)
        if isinstance(entry.get("id"), str)
        and isinstance(entry.get("parent"), str)
        and tree.first[entry["id"]] == n
    }
    walk_of: dict[str, str] = {}  # the domain from which each was met first
    for origin in parents:
        name = origin
        while name in parents and name not in walk_of:
            walk_of[name] = origin
            name = parents[name]
        if walk_of.get(name) == origin:  # back on its own walk: a cycle that no other met
            yield _from_the_first(tree, _ring(name, parents))


def _ring(name: str, parents: Mapping[str, str]) -> list[str]:
    ring = [name]
    while parents[ring[-1]] != name:
        ring.append(parents[ring[-1]])
    return ring


def _from_the_first(tree: _Tree, ring: list[str]) -> tuple[int, list[str]]:
    start = min(range(len(ring)), key=lambda i: tree.first[ring[i]])
    return tree.first[ring[start]], ring[start:] + ring[:start]


def _gpu_faults(tree: _Tree) -> Iterator[Fault]:
    holder: dict[str, tuple[int, object]] = {}
    lowest = next(iter(tree.heights), None)
    for n, entry in tree.entries:
        gpus, level = entry.get("gpus"), entry.get("level")
        if not isinstance(gpus, list | tuple):
            continue
        if gpus and isinstance(level, str) and level in tree.heights and level != lowest:
            text = f"only domains of the lowest level, {shown(lowest)}, hold GPUs"
            yield ("domains", n, "gpus"), f"{text}; {shown(entry.get('id'))} is a {level}"
        for i, gpu in enumerate(gpus):
            if not isinstance(gpu, str):
                continue
            if gpu in tree.first:
                text = f"{shown(gpu)} is already the id of domains[{tree.first[gpu]}]"
                yield ("domains", n, "gpus", i), text
            if gpu in holder:
                m, other = holder[gpu]
                twice = "twice in" if m == n else f"also in domains[{m}],"
                yield ("domains", n, "gpus", i), f"GPU {shown(gpu)} is {twice} {shown(other)}"
            holder.setdefault(gpu, (n, entry.get("id")))


def _whole_faults(tree: _Tree) -> Iterator[Fault]:
    texts = []
    if all(entry.get("parent") is not None for _, entry in tree.entries):
        texts.append("no root: one domain must have no parent")
    if not any(entry.get("gpus") for _, entry in tree.entries):
        texts.append("no GPUs in the cluster: one domain must list some")
    if texts:
        yield ("domains",), "; ".join(texts)
