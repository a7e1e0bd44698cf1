"""Rows of cuts and branching: counts of groups (Ryan & Foster, Computer Scheduling, Wren, 1981).

A group counts in `GroupCountRow` if it holds some jobs, and may have to be on some nodes, at some
power level or location. `Rank1CutRow` counts how many times q of a set of jobs a group holds,
rounded down: all groups together at most as often as the whole set does (a Chvatal-Gomory cut; for
q = 2 the odd set cuts of matching, and the subset rows of vehicle routing).
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns


@dataclass(frozen=True, order=True)
class GroupCountRow:
    """Counts groups that hold jobs of some classes; None stands for any pool, gang and so on."""

    classes: tuple[int, ...] = ()
    pool: int | None = None
    gang: int | None = None
    level: int | None = None
    place: int | None = None

    def counts(self, columns: Columns) -> Floats:
        """Return how often each column is counted."""
        counted = np.ones(len(columns.cost), dtype=bool)
        for c, times in Counter(self.classes).items():
            held = columns.members == c
            counted &= held.any(axis=1) if times == 1 else held.sum(axis=1) >= times
        for array, wanted in zip(columns[1:5], self._wanted(), strict=True):
            if wanted is not None:
                counted &= array == wanted
        return counted.astype(float)

    def _wanted(self) -> tuple[int | None, ...]:
        return self.pool, self.level, self.place, self.gang


@dataclass(frozen=True, order=True)
class Rank1CutRow:
    """Counts floor(jobs of some classes in a group / divisor); one named twice has weight two."""

    classes: tuple[int, ...]
    divisor: int

    def counts(self, columns: Columns) -> Floats:
        """Return how often each column is counted."""
        size = max(columns.members.max(initial=0), *self.classes) + 1
        weight = np.bincount(self.classes, minlength=size)
        return np.asarray(weight[columns.members].sum(axis=1) // self.divisor, dtype=float)

    def most(self, copies: Floats) -> float:
        """Return the greatest count of any plan."""
        return float(copies[list(self.classes)].sum() // self.divisor)


@dataclass(frozen=True, order=True)
class NodeCountRow:
    """Counts nodes of a pool in use; or those of them that are asleep now."""

    pool: int
    asleep: bool = False


Rule = GroupCountRow | Rank1CutRow | NodeCountRow


class ColumnIndex:
    """An index of columns by the classes of jobs that they hold.

    Parameters
    ----------
    classes
        How many classes there are.
    """

    def __init__(self, columns: Columns, classes: int) -> None:
        self._all = columns
        count, width = columns.members.shape
        held = columns.members.ravel()
        if classes < 2**16:  # numpy sorts numbers of 16 bits in linear time
            held = held.astype(np.uint16)
        order = np.argsort(held, kind="stable")
        starts = np.searchsorted(held[order], np.arange(classes + 1))
        self._columns = np.split(order[: starts[-1]] // width, starts[1:-1])
        self._count = count

    def of(self, c: int) -> tuple[Indices, Indices]:
        """Return the columns that hold jobs of a class, and how many."""
        held, times = np.unique(self._columns[c], return_counts=True)
        return held, times

    def counts(self, rule: Rule) -> tuple[Indices, Floats]:
        """Return the columns that a rule counts, and how often."""
        if isinstance(rule, NodeCountRow):
            return np.zeros(0, dtype=np.intp), np.zeros(0)
        if isinstance(rule, GroupCountRow):
            counts = rule.counts(self._all)
            which = np.flatnonzero(counts)
            return which, counts[which]
        weights = Counter(rule.classes)
        held = [self._columns[c] for c in weights]
        sizes = [len(columns) for columns in held]
        each = np.repeat(list(weights.values()), sizes)
        totals = np.bincount(np.concatenate(held), weights=each, minlength=self._count)
        which = np.flatnonzero(totals >= rule.divisor)
        return which, np.floor(totals[which] / rule.divisor)


def best_splits(
    frame: Frame, support: Columns, x: Floats, nodes: Mapping[NodeCountRow, float]
) -> list[tuple[Rule, float]]:
    """Return rules whose counts are not whole at a point, and the counts, the best ones first."""
    counts: dict[Rule, float] = {rule: count for rule, count in nodes.items()}
    for candidates in _splits(support, len(frame.copies)):
        for rule in candidates:
            if rule not in counts:
                counts[rule] = float(rule.counts(support) @ x)
        loose = {r: v for r, v in counts.items() if abs(v - round(v)) > SETTINGS.whole}
        if loose:
            return sorted(loose.items(), key=lambda entry: (-_merit(entry[1]), repr(entry[0])))
    return []


def _merit(count: float) -> float:
    """Rate a fractional count: near to a half best, and rather more than less."""
    part = count - np.floor(count)
    return float(min(part, 1 - part) + 0.01 * part)


def _splits(support: Columns, classes: int) -> Iterator[list[GroupCountRow]]:
    """Yield rules that count some of the columns, the coarse ones first."""
    groups = [tuple(c for c in row if c < classes) for row in support.members.tolist()]
    marks = list(zip(*(array.tolist() for array in support[1:5]), strict=True))
    yield [GroupCountRow()]
    for size in range(2, support.members.shape[1] + 1):
        yield [
            GroupCountRow(inner)
            for group in groups
            for inner in sorted(set(itertools.combinations(group, size)))
        ]
    for part in range(1, 5):
        yield [_marked(group, mark, part) for group, mark in zip(groups, marks, strict=True)]


def _marked(group: tuple[int, ...], mark: tuple[int, int, int, int], parts: int) -> GroupCountRow:
    pool, level, place, gang = mark
    return GroupCountRow(
        group,
        pool=pool,
        gang=gang if parts > 3 else None,
        level=level if parts > 2 else None,
        place=place if parts > 1 else None,
    )
