"""What groups of jobs take: phases, slowdowns, energy, watts, in exact rational numbers.

Part of the verifier: it imports neither numpy nor solvers and shares no code with the methods.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from optsched.eaco.plan import Group
from optsched.eaco.verify.equal_jobs import equal_jobs
from optsched.eaco.verify.group_phases import Pace, phases
from optsched.eaco.verify.kept_figures import kept_figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes
    from optsched.eaco.interference import Rates
    from optsched.eaco.verify.group_phases import GroupPhase

JOULES_PER_KWH = 3_600_000


GroupKind = tuple[tuple[int, ...], str, str | None, str | None]
"""Sets of equal jobs, nodes, level and location: groups of a kind have the same figures."""


class ExactFigures:
    """The entries of an instance by id, and the exact figures of groups of its jobs.

    Attributes
    ----------
    sound
        Kinds of groups that keep all rules which do not depend on the node.
    joules
        By kind what a group takes until its last job ends, as far as it was asked for.
    sound_types
        GPU types with types of jobs, ascending, that keep the limits of groups of these.
    """

    def __init__(self, instance: EacoInstance) -> None:
        self.instance = instance
        self.jobs = {job.id: job for job in instance.jobs}
        self.types = {kind.id: kind for kind in instance.types}
        self.nodes = {nodes.id: nodes for nodes in instance.nodes}
        self.gpus = {gpu.id: gpu for gpu in instance.gpu_types}
        self.sound: set[GroupKind] = set()
        self.joules: dict[GroupKind, Fraction] = {}
        self._due: dict[str, Fraction] = {}
        self._shares: dict[str, Fraction] = {}
        kept = kept_figures(instance)
        limits = instance.memory_headroom, instance.utilisation_limit, instance.max_jobs_per_gpu
        self._watts: dict[tuple[str, tuple[str, ...]], Fraction] = kept.of()
        self._paces: dict[tuple[str, str | None, tuple[str, ...]], Pace | None] = kept.of("paces")
        self.sound_types: dict[tuple[str, tuple[str, ...]], bool]
        self.sound_types = kept.of("sound", *limits)

    def speed(self, job: Job, nodes: Nodes) -> Fraction:
        """Return the speed of a job alone, relative to what its work is stated for."""
        return Fraction(self.types[job.type].speeds.get(nodes.gpu, 1.0))

    def rates(self, jobs: Sequence[str], nodes: Nodes) -> Rates:
        """Return the rates by type of jobs side by side at full power."""
        return self.instance.rates[nodes.gpu].of([self.jobs[name].type for name in jobs])

    def level(self, group: Group) -> tuple[Fraction, Fraction, Fraction | None]:
        """Return rate, relative power and watt limit of a group's power level."""
        for level in self.gpus[self.nodes[group.nodes].gpu].levels:
            if level.id == group.level:
                return Fraction(level.rate), Fraction(level.power), Fraction(level.limit_w)
        return Fraction(1), Fraction(1), None

    def utilisation(self, jobs: Sequence[str], nodes: Nodes) -> Fraction:
        """Return the utilisation of GPUs that jobs share at full power; it may exceed 1."""
        types = [self.jobs[name].type for name in jobs]
        measured = self.instance.rates[nodes.gpu].measured.get(tuple(sorted(types)))
        if measured is not None and measured.utilisation is not None:
            return Fraction(measured.utilisation)
        rates = self.rates(jobs, nodes).by_type
        terms = (self._busy[kind] * rates[kind] for kind in types)
        return sum(terms, Fraction(0))

    @cached_property
    def _busy(self) -> dict[str, Fraction]:
        return {name: Fraction(kind.utilisation) for name, kind in self.types.items()}

    def gpu_w(self, jobs: Sequence[str], group: Group) -> Fraction:
        """Return the watts of each GPU while some jobs of a group are active."""
        nodes = self.nodes[group.nodes]
        types = self.types_of(jobs)
        if (nodes.gpu, types) not in self._watts:
            self._watts[nodes.gpu, types] = self._full_w(types, jobs, nodes)
        watts = self._watts[nodes.gpu, types]
        if group.level is None:
            return watts
        _, power, limit = self.level(group)
        return watts * power if limit is None else min(watts * power, limit)

    def _full_w(self, types: tuple[str, ...], jobs: Sequence[str], nodes: Nodes) -> Fraction:
        """Return the watts of each GPU while jobs of these types are active at full power."""
        measured = self.instance.rates[nodes.gpu].measured.get(types)
        if measured is not None and measured.gpu_power_w is not None:
            return Fraction(measured.gpu_power_w)
        return self.gpus[nodes.gpu].power.watts(self.utilisation(jobs, nodes))

    def node_share_w(self, nodes: Nodes) -> Fraction:
        """Return the watts of a node outside its GPUs, above sleep, by GPU."""
        if nodes.id not in self._shares:
            above = Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w)
            self._shares[nodes.id] = above / nodes.gpus
        return self._shares[nodes.id]

    def wake_j(self, nodes: Nodes) -> Fraction:
        """Return the joules of waking a node, above those of sleeping on."""
        asleep = Fraction(nodes.power.wake_s) * Fraction(nodes.power.sleep_w)
        return nodes.power.wake_energy_j - asleep

    def is_moved(self, job: Job, group: Group) -> bool:
        """Tell whether a job runs now, and the group has other GPUs."""
        place = self.instance.location_of.get(job.id)
        return place is not None and place.id != group.location

    def work_s(self, job: Job, group: Group) -> Fraction:
        """Return the seconds that a job would take alone at full power where the group is."""
        work = Fraction(job.work_s) / self.speed(job, self.nodes[group.nodes])
        return work + Fraction(job.migration_s) if self.is_moved(job, group) else work

    def slowdown(self, job: Job, group: Group) -> Fraction:
        """Return 1 / the rate of a job while all of its group run."""
        pace = self._pace(group.jobs, group)
        assert pace is not None  # the rates of all groups of plans are known
        return pace.slowdowns[job.type]

    def latest_s(self, job: Job, group: Group) -> Fraction:
        """Return when a job ends if the whole group ran on throughout."""
        return self.work_s(job, group) * self.slowdown(job, group)

    def phases(self, group: Group) -> list[GroupPhase]:
        """Return the phases of a group's run to completion, in order."""
        works = {name: self.work_s(self.jobs[name], group) for name in group.jobs}
        types = {name: self.jobs[name].type for name in group.jobs}
        return list(phases(works, types, lambda active: self._pace(active, group)))

    def _pace(self, active: Sequence[str], group: Group) -> Pace | None:
        """Return how active jobs of a group run; None if their rates are not known."""
        nodes = self.nodes[group.nodes]
        key = nodes.gpu, group.level, self.types_of(active)
        if key not in self._paces:
            rates, factor = self.rates(active, nodes), self.level(group)[0]
            known = Pace.of(rates, factor, self.gpu_w(active, group)) if rates.is_known else None
            self._paces[key] = known
        return self._paces[key]

    def types_of(self, jobs: Sequence[str]) -> tuple[str, ...]:
        """Return the types of jobs, ascending."""
        return tuple(sorted([self.jobs[name].type for name in jobs]))

    def alike(self, groups: Iterable[Group]) -> dict[GroupKind, list[Group]]:
        """Return groups by kind, those of the same figures: equal jobs in order, equal nodes."""
        sets: dict[GroupKind, list[Group]] = {}
        for group in groups:
            equal = tuple([self._set_of[name] for name in group.jobs])
            key = (equal, group.nodes, group.level, group.location)
            sets.setdefault(key, []).append(group)
        return sets

    @cached_property
    def _set_of(self) -> dict[str, int]:
        """Return the number of the set of equal jobs that each job is in."""
        return {name: n for n, e in enumerate(equal_jobs(self.instance)) for name in e.jobs}

    def gang(self, group: Group) -> int:
        """Return how many GPUs a group has."""
        return self.jobs[group.jobs[0]].gpus

    def energy_j(self, group: Group, phases: Sequence[GroupPhase]) -> Fraction:
        """Return the joules of a group's GPUs and of its share of the node, until it ends."""
        share = self.node_share_w(self.nodes[group.nodes])
        joules = sum((phase.seconds * (phase.gpu_w + share) for phase in phases), Fraction(0))
        return self.gang(group) * joules

    def alone_j(self, job: Job) -> Fraction:
        """Return the least joules of a job on GPUs of its own, at full power, not moved."""
        return min(
            self._alone_w(job, nodes) * Fraction(job.work_s) / self.speed(job, nodes)
            for nodes in self.hosts(job)
        )

    def later_j(self, job: Job) -> Fraction:
        """Return the least joules of a job that waits now, and then has GPUs of its own."""
        return min(
            self._alone_w(job, nodes) * self.work_s(job, _alone(job, nodes))
            for nodes in self.hosts(job)
        )

    def _alone_w(self, job: Job, nodes: Nodes) -> Fraction:
        watts = self.gpu_w([job.id], _alone(job, nodes)) + self.node_share_w(nodes)
        return job.gpus * watts

    def hosts(self, job: Job) -> list[Nodes]:
        """Return the nodes on whose GPUs a job fits alone; one at least."""
        memory = self.types[job.type].memory_gb
        return [
            nodes
            for nodes in self.instance.nodes
            if memory <= self.gpus[nodes.gpu].memory_gb and gang_fits(job.gpus, nodes)
        ]

    def earliest_s(self, job: Job) -> Fraction:
        """Return when a job ends at the earliest: alone at full power, staying or moved."""
        place = self.instance.location_of.get(job.id)
        ends = []
        for nodes in self.hosts(job):
            stays = place is not None and place.nodes == nodes.id
            ends.append(self.work_s(job, _alone(job, nodes, place.id if place and stays else None)))
        return min(ends)

    def due_s(self, job: Job) -> Fraction | None:
        """Return when a job must have ended, were its group whole throughout; None if any time.

        That is its deadline; if it cannot meet that, the earliest end that it can have alone. So
        no job is due later the tighter its deadline is.
        """
        if job.deadline_s is None:
            return None
        if job.id not in self._due:
            self._due[job.id] = max(Fraction(job.deadline_s), self.earliest_s(job))
        return self._due[job.id]

    def credit_w(self, job: Job) -> Fraction:
        """Return the joules that a second of a job's work is worth, objective 'epoch'."""
        if job.work_credit_w is not None:
            return Fraction(job.work_credit_w)
        return self.alone_j(job) / Fraction(job.work_s)


