"""The verifier of EaCO: groups whose jobs all run at one rate, by what each job adds to the cost.

Where rates come from utilisations alone, the jobs of a group end in the order of their work, and
while a set of them runs, a second of work costs the same whichever of them it is. A job with less
work than all others changes the cost of a group only while it runs. So all groups are found, the
job with most work first, and each costs a few additions of whole numbers.

All figures are exact but for works, rounded down: no job lowers what a second of work costs, so a
group does not cost less for more work.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from optsched.cluster.power import Affine
from optsched.eaco.verify.directed_rounding import bits_for, floor_at
from optsched.eaco.verify.group_costs import per_j

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes
    from optsched.eaco.verify.group_enumeration import GroupOptions

SIGNIFICANT = 80  # bits of the least work


class CheapGroup(NamedTuple):
    """A group: numbers of sets of equal jobs, ascending, and at least what it costs."""

    members: tuple[int, ...]
    cost: int


def has_equal_rates(instance: EacoInstance, gpu: GpuType) -> bool:
    """Tell whether groups on a GPU type, at their costs, are found here."""
    table, power = instance.interference, gpu.power
    return (
        instance.objective == "run-to-completion"
        and table.fallback == "utilisation"
        and not instance.rates[gpu.id].measured
        and isinstance(power.curve, Affine)
        and not gpu.levels
        and not instance.running
        and instance.power_cap_w is None
        and 1 <= instance.max_jobs_per_gpu <= 8
        and min(table.saturation_slope, table.partner_slowdown) >= 0
        and 0 <= power.context_w <= power.peak_w
        and all(n.power.sleep_w <= n.power.base_w for n in instance.nodes if n.gpu == gpu.id)
        and all(0 <= kind.utilisation <= 1 for kind in instance.types)
    )


class EqualRateGroups:
    """Groups of one gang size on nodes of which `has_equal_rates` holds.

    Parameters
    ----------
    among
        Numbers of the sets of equal jobs that fit alone.
    """

    def __init__(self, groups: GroupOptions, gang: int, nodes: Nodes, among: Sequence[int]) -> None:
        from optsched.eaco.verify.reduced_cost_filter import FilterData, ReducedCostFilter

        instance, figures, paces = groups.instance, groups.figures, groups.paces
        power, share = figures.gpus[nodes.gpu].power, figures.node_share_w(nodes)
        context = Fraction(power.context_w) + share
        span = Fraction(power.peak_w) - Fraction(power.context_w)
        grain = lcm(context.denominator, span.denominator)
        self._paces, self._unit = paces, paces.unit
        self._context, self._span = int(context * grain), int(span * grain)
        work = {n: Fraction(*groups.costs.work(n, nodes.gpu, moved=False)) for n in among}
        self._order = sorted(among, key=lambda n: -work[n])
        types = [figures.types[groups.equal[n].job.type] for n in self._order]
        self._work_bits = bits_for(min(work.values(), default=0), SIGNIFICANT)
        self._work = [floor_at(work[n], self._work_bits) for n in self._order]  # down
        self._busy = [paces.busy[kind.id] for kind in types]
        each = gang * per_j(instance) / (self._unit**2 * grain)
        rate = each * Fraction(2) ** (groups.bits - self._work_bits)
        self._rate = rate.as_integer_ratio()
        least = [Fraction(*groups.least_rate(n, nodes.gpu, moved=False)) for n in self._order]
        self._bears = self._slowest(least, instance.max_jobs_per_gpu)
        limit = instance.utilisation_limit
        self._limit = None if limit is None else limit.as_integer_ratio()
        memory_limit = Fraction(figures.gpus[nodes.gpu].memory_gb)
        memory_limit *= 1 - Fraction(instance.memory_headroom)
        sizes = [Fraction(kind.memory_gb) for kind in types]
        unit = lcm(memory_limit.denominator, *(size.denominator for size in sizes))
        self._memory_limit = int(memory_limit * unit)
        self._memory = [int(size * unit) for size in sizes]
        data = FilterData(
            work=self._work,
            busy=[Fraction(kind.utilisation) for kind in types],
            least=least,
            memory=sizes,
            copies=[len(groups.equal[n].jobs) for n in self._order],
            context=context,
            span=span,
            slope=Fraction(instance.interference.saturation_slope),
            partner=Fraction(instance.interference.partner_slowdown),
            memory_limit=memory_limit,
            unit_cost=gang * per_j(instance) * Fraction(2) ** (groups.bits - self._work_bits),
            most=instance.max_jobs_per_gpu,
        )
        self._filter = ReducedCostFilter(data, groups.effort) if among else None

    def _slowest(self, least: Sequence[Fraction], most: int) -> list[int]:
        """Return the greatest slowdown that each job bears, in multiples of 1 / unit**2."""
        any_group = self._paces.slowdown(most * max(self._busy, default=0), most)
        return [
            self._unit**2 * rate.denominator // rate.numerator if rate else any_group
            for rate in least
        ]

    def below(self, pays: Sequence[int], threshold: int) -> Iterator[CheapGroup]:
        """Yield the groups that cost less than the threshold above what their jobs pay."""
        if self._filter is None:
            return
        inside = [pays[n] for n in self._order]
        for rows in self._filter.below(inside, threshold):
            for at in rows.tolist():
                if not self._keeps(at):
                    continue
                cost = self._cost(at)
                if cost < sum([inside[n] for n in at]) + threshold:
                    yield CheapGroup(tuple(sorted([self._order[n] for n in at])), cost)

    def _keeps(self, at: list[int]) -> bool:
        """Tell whether jobs keep their tolerances and the limits of groups, by positions."""
        alone = sum([self._busy[n] for n in at])
        slowdown = self._paces.slowdown(alone, len(at))
        if slowdown > min([self._bears[n] for n in at]):
            return False
        if len(at) == 1:
            return True
        if sum([self._memory[n] for n in at]) > self._memory_limit:
            return False
        limit = self._limit
        return limit is None or alone * self._unit * limit[1] <= limit[0] * slowdown

    def _cost(self, at: list[int]) -> int:
        """Return what a group costs at least, by positions in the order of work."""
        unit, work, busy = self._unit, self._work, self._busy
        context, span = self._context, self._span
        alone = total = before = 0
        for size, n in enumerate(at, start=1):
            alone += busy[n]
            slowdown = self._paces.slowdown(alone, size)
            watts = context * slowdown + span * min(alone * unit, slowdown)
            total += work[n] * (watts - before)
            before = watts
        return total * self._rate[0] // self._rate[1]  # down
