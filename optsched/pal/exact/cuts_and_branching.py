"""Rules that count jobs: Chvatal-Gomory cuts (Chvatal, Discrete Math. 1973) and branching."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.plan import Keeps, Within
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance


class CountRule(NamedTuple):
    """Counts jobs of some types in a domain, on GPUs that are fast enough; or one that keeps its.

    Attributes
    ----------
    types, domain
        Numbers.
    slowdown
        Greatest slowdown; if finite, the types are of one class.
    job
        If not negative, the rule counts only whether this running job keeps its GPUs.
    """

    types: tuple[int, ...]
    domain: int
    slowdown: float
    job: int = -1

    def columns(self, problem: PalArrays, options: GangOptions) -> Indices:
        """Return the options that are counted."""
        if self.job >= 0:
            return np.flatnonzero(options.job == self.job)
        domains = problem.domains
        inside = domains.start >= domains.start[self.domain]
        inside &= domains.stop <= domains.stop[self.domain]
        counted = np.zeros(len(problem.types), dtype=np.bool_)
        counted[list(self.types)] = True
        fast = options.slowdown <= self.slowdown
        return np.flatnonzero(counted[options.type] & inside[options.domain] & fast)

    def document(self, instance: PalInstance, problem: PalArrays) -> Within | Keeps:
        """Return the rule as it stands in certificates."""
        if self.job >= 0:
            return Keeps(job=instance.jobs[self.job].id)
        alike = {}  # jobs of equal types here may be of other models or classes with equal figures
        for t in self.types:
            for n in reversed(problem.types[t].jobs):
                job = instance.jobs[n]
                alike[t, job.model, job.application_class] = job.id
        return Within(
            types=tuple(alike.values()),
            domain=problem.domains.names[self.domain],
            slowest=None if self.slowdown == np.inf else self.slowdown,
        )


class LpPoint(NamedTuple):
    """The options that a solution of the relaxation uses, and how much of each."""

    columns: Indices
    share: Floats

    @classmethod
    def of(cls, x: Floats, options: GangOptions) -> LpPoint:
        """Return the part of a solution that concerns options."""
        columns = np.flatnonzero(x[: len(options.type)] > SETTINGS.integral)
        return cls(columns, x[columns])

    @property
    def is_whole(self) -> bool:
        """Whether every option is used a whole number of times."""
        return bool((np.abs(self.share - np.rint(self.share)) <= SETTINGS.integral).all())


def capacity(problem: PalArrays, rule: CountRule) -> int:
    """Return how many jobs of a rule the GPUs can hold: floor(GPUs / smallest gang)."""
    start, stop = problem.domains.start[rule.domain], problem.domains.stop[rule.domain]
    values = problem.slowdown[problem.types[rule.types[0]].row, start:stop]
    smallest = min(problem.types[t].gpus for t in rule.types)
    return int((values <= rule.slowdown).sum()) // smallest


def violated_cuts(problem: PalArrays, options: GangOptions, point: LpPoint) -> Iterator[CountRule]:
    """Yield cuts that a point violates: gangs of q GPUs or more, q GPUs for each of them.

    Chvatal-Gomory cuts of the capacity of the GPUs in a domain that are fast enough for a class,
    with each threshold in use, and of all GPUs of the domain for all classes.
    """
    sizes = np.array([jobs.gpus for jobs in problem.types])
    rows = np.array([jobs.row for jobs in problem.types])
    for d, members in _by_domain(problem, options, point).items():
        columns, share = point.columns[members], point.share[members]
        types = options.type[columns]
        gpus = int(problem.domains.stop[d] - problem.domains.start[d])
        for q in np.unique(sizes[types]).tolist():
            if share[sizes[types] >= q].sum() > gpus // q + SETTINGS.violated:
                yield CountRule(tuple(np.flatnonzero(sizes >= q).tolist()), d, np.inf)
        for row in np.unique(rows[types]).tolist():
            mine = rows[types] == row
            group = np.flatnonzero(rows == row)
            yield from _cuts_of(problem, d, options, columns[mine], share[mine], group)


def _by_domain(problem: PalArrays, options: GangOptions, point: LpPoint) -> dict[int, list[int]]:
    """Return the used options inside each domain."""
    members: dict[int, list[int]] = {}
    for n, d in enumerate(options.domain[point.columns].tolist()):
        for around in problem.domains.around(d):
            members.setdefault(around, []).append(n)
    return members


def _cuts_of(
    problem: PalArrays,
    d: int,
    options: GangOptions,
    columns: Indices,
    share: Floats,
    group: Indices,
) -> Iterator[CountRule]:
    """Yield the most violated cut for each size; `group` are the types of the class."""
    start, stop = int(problem.domains.start[d]), int(problem.domains.stop[d])
    values = np.sort(problem.slowdown[problem.types[int(group[0])].row, start:stop])
    order = np.argsort(options.slowdown[columns], kind="stable")
    ascending = options.slowdown[columns[order]]
    last = np.r_[ascending[1:] > ascending[:-1], True]
    gpus = np.searchsorted(values, ascending, side="right")
    sizes = np.array([problem.types[t].gpus for t in group.tolist()])
    used = np.array([problem.types[t].gpus for t in options.type[columns[order]].tolist()])
    for q in np.unique(used).tolist():
        counts = np.cumsum(np.where(used >= q, share[order], 0.0))
        over = np.where(last, counts - gpus // q, 0.0)
        worst = int(np.argmax(over))
        if over[worst] > SETTINGS.violated:
            yield CountRule(tuple(group[sizes >= q].tolist()), d, float(ascending[worst]))


def splits(
    problem: PalArrays, options: GangOptions, point: LpPoint
) -> list[tuple[CountRule, float]]:
    """Return the rules whose counts are not whole, with these, the farthest from whole first.

    How many jobs of a type are placed at all comes before how many are in a domain, and that before
    thresholds, since more depends on it.
    """
    fractional = []
    for rule, count in counts(problem, options, point):
        away = abs(count - round(count))
        if away <= SETTINGS.integral:
            continue
        if rule.slowdown == np.inf:
            away += 1.0 if problem.domains.parent[rule.domain] < 0 else 0.5
        fractional.append((away, rule, count))
    fractional.sort(key=lambda split: -split[0])
    return [(rule, count) for _, rule, count in fractional]


def counts(
    problem: PalArrays, options: GangOptions, point: LpPoint
) -> Iterator[tuple[CountRule, float]]:
    """Yield what a point counts by rules: kept placements; types by domain and threshold."""
    for column, share in zip(point.columns.tolist(), point.share.tolist(), strict=True):
        if options.job[column] >= 0:
            yield CountRule((), 0, np.inf, int(options.job[column])), share
    members = _by_domain(problem, options, point)
    for d in sorted(members, reverse=True):
        columns, share = point.columns[members[d]], point.share[members[d]]
        for t in np.unique(options.type[columns]).tolist():
            mine = options.type[columns] == t
            slowdown = options.slowdown[columns[mine]]
            order = np.argsort(slowdown, kind="stable")
            sums = np.cumsum(share[mine][order])
            ascending = slowdown[order]
            for n in np.flatnonzero(ascending[1:] > ascending[:-1]).tolist():
                yield CountRule((t,), d, float(ascending[n])), float(sums[n])
            yield CountRule((t,), d, np.inf), float(sums[-1])


def domain_totals(
    problem: PalArrays, options: GangOptions, point: LpPoint
) -> dict[CountRule, float]:
    """Return how many jobs of each type a point has in each domain below the root."""
    totals: dict[CountRule, float] = {}
    for d, members in _by_domain(problem, options, point).items():
        if problem.domains.parent[d] < 0:
            continue
        for n in members:
            rule = CountRule((int(options.type[point.columns[n]]),), d, np.inf)
            totals[rule] = totals.get(rule, 0.0) + float(point.share[n])
    return totals
