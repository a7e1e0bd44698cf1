"""The judge of EaCO: every group that may be in a plan, with a lower bound on what it costs.

Fixed-point integers, multiples of 2**-96, lowered by a slack that covers all rounding. Groups
are found job by job: one that breaks a tolerance is in no larger group that keeps it, since rates
never rise as a group grows. It shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.energy import Book, gang_fits
from optsched.eaco.paces import Paces
from optsched.eaco.phases import BITS, ONE, SLACK, Costs, Pace, fixed
from optsched.eaco.plan import Group
from optsched.eaco.uniform import Uniform, is_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from optsched.eaco.instance import EacoInstance, GpuType, Job, PowerLevel

NEAR = 4 << SLACK  # of a rate or utilisation: so near to a limit, fractions decide


class Equal(NamedTuple):
    """Jobs that are equal but for their ids."""

    jobs: tuple[str, ...]
    job: Job
    place: str | None


class Option(NamedTuple):
    """A group that may be in a plan.

    Attributes
    ----------
    members
        Numbers of the sets of equal jobs, ascending.
    nodes, level, place
        Ids; level and place as in `Group`.
    cost, watts
        At least this much, in multiples of 2**-96: in the unit of the objective; and of all GPUs
        together above as many bare ones.
    """

    members: tuple[int, ...]
    nodes: str
    gpus: int
    level: str | None
    place: str | None
    cost: int
    watts: int


def equal_jobs(instance: EacoInstance) -> list[Equal]:
    """Merge equal jobs, in the order of the first ones."""
    found: dict[tuple[object, ...], list[Job]] = {}
    for job in instance.jobs:
        place = instance.location_of.get(job.id)
        fields = job.model_dump(exclude={"id"} if place else {"id", "migration_s"})
        found.setdefault((place.id if place else None, *fields.values()), []).append(job)
    return [
        Equal(tuple(job.id for job in jobs), jobs[0], key[0] if isinstance(key[0], str) else None)
        for key, jobs in found.items()
    ]


class Menu:
    """All groups of an instance, at their least costs.

    Parameters
    ----------
    is_free
        Whether groups cost nothing, for proofs that no plan exists.
    """

    def __init__(self, instance: EacoInstance, *, is_free: bool) -> None:
        self.instance, self.book, self.is_free = instance, Book(instance), is_free
        self.equal = equal_jobs(instance)
        self._work = [Fraction(e.job.work_s) for e in self.equal]
        self._memory = [Fraction(self.book.types[e.job.type].memory_gb) for e in self.equal]
        self._due = [self.book.due_s(e.job) for e in self.equal]
        self._costs = Costs(instance, self.book)
        self._paces = Paces(instance, self.book)
        self._least: dict[tuple[int, str, bool], int] = {}
        self._nodes_of = {place.id: place.nodes for place in instance.running}
        self._kinds = [e.job.type for e in self.equal]

    # --- enumeration ---------------------------------------------------------------------------

    def options(self, may_matter: Callable[[tuple[int, ...]], bool]) -> Iterator[Option]:
        """Yield all options of the groups for which `may_matter` holds."""
        for gpu in self.instance.gpu_types:
            pools = [nodes for nodes in self.instance.nodes if nodes.gpu == gpu.id]
            for gang in sorted({e.job.gpus for e in self.equal}):
                fitting = [nodes.id for nodes in pools if gang_fits(gang, nodes)]
                if not fitting:
                    continue
                for members in self._groups(gang, gpu):
                    if may_matter(members):
                        for nodes in fitting:
                            yield from self._on(members, gang, nodes, gpu)

    def below(
        self, pays: Sequence[int], gpus: Mapping[str, int], threshold: int
    ) -> Iterator[Option]:
        """Yield all options that cost less than a threshold above what their jobs pay, and others.

        Parameters
        ----------
        pays
            By sets of equal jobs.
        gpus
            Prices of a GPU by the id of its nodes.
        """
        if self.is_free or not all(is_uniform(self.instance, g) for g in self.instance.gpu_types):
            yield from self.options(lambda members: True)
            return
        for nodes in self.instance.nodes:
            gpu = self.book.gpus[nodes.gpu]
            for gang in sorted({e.job.gpus for e in self.equal}):
                if not gang_fits(gang, nodes):
                    continue
                among = self._fitting(gang, gpu)
                least = {n: self._least_rate(n, gpu.id) for n in among}
                found = Uniform(self, gang, nodes, among, least)
                for members, cost in found.below(pays, threshold - gang * gpus[nodes.id]):
                    if self._keeps(members, gpu, nodes.id):
                        yield Option(members, nodes.id, gang, None, None, cost, 0)

    def work(self, job: Job, gpu: str) -> int:
        """Return the seconds that a job takes alone at full power."""
        return self._costs.work(job, gpu, moved=False)

    def _keeps(self, members: tuple[int, ...], gpu: GpuType, on: str) -> bool:
        """Tell whether a group keeps the tolerances of its jobs and the utilisation limit."""
        if len(members) == 1:
            return self._bears(members, on, gpu, None, None)
        pace = self._paces.of([self._kinds[n] for n in members], gpu)
        if pace is None or not all(pace.rates.values()):
            return False
        margin = min(pace.rates[self._kinds[n]] - self._least_rate(n, gpu.id) for n in members)
        if margin < 0 or (margin <= NEAR and not self._bears_exactly(members, on, None, None)):
            return False
        limit = self.instance.utilisation_limit
        return limit is None or self._is_calm(members, on, pace, fixed(limit) + (1 << SLACK))

    def _fitting(self, gang: int, gpu: GpuType) -> list[int]:
        """Return the sets of equal jobs of a gang size that fit alone."""
        room = Fraction(gpu.memory_gb)
        return [
            n for n, e in enumerate(self.equal) if e.job.gpus == gang and self._memory[n] <= room
        ]

    def _groups(self, gang: int, gpu: GpuType) -> Iterator[tuple[int, ...]]:
        shared = Fraction(gpu.memory_gb) * (1 - Fraction(self.instance.memory_headroom))
        fitting = self._fitting(gang, gpu)
        least = {n: self._least_rate(n, gpu.id) for n in fitting}
        on = next(nodes.id for nodes in self.instance.nodes if nodes.gpu == gpu.id)
        limit = self.instance.utilisation_limit
        busiest = None if limit is None else fixed(limit) + (1 << SLACK)
        stack: list[tuple[tuple[int, ...], Fraction, int]]
        stack = [((n,), self._memory[n], at) for at, n in enumerate(fitting)]
        while stack:
            members, memory, at = stack.pop()
            if len(members) > 1:
                pace = self._paces.of([self._kinds[n] for n in members], gpu)
                if pace is not None:
                    rates = pace.rates
                    if not all(rates.values()):
                        continue
                    margin = min([rates[self._kinds[n]] - least[n] for n in members])
                    if margin < 0:
                        continue
                    is_near = margin <= NEAR and not self.instance.running  # else: by location
                    if is_near and not self._bears_exactly(members, on, None, None):
                        continue
                    if busiest is None or self._is_calm(members, on, pace, busiest):
                        yield members
            else:
                yield members
            if len(members) == self.instance.max_jobs_per_gpu:
                continue
            for further in range(at, len(fitting)):
                n = fitting[further]
                if memory + self._memory[n] > shared:
                    continue
                if n == members[-1] and members.count(n) >= len(self.equal[n].jobs):
                    continue
                stack.append(((*members, n), memory + self._memory[n], further))

    def _least_rate(self, n: int, gpu: str, *, moved: bool = False) -> int:
        """Return the least rate that a job bears, with a slack."""
        key = (n, gpu, moved)
        if key not in self._least:
            job = self.equal[n].job
            least = Fraction(0) if job.max_slowdown is None else 1 / Fraction(job.max_slowdown)
            due = self._due[n]
            if due is not None:
                speed = Fraction(self.book.types[job.type].speeds.get(gpu, 1.0))
                work = self._work[n] / speed + (Fraction(job.migration_s) if moved else 0)
                least = max(least, work / due)
            self._least[key] = fixed(least) - (1 << SLACK)
        return self._least[key]

    def _is_calm(self, members: tuple[int, ...], on: str, pace: Pace, busiest: int) -> bool:
        """Tell whether a group keeps the utilisation limit."""
        if abs(pace.utilisation - busiest) > NEAR:
            return pace.utilisation < busiest
        names = [job.id for job in self._jobs(members)]
        busy = self.book.utilisation(names, self.book.nodes[on])
        return busy <= Fraction(self.instance.utilisation_limit or 0)

    def _bears(
        self,
        members: tuple[int, ...],
        nodes: str,
        gpu: GpuType,
        level: PowerLevel | None,
        place: str | None,
    ) -> bool:
        """Tell whether the jobs of a group bear a level, and being moved."""
        is_near = False
        pace = self._paces.of([self._kinds[n] for n in members], gpu)
        factor = ONE if level is None else fixed(level.rate) + 1
        assert pace is not None
        for n in members:
            moved = self.equal[n].place not in (None, place)
            rate = (pace.rates[self._kinds[n]] + 1) * factor >> BITS
            margin = rate - self._least_rate(n, gpu.id, moved=moved)
            if margin < 0:
                return False
            is_near |= margin <= NEAR
        return not is_near or self._bears_exactly(members, nodes, level, place)

    def _bears_exactly(
        self, members: tuple[int, ...], nodes: str, level: PowerLevel | None, place: str | None
    ) -> bool:
        """Tell the same, where a rate is so near to the least one that fractions decide."""
        jobs = self._jobs(members)
        names = tuple(job.id for job in jobs)
        name = None if level is None else level.id
        group = Group(jobs=names, nodes=nodes, level=name, location=place)
        for n, job in zip(members, jobs, strict=True):
            cap = job.max_slowdown
            if cap is not None and self.book.slowdown(job, group) > Fraction(cap):
                return False
            due = self._due[n]
            if due is not None and self.book.latest_s(job, group) > due:
                return False
        return True

    # --- options -------------------------------------------------------------------------------

    def _on(
        self, members: tuple[int, ...], gang: int, nodes: str, gpu: GpuType
    ) -> Iterator[Option]:
        """Yield the options of a group on some nodes, by level and location."""
        places: list[str | None] = [None]
        for place in dict.fromkeys(self.equal[n].place for n in members):
            if place is not None and self._nodes_of[place] == nodes:
                places.append(place)
        jobs = self._jobs(members)
        for place in places:
            for level in (None, *gpu.levels):
                cost = watts = 0
                is_known = level is None and not self.instance.running and len(members) > 1
                if not is_known and not self._bears(members, nodes, gpu, level, place):
                    continue
                if not self.is_free or self.instance.power_cap_w is not None:
                    cost, watts = self._costs.least(
                        jobs,
                        self.book.nodes[nodes],
                        level,
                        place,
                        lambda key: self._paces.of(key, gpu),
                    )
                name = None if level is None else level.id
                least = 0 if self.is_free else cost
                yield Option(members, nodes, gang, name, place, least, watts)

    def _jobs(self, members: tuple[int, ...]) -> list[Job]:
        if len(set(members)) == len(members):
            return [self.equal[n].job for n in members]
        names = [self.equal[n].jobs[members[:at].count(n)] for at, n in enumerate(members)]
        return [self.book.jobs[name] for name in names]
