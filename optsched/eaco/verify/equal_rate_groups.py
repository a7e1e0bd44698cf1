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

from optsched.eaco.verify.group_costs import per_j
from optsched.eaco.verify.limits import LIMITS, bits_for, floor_at
from optsched.eaco.verify.rates import EqualRateEnergy
from optsched.eaco.verify.reduced_cost_filter import FilterData, GroupFilter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import Nodes
    from optsched.eaco.verify.group_enumeration import GroupOptions


class CheapGroup(NamedTuple):
    """A group: numbers of sets of equal jobs, ascending, and at least what it costs."""

    members: tuple[int, ...]
    cost: int


class OrderedData(NamedTuple):
    """Sets of equal jobs in the order of their exact work, the longest first, and their figures."""

    order: list[int]
    figures: FilterData


def filter_data(groups: GroupOptions, gang: int, nodes: Nodes, among: Sequence[int]) -> OrderedData:
    """Return what the filter needs of jobs that are not moved: moving only adds work."""
    instance, figures = groups.instance, groups.figures
    energy = EqualRateEnergy(groups.paces.formula, figures, nodes)
    work = {n: Fraction(*groups.costs.work(n, nodes.gpu, moved=False)) for n in among}
    order = sorted(among, key=lambda n: -work[n])
    types = [figures.types[groups.equal[n].job.type] for n in order]
    bits = bits_for(min(work.values(), default=0), LIMITS.work_bits)
    left = 1 - Fraction(instance.memory_headroom)
    data = FilterData(
        work=[floor_at(work[n], bits) for n in order],  # down
        busy=[Fraction(kind.utilisation) for kind in types],
        least=[Fraction(*groups.least_rate(n, nodes.gpu, moved=False)) for n in order],
        memory=[Fraction(kind.memory_gb) for kind in types],
        copies=[len(groups.equal[n].jobs) for n in order],
        context=energy.context,
        span=energy.span,
        slope=Fraction(instance.interference.saturation_slope),
        partner=Fraction(instance.interference.partner_slowdown),
        memory_limit=Fraction(figures.gpus[nodes.gpu].memory_gb) * left,
        unit_cost=gang * per_j(instance) * Fraction(2) ** (groups.bits - bits),
        most=instance.max_jobs_per_gpu,
    )
    return OrderedData(order, data)


class EqualRateGroups:
    """Groups of one gang size on some nodes, of jobs that are not moved, by the formula's rates.

    Parameters
    ----------
    among
        Numbers of the sets of equal jobs that fit alone.
    """

    def __init__(self, groups: GroupOptions, gang: int, nodes: Nodes, among: Sequence[int]) -> None:
        instance, figures = groups.instance, groups.figures
        rates = groups.paces.formula
        energy = EqualRateEnergy(rates, figures, nodes)
        self._rates, self._unit, self._joules = rates, rates.unit, energy.joules
        data = filter_data(groups, gang, nodes, among)
        self._order, self._work = data.order, data.figures.work
        types = [figures.types[groups.equal[n].job.type] for n in self._order]
        self._busy = [rates.busy[kind.id] for kind in types]
        self._cost_of = (data.figures.unit_cost / energy.per_j).as_integer_ratio()
        self._bears = self._slowest(data.figures.least, instance.max_jobs_per_gpu)
        limit = instance.utilisation_limit
        self._limit = None if limit is None else limit.as_integer_ratio()
        memory_limit, sizes = data.figures.memory_limit, data.figures.memory
        unit = lcm(memory_limit.denominator, *(size.denominator for size in sizes))
        self._memory_limit = int(memory_limit * unit)
        self._memory = [int(size * unit) for size in sizes]
        self._filter = GroupFilter(data.figures, groups.budget) if among else None

    def _slowest(self, least: Sequence[Fraction], most: int) -> list[int]:
        """Return the greatest slowdown that each job bears, in multiples of 1 / unit**2."""
        any_group = self._rates.slowdown(most * max(self._busy, default=0), most)
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
        slowdown = self._rates.slowdown(alone, len(at))
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
        work, busy = self._work, self._busy
        joules: int = self._joules([(work[n], busy[n]) for n in at])
        return joules * self._cost_of[0] // self._cost_of[1]  # down
