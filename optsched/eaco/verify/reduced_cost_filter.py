"""The verifier of EaCO: the reduced-cost filter of groups, in whole numbers of 63 bits.

What groups cost is rounded down and what jobs pay is rounded up, so no group is lost that pays;
those that are left are priced exactly (`equal_rate_groups.py`). The units are chosen so that
nothing can overflow: each sum of products is below 2**62, as the comments tell.

What is left out, and why that does not matter, line by line: docs/obligations-eaco.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.eaco.verify.completion_bounds import CompletionBounds
from optsched.eaco.verify.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.verify.limits import WorkBudget

    Wholes = NDArray[np.int64]

BITS = 28  # of utilisations, slowdowns and rates
ONE = 1 << BITS
WORK, WATTS, PRICE, MEMORY = 28, 31, 56, 40  # bits at most
STEEP = 4 * ONE  # slopes and slowdowns by partners count up to there
MOST_JOBS = 8  # of a group; with it and STEEP no slowdown exceeds 57 * ONE, below 2**34


class FilterData(NamedTuple):
    """What the cost of groups depends on; jobs in the order of their work, the longest first.

    Attributes
    ----------
    work, busy, least, memory
        By job: seconds in multiples of some unit, utilisation, the least rate that it bears, GB.
    copies
        Equal jobs.
    context, span
        Watts of a GPU and its share of the node, without any work and by utilisation.
    slope, partner
        Of the slowdown.
    memory_limit
        GB that groups may take.
    unit_cost
        What a watt of each GPU of the gang costs in a unit of work, in the multiples of prices.
    most
        Jobs of a group.
    weights
        Where figures were measured: by job, what it adds to the 2 that a group needs to be one of
        those that they concern. Their watts rise by utilisation up to that of a GPU, no further.
    """

    work: list[int]
    busy: list[Fraction]
    least: list[Fraction]
    memory: list[Fraction]
    copies: list[int]
    context: Fraction
    span: Fraction
    slope: Fraction
    partner: Fraction
    memory_limit: Fraction
    unit_cost: Fraction
    most: int
    weights: list[int] | None = None


class PartialGroups(NamedTuple):
    """Groups of one size: positions, sums of utilisation and memory, greatest least rate, watts.

    `above` is what each costs above what its jobs pay, at least.
    """

    at: NDArray[np.int32]
    busy: Wholes
    memory: Wholes
    least: Wholes
    watts: Wholes
    above: Wholes

    def take(self, which: Any) -> PartialGroups:
        """Return some of the groups."""
        taken: list[Any] = [array[which] for array in self]
        return PartialGroups(*taken)


class GroupFilter:
    """Groups of one gang size on nodes of one pool."""

    def __init__(self, data: FilterData, budget: WorkBudget) -> None:
        assert 1 <= data.most <= MOST_JOBS
        self._data, self._most, self._budget = data, data.most, budget
        self._busy = _wholes([int(min(busy, Fraction(1)) * ONE) for busy in data.busy])  # down
        self._least = _wholes([min(max(int(rate * ONE), 0), ONE) for rate in data.least])
        grain = data.memory_limit / (1 << MEMORY) or Fraction(1)
        self._memory = _wholes([min(int(gb / grain), 2 << MEMORY) for gb in data.memory])
        self._memory_limit = int(data.memory_limit / grain) + 1  # up
        self._copies = np.array(data.copies)
        self._weights = None if data.weights is None else np.array(data.weights)
        self._slope = int(min(data.slope * ONE, Fraction(STEEP)))  # down
        self._partner = int(min(data.partner * ONE, Fraction(STEEP)))  # down
        self._scale_watts()

    def _scale_watts(self) -> None:
        """Choose the unit of watts: watts times slowdown stay below 2**61."""
        data, busiest = self._data, self._most * int(self._busy.max(initial=1))
        slowest = ONE + self._partner * self._most + (self._slope * busiest >> BITS)
        whole = (data.context + data.span) * max(slowest, busiest)
        exponent = 61 - (int(whole) + 1).bit_length()
        self._context = int(data.context * Fraction(2) ** exponent)  # down
        self._span = int(data.span * Fraction(2) ** exponent)  # down
        self._shift = max(0, 61 - WATTS)
        self._watt_bits = self._shift - exponent - BITS
        self._busiest = busiest
        assert (self._context + self._span) * max(slowest, busiest) < 1 << 61

    def below(self, pays: Sequence[int], threshold: int) -> Iterator[NDArray[np.int32]]:
        """Yield rows of positions: all groups that cost less than a threshold above what is paid.

        Others, that cost hardly more, may be among them.

        Parameters
        ----------
        pays, threshold
            In the multiples of `FilterData.unit_cost`.
        """
        if not pays:
            return
        limit = self._scale_prices(pays, threshold)
        nets = self._pays - self._work * (
            (self._context * self._partner + self._span * self._busy) >> self._shift
        )
        top = self._left(np.zeros(1, dtype=np.int64), self._least.min(keepdims=True), 1)
        tops = (self._memory_limit, max(1, min(self._busiest, int(top[0]))))
        bounds = CompletionBounds(nets, self._memory, self._busy, tops, self._most - 1)
        stack = [iter([self._singles()])]
        while stack:
            part = next(stack[-1], None)
            if part is None:
                stack.pop()
                continue
            paying = part.at[self._are_complete(part.at) & (part.above < limit)]
            if len(paying):
                yield paying
            if part.at.shape[1] < self._most:
                stack.append(self._larger(part, bounds, limit))

    def _scale_prices(self, pays: Sequence[int], threshold: int) -> int:
        """Choose the unit of work, so that prices stay within 2**56; return the threshold in it."""
        greatest = max(abs(threshold), *(abs(pay) for pay in pays))
        shift = max(0, max(self._data.work).bit_length() - WORK)
        unit = self._data.unit_cost * Fraction(2) ** (shift + self._watt_bits)
        more = max(0, (greatest // (unit * (1 << PRICE))).bit_length())
        shift, unit = shift + more, unit * (1 << more)
        self._work = _wholes([work >> shift for work in self._data.work])  # down
        top, bottom = unit.numerator, unit.denominator
        self._pays = _wholes([-(-pay * bottom // top) for pay in pays])  # up
        limit = -(-threshold * bottom // top)  # up
        assert int(self._work.max()) < 1 << WORK
        assert max(int(abs(self._pays).max()), abs(limit)) <= 1 << PRICE
        return limit

    def _singles(self) -> PartialGroups:
        at = np.arange(len(self._busy), dtype=np.int32)[:, None]
        slow = np.full(len(at), ONE)
        watts = self._watts(self._busy, slow)
        above = self._work * watts - self._pays
        return PartialGroups(at, self._busy, self._memory, self._least, watts, above)

    def _are_complete(self, at: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell which groups are some of those that are looked for."""
        if self._weights is None:
            return np.ones(len(at), dtype=bool)
        return np.asarray(self._weights[at].sum(axis=1) >= 2)

    def _can_be_complete(
        self, part: PartialGroups, rows: Wholes, more: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Tell which groups still can be, once a job has joined: later jobs have their weight."""
        assert self._weights is not None
        held = self._weights[part.at[rows]].sum(axis=1) + self._weights[more]
        rest = self._most - part.at.shape[1] - 1
        last = int(np.flatnonzero(self._weights).max(initial=-1))
        later = (more <= last) & (held + rest * int(self._weights.max()) >= 2)
        return np.asarray((held >= 2) | later)

    def _watts(self, busy: Wholes, slowdown: Wholes) -> Wholes:
        most = slowdown if self._weights is None else np.full_like(slowdown, ONE)
        whole = self._context * slowdown + self._span * np.minimum(busy, most)
        return np.asarray(whole >> self._shift)

    def _left(self, busy: Wholes, least: Wholes, size: int) -> Wholes:
        """Return the utilisation that further jobs of a group may have; below 0 if none can be."""
        slowest = np.where(least > 0, ONE * ONE // np.maximum(least, 1), 1 << 34)
        spare = np.minimum(slowest - ONE - self._partner * size, 1 << 33)
        beyond = np.full(len(busy), self._busiest)
        if self._slope:
            beyond = np.minimum(beyond, (np.maximum(spare, 0) + 1 << BITS) // self._slope)
        return np.where(spare < 0, -1, np.maximum(ONE + beyond - busy, 0))

    def _rest(self, part: PartialGroups, left: Wholes, bounds: CompletionBounds) -> Wholes:
        """Return what groups cost above what is paid, but for what further jobs add on their own.

        While jobs run side by side, watts may be lower than what each adds on its own: where they
        are busier than one GPU, once the slowdown has caught up with them.
        """
        size = part.at.shape[1]
        last = part.at[:, -1]
        further = (self._most - size) * bounds.busiest_from(last)
        beyond = np.maximum(part.busy + np.minimum(left, further) - ONE, 0)
        slower = self._slope * beyond >> BITS
        caught = 0 * slower if self._weights is not None else slower + self._partner * size
        sag = self._span * np.maximum(beyond - caught, 0)
        sag = np.maximum(sag - self._context * slower, 0) + self._span + self._context
        calm = self._context * (ONE + self._partner * (size - 1)) + self._span * part.busy
        lower = np.maximum(part.watts - (calm >> self._shift) + (sag >> self._shift) + 2, 0)
        return np.asarray(part.above - self._work[last] * lower)

    def _larger(
        self, part: PartialGroups, bounds: CompletionBounds, limit: int
    ) -> Iterator[PartialGroups]:
        """Return the groups with one more job, of no more work than the others."""
        further = self._most - part.at.shape[1]
        left = self._left(part.busy, part.least, part.at.shape[1])
        part, left = part.take(left >= 0), left[left >= 0]
        free, last = self._memory_limit - part.memory, part.at[:, -1]
        need = self._rest(part, left, bounds) - limit
        promising = bounds.of(further, last, free, left) > need
        part, need = part.take(promising), need[promising]
        left, free = left[promising], free[promising]
        need -= bounds.of(further - 1, part.at[:, -1], free, left)
        counts, order, starts = bounds.candidates(part.at[:, -1], free, need)
        ends = np.cumsum(counts)
        most = LIMITS.rows
        edges = np.searchsorted(ends, np.arange(most, ends[-1] if len(ends) else 0, most))
        for rows in np.split(np.arange(len(ends)), edges):
            inside = np.repeat(rows, counts[rows])
            self._budget.spend(len(inside) // LIMITS.rows_per_term)
            offset = np.arange(len(inside)) - np.repeat(
                np.cumsum(counts[rows]) - counts[rows], counts[rows]
            )
            larger = self._joined(part, inside, order[starts[inside] + offset])
            if len(larger.at):
                yield larger

    def _joined(self, part: PartialGroups, rows: Wholes, more: NDArray[np.int32]) -> PartialGroups:
        """Return groups with one more job each, if all bear it."""
        last = part.at[rows, -1]
        memory = part.memory[rows] + self._memory[more]
        fits = (more >= last) & (memory <= self._memory_limit)
        again = np.flatnonzero(fits & (more == last))
        held = (part.at[rows[again]] == more[again, None]).sum(axis=1)
        fits[again] = held < self._copies[more[again]]
        if self._weights is not None:
            fits &= self._can_be_complete(part, rows, more)
        rows, more, memory = rows[fits], more[fits], memory[fits]
        busy = part.busy[rows] + self._busy[more]
        slower = self._slope * np.maximum(busy - ONE, 0) >> BITS
        slowdown = ONE + self._partner * part.at.shape[1] + slower
        least = np.maximum(part.least[rows], self._least[more])
        watts = self._watts(busy, slowdown)
        above = part.above[rows] - self._pays[more]
        above += self._work[more] * (watts - part.watts[rows])
        at = np.hstack([part.at[rows], more[:, None]])
        bear = slowdown * least <= ONE * ONE  # below 2**34.1 x 2**28
        return PartialGroups(at, busy, memory, least, watts, above).take(bear)


def _wholes(values: list[int]) -> Wholes:
    return np.array(values, dtype=np.int64)
