"""The pricing problem for few types: for each sequence of types, the jobs are chosen one by one.

What a job adds to a group's cost is then its work times a figure of the sequence, so that the best
groups of each sequence follow from a table over the jobs in the order of work, by dynamic
programming. It bounds all others before any group is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.group_figures import TypeFigures
from optsched.eaco.groups.phase_pricing import GroupSets, PhasePricing, PricedGroups
from optsched.eaco.groups.type_multisets import curve_watts
from optsched.eaco.groups.type_sequences import TypeSequences
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.groups.phase_pricing import Charges
    from optsched.eaco.groups.type_sequences import TypeSequence
    from optsched.eaco.instance import EacoInstance


class _Tables(NamedTuple):
    """Of a sequence: what jobs add, and what all from each on add at least.

    Attributes
    ----------
    adds
        Shape (k, jobs): above what it pays; infinite for jobs that cannot be there.
    rest
        Shape (k + 1, jobs + 1): the least that jobs of this and later places add, from each
        position on.
    leads
        Shape (jobs,): what groups cost at least that a job leads.
    """

    adds: Floats
    rest: Floats
    leads: Floats


class _Rows(NamedTuple):
    """Groups of one size, positions ascending.

    Attributes
    ----------
    least, held
        What they, and what larger ones cost at least above what jobs pay; without further jobs.
    """

    at: Indices
    least: Floats
    held: Floats

    def take(self, which: Indices | Bools | slice) -> _Rows:
        """Return some of the groups."""
        return _Rows(self.at[which], self.least[which], self.held[which])


class SequencePricing(PhasePricing):
    """Groups of one gang size on nodes of one pool at one power level, of jobs of few types."""

    is_cut, is_sequenced = False, True
    stops: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(
        self,
        instance: EacoInstance,
        classes: list[JobClass],
        among: list[int],
        pool: int,
        gang: int,
        level: int = -1,
    ) -> None:
        super().__init__(instance, classes, among, pool, gang, is_measured=True, level=level)
        self._types = np.array([classes[n].job.type for n in self.classes.tolist()])
        names, self._first, self._kind = np.unique(
            self._types, return_index=True, return_inverse=True
        )
        least = np.full(len(names), np.inf)
        np.minimum.at(least, self._kind, self.least)
        bears = {str(name): rate for name, rate in zip(names, least.tolist(), strict=True)}
        figures, nodes = TypeFigures(instance), instance.nodes[pool]
        power_level = None if level < 0 else figures.gpus[nodes.gpu].levels[level]
        self._by_types = TypeSequences(figures, nodes, power_level, bears)
        self.sequences = list(self._by_types.all())
        self._again = int((self.copies > 1).any())
        self._known: dict[tuple[str, float], tuple[Indices, Floats]] = {}
        self._sets: dict[int, GroupSets] = self._by_types.kept("sets", *bears)

    def _lower(self) -> None:
        """Leave figures as they are: sequences say what groups cost at least."""

    def _is_mine(self, at: Indices) -> Bools:
        """Tell that all groups are of this problem."""
        return np.ones(len(at), dtype=bool)

    def _sets_of(self, at: Indices) -> GroupSets:
        """Return the figures of all sets of jobs of groups of one size: those of their types."""
        size, many = at.shape[1], len(self._first)
        if size not in self._sets:
            every = np.indices((many,) * size).reshape(size, -1).T
            self._sets[size] = super()._sets_of(self._first[every])
        sets, _, kept, near = self._sets[size]
        of = self._kind[at] @ many ** np.arange(size)[::-1]
        return GroupSets(sets, of, kept[of], near[of])

    def slowdown(self, busy: Floats, size: int) -> Floats:
        """Return the slowdown of groups of a size by their utilisation, by the formula."""
        return super().slowdown(busy, size) / self.rate

    def watts(self, busy: Floats, slowdown: Floats) -> Floats:
        """Return the watts of a second of work, the share of the node included, by the formula."""
        drawn, level = curve_watts(self._gpu.power, busy / slowdown / self.rate), self._gpu.level
        if level is not None:
            drawn = np.minimum(drawn * level.power, level.limit_w)
        return np.asarray((drawn + self._gpu.share) * slowdown)

    def shares(self) -> Floats:
        """Return what each job would pay in the best group of jobs that end with it."""
        paid = dict.fromkeys(np.unique(self._types).tolist(), np.inf)
        for sequence in self.sequences:
            alone = [self._by_types.side_by_side((t,)).watts for t in sequence.types]
            split = sum(sequence.watts) / (sum(alone) or 1.0)
            for name, watts in zip(sequence.types, alone, strict=True):
                paid[name] = min(paid[name], split * watts)
        each = np.array([paid[name] for name in self._types.tolist()])
        return np.asarray(self.work * np.where(np.isfinite(each), each, 0.0))

    def below(
        self, pays: Floats, charges: Charges, threshold: Floats | float, most: int
    ) -> PricedGroups:
        """Return groups that cost less than a threshold above what their jobs pay.

        Parameters
        ----------
        pays
            Shape (jobs,): minus infinity for jobs that are left out.
        charges
            Not below 0.
        threshold
            Or thresholds, by the position of the job with most work.
        most
            Groups at most, those that may cost least.
        """
        limit = np.broadcast_to(np.asarray(threshold, dtype=float), pays.shape)
        charge = charges.gpus + charges.watt * self.gang * self._least_w()
        self.is_cut, least, found = False, limit.copy(), dict[int, list[_Rows]]()
        for sequence in self.sequences:
            tables = self._tables(sequence, pays, charge)
            if not (tables.leads < limit).any():
                continue
            if self.stops():
                self.is_cut = True
                np.minimum(least, tables.leads, out=least)
                continue
            rows = self._rows(tables, limit, most, least)
            found.setdefault(len(sequence.types), []).append(rows)
        parts = self._best_rows(found, most, least)
        priced = self.worked_out(parts, pays, charges)
        priced = priced.take(priced.reduced < limit[priced.at[:, 0]], least)
        np.minimum.at(least, priced.at[:, 0], priced.reduced)
        return priced

    def _tables(self, sequence: TypeSequence, pays: Floats, charge: float) -> _Tables:
        """Return what jobs add to groups of a sequence."""
        size, many = len(sequence.types), len(self.work)
        adds, rest = np.full((size, many), np.inf), np.full((size + 1, many + 1), np.inf)
        rest[size] = 0.0
        for n in range(size - 1, -1, -1):
            can, work = self._bearing(sequence.types[n], sequence.rates[n])
            adds[n, can] = work * sequence.watts[n] - pays[can]
            whole = adds[n] + self._later(rest[n + 1])
            rest[n, :-1] = np.minimum.accumulate(whole[::-1])[::-1]
        return _Tables(adds, rest, charge + adds[0] + self._later(rest[1]))

    def _bearing(self, kind: str, rate: float) -> tuple[Indices, Floats]:
        """Return the jobs of a type that bear a rate, and their work."""
        if (kind, rate) not in self._known:
            can = (self._types == kind) & (self.least <= rate * (1 + SETTINGS.near))
            at = np.flatnonzero(can)
            self._known[kind, rate] = at, self.work[at]
        return self._known[kind, rate]

    def _later(self, rest: Floats) -> Floats:
        """Return what later jobs add at least: equal ones stand at one position."""
        return rest[:-1] if self._again else rest[1:]

    def _rows(self, tables: _Tables, limit: Floats, most: int, least: Floats) -> _Rows:
        """Return the groups of a sequence that may be below the limits, the best if too many."""
        leads = np.flatnonzero(tables.leads < limit)
        first = tables.leads[leads] - self._later(tables.rest[1])[leads]
        rows = self._cut(_Rows(leads[:, None], tables.leads[leads], first), most, least)
        for n in range(1, len(tables.adds)):
            rows = self._cut(self._longer(rows, tables, n, limit), most, least)
        return rows

    def _longer(self, rows: _Rows, tables: _Tables, n: int, limit: Floats) -> _Rows:
        """Return groups with one more job, that may be below their limits."""
        more = np.flatnonzero(np.isfinite(tables.adds[n]))
        adds = tables.adds[n][more]
        whole = adds + self._later(tables.rest[n + 1])[more]
        parts = [_Rows(np.zeros((0, n + 1), dtype=np.intp), adds[:0], adds[:0])]
        step = max(1, SETTINGS.pairs_at_once // max(len(more), 1))
        for first in range(0, len(rows.at), step):
            part = rows.take(slice(first, first + step))
            bound = part.held[:, None] + whole
            fits = bound < limit[part.at[:, 0]][:, None]
            row, job = np.nonzero(fits & (more > part.at[:, -1:] - self._again))
            if self._again:
                times = (part.at[row] == more[job, None]).sum(axis=1)
                free = times < self.copies[more[job]]
                row, job = row[free], job[free]
            at = np.column_stack([part.at[row], more[job]])
            parts.append(_Rows(at, bound[row, job], part.held[row] + adds[job]))
        return _joined(parts)

    def _cut(self, rows: _Rows, most: int, least: Floats) -> _Rows:
        """Return groups, the best if they are too many; note what the others cost at least."""
        if len(rows.at) <= most:
            return rows
        self.is_cut = True
        order = np.argpartition(rows.least / self.work[rows.at[:, 0]], most)
        gone = rows.take(order[most:])
        np.minimum.at(least, gone.at[:, 0], gone.least)
        return rows.take(np.sort(order[:most]))

    def _best_rows(self, found: dict[int, list[_Rows]], most: int, least: Floats) -> list[Indices]:
        """Return the best groups by their sizes."""
        parts = []
        for _, rows in sorted(found.items()):
            parts.append(self._cut(_joined(rows), most, least).at)
        return parts


def _joined(parts: list[_Rows]) -> _Rows:
    arrays: list[Any] = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return _Rows(*arrays)
