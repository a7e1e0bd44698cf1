"""What groups cost by their phases, whichever rates their types have side by side, in floats.

For groups that a pricing search has found: each set of a group's jobs has its rates and watts, and
the group goes from one set to the next as its jobs end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.groups.type_multisets import curve_watts
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.cluster.power import GpuPower
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.groups.measured_types import MeasuredTypes
    from optsched.eaco.instance import PowerLevel


class Gpu(NamedTuple):
    """A GPU's watts, its share of the node's, and the power level."""

    power: GpuPower
    share: float
    level: PowerLevel | None = None


class Sets(NamedTuple):
    """Figures of every set of each group's jobs, by the bits of who is in it.

    Attributes
    ----------
    rates
        Shape (2**k, groups, k): 0 if the jobs do not fit together.
    watts, busy
        Shape (2**k, groups): of a GPU.
    """

    rates: Floats
    watts: Floats
    busy: Floats


class SideBySide:
    """Rates, joules and watts of groups of the jobs of a pricing problem.

    Parameters
    ----------
    alone
        Shape (jobs,): utilisation of each job alone.
    slope, partner
        Of the formula for utilisations.
    """

    def __init__(
        self, measured: MeasuredTypes, alone: Floats, slope: float, partner: float, gpu: Gpu
    ) -> None:
        self._measured, self._alone, self._gpu = measured, alone, gpu
        self._slope, self._partner = slope, partner

    def blocks(self, at: Indices) -> Iterator[slice]:
        """Yield groups of one size in blocks that bound the memory."""
        step = max(1, SETTINGS.pairs_at_once // (at.shape[1] << at.shape[1]))
        for first in range(0, len(at), step):
            yield slice(first, first + step)

    def sets(self, at: Indices) -> Sets:
        """Return the figures of every set of jobs of groups of one size k.

        Parameters
        ----------
        at
            Shape (groups, k): positions.
        """
        many, k = at.shape
        rates, watts, busy = np.zeros((1 << k, many, k)), *np.zeros((2, 1 << k, many))
        alone, kinds = self._alone[at], self._measured.of[at]
        for mask in sorted(range(1, 1 << k), key=lambda mask: mask.bit_count()):
            inside = [n for n in range(k) if mask >> n & 1]
            rates[mask][:, inside] = self._rates(mask, inside, rates, alone, kinds)
            busy[mask] = (alone * rates[mask]).sum(axis=1)
            watts[mask] = curve_watts(self._gpu.power, busy[mask])
            self._measure(mask, inside, kinds, rates, watts, busy)
        level = self._gpu.level
        if level is not None:
            rates *= level.rate
            watts = np.minimum(watts * level.power, level.limit_w)
        return Sets(rates, watts, busy)

    def _rates(
        self, mask: int, inside: list[int], rates: Floats, alone: Floats, kinds: Indices
    ) -> Floats:
        """Return the rates of a set that was not measured itself."""
        size = len(inside)
        if size == 1:
            return np.ones((len(alone), 1))
        beyond = np.maximum(alone[:, inside].sum(axis=1) - 1, 0.0)
        slowdown = 1 + self._slope * beyond + self._partner * (size - 1)
        found = np.repeat((1 / slowdown)[:, None], size, axis=1)
        if size == 2:
            return found
        if self._measured.number:
            product = np.ones_like(found)
            for n, a in enumerate(inside):
                for b in inside:
                    if a != b:
                        product[:, n] *= self._measured.beside[kinds[:, a], kinds[:, b]]
            is_unknown = np.isnan(product).any(axis=1)[:, None]
            found = np.where(is_unknown, found, product)
        unfit = np.zeros(len(alone), dtype=bool)
        for gone in inside:
            rest = [n for n in range(size) if inside[n] != gone]
            smaller = rates[mask ^ 1 << gone][:, [inside[n] for n in rest]]
            found[:, rest] = np.minimum(found[:, rest], smaller)
            unfit |= (smaller == 0).any(axis=1)
        found[unfit] = 0.0
        return found

    def _measure(
        self,
        mask: int,
        inside: list[int],
        kinds: Indices,
        rates: Floats,
        watts: Floats,
        busy: Floats,
    ) -> None:
        """Put in what the table says of a set."""
        measured = self._measured
        if not measured.number:
            return
        row = measured.rows(kinds[:, inside])
        known = np.flatnonzero(row < len(measured.codes))
        if not len(known):
            return
        row = row[known]
        for n in inside:
            rates[mask, known, n] = measured.rates[row, kinds[known, n]]
        fits = ~np.isnan(measured.watts[row])
        watts[mask, known[fits]] = measured.watts[row[fits]]
        busy[mask, known[fits]] = measured.busy[row[fits]]

    def run(self, sets: Sets, of: Indices, work: Floats) -> tuple[Floats, Floats]:
        """Return the joules of a GPU and its share of the node, and its greatest watts.

        Parameters
        ----------
        of
            Shape (groups,): which of the figures each group has.
        work
            Shape (groups, k): seconds alone.
        """
        many, k = work.shape
        rows, left = np.arange(many), work.copy()
        joules, seconds, greatest = np.zeros((3, many))
        state = np.full(many, (1 << k) - 1)
        active = np.ones((many, k), dtype=bool)
        for _ in range(k):
            rates = np.where(active, sets.rates[state, of], 1.0)
            times = np.where(active, left / rates, np.inf)
            first = times.argmin(axis=1)
            took = np.maximum(times[rows, first], 0.0)
            watts = sets.watts[state, of]
            joules += took * (watts + self._gpu.share)
            seconds += took
            lasts = took > SETTINGS.instant_share * seconds
            greatest = np.where(lasts, np.maximum(greatest, watts), greatest)
            left -= took[:, None] * rates
            active[rows, first] = False
            state ^= 1 << first
        return joules, greatest


def fit(sets: Sets) -> Bools:
    """Tell which groups' jobs fit together."""
    return np.asarray((sets.rates[-1] > 0).all(axis=1))
