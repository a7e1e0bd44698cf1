"""The judge of EaCO: how jobs run side by side, in fixed-point integers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.cluster.power import Affine
from optsched.eaco.phases import BITS, ONE, Pace, fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.energy import Book
    from optsched.eaco.instance import EacoInstance, GpuType


class Paces:
    """Rates and watts of multisets of job types; each is worked out once."""

    def __init__(self, instance: EacoInstance, book: Book) -> None:
        self.instance, self.book = instance, book
        self._paces: dict[str, dict[tuple[str, ...], Pace | None]] = {}

    def of(self, types: Sequence[str], gpu: GpuType) -> Pace | None:
        """Return how types run side by side; None if that is not known."""
        key = tuple(sorted(types))
        known = self._paces.setdefault(gpu.id, {})
        if key not in known:
            known[key] = self._pace(key, gpu)
        return known[key]

    def _pace(self, key: tuple[str, ...], gpu: GpuType) -> Pace | None:
        table = self.instance.rates[gpu.id]
        if not table.measured and self.instance.interference.fallback == "utilisation":
            return self._by_formula(key, gpu)
        rates = table.of(key)
        if not rates.is_known:
            return None
        measured = table.measured.get(key)
        if measured is not None and measured.utilisation is not None:
            busy = Fraction(measured.utilisation)
        else:
            busy = sum(
                (Fraction(self.book.types[t].utilisation) * rates.by_type[t] for t in key),
                Fraction(0),
            )
        watts = gpu.power.watts(busy)
        if measured is not None and measured.gpu_power_w is not None:
            watts = Fraction(measured.gpu_power_w)
        by_type = {name: fixed(rate) for name, rate in rates.by_type.items()}
        return Pace(by_type, fixed(busy), fixed(watts))

    def _by_formula(self, key: tuple[str, ...], gpu: GpuType) -> Pace:
        """Return what the formula for utilisations gives: nothing of `key` was measured."""
        table = self.instance.interference
        alone = sum(fixed(self.book.types[name].utilisation) for name in key)
        rate = ONE
        if len(key) > 1:
            slope, partner = fixed(table.saturation_slope), fixed(table.partner_slowdown)
            slowdown = ONE + partner * (len(key) - 1) + (slope * max(0, alone - ONE) >> BITS)
            rate = ONE * ONE // slowdown
        busy = alone * rate >> BITS
        if isinstance(gpu.power.curve, Affine):
            context, peak = fixed(gpu.power.context_w), fixed(gpu.power.peak_w)
            watts = context + ((peak - context) * min(ONE, busy) >> BITS)
        else:
            watts = fixed(gpu.power.watts(Fraction(busy, ONE)))
        return Pace(dict.fromkeys(key, rate), busy, watts)
