"""Rules that count jobs by label: cuts, which the GPUs imply, and splits of a tree of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.plan import Keeps, Within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from optsched.pal.arrays import Arrays
    from optsched.pal.instance import PalInstance
    from optsched.pal.relaxation import Labels

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

INTEGRAL = 1e-6  # what HiGHS calls whole
VIOLATED = 1e-4  # by how much a cut must be violated to be worth a row


class Rule(NamedTuple):
    """Counts the jobs of some types in a domain with a slowdown; or one job, if it stays.

    With a divisor q a job of k GPUs counts floor(k / q) times.
    """

    types: tuple[int, ...]
    domain: int
    slowdown: float
    job: int = -1
    divisor: int = 0

    def columns(self, problem: Arrays, found: Labels) -> Indices:
        """Return the labels and stays that are counted."""
        if self.job >= 0:
            return np.flatnonzero(found.job == self.job)
        domains = problem.domains
        inside = domains.start >= domains.start[self.domain]
        inside &= domains.stop <= domains.stop[self.domain]
        counted = np.isin(found.type, self.types) & inside[found.domain]
        return np.flatnonzero(counted & (found.slowdown <= self.slowdown))

    def weights(self, problem: Arrays, found: Labels, columns: Indices) -> Floats:
        """Return how often each of the labels counts."""
        if not self.divisor:
            return np.ones(len(columns))
        sizes = np.array([jobs.gpus for jobs in problem.types])
        return (sizes[found.type[columns]] // self.divisor).astype(float)

    def document(self, instance: PalInstance, problem: Arrays) -> Within | Keeps:
        """Return the rule as it stands in certificates."""
        if self.job >= 0:
            return Keeps(job=instance.jobs[self.job].id)
        return Within(
            types=tuple(instance.jobs[problem.types[t].jobs[0]].id for t in self.types),
            domain=problem.domains.names[self.domain],
            slowest=None if self.slowdown == np.inf else self.slowdown,
        )


class Point(NamedTuple):
    """The labels and stays that a solution of the relaxation uses, and how much of each."""

    columns: Indices
    share: Floats

    @classmethod
    def of(cls, x: Floats, found: Labels) -> Point:
        """Return the part of a solution that concerns labels and stays."""
        columns = np.flatnonzero(x[: len(found.type)] > INTEGRAL)
        return cls(columns, x[columns])

    @property
    def is_whole(self) -> bool:
        """Whether every label is used a whole number of times."""
        return bool((np.abs(self.share - np.rint(self.share)) <= INTEGRAL).all())


def capacity(problem: Arrays, rule: Rule) -> int:
    """Return how much of a cut the GPUs can hold: floor(GPUs / divisor)."""
    start, stop = problem.domains.start[rule.domain], problem.domains.stop[rule.domain]
    values = problem.slowdown[problem.types[rule.types[0]].row, start:stop]
    return int((values <= rule.slowdown).sum()) // rule.divisor


def violated_cuts(problem: Arrays, found: Labels, point: Point) -> Iterator[Rule]:
    """Yield rounding cuts that a point violates: gangs in a domain, in whole multiples of q GPUs.

    Chvatal-Gomory cuts of the capacity of the GPUs in a domain that are fast enough for a class,
    with each threshold in use, and of all GPUs of the domain for all classes.
    """
    rows = np.array([jobs.row for jobs in problem.types])
    for d, members in _by_domain(problem, found, point).items():
        columns, share = point.columns[members], point.share[members]
        types = found.type[columns]
        everything = np.full(len(columns), np.inf)
        yield from _cuts_of(problem, d, types, everything, share, np.arange(len(rows)))
        for row in np.unique(rows[types]).tolist():
            mine = rows[types] == row
            slowdown = found.slowdown[columns[mine]]
            group = np.flatnonzero(rows == row)
            yield from _cuts_of(problem, d, types[mine], slowdown, share[mine], group)


def _by_domain(problem: Arrays, found: Labels, point: Point) -> dict[int, list[int]]:
    """Return the used labels inside each domain."""
    members: dict[int, list[int]] = {}
    for n, d in enumerate(found.domain[point.columns].tolist()):
        for around in problem.domains.around(d):
            members.setdefault(around, []).append(n)
    return members


def _cuts_of(
    problem: Arrays, d: int, types: Indices, slowdown: Floats, share: Floats, group: Indices
) -> Iterator[Rule]:
    sizes = np.array([jobs.gpus for jobs in problem.types])
    start, stop = int(problem.domains.start[d]), int(problem.domains.stop[d])
    values = np.sort(problem.slowdown[problem.types[int(group[0])].row, start:stop])
    order = np.argsort(slowdown, kind="stable")
    ascending = slowdown[order]
    last = np.r_[ascending[1:] > ascending[:-1], True]
    room = np.searchsorted(values, ascending, side="right")
    used, shares = sizes[types[order]], share[order]
    for q in divisors(used, int(room[-1])):
        over = np.cumsum(used // q * shares) - room // q
        chosen = tuple(group[sizes[group] >= q].tolist())
        for n in np.flatnonzero(last & (over > VIOLATED)).tolist():
            yield Rule(chosen, d, float(ascending[n]), divisor=q)


def divisors(sizes: Indices, room: int) -> list[int]:
    """Return the divisors that are worth a try."""
    return [q for q in range(2, min(int(sizes.max()), room) + 1)]


def best_split(problem: Arrays, found: Labels, point: Point) -> tuple[Rule, float] | None:
    """Return the rule whose count is farthest from whole, and the count; None if all are whole."""
    best, distance = None, INTEGRAL
    for rule, count in _counts(problem, found, point):
        away = abs(count - round(count))
        if away > distance * 1.001:
            best, distance = (rule, count), away
    return best


def _counts(problem: Arrays, found: Labels, point: Point) -> Iterator[tuple[Rule, float]]:
    for column, share in zip(point.columns.tolist(), point.share.tolist(), strict=True):
        if found.job[column] >= 0:
            yield Rule((), 0, np.inf, int(found.job[column])), share
    members = _by_domain(problem, found, point)
    for d in sorted(members, reverse=True):
        columns, share = point.columns[members[d]], point.share[members[d]]
        for t in np.unique(found.type[columns]).tolist():
            mine = found.type[columns] == t
            slowdown = found.slowdown[columns[mine]]
            order = np.argsort(slowdown, kind="stable")
            counts = np.cumsum(share[mine][order])
            ascending = slowdown[order]
            last = np.flatnonzero(np.r_[ascending[1:] > ascending[:-1], True])
            for n in last[:-1].tolist():
                yield Rule((t,), d, float(slowdown[order[n]])), float(counts[n])
            yield Rule((t,), d, np.inf), float(counts[-1])
