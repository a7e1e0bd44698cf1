"""Greedy grouping of many jobs, the longest first (LPT: Graham, SIAM J. Applied Math. 17, 1969).

As `simple_rules.longest_first`, but of the next jobs in that order the best one joins, and it is
found in arrays of them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.group_figures import TypeFigures
from optsched.eaco.groups.columns import Columns, joined, none, on_one_pool
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.pricing_scope import Pricing
    from optsched.eaco.instance import EacoInstance


class _Jobs(NamedTuple):
    """Jobs of one pricing problem: work, utilisation, memory, least rate, cost alone, worth."""

    work: Floats
    busy: Floats
    memory: Floats
    least: Floats
    alone: Floats
    pays: Floats

    def take(self, which: Indices | slice) -> _Jobs:
        """Return some of the jobs."""
        return _Jobs(*(array[which] for array in self))


class _Group(NamedTuple):
    """Jobs by class, with their sums of utilisation and memory, greatest least rate, and watts."""

    members: tuple[int, ...]
    busy: float
    memory: float
    least: float
    watts: float


def filled(
    instance: EacoInstance,
    classes: list[JobClass],
    problems: list[Pricing],
    pays: Floats,
    kept: Columns | None = None,
) -> Columns:
    """Return groups for as many jobs as there are GPUs for.

    Parameters
    ----------
    pays
        Shape (classes,): what a job is worth to a group, roughly.
    kept
        Groups to begin with, as far as there are jobs, GPUs and locations for them.
    """
    filling = _Filling(instance, classes, problems, pays)
    begun = [] if kept is None else [filling.keep(kept)]
    for gang in sorted({pricing.gang for pricing in problems}, reverse=True):
        filling.fill(gang)
    return joined([*begun, filling.columns()])


class _Filling:
    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        problems: list[Pricing],
        pays: Floats,
    ) -> None:
        problems = [p for p in problems if p.is_sequenced or not p.is_measured]
        self.instance, self.classes, self.pricing_problems = instance, classes, problems
        self.figures = TypeFigures(instance)
        self.free = [nodes.gpus * nodes.count for nodes in instance.nodes]
        self.groups: list[list[tuple[int, ...]]] = [[] for _ in problems]
        self.at = [_positions(pricing, len(classes)) for pricing in problems]
        self.of = [_on(pricing, pays) for pricing in problems]
        self.copies = np.array([len(c.jobs) for c in classes])

    def keep(self, kept: Columns) -> Columns:
        """Begin with groups, the cheapest first; return those for which there is room."""
        chosen, places = [], {-1}
        for n in np.argsort(kept.cost, kind="stable").tolist():
            pool, gang, place = int(kept.pool[n]), int(kept.gang[n]), int(kept.place[n])
            jobs = kept.members[n][kept.members[n] < len(self.classes)]
            members, times = np.unique(jobs, return_counts=True)
            is_free = self.free[pool] >= gang and (place < 0 or place not in places)
            if is_free and (self.copies[members] >= times).all():
                self.copies[members] -= times
                self.free[pool] -= gang
                places.add(place)
                chosen.append(n)
        return kept.take(np.array(chosen, dtype=np.intp))

    def fill(self, gang: int) -> None:
        """Part all jobs of a gang size."""
        among = [n for n, pricing in enumerate(self.pricing_problems) if pricing.gang == gang]
        if not among:  # all types were measured
            return
        work = np.max([self.of[n].work for n in among], axis=0)
        each = zip(self.classes, self.copies.tolist(), strict=True)
        copies = [number if c.job.gpus == gang else 0 for c, number in each]
        left = np.repeat(np.arange(len(copies)), copies)
        left = left[np.argsort(-work[left], kind="stable")]
        while len(left):
            first, left = int(left[0]), left[1:]
            fitting = [n for n in among if self.free[self.pricing_problems[n].pool] >= gang]
            costs = [(self.of[n].alone[first], n) for n in fitting]
            cost, n = min(costs, default=(np.inf, -1))
            if cost < np.inf:
                self.free[self.pricing_problems[n].pool] -= gang
                left = self._group(first, left, n)

    def _group(self, first: int, left: Indices, n: int) -> Indices:
        """Make a group around a job of the next ones that fit best; return who is left."""
        window, pricing = left[: SETTINGS.batch_window], self.pricing_problems[n]
        work, busy, memory, least, alone, _ = (float(array[first]) for array in self.of[n])
        group = _Group((first,), busy, memory, least, alone / work if work else 0.0)
        jobs, kept = self.of[n].take(window), np.ones(len(window), dtype=bool)
        start = 0
        while len(group.members) < self.instance.max_jobs_per_gpu:
            larger = self._larger(group, window[start:], jobs.take(slice(start, None)), pricing)
            if larger is None:
                break
            at, group = larger
            kept[start + at] = False
            start += at + 1
        self.groups[n].append(group.members)
        return np.concatenate([window[kept], left[SETTINGS.batch_window :]])

    def _larger(
        self, group: _Group, window: Indices, jobs: _Jobs, pricing: Pricing
    ) -> tuple[int, _Group] | None:
        """Return which job of a window joins a group, and the group with it."""
        size, busy = len(group.members), group.busy + jobs.busy
        slowdown = pricing.slowdown(busy, size + 1)
        watts = pricing.watts(busy, slowdown)
        more = jobs.work * (watts - group.watts)
        memory, least = group.memory + jobs.memory, np.maximum(group.least, jobs.least)
        limit = pricing.memory_limit or SETTINGS.near
        slack = np.minimum(1 / slowdown - least, 1 - memory / limit)
        slack = np.minimum(slack, 1 - busy / slowdown / pricing.limit)
        fits = (slack >= -SETTINGS.near) & (more < jobs.alone)
        if pricing.measured.number and not pricing.is_sequenced:
            fits &= self._untouched(group.members, window, pricing)
        worth = np.where(fits, jobs.pays - more, -np.inf)
        while len(worth):
            at = int(worth.argmax())
            if worth[at] == -np.inf:
                break
            members = (*group.members, int(window[at]))
            is_clear = slack[at] > SETTINGS.near and not pricing.is_sequenced
            if is_clear or self.figures.is_allowed(
                self.classes, np.array(members), pricing.pool, pricing.level
            ):
                return at, _Group(members, busy[at], memory[at], least[at], watts[at])
            worth[at] = -np.inf
        return None

    def _untouched(self, members: tuple[int, ...], window: Indices, pricing: Pricing) -> Bools:
        """Tell which jobs were not measured beside those of a group."""
        at = self.at[self.pricing_problems.index(pricing)]
        held = np.broadcast_to(at[list(members)], (len(window), len(members)))
        return pricing.measured.joins_untouched(held, at[window])

    def columns(self) -> Columns:
        """Return the groups."""
        parts = [none(self.instance)]
        for pricing, groups in zip(self.pricing_problems, self.groups, strict=True):
            parts.append(self._costed(pricing, groups))
        return joined(parts)

    def _costed(self, pricing: Pricing, groups: list[tuple[int, ...]]) -> Columns:
        """Return groups of a pricing problem with their costs."""
        at, many = _positions(pricing, len(self.classes)), len(pricing.classes)
        rows = np.full((len(groups), self.instance.max_jobs_per_gpu), many)
        for n, group in enumerate(groups):
            rows[n, : len(group)] = at[list(group)]
        priced = pricing.allowed(np.sort(rows, axis=1))
        free = priced.place < 0  # two groups may not keep one location
        members = np.append(pricing.classes, len(at))[priced.at[free]]
        cost, watts = priced.cost[free], priced.watts[free]
        where = pricing.pool, pricing.gang, priced.place[free]
        return on_one_pool(members, *where, cost, watts, pricing.level)


def _positions(pricing: Pricing, many: int) -> Indices:
    """Return the position of each class; -1, which is that of no job, for others."""
    at = np.full(many, -1)
    at[pricing.classes] = np.arange(len(pricing.classes))
    return at


def _on(pricing: Pricing, pays: Floats) -> _Jobs:
    """Return the jobs of a pricing problem by class; those that do not fit cost without limit."""
    work, busy = np.zeros((2, len(pays)))
    memory, least, alone = np.full((3, len(pays)), np.inf)
    jobs = _Jobs(work, busy, memory, least, alone, pays)
    parts: list[Any] = [pricing.work, pricing.busy, pricing.memory, pricing.least]
    for array, values in zip(jobs, parts, strict=False):
        array[pricing.classes] = values
    single = pricing.alone
    np.minimum.at(alone, pricing.classes[single.at[:, 0]], single.cost)
    return jobs
