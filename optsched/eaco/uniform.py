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
from optsched.eaco.hopes import Hopes
from optsched.eaco.phases import BITS, ONE, SLACK, fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes
    from optsched.eaco.pricing import Menu


class Found(NamedTuple):
    """A group: numbers of sets of equal jobs, ascending, and at least what it costs."""

    members: tuple[int, ...]
    cost: int


class _Group(NamedTuple):
    """A group that may grow: jobs with less work than the last one are still to come."""

    members: tuple[int, ...]
    at: int
    alone: int
    memory: int
    least_rate: int
    per_second: int
    joules: int


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
        instance, book = menu.instance, menu.book
        self._most = instance.max_jobs_per_gpu
        table = instance.interference
        self._slope, self._partner = fixed(table.saturation_slope), fixed(table.partner_slowdown)
        power = book.gpus[nodes.gpu].power
        self._context = fixed(power.context_w) + fixed(book.node_share_w(nodes))
        self._span = fixed(power.peak_w) - fixed(power.context_w)
        self._per_j = gang * instance.per_kwh / JOULES_PER_KWH
        jobs = {n: menu.equal[n].job for n in among}
        kinds = {n: book.types[job.type] for n, job in jobs.items()}
        self._work = {n: menu.work(job, nodes.gpu) for n, job in jobs.items()}
        self._order = sorted(among, key=lambda n: -self._work[n])
        self._alone = {n: fixed(kind.utilisation) for n, kind in kinds.items()}
        self._copies = {n: len(menu.equal[n].jobs) for n in among}
        self._least = least_rates
        room = Fraction(book.gpus[nodes.gpu].memory_gb) * (1 - Fraction(instance.memory_headroom))
        sizes = {n: Fraction(kind.memory_gb) for n, kind in kinds.items()}
        unit = lcm(room.denominator, *(size.denominator for size in sizes.values()))
        self._room = int(room * unit)
        self._memory = {n: int(size * unit) for n, size in sizes.items()}

    def below(self, pays: Sequence[int], threshold: int) -> Iterator[Found]:
        """Yield groups that cost less than the threshold above what their jobs pay."""
        numerator, denominator = self._per_j.numerator, self._per_j.denominator
        hopes, nets = self._hopes(pays)
        sags = self._sags()
        stack = [self._single(at) for at in range(len(self._order))]
        while stack:
            group = stack.pop()
            members = group.members
            cost = group.joules * numerator // denominator
            cost -= (cost >> SLACK) + 1
            above = cost - sum([pays[n] for n in members]) - threshold
            if above < 0:
                yield Found(tuple(sorted(members)), cost)
            further = self._most - len(members)
            if not further:
                continue
            left = self._busy_left(group)
            if left is None:
                continue
            calm = self._context + self._partial(len(members)) + (self._span * group.alone >> BITS)
            sag = max(0, group.per_second - calm + 1) + sags[len(members)]
            need = above - (self._units[group.at] * sag >> BITS) - (cost >> (SLACK - 4)) - 64
            room = self._room - group.memory
            if hopes.of(further, group.at, room, left) > need:
                least = need - hopes.of(further - 1, group.at, room, left)
                stack += self._larger(group, hopes.promising_from(group.at), nets, least)

    def _hopes(self, pays: Sequence[int]) -> tuple[Hopes, list[int]]:
        """Return what further jobs add at most, and what each does, by position."""
        order = self._order
        numerator, denominator = self._per_j.numerator, self._per_j.denominator
        self._units = [self._work[n] * numerator // denominator for n in order]
        shared = self._context * self._partner >> BITS
        nets = [
            pays[n] - (unit * (shared + (self._span * self._alone[n] >> BITS)) >> BITS) + 4
            for n, unit in zip(order, self._units, strict=True)
        ]
        busiest = self._most * max(self._alone.values(), default=0)
        memory = [self._memory[n] for n in order]
        busy = [self._alone[n] for n in order]
        return Hopes(nets, memory, busy, (self._room, busiest), self._most - 1), nets

    def _partial(self, size: int) -> int:
        """Return the watts that partners add to a group of some size."""
        return self._context * self._partner * (size - 1) >> BITS

    def _busy_left(self, group: _Group) -> int | None:
        """Return the utilisation that further jobs may have; None if there can be none."""
        top = self._most * max(self._alone.values())
        if group.least_rate <= 0:
            return top
        slack = ONE * ONE // group.least_rate + 2 - ONE - self._partner * len(group.members)
        if slack < 0:
            return None
        if not self._slope:
            return top
        return min(top, ONE + slack * ONE // self._slope + 2 - group.alone)

    def _sags(self) -> list[int]:
        """Return by size how far the watts of larger groups may lie below those of calm ones.

        Utilisation beyond one GPU draws nothing once the slowdown has caught up with it.
        """
        loosest = min(self._least.values(), default=0)
        sags = [0] * (self._most + 1)
        for size in range(self._most, 1, -1):
            beyond = self._most * max(self._alone.values(), default=0)
            if loosest > 0 and self._slope:
                slack = max(0, ONE * ONE // loosest + 2 - ONE - self._partner * (size - 1))
                beyond = min(beyond, slack * ONE // self._slope + 2)
            lost = self._span * (beyond * (ONE - self._slope) - self._partner * (size - 1) * ONE)
            lost = (lost >> 2 * BITS) - (self._context * self._slope * beyond >> 2 * BITS) + 4
            sags[size - 1] = max(sags[size], lost, 4)
        return sags

    def _single(self, at: int) -> _Group:
        n = self._order[at]
        alone = self._alone[n]
        per_second = self._context + (self._span * min(ONE, alone) >> BITS)
        joules = self._work[n] * per_second >> BITS
        return _Group((n,), at, alone, self._memory[n], self._least[n], per_second, joules)

    def _larger(
        self, group: _Group, among: Sequence[int], nets: Sequence[int], least_net: int
    ) -> list[_Group]:
        """Return the groups with one more job that adds enough, of no more work than the others."""
        members, at, alone, memory, least_rate, per_second, joules = group
        room, size, found = self._room - memory, len(members) + 1, []
        base = ONE + self._partner * (size - 1)
        for position in among:
            if nets[position] <= least_net:
                break
            n = self._order[position]
            if position < at or self._memory[n] > room:
                continue
            if position == at and members.count(n) >= self._copies[n]:
                continue
            together = alone + self._alone[n]
            slowdown = base if together <= ONE else base + (self._slope * (together - ONE) >> BITS)
            least = max(least_rate, self._least[n])
            if ONE * ONE // slowdown < least:
                continue
            each = self._context * slowdown + self._span * min(together, slowdown) >> BITS
            more = self._work[n] * (each - per_second) >> BITS
            new = _Group(
                (*members, n), position, together, memory + self._memory[n], least, each,
                joules + more,
            )  # fmt: skip
            found.append(new)
        return found
