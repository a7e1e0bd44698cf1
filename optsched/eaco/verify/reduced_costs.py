"""Reduced costs of many options at once (multiple precision: Knuth, TAOCP 2, section 4.3.1).

A figure of any size is cut into limbs, so few bits each that what is added up of them fits into 63:
the low ones from 0 up, the highest one with the sign. So sums are exact, and nothing is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.verify.limits import TooManyTermsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.eaco.verify.group_enumeration import Option

    Whole = NDArray[np.int64]

SUM_BITS = 61  # what is added up of the limbs of one place is below 2**61, a carry included


class Counted(NamedTuple):
    """Which options a rule counts, and how often; no option twice."""

    which: Whole
    times: Whole


class ScaledPrices(NamedTuple):
    """Prices in whole numbers: of sets of equal jobs, of GPUs by nodes, of locations, of a watt."""

    jobs: list[int]
    gpus: list[int]
    places: list[int]
    watt: int


class OptionSums(NamedTuple):
    """One whole number for each option: limbs of some bits, the low ones not below 0.

    Attributes
    ----------
    limbs
        Shape (limbs, options).
    """

    limbs: Whole
    bits: int

    def are_negative(self) -> NDArray[np.bool_]:
        """Tell which of the numbers are below 0: only the highest limb has a sign."""
        return np.asarray(self.limbs[-1] < 0)

    def least(self) -> int:
        """Return the least number, or 0 if all are above."""
        which = np.arange(self.limbs.shape[1])
        if not len(which):
            return 0
        for limb in self.limbs[::-1]:
            which = which[limb[which] == limb[which].min()]
        least = sum(int(limb[which[0]]) << self.bits * n for n, limb in enumerate(self.limbs))
        return min(0, least)


class OptionTable:
    """Options as arrays.

    Parameters
    ----------
    sets
        How many sets of equal jobs there are.
    nodes, places
        Numbers of nodes and locations, by their ids.
    watt_bits
        Watts are multiples of 2**-watt_bits.
    """

    def __init__(
        self,
        options: Sequence[Option],
        sets: int,
        nodes: Mapping[str, int],
        places: Mapping[str, int],
        watt_bits: int,
    ) -> None:
        self.options, self._sets, self._watt_bits = options, sets, watt_bits
        sizes = _whole(len(option.members) for option in options)
        real = np.arange(sizes.max(initial=0)) < sizes[:, None]
        self._members: Whole = np.full(
            real.shape, sets, dtype=np.int64
        )  # the last set holds no job
        self._members[real] = _whole(chain.from_iterable(option.members for option in options))
        self._gpus = _whole(option.gpus for option in options)
        self._nodes = _whole(nodes[option.nodes] for option in options)
        self._places = _whole(
            len(places) if option.place is None else places[option.place] for option in options
        )
        self._costs = [option.cost for option in options]
        self._cost_cuts: dict[_Cut, Whole] = {}

    def rounded(self, need: Mapping[int, int], divisor: int) -> Counted:
        """Return which options have weights that the divisor goes into, and how often.

        Parameters
        ----------
        need
            Weights by sets of equal jobs.
        """
        weights = np.zeros(self._sets + 1, dtype=np.int64)
        weights[list(need)] = list(need.values())
        times = weights[self._members].sum(axis=1) // divisor
        which = np.flatnonzero(times)
        return Counted(which, times[which])

    def only(self, options: Sequence[int]) -> Counted:
        """Return that some options are counted once."""
        return Counted(_whole(options), np.ones(len(options), dtype=np.int64))

    def holding(self, sets: Iterable[int]) -> list[int]:
        """Return the options that hold a job of each of some sets."""
        held = np.ones(len(self.options), dtype=np.bool_)
        for n in sets:
            held &= (self._members == n).any(axis=1)
        return [int(n) for n in np.flatnonzero(held)]

    def sums(
        self, prices: ScaledPrices, charges: Sequence[tuple[int, Counted]], less: int = 0
    ) -> OptionSums:
        """Return the reduced costs of all options, less a number.

        Parameters
        ----------
        charges
            Prices of being counted once.

        Raises
        ------
        TooManyTermsError
            If so much is added up that limbs have no bit left.
        """
        jobs, gpus, places, watt = prices
        drawn = (
            [watt * option.watts >> self._watt_bits for option in self.options] if watt else []
        )  # down
        figures = [*jobs, *gpus, *places, *(charge for charge, _ in charges), less, *drawn]
        size = max(abs(figure).bit_length() for figure in (*figures, *self._cost_range))
        most = 4 + self._members.shape[1] + int(self._gpus.max(initial=0))
        most += sum(int(counted.times.max(initial=0)) for _, counted in charges)
        bits = SUM_BITS - most.bit_length()
        if bits < 1:
            raise TooManyTermsError
        cut = _Cut(size // bits + 1, bits)  # the highest limb is no longer than the others
        sums = self._cost_limbs(cut) - cut.limbs([less])
        paid = cut.limbs([*jobs, 0])
        for n in range(self._members.shape[1]):
            sums -= paid[:, self._members[:, n]]
        sums += cut.limbs(gpus)[:, self._nodes] * self._gpus
        sums += cut.limbs([*places, 0])[:, self._places]
        if watt:
            sums += cut.limbs(drawn)
        for charge, (which, times) in charges:
            sums[:, which] += cut.limbs([charge]) * times
        return OptionSums(cut.carried(sums), bits)

    @property
    def _cost_range(self) -> tuple[int, int]:
        return max(self._costs, default=0), min(self._costs, default=0)

    def _cost_limbs(self, cut: _Cut) -> Whole:
        if cut not in self._cost_cuts:
            self._cost_cuts = {cut: cut.limbs(self._costs)}
        return self._cost_cuts[cut]


@dataclass(frozen=True)
class _Cut:
    """How numbers are cut into limbs."""

    count: int
    bits: int

    def limbs(self, numbers: Sequence[int]) -> Whole:
        """Return the limbs of numbers, the lowest first."""
        mask = (1 << self.bits) - 1
        shifts = [self.bits * n for n in range(self.count)]
        low = [[number >> shift & mask for number in numbers] for shift in shifts[:-1]]
        return np.array([*low, [number >> shifts[-1] for number in numbers]], dtype=np.int64)

    def carried(self, sums: Whole) -> Whole:
        """Return the same numbers in limbs of which none but the highest is too long, or below 0.

        They are changed in place.
        """
        for n in range(self.count - 1):
            sums[n + 1] += sums[n] >> self.bits  # down, so that what stays is not below 0
            sums[n] &= (1 << self.bits) - 1
        return sums


def _whole(numbers: Iterable[int]) -> Whole:
    return np.fromiter(numbers, dtype=np.int64)
