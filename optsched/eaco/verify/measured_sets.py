"""The verifier of EaCO: which multisets of types have measured figures, and how those compare.

A multiset of types is *touched* if it stands within a measured one. Groups without any touched pair
have the formula's figures.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING

from optsched.cluster.power import Affine, Fan
from optsched.eaco.verify.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes
    from optsched.eaco.verify.group_energy import ExactFigures
    from optsched.eaco.verify.rates import EqualRateEnergy


class MeasuredSets:
    """Which multisets of types are touched on GPUs of one type, and how they compare.

    Attributes
    ----------
    pairs
        Touched pairs of types, ascending.
    special
        Types whose watts or utilisation alone were measured.
    """

    def __init__(self, instance: EacoInstance, gpu: str) -> None:
        self._rates, self._most = instance.rates[gpu], instance.max_jobs_per_gpu
        entries = self._rates.measured.items()
        self.special = {
            key[0]
            for key, entry in entries
            if len(key) == 1 and (entry.gpu_power_w is not None or entry.utilisation is not None)
        }
        self.pairs = {pair for key, _ in entries for pair in combinations(key, 2)}

    def weight(self, kind: str) -> int:
        """Return 2 for a special type, 1 for one in a touched pair; touched groups have 2."""
        if kind in self.special:
            return 2
        return int(any(kind in pair for pair in self.pairs))

    def concern(self, types: Sequence[str]) -> bool:
        """Tell whether jobs of some types, ascending, have other than the formula's figures."""
        if any(kind in self.special for kind in types):
            return True
        return any(pair in self.pairs for pair in combinations(types, 2))

    def _touched(self) -> set[tuple[str, ...]]:
        """Return the touched multisets, and special types."""
        measured = self._rates.measured
        inner = {
            part
            for key in measured
            for size in range(2, len(key) + 1)
            for part in combinations(key, size)
        }
        return inner | {(kind,) for kind in self.special}

    def rates_are_shares(self) -> bool:
        """Tell whether no rate of a touched multiset is above 1 or below 0."""
        rates = (rate for key in self._touched() for rate in self._rates.of(key).by_type.values())
        return all(0 <= rate <= 1 for rate in rates)

    def slowdown_share(self, energy: EqualRateEnergy) -> Fraction:
        """Return a share, 1 at most, of the formula's slowdown beyond 1 that all groups have.

        Groups may be quicker than the formula says that are touched, or of which every pair was
        measured: products of rates. Of all others the rates are the formula's, or lowered.
        """
        keys = {key for key in self._touched() if len(key) > 1}
        names = sorted({name for pair in self.pairs for name in pair})
        if self._most > 2 and any(len(key) == 2 for key in self._rates.measured):
            if comb(len(names) + self._most, self._most) > LIMITS.multisets:
                return Fraction(0)
            for size in range(2, self._most + 1):
                keys |= {*combinations_with_replacement(names, size)}
        share, formula = Fraction(1), energy.rates
        for key in keys:
            greatest = max(self._rates.of(key).by_type.values(), default=Fraction(0))
            alone = sum([formula.busy[name] for name in key])
            beyond = Fraction(formula.slowdown(alone, len(key)), formula.unit**2) - 1
            if greatest > 0 and beyond > 0:
                share = min(share, (1 / greatest - 1) / beyond)
        return max(share, Fraction(0))

    def watts_share(self, energy: EqualRateEnergy, nodes: Nodes, figures: ExactFigures) -> Fraction:
        """Return the least share of their model's watts, with the node's, that touched sets draw.

        Watts of a model are those at the utilisations alone times the rates.
        """
        least, formula = Fraction(1), energy.rates
        power, share_w = figures.gpus[nodes.gpu].power, figures.node_share_w(nodes)
        for key in self._touched():
            rates = self._rates.of(key)
            if not rates.fits:
                continue
            terms = [formula.busy[name] * rates.by_type[name] for name in key]
            busy = sum(terms, Fraction(0))
            model = energy.context + energy.span * min(Fraction(1), busy / formula.unit)
            if model > 0:
                least = min(least, (self._rates.gpu_w(key, power) + share_w) / model)
        return max(least, Fraction(0))


def is_filtered(instance: EacoInstance, gpu: GpuType) -> bool:
    """Tell whether groups on a GPU type are filtered by what jobs add to utilisation and watts."""
    table, power = instance.interference, gpu.power
    watts = [entry.gpu_power_w for entry in instance.rates[gpu.id].measured.values()]
    return (
        instance.objective == "run-to-completion"
        and table.fallback == "utilisation"
        and isinstance(power.curve, Affine)
        and not gpu.levels
        and 1 <= instance.max_jobs_per_gpu <= 8
        and min(table.saturation_slope, table.partner_slowdown) >= 0
        and 0 <= power.bare_w <= power.context_w <= power.peak_w
        and all(power.bare_w <= watt for watt in watts if watt is not None)
        and all(n.power.sleep_w <= n.power.base_w for n in instance.nodes if n.gpu == gpu.id)
        and all(0 <= kind.utilisation <= 1 for kind in instance.types)
        and all(job.migration_s >= 0 for job in instance.jobs)
        and MeasuredSets(instance, gpu.id).rates_are_shares()
    )


def has_bent_watts(gpu: GpuType) -> bool:
    """Tell whether watts on a GPU type are other than affine in utilisation."""
    return bool(gpu.levels) or not isinstance(gpu.power.curve, Affine)


def is_sequenced(instance: EacoInstance, gpu: GpuType) -> bool:
    """Tell whether groups on a GPU type are filtered by the sequences of their types."""
    types, most = len({job.type for job in instance.jobs}), instance.max_jobs_per_gpu
    power, curve = gpu.power, gpu.power.curve
    return (
        has_bent_watts(gpu)
        and instance.objective == "run-to-completion"
        and instance.interference.fallback == "utilisation"
        and 1 <= most <= 8
        and 0 <= power.context_w <= power.peak_w
        and (not isinstance(curve, Fan) or 1 <= curve.exponent <= 2)
        and all(n.power.sleep_w <= n.power.base_w for n in instance.nodes if n.gpu == gpu.id)
        and all(job.migration_s >= 0 for job in instance.jobs)
        and sum(types**size for size in range(1, most + 1)) <= LIMITS.sequences
    )


def are_filtered(instance: EacoInstance) -> bool:
    """Tell whether all groups are filtered before they are priced exactly."""
    return all(is_filtered(instance, g) or is_sequenced(instance, g) for g in instance.gpu_types)


def least_charge(instance: EacoInstance, gang: int, gpu: GpuType, watt: int, watt_bits: int) -> int:
    """Return the least price of the watts of any group, as `Option.watts` states them.

    Parameters
    ----------
    watt
        Price of a watt, not below 0.
    """
    measured = instance.rates[gpu.id].measured.values()
    drawn = [entry.gpu_power_w for entry in measured if entry.gpu_power_w is not None]
    least = Fraction(min([gpu.power.context_w, *drawn])) - Fraction(gpu.power.bare_w)
    rounded = gang * ((least.numerator << watt_bits) // least.denominator - 1)  # down
    return watt * rounded >> watt_bits  # down
