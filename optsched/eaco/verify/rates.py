"""The verifier of EaCO: how jobs run side by side, exactly, as quotients of whole numbers.

Nothing is rounded here but watts for the power cap, downward. All figures of an instance are
rational, so all that follows from them is, too; the quotients are not reduced, that would take
longer than it saves.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.cluster.power import Affine
from optsched.eaco.verify.kept_figures import kept_figures
from optsched.eaco.verify.limits import floor_at
from optsched.eaco.verify.measured_sets import MeasuredSets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes, PowerLevel
    from optsched.eaco.verify.group_energy import ExactFigures

Quotient = tuple[int, int]


class Beside(NamedTuple):
    """Job types side by side at full power.

    Attributes
    ----------
    rates
        By type, in whole multiples of one number; empty if they do not fit together.
    second
        1 / that number, a quotient: work of 1 at a rate of 1 takes so many seconds.
    busy, watts
        Utilisation and watts of a GPU, quotients.
    """

    rates: dict[str, int]
    second: Quotient
    busy: Quotient
    watts: Quotient


class ExactPace(NamedTuple):
    """Job types side by side on some nodes at some power level.

    Attributes
    ----------
    rates, second
        As in `Beside`, at the level.
    cost
        Of each GPU and its share of the node, while work of 1 is done at a rate of 1.
    epoch_cost
        Of each GPU above a bare one in an epoch, in multiples of 2**-bits, rounded down.
    watts
        Of each GPU, in multiples of 2**-watt_bits, rounded down.
    is_calm
        Whether they keep the utilisation limit.
    """

    rates: dict[str, int]
    second: Quotient
    cost: Quotient
    epoch_cost: int
    watts: int
    is_calm: bool


class EqualRates:
    """The formula for utilisations: all jobs of a group at full power run at one rate.

    Attributes
    ----------
    unit
        Utilisations and the coefficients of slowdowns are whole multiples of 1 / unit.
    busy
        These multiples by job type.
    """

    def __init__(self, instance: EacoInstance) -> None:
        table = instance.interference
        slope, partner = Fraction(table.saturation_slope), Fraction(table.partner_slowdown)
        busy = {kind.id: Fraction(kind.utilisation) for kind in instance.types}
        below = (share.denominator for share in busy.values())
        self.unit = lcm(slope.denominator, partner.denominator, *below)
        self.busy = {name: int(share * self.unit) for name, share in busy.items()}
        self._slope, self._partner = int(slope * self.unit), int(partner * self.unit)

    def slowdown(self, alone: int, jobs: int) -> int:
        """Return the slowdown of some jobs of a utilisation, in multiples of 1 / unit**2."""
        unit = self.unit
        if jobs == 1:
            return unit * unit
        beyond = max(0, alone - unit)
        return unit * (unit + self._partner * (jobs - 1)) + self._slope * beyond


class EqualRateEnergy:
    """Joules of groups at full power on some nodes of which `equal_rates_hold`.

    Attributes
    ----------
    rates
        Slowdowns.
    context, span
        Watts of a GPU and its share of the node, without any work and by utilisation.
    per_j
        Joules of a GPU are whole multiples of 1 / per_j for each second of work.
    """

    def __init__(self, rates: EqualRates, figures: ExactFigures, nodes: Nodes) -> None:
        power = figures.gpus[nodes.gpu].power
        self.rates, self.context = rates, Fraction(power.context_w) + figures.node_share_w(nodes)
        self.span = Fraction(power.peak_w) - Fraction(power.context_w)
        grain = lcm(self.context.denominator, self.span.denominator)
        self._context, self._span = int(self.context * grain), int(self.span * grain)
        self.per_j = rates.unit**2 * grain

    def joules(self, works: Iterable[tuple[Any, int]]) -> Any:
        """Return the joules of each GPU until all works are done, in multiples of 1 / `per_j`.

        A job with less work than all others changes the watts of a second of work only while it
        runs.

        Parameters
        ----------
        works
            Seconds, the longest first, whole or fractions; and utilisations in `rates.unit`.
        """
        rates, context, span = self.rates, self._context, self._span
        alone = total = before = 0
        for size, (work, busy) in enumerate(works, start=1):
            alone += busy
            slowdown = rates.slowdown(alone, size)
            watts = context * slowdown + span * min(alone * rates.unit, slowdown)
            total += work * (watts - before)
            before = watts
        return total


def equal_rates_hold(instance: EacoInstance, gpu: GpuType) -> bool:
    """Tell whether all jobs of a group at full power run at one rate, by the formula."""
    return (
        instance.interference.fallback == "utilisation"
        and not instance.rates[gpu.id].measured
        and isinstance(gpu.power.curve, Affine)
    )


class ExactPaces:
    """Paces of multisets of job types; each is worked out once.

    Parameters
    ----------
    per_j
        What a joule costs.
    bits, watt_bits
        Costs are multiples of 2**-bits of the unit of the objective, watts of 2**-watt_bits.

    Attributes
    ----------
    formula
        Rates of groups of which nothing was measured.
    """

    def __init__(
        self,
        instance: EacoInstance,
        exact: ExactFigures,
        per_j: Fraction,
        bits: int,
        watt_bits: int,
    ) -> None:
        self.instance, self.figures = instance, exact
        self._per_j, self._bits, self._watt_bits = per_j, bits, watt_bits
        self.formula = EqualRates(instance)
        self._limit = instance.utilisation_limit
        self._sets: dict[str, MeasuredSets] = {}
        self._kept = kept_figures(instance)
        self._numbers = per_j, bits, watt_bits, instance.objective, instance.epoch_s, self._limit
        self._paces: dict[tuple[str, str | None], dict[tuple[str, ...], ExactPace | None]] = {}

    def of(self, types: Sequence[str], nodes: Nodes, level: PowerLevel | None) -> ExactPace | None:
        """Return how types run side by side; None if that is not known."""
        key = tuple(sorted(types))
        at = nodes.id, None if level is None else level.id
        known = self._paces.get(at)
        if known is None:
            known = self._paces[at] = self.kept("pace", nodes, level)
        if key not in known:
            known[key] = self._pace(key, nodes, level)
        return known[key]

    def kept(self, what: str, nodes: Nodes, level: PowerLevel | None) -> dict[Any, Any]:
        """Return what is kept for all that these paces follow from; to be added to."""
        power, at = nodes.power, None if level is None else level.id
        share = power.base_w, power.sleep_w, nodes.gpus
        return self._kept.of(what, nodes.gpu, *share, at, *self._numbers)

    def _pace(
        self, key: tuple[str, ...], nodes: Nodes, level: PowerLevel | None
    ) -> ExactPace | None:
        gpu = self.figures.gpus[nodes.gpu]
        known = self._kept.of("beside", gpu.id)
        if key not in known:
            known[key] = self._side_by_side(key, gpu)
        beside = known[key]
        if beside is None:
            return None
        (seconds, of), (watts, under) = beside.second, beside.watts
        if level is not None:
            rate, power, limit = Fraction(level.rate), Fraction(level.power), level.limit_w
            seconds, of = seconds * rate.denominator, of * rate.numerator
            lowered = min(Fraction(watts, under) * power, Fraction(limit))
            watts, under = lowered.numerator, lowered.denominator
        share = self.figures.node_share_w(nodes)
        drawn = watts * share.denominator + share.numerator * under
        cost = (
            seconds * drawn * self._per_j.numerator,
            of * under * share.denominator * self._per_j.denominator,
        )
        epoch_cost = 0
        if self.instance.objective == "epoch":
            above = Fraction(watts, under) - Fraction(gpu.power.bare_w)
            epoch_s = Fraction(self.instance.epoch_s or 0)
            epoch_cost = floor_at(above * epoch_s * self._per_j, self._bits)
        calm = self._limit is None or Fraction(*beside.busy) <= Fraction(self._limit)
        floor_w = (watts << self._watt_bits) // under
        return ExactPace(beside.rates, (seconds, of), cost, epoch_cost, floor_w, calm)

    def _side_by_side(self, key: tuple[str, ...], gpu: GpuType) -> Beside | None:
        table = self.instance.rates[gpu.id]
        if self._is_by_formula(key, gpu.id):
            return self._by_formula(key, gpu)
        shared = table.of(key)
        if not shared.is_known:
            return None
        if not shared.fits:
            return Beside({}, (1, 1), (0, 1), (0, 1))
        whole = lcm(*(rate.denominator for rate in shared.by_type.values()))
        rates = {t: r.numerator * (whole // r.denominator) for t, r in shared.by_type.items()}
        alone = self.formula.busy
        busy = sum([alone[name] * rates[name] for name in key]), self.formula.unit * whole
        second = whole, 1
        if len(set(rates.values())) == 1:
            second, rates = (whole, rates[key[0]]), dict.fromkeys(key, 1)
        measured = table.measured.get(key)
        if measured is not None and measured.utilisation is not None:
            busy = measured.utilisation.as_integer_ratio()
        watts = self._watts(busy, gpu)
        if measured is not None and measured.gpu_power_w is not None:
            watts = measured.gpu_power_w.as_integer_ratio()
        return Beside(rates, second, busy, watts)

    def _is_by_formula(self, key: tuple[str, ...], gpu: str) -> bool:
        """Tell whether the formula holds: what was measured lowers none of its rates."""
        table = self.instance.interference
        if table.fallback != "utilisation":
            return False
        if not self.instance.rates[gpu].measured:
            return True
        if gpu not in self._sets:
            self._sets[gpu] = MeasuredSets(self.instance, gpu)
        never_rises = min(table.saturation_slope, table.partner_slowdown) >= 0
        return never_rises and not self._sets[gpu].concern(key)

    def _by_formula(self, key: tuple[str, ...], gpu: GpuType) -> Beside:
        """Return what the formula for utilisations gives."""
        unit, alone = self.formula.unit, sum([self.formula.busy[name] for name in key])
        slowdown = self.formula.slowdown(alone, len(key))
        busy = alone * unit, slowdown
        return Beside(dict.fromkeys(key, 1), (slowdown, unit**2), busy, self._watts(busy, gpu))

    def _watts(self, busy: Quotient, gpu: GpuType) -> Quotient:
        """Return the watts of a GPU at some utilisation, which above 1 counts as 1."""
        power = gpu.power
        if not isinstance(power.curve, Affine):
            return power.watts(Fraction(*busy)).as_integer_ratio()
        context, peak = Fraction(power.context_w), Fraction(power.peak_w)
        grain = lcm(context.denominator, peak.denominator)
        low, high = int(context * grain), int(peak * grain)
        return low * busy[1] + (high - low) * min(busy), grain * busy[1]
