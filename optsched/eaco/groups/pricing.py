"""The pricing problem, label-setting with completion bounds (Irnich & Desaulniers 2005).

The best groups at duals of jobs, where rates come from utilisations. Jobs of a group end in the
order of their work, so one with less work than all others changes its cost only while it runs.
Groups are extended from the job with most work on, and those that no further jobs can make pay are
left behind: a job adds at most what it pays, less its least share of the watts.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.groups.phase_pricing import Charges, PhasePricing, PricedGroups
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.groups.completion_bounds import Gains


class Partial(NamedTuple):
    """Groups that may grow by jobs at the same or later positions.

    Attributes
    ----------
    at
        Shape (groups, k): positions in the order of work, ascending.
    busy, memory, least
        Shape (groups,): sum of utilisations and of memory, and the least rate that all bear.
    watts, reduced
        Shape (groups,): cost of a second of work, and cost less what the jobs pay.
    peak
        Shape (groups,): greatest watts of a GPU that are charged for.
    """

    at: Indices
    busy: Floats
    memory: Floats
    least: Floats
    watts: Floats
    reduced: Floats
    peak: Floats

    def take(self, which: Indices | Bools | slice) -> Partial:
        """Return some of the groups."""
        taken: list[Any] = [array[which] for array in self]
        return Partial(*taken)


class _Query(NamedTuple):
    """What a search asks for: see `PricingProblem.below` and `PricedGroups.least`."""

    pays: Floats
    gains: Gains
    limit: Floats
    least: Floats
    most: int
    watt: float


class PricingProblem(PhasePricing):
    """Groups of one gang size on nodes of one pool.

    Attributes
    ----------
    is_cut
        Whether the last search left groups out, since they were too many or time ran out.
    stops
        Tells whether time has run out; then a search ends, and says nothing of what is left.
    """

    is_cut = False
    stops: Callable[[], bool] = staticmethod(lambda: False)

    def below(
        self, pays: Floats, charges: Charges, threshold: Floats | float, most: int
    ) -> PricedGroups:
        """Return groups that cost less than a threshold above what their jobs pay.

        Parameters
        ----------
        pays
            Shape (jobs,), by position; minus infinity for jobs that are left out.
        charges
            Of a group, not below 0.
        threshold
            Or thresholds, by the position of the job with most work.
        most
            Groups that grow further, at most, of each size; the most promising ones.
        """
        limit = np.broadcast_to(np.asarray(threshold, dtype=float), pays.shape)
        self.is_cut = False
        watt = charges.watt * self.gang
        query = _Query(pays, self._gains(pays), limit, limit.copy(), most, watt)
        partial = self._alone(pays, charges.gpus, watt)
        pay = (partial.reduced < limit[partial.at[:, 0]]) & self._is_complete(partial.at)
        partials = [self._best(partial.take(pay), query)]
        for further in range(self._most - 1, 0, -1):
            partial = self._promising(partial, further, query)
            larger, below = [partial.take(slice(0, 0))], []
            for rows, last in self._extended(partial, further - 1, query):
                both = self._larger(partial, rows, last, further - 1, query)
                larger.append(both[0])
                below.append(self._best(both[1], query))
            partial = _joined(larger[1:] or larger)
            partials += [self._best(_joined(below), query)] if below else []
        if self.is_exact:
            return self._priced(partials, query, charges.gpus)
        found = self.worked_out([partial.at for partial in partials], pays, charges)
        found = found.take(found.reduced < limit[found.at[:, 0]], query.least)
        np.minimum.at(query.least, found.at[:, 0], found.reduced)
        return found

    def _best(self, partial: Partial, query: _Query) -> Partial:
        """Return groups, the best if they are too many; note the best of each leader."""
        most = query.most
        is_cut = len(partial.at) > most
        if self.is_exact or not is_cut:
            noted = partial if self.is_exact else partial.take(slice(0, 0))
            np.minimum.at(query.least, noted.at[:, 0], noted.reduced)
        if not is_cut:
            return partial
        self.is_cut = True
        order = np.argpartition(partial.reduced / self.work[partial.at[:, 0]], most)
        gone = partial.take(order[most:])
        np.minimum.at(query.least, gone.at[:, 0], gone.reduced)
        return partial.take(order[:most])

    def _priced(self, partials: list[Partial], query: _Query, charge: float) -> PricedGroups:
        """Return groups whose costs the search has found itself."""
        padded = np.append(query.pays, 0.0)
        parts = []
        for partial in partials:
            size = partial.at.shape[1]
            at = np.full((len(partial.at), self._most), len(query.pays))
            at[:, :size] = partial.at
            slowdown = self.slowdown(partial.busy, size)
            near = np.abs(slowdown * partial.least - 1) <= SETTINGS.near
            near |= partial.memory > self.memory_limit * (1 - SETTINGS.near)
            near |= partial.busy >= self.limit * slowdown * (1 - SETTINGS.near)
            cost = partial.reduced + padded[at].sum(axis=1) - charge - query.watt * partial.peak
            watts = self.gang * (self._greatest_w(partial.at) if self._has_cap else 0 * cost)
            parts.append((at, cost, partial.reduced, near, np.full(len(at), -1), watts))
        joined: list[Any] = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return PricedGroups(*[*joined, query.least])

    def _greatest_w(self, at: Indices) -> Floats:
        """Return the greatest watts of a GPU, above a bare one, of groups in the order of work."""
        busy, greatest = np.zeros(len(at)), np.zeros(len(at))
        for n in range(at.shape[1]):
            busy = busy + self.busy[at[:, n]]
            greatest = np.maximum(greatest, self._above_bare(busy, self.slowdown(busy, n + 1)))
        return greatest

    def _above_bare(self, busy: Floats, slowdown: Floats) -> Floats:
        context, span = self._gpu.power.context_w, self._span
        return np.asarray(context - self.bare_w + span * np.minimum(1.0, busy / slowdown))

    def _alone(self, pays: Floats, charge: float, watt: float) -> Partial:
        watts = self._context + self._span * np.minimum(1.0, self.busy)
        at = np.flatnonzero(np.isfinite(pays))
        busy = self.busy if self.is_exact else 0 * self.busy
        peak = self._above_bare(busy, np.ones(len(busy))) if watt else 0 * busy
        reduced = (self.work * watts - pays + charge + watt * peak)[at]
        return Partial(
            at[:, None],
            self.busy[at],
            self.memory[at],
            self.least[at],
            watts[at],
            reduced,
            peak[at],
        )

    def _completion_bounds(self, partial: Partial, gains: Gains, further: int) -> Floats:
        """Return what groups cost at least above what jobs pay, however they grow."""
        size, last = partial.at.shape[1], partial.at[:, -1]
        steps = np.full(len(last), self._wide[1])
        if self._slope > 0:
            slower = np.maximum(1 / partial.least - 1 - self._partner * size, 0)
            fits = (1 + slower / self._slope - partial.busy) / self._stride
            fits = fits * (1 + SETTINGS.near) + SETTINGS.near
            steps = np.clip(fits, 0, self._wide[1]).astype(int)
        calm = self._context * (1 + self._partner * (size - 1)) + self._span * partial.busy
        sags = np.maximum(partial.watts - calm + self._sag[size], 0.0)
        gain = gains.of(further, last, self._cells(partial), steps)
        return np.asarray(partial.reduced - gain - self.work[last] * sags)

    def _cells(self, partial: Partial) -> Indices:
        """Return the cells of memory that are left for further jobs."""
        cells = (self.memory_limit - partial.memory) / self._unit * (1 + SETTINGS.near)
        return np.clip(cells, 0, self._wide[0]).astype(int)

    def _promising(self, partial: Partial, further: int, query: _Query) -> Partial:
        """Return the groups that may grow to one below the limit, the best if they are too many."""
        most, bounds = query.most, self._completion_bounds(partial, query.gains, further)
        above = bounds - query.limit[partial.at[:, 0]]
        kept = np.flatnonzero(above < 0)
        if len(kept) > most:
            self.is_cut = True
            rank = above[kept] / self.work[partial.at[kept, 0]]
            order = kept[np.argpartition(rank, most)]
            kept, gone = np.sort(order[:most]), order[most:]
            np.minimum.at(query.least, partial.at[gone, 0], bounds[gone])
        return partial.take(kept)

    def _extended(
        self, partial: Partial, further: int, query: _Query
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield groups and jobs that add enough and may join them, some in one go."""
        last, gains = partial.at[:, -1], query.gains
        need = self._completion_bounds(partial, gains, further) - query.limit[partial.at[:, 0]]
        forced = self._forced(partial.at, further, gains.net)
        need[forced[0]] = np.inf
        candidates = gains.candidates(last, self._cells(partial), need)
        for rows, more in itertools.chain([forced], candidates):
            if self.stops():
                self.is_cut = True
                query.least.fill(-np.inf)
                return
            first = last[rows]
            memory = partial.memory[rows] + self.memory[more]
            fits = memory <= self.memory_limit * (1 + SETTINGS.near)
            fits &= more >= first
            again = np.flatnonzero(fits & (more == first))
            held = (partial.at[rows[again]] == more[again, None]).sum(axis=1)
            fits[again] = held < self.copies[more[again]]
            rows, more = rows[fits], more[fits]
            if self.measured.number:
                joins = self._may_join(partial.at[rows], more, further)
                rows, more = rows[joins], more[joins]
            yield rows, more

    def _larger(
        self, partial: Partial, rows: Indices, last: Indices, further: int, query: _Query
    ) -> tuple[Partial, Partial]:
        """Return groups with one more job: those that may grow on, and those below the limit."""
        size = partial.at.shape[1] + 1
        busy = partial.busy[rows] + self.busy[last]
        slowdown = self.slowdown(busy, size)
        least = np.maximum(partial.least[rows], self.least[last])
        watts = self.watts(busy, slowdown)
        reduced = partial.reduced[rows] - query.pays[last]
        reduced += self.work[last] * (watts - partial.watts[rows])
        peak = partial.peak[rows]
        if query.watt and self.is_exact:
            peak = np.maximum(peak, self._above_bare(busy, slowdown))
            reduced += query.watt * (peak - partial.peak[rows])
        bound = query.limit[partial.at[rows, 0]]
        fine = slowdown * least <= 1 + SETTINGS.near
        if size == self._most:
            fine &= reduced < bound
        rows, last, bound, slowdown = rows[fine], last[fine], bound[fine], slowdown[fine]
        larger = Partial(
            np.hstack([partial.at[rows], last[:, None]]),
            busy[fine],
            partial.memory[rows] + self.memory[last],
            least[fine],
            watts[fine],
            reduced[fine],
            peak[fine],
        )
        paying = (larger.reduced < bound) & self._is_complete(larger.at)
        paying &= larger.busy <= self.limit * slowdown * (1 + SETTINGS.near)
        if not further:
            return larger.take(slice(0, 0)), larger.take(paying)
        hopeful = self._completion_bounds(larger, query.gains, further) < bound
        return larger.take(hopeful), larger.take(paying)


def _joined(parts: list[Partial]) -> Partial:
    joined: list[Any] = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return Partial(*joined)
