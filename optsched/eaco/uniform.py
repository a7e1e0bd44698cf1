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
        stack = [self._single(at) for at in range(len(self._order))]
        while stack:
            group = stack.pop()
            cost = group.joules * numerator // denominator
            cost -= (cost >> SLACK) + 1
            members = group.members
            if cost - sum([pays[n] for n in members]) < threshold:
                yield Found(tuple(sorted(members)), cost)
            if len(members) < self._most:
                stack += self._larger(group)

    def _single(self, at: int) -> _Group:
        n = self._order[at]
        alone = self._alone[n]
        per_second = self._context + (self._span * min(ONE, alone) >> BITS)
        joules = self._work[n] * per_second >> BITS
        return _Group((n,), at, alone, self._memory[n], self._least[n], per_second, joules)

    def _larger(self, group: _Group) -> list[_Group]:
        """Return the groups with one more job, of no more work than the others."""
        members, at, alone, memory, least_rate, per_second, joules = group
        room, size, found = self._room - memory, len(members) + 1, []
        base = ONE + self._partner * (size - 1)
        for position in range(at, len(self._order)):
            n = self._order[position]
            if self._memory[n] > room:
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
