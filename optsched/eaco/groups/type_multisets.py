"""Rates and watts of many groups at once, by the multisets of their job types, in floats.

The figures are those of `interference.py` and `verify/group_energy.py` for every multiset that
occurs; each knows the multisets with one job fewer, so that phases can be followed from one to the
next.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.cluster.power import Affine, Fan, Measured, PowerLaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.cluster.power import GpuPower
    from optsched.documents.arrays import Bools, Floats, Indices
    from optsched.eaco.instance import EacoInstance


class Level(NamedTuple):
    """All multisets of one size k.

    Attributes
    ----------
    codes
        Shape (count,), ascending: index of the multiset without its last type x types + last type.
    types
        Shape (count, k): indices of types, ascending in each row.
    children
        Shape (count, k): index, one level below, of the multiset without that entry.
    rates
        Shape (count, k), at full power; 0 if the types do not fit together, nan if not known.
    utilisation, watts
        Shape (count,): of each GPU at full power.
    """

    codes: Indices
    types: Indices
    children: Indices
    rates: Floats
    utilisation: Floats
    watts: Floats


class Multisets:
    """Multisets of job types on GPUs of one type, by their size.

    Parameters
    ----------
    names
        Ids of the types that are counted from 0, ascending.
    """

    def __init__(self, instance: EacoInstance, gpu: str, names: list[str]) -> None:
        by_id = {kind.id: kind for kind in instance.types}
        self._rates = instance.rates[gpu]
        self._table = instance.interference
        self._power = next(g.power for g in instance.gpu_types if g.id == gpu)
        self._number = {name: n for n, name in enumerate(names)}
        self._names = names
        self._alone = np.array([by_id[name].utilisation for name in names])
        self._steps = ("none", "larger", "pairs", "utilisation").index(self._table.fallback)
        self._partners = self._measured_pairs()
        nothing = np.zeros(1, dtype=np.intp)
        empty = np.zeros((1, 0), dtype=np.intp)
        none = np.zeros(1)
        self.levels = [Level(nothing, empty, empty, empty.astype(float), none, none)]
        self.add(np.zeros(len(names), dtype=np.intp), np.arange(len(names)))

    def add(self, prefixes: Indices, last: Indices) -> Indices:
        """Add a level: multisets of the level before and one more type each, no smaller.

        Returns
        -------
        Indices
            Shape (given,): index of each in the new level; -1 if one of the multisets within was
            never given, since none of its groups is possible.
        """
        before = self.levels[-1]
        given = prefixes * len(self._names) + last
        codes, where = _distinct(given)
        prefix, kind = np.divmod(codes, len(self._names))
        types = np.hstack([before.types[prefix], kind[:, None]])
        children = np.empty_like(types)
        children[:, -1] = prefix
        for n in range(types.shape[1] - 1):
            wanted = before.children[prefix, n] * len(self._names) + kind
            children[:, n] = _positions(before.codes, wanted)
        whole = (children >= 0).all(axis=1)
        kept = np.cumsum(whole) - 1
        self.levels.append(self._level(codes[whole], types[whole], children[whole]))
        return np.where(whole, kept, -1)[where]

    def _level(self, codes: Indices, types: Indices, children: Indices) -> Level:
        size = types.shape[1]
        known = dict(self._exact(codes, size))
        rates = np.ones(types.shape) if size == 1 else self._fallen_back(types, children)
        for row, key in known.items():
            beside = self._rates.of(key)
            rates[row] = [beside.by_type[n] for n in key] if beside.is_known else np.nan
        busy = (self._alone[types] * rates).sum(axis=1)
        for row, key in known.items():
            measured = self._rates.measured.get(key)
            if measured is not None and measured.utilisation is not None:
                busy[row] = measured.utilisation
        watts = curve_watts(self._power, busy)
        for row, key in known.items():
            measured = self._rates.measured.get(key)
            if measured is not None and measured.gpu_power_w is not None:
                watts[row] = measured.gpu_power_w
        return Level(codes, types, children, rates, busy, watts)

    def _exact(self, codes: Indices, size: int) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield each multiset of the new level that is measured, or within a measured one."""
        inner = {
            key
            for measured in self._rates.measured
            for key in itertools.combinations(measured, size)
            if all(name in self._number for name in key)
        }
        for key in sorted(inner):
            row = self._row(codes, [self._number[name] for name in key])
            if row >= 0:
                yield row, key

    def _row(self, codes: Indices, types: list[int]) -> int:
        prefix = 0
        for n, kind in enumerate(types):
            level = codes if n == len(types) - 1 else self.levels[n + 1].codes
            wanted = prefix * len(self._names) + kind
            prefix = int(_positions(level, np.array([wanted]))[0])
            if prefix < 0:
                return -1
        return prefix

    def _fallen_back(self, types: Indices, children: Indices) -> Floats:
        """Return the rates of multisets that are within no measured one."""
        size, rates = types.shape[1], np.full(types.shape, np.nan)
        if self._steps == 3:
            beyond = np.maximum(self._alone[types].sum(axis=1) - 1, 0)
            slowdown = 1 + self._table.saturation_slope * beyond
            slowdown += self._table.partner_slowdown * (size - 1)
            rates[:] = (1 / slowdown)[:, None]
        if size == 2 or (self._steps == 3 and not self._rates.measured):
            return rates  # the formula knows all, and more jobs are no faster
        if self._steps >= 2:
            product = np.ones(types.shape)
            for n, other in itertools.permutations(range(size), 2):
                product[:, n] *= self._partners[types[:, n], types[:, other]]
            is_unknown = np.asarray(np.isnan(product).any(axis=1))[:, None]
            rates = np.where(is_unknown, rates, product)
        return self._within_smaller(rates, children)

    def _within_smaller(self, rates: Floats, children: Indices) -> Floats:
        below = self.levels[-1]
        size = rates.shape[1]
        unfit: Bools = np.zeros(len(rates), dtype=bool)
        for n in range(size):
            others = [i for i in range(size) if i != n]
            smaller = below.rates[children[:, n]]
            unfit |= (smaller == 0).any(axis=1)
            lowered = np.minimum(rates[:, others], smaller)
            rates[:, others] = np.where(np.isnan(smaller), rates[:, others], lowered)
        rates[np.flatnonzero(unfit & ~np.isnan(rates[:, 0]))] = 0.0
        return rates

    def _measured_pairs(self) -> Floats:
        """Return the rate of each type beside each other one; nan if not measured."""
        rates = np.full((len(self._names), len(self._names)), np.nan)
        for key in self._rates.measured:
            if len(key) == 2 and set(key) <= set(self._number):
                a, b = (self._number[name] for name in key)
                by_type = self._rates.of(key).by_type
                rates[a, b], rates[b, a] = by_type[key[0]], by_type[key[1]]
        return rates


def curve_watts(power: GpuPower, utilisation: Floats) -> Floats:
    """Return the watts of a GPU at each utilisation; `GpuPower.watts` in floats."""
    busy = np.minimum(1.0, utilisation)
    curve = power.curve
    if isinstance(curve, Measured):
        return np.interp(busy, curve.utilisation, curve.power_w)
    if isinstance(curve, PowerLaw):
        share = np.power(busy, curve.exponent)
    elif isinstance(curve, Fan):
        share = np.minimum(1.0, 2 * busy - np.power(busy, curve.exponent))
    else:
        assert isinstance(curve, Affine)
        share = busy
    return power.context_w + (power.peak_w - power.context_w) * share


def _distinct(codes: Indices) -> tuple[Indices, Indices]:
    """Return codes in ascending order, each once, and where each of those given is."""
    if (np.diff(codes) > 0).all():  # as where all jobs are of types of their own
        return codes, np.arange(len(codes))
    return np.unique(codes, return_inverse=True)


def _positions(codes: Indices, wanted: Indices) -> Indices:
    """Return where ascending codes are the wanted ones; -1 where there is none."""
    if not len(codes):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[at] == wanted, at, -1)
