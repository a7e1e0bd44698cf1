"""Warm start of column generation (Lübbecke & Desrosiers, Operations Research 53, 2005).

Duals and groups of the previous epoch, as far as their jobs are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.plan import EacoPlan
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.exact.column_generation import ColumnGeneration
    from optsched.eaco.exact.master import Duals
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.results.result import Result

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class WarmStart(NamedTuple):
    """What an epoch leaves to the next one, in memory.

    Attributes
    ----------
    classes
        Of its jobs.
    first, duals
        The duals that it began with, and those that prove most.
    members
        Shape (groups, m): groups that cost little more than their jobs pay.
    fresh
        Groups that the epoch had to search for, beyond those that it got or began with.
    """

    classes: list[JobClass]
    first: Floats
    duals: Duals
    members: Indices
    fresh: int

    @classmethod
    def of(cls, classes: list[JobClass], first: Floats, generation: ColumnGeneration) -> WarmStart:
        """Return what column generation leaves, from its first duals on."""
        kept = max(SETTINGS.fewest_kept, SETTINGS.kept_per_class * len(classes))
        duals, pool = generation.bound.duals, generation.pool
        near = np.sort(np.argsort(duals.reduced(pool), kind="stable")[:kept])
        return cls(classes, first, duals, pool.members[near], generation.fresh)

    def resumed(self, classes: list[JobClass], first: Floats, most: int) -> MatchedStart | None:
        """Return duals and groups by the classes of now; None if too few were there.

        Parameters
        ----------
        first, most
            As of `matched_start`.
        """
        here = _matched(self.classes, classes)
        if (here >= 0).sum() < SETTINGS.least_share * max(len(classes), 1):
            return None
        members = np.append(here, len(classes))[self.members]
        complete = members[(members >= 0).all(axis=1)]
        jobs = _duals(self, here, first)
        members = _fitted(complete, most, len(classes))
        return MatchedStart(jobs, self.duals.pools, members, members[:0])


class MatchedStart(NamedTuple):
    """The previous epoch, by the classes of this one: duals, groups, and groups of its plan."""

    jobs: Floats | None
    pools: Floats | None
    members: Indices
    planned: Indices


def matched_start(
    start: Result | None, classes: list[JobClass], first: Floats, most: int
) -> MatchedStart | None:
    """Return what is left of the previous epoch; None if that is too little to begin with.

    Parameters
    ----------
    first
        Shape (classes,): the duals that a search begins with if nothing is known.
    most
        Jobs of a group.
    """
    if start is None or not isinstance(start.plan, EacoPlan):
        return None
    planned = _planned(start.plan, classes, most)
    if not isinstance(start.state, WarmStart):
        return MatchedStart(None, None, planned[:0], planned) if len(planned) else None
    matched = start.state.resumed(classes, first, most)
    return None if matched is None else matched._replace(planned=planned)


def _planned(plan: EacoPlan, classes: list[JobClass], most: int) -> Indices:
    """Return the groups of a plan whose jobs are all there, by their classes."""
    at = {name: n for n, c in enumerate(classes) for name in c.jobs}
    rows = [[at.get(name, -1) for name in group.jobs] for group in plan.groups]
    rows = [row for row in rows if len(row) <= most and min(row) >= 0]
    members = np.full((len(rows), most), len(classes), dtype=np.intp)
    for n, row in enumerate(rows):
        members[n, : len(row)] = sorted(row)
    return members


def _matched(before: list[JobClass], now: list[JobClass]) -> Indices:
    """Return for each class the one that has a job of its now, or equal ones; -1 if none."""
    at = {name: n for n, c in enumerate(now) for name in c.jobs}
    alike = {_content(c): n for n, c in enumerate(now)}
    positions = []
    for c in before:
        same = next((at[name] for name in c.jobs if name in at), None)
        positions.append(alike.get(_content(c), -1) if same is None else same)
    return np.array(positions, dtype=np.intp)


def _content(jobs: JobClass) -> tuple[object, ...]:
    job = jobs.job
    return (
        job.type, job.gpus, job.work_s, job.max_slowdown, job.deadline_s, job.waiting_penalty_kwh,
    )  # fmt: skip


def _duals(last: WarmStart, here: Indices, first: Floats) -> Floats:
    """Return duals of jobs: as much above the first ones as they were, or as most were."""
    share = last.duals.jobs / np.maximum(last.first, 1e-300)
    usual = float(np.median(share)) if len(share) else 1.0
    now = np.full(len(first), usual)
    now[here[here >= 0]] = share[here >= 0]
    return np.asarray(now * first)


def _fitted(members: Indices, most: int, classes: int) -> Indices:
    """Return groups of as many jobs as may be now, in order; padded."""
    width = members.shape[1]
    members = np.sort(members, axis=1)
    if width <= most:
        pad = np.full((len(members), most - width), classes)
        return np.hstack([members, pad])
    members = members.copy()
    members[:, most:][members[:, most:] < classes] = -1  # too many jobs: never priced
    members[(members < 0).any(axis=1)] = classes
    return members[:, :most]
