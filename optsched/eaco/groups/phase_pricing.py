"""Groups of a pricing problem, worked out by their phases, at each location that they may keep."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.groups.pricing_jobs import PricingJobs
from optsched.eaco.groups.side_by_side import fit
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.groups.side_by_side import Sets


class PricedGroups(NamedTuple):
    """Groups below a threshold, or the best of them if they are too many.

    Attributes
    ----------
    at, cost, reduced
        Positions, filled up with the number of jobs; costs; costs less what the jobs pay, with the
        charges for GPUs, watts and location.
    is_near
        Whether a figure is too near to a limit to be trusted.
    place, watts
        Index of the location that each keeps, or -1; greatest watts of all its GPUs, above those of
        as many bare ones.
    least
        Shape (jobs,): no group at all costs less than this above what its jobs pay, by the position
        of the one with most work; the threshold at most.
    """

    at: Indices
    cost: Floats
    reduced: Floats
    is_near: Bools
    place: Indices
    watts: Floats
    least: Floats

    def take(self, which: Bools, least: Floats) -> PricedGroups:
        """Return some of the groups, with what is known of all others."""
        taken: list[Any] = [*(array[which] for array in self[:-1]), least]
        return PricedGroups(*taken)


class Charges(NamedTuple):
    """What a group is charged besides: for its GPUs, for a watt, and for each location."""

    gpus: float = 0.0
    watt: float = 0.0
    places: Floats = np.zeros(0)


class GroupSets(NamedTuple):
    """The sets of each group's jobs, and which groups keep the limits of groups.

    Attributes
    ----------
    sets, of
        Figures of sets, and which of these figures each group has.
    kept, near
        Whether it keeps all limits, and is near to one.
    """

    sets: Sets
    of: Indices
    kept: Bools
    near: Bools


class PhasePricing(PricingJobs):
    """Groups by positions, with costs that are right whatever was measured, and whoever runs."""

    @cached_property
    def alone(self) -> PricedGroups:
        """Each job alone, where that is a group of this problem."""
        single = np.arange(len(self.work))[:, None]
        return self.worked_out([single], np.zeros(len(self.work)), Charges())

    def allowed(self, at: Indices) -> PricedGroups:
        """Return those groups that are allowed, with their costs.

        Parameters
        ----------
        at
            Shape (groups, most): positions, ascending, filled up with the number of jobs.
        """
        many = len(self.work)
        copies = np.append(self.copies, self._most)
        fits = np.ones(len(at), dtype=bool)
        for n in range(at.shape[1]):
            fits &= (at == at[:, n : n + 1]).sum(axis=1) <= copies[at[:, n]]
        at = at[fits]
        sizes = (at < many).sum(axis=1)
        parts = [at[sizes == size, :size] for size in range(1, self._most + 1)]
        return self.worked_out(parts, np.zeros(many), Charges())

    def costs(self, at: Indices) -> Floats:
        """Return what groups cost off all locations; infinite for those that are not allowed.

        Limits are kept but for rounding, and nobody is looked for twice.

        Parameters
        ----------
        at
            Shape (groups, most): positions in any order, filled up with the number of jobs.
        """
        at = np.sort(at, axis=1)
        sizes = (at < len(self.work)).sum(axis=1)
        if self.is_exact:
            return self._by_formula(at, sizes)
        cost = np.where(sizes == 0, 0.0, np.inf)
        for size in range(1, self._most + 1):
            rows = np.flatnonzero(sizes == size)
            for block in self._phases.blocks(at[rows, :size]):
                cost[rows[block]] = self._off_locations(at[rows[block], :size])
        return cost

    def _by_formula(self, at: Indices, sizes: Indices) -> Floats:
        """Return the same by the closed form: jobs end in the order of work."""
        work, alone = np.append(self.work, 0.0), np.append(self.busy, 0.0)
        cost, busy, before = np.zeros((3, len(at)))
        for n in range(at.shape[1]):
            busy += alone[at[:, n]]
            watts = self.watts(busy, self.slowdown(busy, n + 1))
            cost += work[at[:, n]] * (watts - before)
            before = watts
        slowdown = 1 + self._partner * (sizes - 1) + self._slope * np.maximum(busy - 1, 0)
        memory = np.append(self.memory, 0.0)[at].sum(axis=1)
        fits = slowdown * np.append(self.least, 0.0)[at].max(axis=1) <= 1 + SETTINGS.near
        fits &= memory <= self.memory_limit * (1 + SETTINGS.near)
        fits &= busy <= self.limit * slowdown * (1 + SETTINGS.near)
        if self.measured.number:
            fits &= ~self.measured.touched(at)
        return np.where(fits | (sizes <= 1), cost, np.inf)

    def _off_locations(self, at: Indices) -> Floats:
        """Return what groups of one size cost where none of their jobs runs."""
        cost, (sets, of, kept, _) = np.full(len(at), np.inf), self._sets_of(at)
        kept = kept & self._is_mine(at)
        rows = np.flatnonzero(kept)  # of others a rate may be 0, which no tolerance can be taken of
        at, rates = at[rows], sets.rates[-1, of[rows]]
        seconds = self.seconds[at] + self.moving[at]
        margin = np.minimum(rates * self.cap[at], rates * self.due[at] / seconds).min(axis=1) - 1
        is_borne = margin >= -SETTINGS.near
        rows, seconds = rows[is_borne], seconds[is_borne]
        cost[rows] = self._phases.run(sets, of[rows], seconds)[0] * self.per_j
        return cost

    def worked_out(self, parts: list[Indices], pays: Floats, charges: Charges) -> PricedGroups:
        """Return those groups, each part of one size, that are allowed, wherever they may be."""
        found = [
            self._made(at[block], pays, charges)
            for at in parts
            for block in self._phases.blocks(at)
        ]
        nothing = np.zeros(0)
        whole = np.zeros(0, dtype=np.intp)
        none = PricedGroups(
            np.zeros((0, self._most), dtype=np.intp),
            nothing, nothing, nothing.astype(bool), whole, nothing, pays,
        )  # fmt: skip
        joined: list[Any] = [np.concatenate(part) for part in zip(*[none, *found], strict=True)]
        return PricedGroups(*joined)._replace(least=np.full(len(pays), np.inf))

    def _made(self, at: Indices, pays: Floats, charges: Charges) -> PricedGroups:
        """Return the allowed groups of a block, at each location that they may keep."""
        at = at[self._is_mine(at)]
        sets, of, kept, near = self._sets_of(at)
        places, rows = map(np.concatenate, zip(*self._places(at[kept]), strict=True))
        rows = np.flatnonzero(kept)[rows]
        groups = GroupSets(sets, of[rows], kept[rows], near[rows])
        return self._at_place(at[rows], groups, places, pays, charges)

    def _is_mine(self, at: Indices) -> Bools:
        """Tell which groups are of this problem: those that were measured, or all others."""
        return np.asarray(self.measured.touched(at) == self.is_measured)

    def _sets_of(self, at: Indices) -> GroupSets:
        """Return the figures of all sets of jobs of groups of one size."""
        sets = self._phases.sets(at)
        return GroupSets(sets, np.arange(len(at)), *self._limits(at, sets))

    def _limits(self, at: Indices, sets: Sets) -> tuple[Bools, Bools]:
        """Tell which groups keep the limits of groups, and which ones are near to one."""
        kept, near = fit(sets), np.zeros(len(at), dtype=bool)
        if at.shape[1] > 1:
            memory, limit = self.memory[at].sum(axis=1), self.utilisation_limit
            kept &= memory <= self.memory_limit * (1 + SETTINGS.near)
            kept &= sets.busy[-1] <= limit * (1 + SETTINGS.near)
            near |= memory > self.memory_limit * (1 - SETTINGS.near)
            near |= sets.busy[-1] >= limit * (1 - SETTINGS.near)
        return kept, near

    def _places(self, at: Indices) -> Iterator[tuple[Indices, Indices]]:
        """Yield groups with locations: none, and each that one of their jobs has on these nodes."""
        every = np.arange(len(at))
        yield np.full(len(at), -1), every
        homes = self.place[at]
        for n in range(at.shape[1] if len(self.is_here) > 1 else 0):
            first = self.is_here[homes[:, n]] & ~(homes[:, :n] == homes[:, n : n + 1]).any(axis=1)
            yield homes[first, n], every[first]

    def _at_place(
        self,
        at: Indices,
        groups: GroupSets,
        place: Indices,
        pays: Floats,
        charges: Charges,
    ) -> PricedGroups:
        """Return those groups at their locations that all jobs bear."""
        homes = self.place[at]
        moved = (homes >= 0) & (homes != place[:, None])
        seconds = self.seconds[at] + np.where(moved, self.moving[at], 0.0)
        rates = groups.sets.rates[-1, groups.of]
        margin = np.minimum(rates * self.cap[at], rates * self.due[at] / seconds).min(axis=1) - 1
        kept = np.flatnonzero(margin >= -SETTINGS.near)
        joules, greatest = self._phases.run(groups.sets, groups.of[kept], seconds[kept])
        at, place = at[kept], place[kept]
        cost = joules * self.per_j
        watts = self.gang * np.maximum(greatest - self.bare_w, 0.0)
        reduced = cost - pays[at].sum(axis=1) + charges.gpus + charges.watt * watts
        if len(charges.places):
            reduced += np.append(charges.places, 0.0)[place]
        near = groups.near[kept] | (np.abs(margin[kept]) <= SETTINGS.near)
        filled = np.full((len(at), self._most), len(self.work))
        filled[:, : at.shape[1]] = at
        return PricedGroups(filled, cost, reduced, near, place, watts, np.zeros(0))

    def _is_complete(self, at: Indices) -> Bools:
        """Tell which groups may be some of this problem."""
        if not self.is_measured:
            return np.ones(len(at), dtype=bool)
        return np.asarray(self.measured.weight[at].sum(axis=1) >= 2)

    def _may_join(self, at: Indices, more: Indices, further: int) -> Bools:
        """Tell which jobs may join groups, so that these still can be some of this problem."""
        if not self.is_measured:
            return self.measured.joins_untouched(at, more)
        weight = self.measured.weight
        held = weight[at].sum(axis=1) + weight[more]
        last = np.flatnonzero(weight[:-1]).max(initial=-1)
        can = (more <= last) & (held + further * weight.max() >= 2)
        return np.asarray((held >= 2) | can)

    def _forced(self, at: Indices, further: int, net: Floats) -> tuple[Indices, Indices]:
        """Return all that may join those groups which only measured types can complete."""
        nobody = np.zeros(0, dtype=np.intp)
        if not self.is_scarce:
            return nobody, nobody
        weight = self.measured.weight
        rows = np.flatnonzero(weight[at].sum(axis=1) + further * weight.max() < 2)
        hot = np.flatnonzero((weight[:-1] > 0) & np.isfinite(net))
        return np.repeat(rows, len(hot)), np.tile(hot, len(rows))


def best_groups(groups: PricedGroups, pays: Floats, layers: int) -> Indices:
    """Return the groups to add: the best of all, of each leader, and of each job at each place."""
    size = np.maximum(np.where(np.isfinite(pays), pays, 0.0), 1e-300)[groups.at[:, 0]]
    order = np.argsort(groups.reduced / size, kind="stable")
    chosen = [order[: SETTINGS.best_groups]]
    at = groups.at[order]
    for _ in range(layers):
        taken = np.zeros(len(at), dtype=bool)
        for n in range(at.shape[1]):
            taken[np.unique(at[:, n], return_index=True)[1]] = True
        chosen.append(order[taken])
        order, at = order[~taken], at[~taken]
        if not len(order):
            break
    return np.unique(np.concatenate(chosen))
