"""Columns of the set partitioning: groups with nodes, power level and location, and their figures.

Costs follow the phases of docs/math/eaco.md in floats, about 1e-12 from the verifier's exact ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures, gang_fits, group_of
from optsched.eaco.groups.enumeration import (
    Enumeration,
    Groups,
    JobClass,
    TooManyGroupsError,
    never,
    row_minima,
)
from optsched.eaco.settings import SETTINGS

__all__ = ["Columns", "columns", "group_of", "joined", "none", "on_one_pool"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from optsched.eaco.instance import EacoInstance, Nodes, PowerLevel

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class Columns(NamedTuple):
    """Groups with all that is decided about them.

    Attributes
    ----------
    members
        Shape (columns, m): indices of job classes, filled up with the number of classes.
    pool, level, place
        Shape (columns,): index in `nodes`; of the GPU type's levels and in `running`, or -1.
    gang
        Shape (columns,): GPUs.
    cost
        Shape (columns,): in the unit of the objective.
    watts
        Shape (columns,): greatest of all GPUs together, above those of as many bare ones.
    """

    members: Indices
    pool: Indices
    level: Indices
    place: Indices
    gang: Indices
    cost: Floats
    watts: Floats

    def take(self, which: Indices | NDArray[np.bool_]) -> Columns:
        """Return some of the columns."""
        taken: list[Any] = [array[which] for array in self]
        return Columns(*taken)


def none(instance: EacoInstance) -> Columns:
    """Return no columns."""
    nothing = np.zeros(0, dtype=np.intp)
    members = np.zeros((0, instance.max_jobs_per_gpu), dtype=np.intp)
    return Columns(members, nothing, nothing, nothing, nothing, np.zeros(0), np.zeros(0))


def on_one_pool(
    members: Indices,
    pool: int,
    gang: int,
    place: Indices,
    cost: Floats,
    watts: Floats,
    level: int = -1,
) -> Columns:
    """Return groups on one pool of nodes, at one power level."""
    same = np.ones(len(members), dtype=np.intp)
    members = np.sort(members, axis=1)
    return Columns(members, same * pool, same * level, place, same * gang, cost, watts)


def joined(parts: list[Columns]) -> Columns:
    """Return several columns as one."""
    arrays: list[Any] = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    return Columns(*arrays)


class _Runs(NamedTuple):
    """Phases of groups: watts x seconds, seconds, watts of the first and of the most thirsty."""

    joules: Floats
    seconds: Floats
    first_w: Floats
    greatest_w: Floats


def columns(
    instance: EacoInstance, classes: list[JobClass], stops: Callable[[], bool] = never
) -> Columns:
    """Enumerate all columns of an instance.

    Parameters
    ----------
    stops
        Tells whether time has run out; then a listing of many ends.

    Raises
    ------
    TooManyGroupsError
        If there are too many, or time has run out.
    """
    maker = _Maker(instance, classes, stops)
    parts: list[Columns] = []
    count = 0
    for part in maker.parts():
        parts.append(part)
        count += len(part.cost)
        if count > SETTINGS.most_columns:
            text = f"{instance.name}: more than {SETTINGS.most_columns:,} groups with nodes, "
            raise TooManyGroupsError(text + "power levels and locations are possible")
        if count > SETTINGS.listed_at_once and stops():
            raise TooManyGroupsError(f"{instance.name}: no time to list all groups")
    return joined(parts)


class _Maker:
    def __init__(
        self, instance: EacoInstance, classes: list[JobClass], stops: Callable[[], bool]
    ) -> None:
        self.instance, self.classes, self.stops = instance, classes, stops
        self.figures = TypeFigures(instance)
        jobs = [c.job for c in classes]
        self.gangs = {job.id: job.gpus for job in instance.jobs}
        self.work = np.array([job.work_s for job in jobs])
        self.migration = np.array([job.migration_s for job in jobs])
        self.place = np.array([c.place for c in classes])
        self.cap = np.array([job.max_slowdown or np.inf for job in jobs])
        self.due = np.array([np.inf if c.due is None else float(c.due) for c in classes])
        self.credit = np.zeros(len(jobs))
        if instance.objective == "epoch":
            self.credit = np.array([float(self.figures.credit_w(job)) for job in jobs])
        self.training = np.array([job.training_epoch_s or 0.0 for job in jobs])

    def parts(self) -> Iterator[Columns]:
        """Yield the columns, by gang size, GPU type, group size, nodes, level and location."""
        for gpu in self.instance.gpu_types:
            pools = [n for n, nodes in enumerate(self.instance.nodes) if nodes.gpu == gpu.id]
            for gang in sorted({c.job.gpus for c in self.classes}):
                fitting = [n for n in pools if gang_fits(gang, self.instance.nodes[n])]
                among = self.figures.alone_on(self.classes, gang, gpu.id)
                if not fitting or not among:
                    continue
                enumeration = Enumeration(self.instance, self.classes, among, gpu, self.stops)
                for groups in enumeration.sizes:
                    for pool in fitting:
                        yield from self._on(groups, enumeration, pool, gang)

    def _on(
        self, groups: Groups, enumeration: Enumeration, pool: int, gang: int
    ) -> Iterator[Columns]:
        """Yield the columns of groups on one pool of nodes."""
        step = SETTINGS.pairs_at_once
        if len(groups.members) > step:
            for first in range(0, len(groups.members), step):
                some = slice(first, first + step)
                part = Groups(groups.members[some], groups.sets[some], groups.is_near[some])
                yield from self._on(part, enumeration, pool, gang)
            return
        nodes = self.instance.nodes[pool]
        levels = self.figures.gpus[nodes.gpu].levels
        for place in (-1, *self._places(nodes, gang)):
            inside = groups
            if place >= 0:
                stays = (self.place[groups.members] == place).any(axis=1)
                inside = Groups(*(array[stays] for array in groups))
            for number, level in ((-1, None), *enumerate(levels)):
                if len(inside.members):
                    yield self._made(inside, enumeration, pool, gang, place, number, level)

    def _places(self, nodes: Nodes, gang: int) -> list[int]:
        return [
            n
            for n, place in enumerate(self.instance.running)
            if place.nodes == nodes.id and self.gangs[place.jobs[0]] == gang
        ]

    def _made(
        self,
        groups: Groups,
        enumeration: Enumeration,
        pool: int,
        gang: int,
        place: int,
        number: int,
        level: PowerLevel | None,
    ) -> Columns:
        members, size = groups.members, groups.members.shape[1]
        nodes = self.instance.nodes[pool]
        speed = self._speed(nodes.gpu)[members]
        moved = (self.place[members] >= 0) & (self.place[members] != place)
        work = self.work[members] / speed + np.where(moved, self.migration[members], 0)
        factor = 1.0 if level is None else level.rate
        rates = enumeration.sets.levels[size].rates[groups.sets] * factor
        margin = np.minimum(rates * self.cap[members], rates * self.due[members] / work)
        margin = row_minima(margin) - 1
        fine = margin >= -SETTINGS.near
        near = groups.is_near | (np.abs(margin) <= SETTINGS.near)
        for row in np.flatnonzero(fine & near):
            fine[row] = self.figures.is_allowed(self.classes, members[row], pool, number, place)
        members, sets, work, rates = members[fine], groups.sets[fine], work[fine], rates[fine]
        runs = _run(enumeration, sets, work, level)
        cost = self._cost(runs, members, rates, moved[fine], speed[fine], pool, gang)
        bare = float(self.figures.gpus[nodes.gpu].power.bare_w)
        filled = np.full((len(members), self.instance.max_jobs_per_gpu), len(self.classes))
        filled[:, :size] = members
        same = np.ones(len(members), dtype=np.intp)
        watts = gang * (runs.greatest_w - bare)
        return Columns(filled, same * pool, same * number, same * place, same * gang, cost, watts)

    def _speed(self, gpu: str) -> Floats:
        return np.array(
            [float(self.figures.types[c.job.type].speeds.get(gpu, 1)) for c in self.classes]
        )

    def _cost(
        self,
        runs: _Runs,
        members: Indices,
        rates: Floats,
        moved: NDArray[np.bool_],
        speed: Floats,
        pool: int,
        gang: int,
    ) -> Floats:
        """Return the cost in the unit of the objective, nodes in use and wakes left out."""
        instance, nodes = self.instance, self.instance.nodes[pool]
        if instance.objective == "epoch":
            epoch = instance.epoch_s or 0.0
            bare = self.figures.gpus[nodes.gpu].power.bare_w
            done = (epoch * rates - np.where(moved, self.migration[members], 0)) * speed
            worth = (self.credit[members] * done).sum(axis=1)
            joules = epoch * gang * (runs.first_w - bare) - worth
            return np.asarray(joules / JOULES_PER_KWH * float(instance.per_kwh))
        joules = gang * (runs.joules + float(self.figures.node_share_w(nodes)) * runs.seconds)
        if instance.objective == "run-to-completion":
            return np.asarray(joules / JOULES_PER_KWH * float(instance.per_kwh))
        weight = instance.energy_weight or 0.0
        hours = (self.training[members] / (speed * rates)).sum(axis=1) / 3600
        count = len(instance.jobs)
        return np.asarray(weight * joules / JOULES_PER_KWH + (1 - weight) * hours / count)


def _run(enumeration: Enumeration, sets: Indices, work: Floats, level: PowerLevel | None) -> _Runs:
    """Follow groups through their phases: in each, one job ends.

    Jobs that end at the same time end one after the other, in phases of no length. Where the rates
    of those that are left are not known, rates and watts stay as they were in the last phase that
    took any time.
    """
    size = work.shape[1]
    left, rows = work.copy(), np.arange(len(work))
    factor, power, limit = (
        (1.0, 1.0, np.inf)
        if level is None
        else (
            level.rate,
            level.power,
            level.limit_w,
        )
    )
    last_rates, last_w = np.ones_like(work), np.zeros(len(work))
    joules, seconds, greatest, first_w = np.zeros((4, len(work)))
    for count in range(size, 0, -1):
        at = enumeration.sets.levels[count]
        fresh = at.rates[sets] * factor
        known = ~np.isnan(fresh[:, 0])
        rates = np.where(known[:, None], fresh, last_rates)
        watts = np.where(known, np.minimum(at.watts[sets] * power, limit), last_w)
        times = left / rates
        first = times.argmin(axis=1)
        took = np.maximum(times[rows, first], 0.0)
        first_w = watts if count == size else first_w
        joules += took * watts
        seconds += took
        lasts = took > SETTINGS.instant_share * seconds
        greatest = np.where(lasts, np.maximum(greatest, watts), greatest)
        last_rates = np.where(lasts[:, None], rates, last_rates)
        last_w = np.where(lasts, watts, last_w)
        rest = np.arange(count - 1) + (np.arange(count - 1) >= first[:, None])
        left = np.take_along_axis(left - took[:, None] * rates, rest, axis=1)
        last_rates = np.take_along_axis(last_rates, rest, axis=1)
        sets = at.children[sets, first]
    return _Runs(joules, seconds, first_w, greatest)