def gang_fits(gpus: int, nodes: Nodes) -> bool:
    """Tell whether a gang fits into a node, or fills several whole ones that exist."""
    within = gpus <= nodes.gpus or gpus % nodes.gpus == 0
    return within and gpus <= nodes.gpus * nodes.count


def used_nodes(gpus: int, group: Group, nodes: Nodes) -> range:
    """Return the numbers of the nodes that a group with gangs of that size is on."""
    return range(group.node, group.node + max(1, gpus // nodes.gpus))


def loads(figures: ExactFigures, groups: Sequence[Group]) -> Mapping[tuple[str, int], int]:
    """Return the GPUs in use on each node in use, by id and number."""
    in_use: dict[tuple[str, int], int] = {}
    for group in groups:
        nodes, gang = figures.nodes[group.nodes], figures.gang(group)
        for number in used_nodes(gang, group, nodes):
            key = (nodes.id, number)
            in_use[key] = in_use.get(key, 0) + min(gang, nodes.gpus)
    return in_use


def wakes_j(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the joules of waking the nodes that groups use and that sleep now."""
    used = [(figures.nodes[name], number) for name, number in loads(figures, groups)]
    woken = (figures.wake_j(nodes) for nodes, number in used if number >= nodes.awake)
    return sum(woken, Fraction(0))


def above_sleep_w(
    figures: ExactFigures, groups: Sequence[Group], gpu_w: Sequence[Fraction]
) -> Fraction:
    """Return the watts of the nodes in use above sleep, their GPUs included."""
    total = Fraction(0)
    for (name, _), used in loads(figures, groups).items():
        nodes = figures.nodes[name]
        empty = (nodes.gpus - used) * Fraction(figures.gpus[nodes.gpu].power.bare_w)
        total += Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w) + empty
    for group, watts in zip(groups, gpu_w, strict=True):
        total += figures.gang(group) * watts
    return total


def cluster_w(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the watts of the cluster if every group had its greatest at once."""
    greatest = [max(phase.gpu_w for phase in figures.phases(group)) for group in groups]
    return figures.instance.idle_floor_w + above_sleep_w(figures, groups, greatest)


def _alone(job: Job, nodes: Nodes, location: str | None = None) -> Group:
    return Group(jobs=(job.id,), nodes=nodes.id, location=location)
