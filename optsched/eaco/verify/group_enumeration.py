"""The verifier of EaCO: every group that may be in a plan, with a lower bound on what it costs.

Groups are found job by job: one that breaks a tolerance is in no larger group that keeps it, since
rates never rise as a group grows. Limits and tolerances are compared exactly, costs rounded down.
It shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, islice
from math import comb, lcm
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.verify.equal_jobs import equal_jobs
from optsched.eaco.verify.group_costs import LeastCosts, per_j
from optsched.eaco.verify.group_energy import ExactFigures, gang_fits
from optsched.eaco.verify.limits import LIMITS, WorkBudget, bits_for
from optsched.eaco.verify.measured_sets import (
    MeasuredSets,
    are_filtered,
    has_bent_watts,
    least_charge,
)
from optsched.eaco.verify.rates import ExactPaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Nodes, PowerLevel
    from optsched.eaco.verify.rates import ExactPace, Quotient


class Option(NamedTuple):
    """A group that may be in a plan.

    Attributes
    ----------
    members
        Numbers of the sets of equal jobs, ascending.
    nodes, level, place
        Ids; level and place as in `Group`.
    cost, watts
        At least this much: in multiples of 2**-bits of the unit of the objective; and of all GPUs
        together above as many bare ones, in multiples of 2**-watt_bits.
    """

    members: tuple[int, ...]
    nodes: str
    gpus: int
    level: str | None
    place: str | None
    cost: int
    watts: int


def group_counts(instance: EacoInstance) -> tuple[int, int]:
    """Return how many groups there are at most, tolerances aside, and how many options of them."""
    sizes = {kind.id: kind.memory_gb for kind in instance.types}
    stays = 2 if instance.running else 1
    equal, groups, options = equal_jobs(instance), 0, 0
    for gpu in instance.gpu_types:
        pools = [nodes for nodes in instance.nodes if nodes.gpu == gpu.id]
        alone, shared = _memory_limits(instance, gpu)
        for gang in {job.gpus for job in instance.jobs}:
            held = [e for e in equal if e.job.gpus == gang]
            memory = [Fraction(sizes[e.job.type]) for e in held for _ in e.jobs]
            fitting = sum(sizes[e.job.type] <= alone for e in held)
            taken = accumulate(sorted(memory))
            most = sum(total <= shared for total in islice(taken, instance.max_jobs_per_gpu))
            count = sum(comb(fitting + size - 1, size) for size in range(1, max(1, most) + 1))
            on = sum(gang_fits(gang, nodes) for nodes in pools)
            groups += count if on else 0
            options += count * on * (1 + len(gpu.levels)) * stays
    return groups, options


def _memory_limits(instance: EacoInstance, gpu: GpuType) -> tuple[Fraction, Fraction]:
    """Return the GB of a GPU that a job may take alone, and that several may take together."""
    limit = Fraction(gpu.memory_gb)
    return limit, limit * (1 - Fraction(instance.memory_headroom))


class GroupOptions:
    """All groups of an instance, at their least costs.

    Parameters
    ----------
    is_free
        Whether groups cost nothing, for proofs that no plan exists.
    bits
        Costs are multiples of 2**-bits.
    budget
        What groups that are looked at are counted on.

    Attributes
    ----------
    watt_bits
        Watts are multiples of 2**-watt_bits: so many that the power cap has `LIMITS.bits`
        significant ones.
    """

    def __init__(
        self,
        instance: EacoInstance,
        *,
        is_free: bool,
        bits: int = LIMITS.bits,
        budget: WorkBudget | None = None,
    ) -> None:
        self.instance, self.figures, self.is_free = instance, ExactFigures(instance), is_free
        self.equal, self.bits = equal_jobs(instance), bits
        self.budget = budget or WorkBudget()
        self.watt_bits = bits_for(instance.power_cap_w or 0)
        scales = bits, self.watt_bits
        self.paces = ExactPaces(instance, self.figures, per_j(instance), *scales)
        jobs, places = [e.job for e in self.equal], [e.place for e in self.equal]
        self.costs = LeastCosts(self.figures, jobs, places, self.paces, *scales)
        self._memory_limits = {g.id: _memory_limits(instance, g) for g in instance.gpu_types}
        sizes = [Fraction(self.figures.types[e.job.type].memory_gb) for e in self.equal]
        limits = [limit for both in self._memory_limits.values() for limit in both]
        self._unit = lcm(*(size.denominator for size in (*sizes, *limits)))
        self._memory = [int(size * self._unit) for size in sizes]
        self._due = [self.figures.due_s(e.job) for e in self.equal]
        self._least: dict[tuple[int, str, bool], Quotient] = {}
        self._nodes_of = {place.id: place.nodes for place in instance.running}
        self._types = [e.job.type for e in self.equal]
        self._sets: dict[str, MeasuredSets] = {}

    # --- enumeration ---------------------------------------------------------------------------

    def options(self) -> Iterator[Option]:
        """Yield all options."""
        for gpu in self.instance.gpu_types:
            pools = [nodes for nodes in self.instance.nodes if nodes.gpu == gpu.id]
            for gang in sorted({e.job.gpus for e in self.equal}):
                fitting = [nodes.id for nodes in pools if gang_fits(gang, nodes)]
                if not fitting:
                    continue
                for members in self._groups(gang, gpu):
                    for nodes in fitting:
                        yield from self.on(members, gang, nodes, gpu)

    def below(
        self, pays: Sequence[int], gpus: Mapping[str, int], threshold: int, watt: int = 0
    ) -> Iterator[Option]:
        """Yield all options that cost less than a threshold above what their jobs pay, and others.

        Parameters
        ----------
        pays
            By sets of equal jobs.
        gpus
            Prices of a GPU by the id of its nodes.
        watt
            Price of a watt, not below 0.
        """
        instance = self.instance
        if self.is_free or not are_filtered(instance):
            yield from self.options()
            return
        from optsched.eaco.verify.equal_rate_groups import EqualRateGroups  # it brings numpy
        from optsched.eaco.verify.measured_groups import MeasuredGroups
        from optsched.eaco.verify.type_sequences import SequencedGroups

        is_plain = not instance.running and instance.power_cap_w is None
        for nodes in self.instance.nodes:
            gpu, sets = self.figures.gpus[nodes.gpu], self.measured_sets(nodes.gpu)
            for gang in sorted({e.job.gpus for e in self.equal}):
                if not gang_fits(gang, nodes):
                    continue
                limit, fitting = threshold - gang * gpus[nodes.id], self._fitting(gang, gpu)
                if has_bent_watts(gpu):
                    sequenced = SequencedGroups(self, gang, nodes, fitting)
                    for members in sequenced.below(pays, limit, watt):
                        if self.keeps(members, nodes):
                            yield from self.on(members, gang, nodes.id, gpu)
                    continue
                limit -= least_charge(instance, gang, gpu, watt, self.watt_bits)
                for members, cost in EqualRateGroups(self, gang, nodes, fitting).below(pays, limit):
                    if sets.concern(sorted([self._types[n] for n in members])):
                        continue
                    if is_plain:
                        yield Option(members, nodes.id, gang, None, None, cost, 0)
                    else:
                        yield from self.on(members, gang, nodes.id, gpu)
                if instance.rates[gpu.id].measured:
                    yield from MeasuredGroups(self, gang, nodes, fitting).below(pays, limit)

    def measured_sets(self, gpu: str) -> MeasuredSets:
        """Return which multisets of types have measured figures on GPUs of a type."""
        if gpu not in self._sets:
            self._sets[gpu] = MeasuredSets(self.instance, gpu)
        return self._sets[gpu]

    def keeps(self, members: tuple[int, ...], nodes: Nodes) -> bool:
        """Tell whether a group keeps tolerances and limits where nothing is moved."""
        gpu, types = self.figures.gpus[nodes.gpu], [self._types[n] for n in members]
        pace = self.paces.of(types, nodes, None)
        if pace is None:
            return False
        least = {n: self.least_rate(n, gpu.id, moved=False) for n in members}
        if not self._bear(members, pace, least):
            return False
        shared = int(self._memory_limits[gpu.id][1] * self._unit)
        is_small = sum([self._memory[n] for n in members]) <= shared
        return len(members) == 1 or (pace.is_calm and is_small)

    def least_rate(self, n: int, gpu: str, *, moved: bool) -> Quotient:
        """Return the least rate that a job bears on a GPU type; 0 if any."""
        key = (n, gpu, moved)
        if key not in self._least:
            job = self.equal[n].job
            least = Fraction(0) if job.max_slowdown is None else 1 / Fraction(job.max_slowdown)
            due = self._due[n]
            if due is not None:
                least = max(least, Fraction(*self.costs.work(n, gpu, moved=moved)) / due)
            self._least[key] = least.as_integer_ratio()
        return self._least[key]

    def _fitting(self, gang: int, gpu: GpuType) -> list[int]:
        """Return the sets of equal jobs of a gang size that fit alone."""
        limit = int(self._memory_limits[gpu.id][0] * self._unit)
        return [
            n for n, e in enumerate(self.equal) if e.job.gpus == gang and self._memory[n] <= limit
        ]

    def _groups(self, gang: int, gpu: GpuType) -> Iterator[tuple[int, ...]]:
        """Yield all groups that keep tolerances and limits where nothing is moved."""
        shared = int(self._memory_limits[gpu.id][1] * self._unit)
        fitting = self._fitting(gang, gpu)
        memory = self._memory
        on = next(nodes for nodes in self.instance.nodes if nodes.gpu == gpu.id)
        least = {n: self.least_rate(n, gpu.id, moved=False) for n in fitting}
        stack: list[tuple[tuple[int, ...], int, int]]
        stack = [((n,), memory[n], at) for at, n in enumerate(fitting)]
        while stack:
            members, used, at = stack.pop()
            self.budget.spend(1)
            pace = self.paces.of([self._types[n] for n in members], on, None)
            if pace is not None and not self._bear(members, pace, least):
                continue
            if pace is not None and (pace.is_calm or len(members) == 1):
                yield members
            if len(members) == self.instance.max_jobs_per_gpu:
                continue
            for further in range(at, len(fitting)):
                n = fitting[further]
                if used + memory[n] > shared:
                    continue
                if n == members[-1] and members.count(n) >= len(self.equal[n].jobs):
                    continue
                stack.append(((*members, n), used + memory[n], further))

    def _bear(
        self, members: tuple[int, ...], pace: ExactPace, least: Mapping[int, Quotient]
    ) -> bool:
        """Tell whether jobs fit together and none of them is slower than its least rate."""
        if not pace.rates:
            return False
        seconds, of = pace.second
        for n in members:
            over, under = least[n]
            if pace.rates[self._types[n]] * of * under < over * seconds:
                return False
        return True

    # --- options -------------------------------------------------------------------------------

    def on(self, members: tuple[int, ...], gang: int, nodes: str, gpu: GpuType) -> Iterator[Option]:
        """Yield the options of a group on some nodes, by level and location."""
        places: list[str | None] = [None]
        for place in dict.fromkeys(self.equal[n].place for n in members):
            if place is not None and self._nodes_of[place] == nodes:
                places.append(place)
        for place in places:
            for level in (None, *gpu.levels):
                is_known = level is None and not self.instance.running
                if not is_known and not self._bear_there(members, nodes, level, place):
                    continue
                cost = watts = 0
                if not self.is_free or self.instance.power_cap_w is not None:
                    on = self.figures.nodes[nodes]
                    cost, watts = self.costs.least(members, on, level, place)
                name = None if level is None else level.id
                least = 0 if self.is_free else cost
                yield Option(members, nodes, gang, name, place, least, watts)

    def _bear_there(
        self, members: tuple[int, ...], nodes: str, level: PowerLevel | None, place: str | None
    ) -> bool:
        """Tell whether the jobs of a group bear a level, and being moved."""
        on = self.figures.nodes[nodes]
        pace = self.paces.of([self._types[n] for n in members], on, level)
        assert pace is not None
        least = {
            n: self.least_rate(n, on.gpu, moved=self.equal[n].place not in (None, place))
            for n in members
        }
        return self._bear(members, pace, least)
