"""The judge of EaCO: groups whose jobs all run at one rate, by what each job adds to the cost.

Where rates come from utilisations alone, the jobs of a group end in the order of their work, and
while a set of them runs, a second of work costs the same whichever of them it is. A job with less
work than all others changes the cost of a group only while it runs. So all groups are found, the
job with most work first, and each costs a few additions of whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

from optsched.cluster.power import Affine
from optsched.eaco.energy import JOULES_PER_KWH
from optsched.eaco.phases import BITS, ONE, SLACK, fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes
    from optsched.eaco.pricing import Menu


class Found(NamedTuple):
    """A group: numbers of sets of equal jobs, ascending, and at least what it costs."""

    members: tuple[int, ...]
    cost: int


def is_uniform(instance: EacoInstance, gpu: GpuType) -> bool:
    """Tell whether groups on a GPU type, at their costs, are found here."""
    return (
        instance.objective == "run-to-completion"
        and instance.interference.fallback == "utilisation"
        and not instance.rates[gpu.id].measured
        and isinstance(gpu.power.curve, Affine)
        and not gpu.levels
        and not instance.running
        and instance.power_cap_w is None
    )


class Uniform:
    """Groups of one gang size on nodes of which `is_uniform` holds.

    Parameters
    ----------
    among
        Numbers of the sets of equal jobs that fit alone.
    least_rates
        Of each of them, with a slack.
    """

    def __init__(
        self, menu: Menu, gang: int, nodes: Nodes, among: Sequence[int], least_rates: dict[int, int]
    ) -> None:
        from optsched.eaco.sieve import Figures, Sieve

        instance, book = menu.instance, menu.book
        table, gpu = instance.interference, book.gpus[nodes.gpu]
        power, share = gpu.power, book.node_share_w(nodes)
        self._slope, self._partner = fixed(table.saturation_slope), fixed(table.partner_slowdown)
        self._context = fixed(power.context_w) + fixed(share)
        self._span = fixed(power.peak_w) - fixed(power.context_w)
        self._per_j = gang * instance.per_kwh / JOULES_PER_KWH
        work = {n: menu.work(menu.equal[n].job, nodes.gpu) for n in among}
        self._order = sorted(among, key=lambda n: -work[n])
        kinds = [book.types[menu.equal[n].job.type] for n in self._order]
        self._work = [work[n] for n in self._order]
        self._busy = [fixed(kind.utilisation) for kind in kinds]
        room = Fraction(gpu.memory_gb) * (1 - Fraction(instance.memory_headroom))
        sizes = [Fraction(kind.memory_gb) for kind in kinds]
        unit = lcm(room.denominator, *(size.denominator for size in sizes))
        self._room, self._memory = int(room * unit), [int(size * unit) for size in sizes]
        figures = Figures(
            work=self._work,
            busy=[Fraction(kind.utilisation) for kind in kinds],
            least=[Fraction(least_rates[n], ONE) for n in self._order],
            memory=sizes,
            copies=[len(menu.equal[n].jobs) for n in self._order],
            context=Fraction(power.context_w) + share,
            span=Fraction(power.peak_w) - Fraction(power.context_w),
            slope=Fraction(table.saturation_slope),
            partner=Fraction(table.partner_slowdown),
            room=room,
            per_j=self._per_j,
            most=instance.max_jobs_per_gpu,
        )
        self._sieve = Sieve(figures) if among else None

    def below(self, pays: Sequence[int], threshold: int) -> Iterator[Found]:
        """Yield groups that cost less than the threshold above what their jobs pay.

        Some of them may be slower than their jobs bear.
        """
        if self._sieve is None:
            return
        inside = [pays[n] for n in self._order]
        for rows in self._sieve.below(inside, threshold):
            for at in rows.tolist():
                if len(at) > 1 and sum([self._memory[n] for n in at]) > self._room:
                    continue
                cost = self._cost(at)
                if cost < sum([inside[n] for n in at]) + threshold:
                    yield Found(tuple(sorted([self._order[n] for n in at])), cost)

    def _cost(self, at: list[int]) -> int:
        """Return what a group costs at least, by positions in the order of work."""
        alone = self._busy[at[0]]
        before = self._context + (self._span * min(ONE, alone) >> BITS)
        joules = self._work[at[0]] * before >> BITS
        for size, n in enumerate(at[1:], start=1):
            alone += self._busy[n]
            slowdown = ONE + self._partner * size + (self._slope * max(0, alone - ONE) >> BITS)
            each = self._context * slowdown + self._span * min(alone, slowdown) >> BITS
            joules += self._work[n] * (each - before) >> BITS
            before = each
        cost = joules * self._per_j.numerator // self._per_j.denominator
        return cost - (cost >> SLACK) - 1
