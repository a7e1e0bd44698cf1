"""EaCO, figures of groups for the specification: rates, times, watts and costs, in fractions.

Written down from the docstring of `EacoInstance`, apart from the verifier; `eaco_columns` says
which groups are allowed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes, PowerLevel, Running

    Group = tuple[Job, ...]
    Phase = tuple[Fraction, Fraction]  # seconds, and watts of each GPU

JOULES_PER_KWH = 3_600_000
ZERO = Fraction(0)


class MultisetRates(NamedTuple):
    """Rates by job type and watts of each GPU while some types run side by side, full power."""

    rates: dict[str, Fraction]
    utilisation: Fraction
    gpu_w: Fraction


class ColumnPlace(NamedTuple):
    """Where and how a group runs."""

    nodes: Nodes
    level: PowerLevel | None
    location: Running | None


def fits(gpus: int, nodes: Nodes) -> bool:
    """Tell whether a gang fits into a node, or fills whole ones."""
    within = gpus <= nodes.gpus or gpus % nodes.gpus == 0
    return within and gpus <= nodes.gpus * nodes.count


class ColumnFigures:
    """Rates, times and energies of groups, in exact numbers."""

    def __init__(self, instance: EacoInstance) -> None:
        self.instance = instance
        self.types = {kind.id: kind for kind in instance.types}
        self.gpus = {gpu.id: gpu for gpu in instance.gpu_types}
        self._paces: dict[tuple[str, tuple[str, ...]], MultisetRates | None] = {}
        self._due = {
            job.id: self._due_s(job) for job in instance.jobs if job.deadline_s is not None
        }

    def due_s(self, job: Job) -> Fraction | None:
        """Return D: seconds within which a job must end; None if it has no deadline."""
        return self._due.get(job.id)

    def _due_s(self, job: Job) -> Fraction:
        places = [
            ColumnPlace(nodes, None, location)
            for nodes in self.hosts(job)
            for location in (None, *self.locations((job,), nodes))
        ]
        earliest = min(self.work_s(job, place) for place in places)
        return max(Fraction(job.deadline_s or 0), earliest)

    def hosts(self, job: Job) -> list[Nodes]:
        """Return the nodes on which a job may have GPUs of its own."""
        memory = self.types[job.type].memory_gb
        return [
            nodes
            for nodes in self.instance.nodes
            if fits(job.gpus, nodes) and memory <= self.gpus[nodes.gpu].memory_gb
        ]

    def locations(self, group: Group, nodes: Nodes) -> list[Running]:
        """Return where jobs of a group run now, on these nodes."""
        now = (self.instance.location_of.get(job.id) for job in group)
        places = {place.id: place for place in now if place is not None}
        return [place for place in places.values() if place.nodes == nodes.id]

    # --- rates, times, watts ------------------------------------------------------------------

    def pace(self, jobs: Sequence[Job], nodes: Nodes) -> MultisetRates | None:
        """Return rates and watts of jobs side by side; None if they are not known."""
        key = (nodes.gpu, types_of(jobs))
        if key not in self._paces:
            self._paces[key] = self._pace(*key)
        return self._paces[key]

    def _pace(self, gpu: str, types: tuple[str, ...]) -> MultisetRates | None:
        rates = self.instance.rates[gpu].of(types)
        if not rates.is_known:
            return None
        shares = (Fraction(self.types[t].utilisation) * rates.by_type[t] for t in types)
        busy, watts = sum(shares, ZERO), None
        measured = self.instance.rates[gpu].measured.get(types)
        if measured is not None and measured.utilisation is not None:
            busy = Fraction(measured.utilisation)
        if measured is not None and measured.gpu_power_w is not None:
            watts = Fraction(measured.gpu_power_w)
        return MultisetRates(rates.by_type, busy, watts or self.gpus[gpu].power.watts(busy))

    def slowdown(self, job: Job, group: Group, place: ColumnPlace) -> Fraction:
        """Return sigma: 1 / the rate of a job while all of its group run."""
        pace = self.pace(group, place.nodes)
        assert pace is not None
        return 1 / (pace.rates[job.type] * _rate(place.level))

    def speed(self, job: Job, nodes: Nodes) -> Fraction:
        """Return the speed of a job alone."""
        return Fraction(self.types[job.type].speeds.get(nodes.gpu, 1.0))

    def work_s(self, job: Job, place: ColumnPlace) -> Fraction:
        """Return w: seconds alone at full power, those of a move included."""
        seconds = Fraction(job.work_s) / self.speed(job, place.nodes)
        return seconds + Fraction(job.migration_s) if self.is_moved(job, place) else seconds

    def is_moved(self, job: Job, place: ColumnPlace) -> bool:
        """Tell whether a job runs now, and elsewhere."""
        now = self.instance.location_of.get(job.id)
        return now is not None and (place.location is None or place.location.id != now.id)

    def phases(self, group: Group, place: ColumnPlace) -> Iterator[Phase]:
        """Yield seconds and watts of each GPU of each phase."""
        left = {job: self.work_s(job, place) for job in group}
        pace, now = None, group
        while left:
            pace = self.pace(now, place.nodes) or pace
            assert pace is not None
            rates = {job: pace.rates[job.type] * _rate(place.level) for job in left}
            seconds = min(work / rates[job] for job, work in left.items())
            yield seconds, _limited(pace.gpu_w, place.level)
            left = {job: work - seconds * rates[job] for job, work in left.items()}
            left = {job: work for job, work in left.items() if work > 0}
            now = tuple(left)

    # --- costs --------------------------------------------------------------------------------

    def cost(self, group: Group, place: ColumnPlace, phases: Sequence[Phase]) -> Fraction:
        """Return the cost of a column in the objective's unit, without nodes on and waking."""
        instance, gang = self.instance, group[0].gpus
        if instance.objective == "epoch":
            above = phases[0][1] - Fraction(self.gpus[place.nodes.gpu].power.bare_w)
            joules = Fraction(instance.epoch_s or 0) * gang * above - self._credit(group, place)
            return joules / JOULES_PER_KWH * instance.per_kwh
        share = share_w(place.nodes)
        joules = sum((seconds * gang * (watts + share) for seconds, watts in phases), ZERO)
        if instance.objective == "run-to-completion":
            return joules / JOULES_PER_KWH * instance.per_kwh
        weight = Fraction(instance.energy_weight or 0)
        hours = self._training_h(group, place) / len(instance.jobs)
        return weight * joules / JOULES_PER_KWH + (1 - weight) * hours

    def _credit(self, group: Group, place: ColumnPlace) -> Fraction:
        """Return the joules that the work is worth that a group gets done in the epoch."""
        joules = ZERO
        for job in group:
            worth = job.work_credit_w or self.least_alone_j(job) / Fraction(job.work_s)
            seconds = Fraction(self.instance.epoch_s or 0) / self.slowdown(job, group, place)
            lost = Fraction(job.migration_s) if self.is_moved(job, place) else 0
            joules += Fraction(worth) * self.speed(job, place.nodes) * (seconds - lost)
        return joules

    def _training_h(self, group: Group, place: ColumnPlace) -> Fraction:
        """Return the hours per training epoch, summed over the jobs of a group."""
        terms = (
            Fraction(job.training_epoch_s or 0)
            * self.slowdown(job, group, place)
            / self.speed(job, place.nodes)
            for job in group
        )
        return sum(terms, ZERO) / 3600

    def least_alone_j(self, job: Job, extra_s: float = 0.0) -> Fraction:
        """Return the least joules of a job and extra work, on GPUs of its own at full power."""
        energies = []
        for nodes in self.hosts(job):
            pace = self.pace((job,), nodes)
            assert pace is not None
            seconds = Fraction(job.work_s) / self.speed(job, nodes) + Fraction(extra_s)
            energies.append(job.gpus * (pace.gpu_w + share_w(nodes)) * seconds)
        return min(energies)


def share_w(nodes: Nodes) -> Fraction:
    """Return the watts of a node outside its GPUs, above sleep, by GPU."""
    return (Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w)) / nodes.gpus


def types_of(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return the multiset of the types of jobs."""
    return tuple(sorted(job.type for job in jobs))


def _rate(level: PowerLevel | None) -> Fraction:
    return Fraction(1) if level is None else Fraction(level.rate)


def _limited(watts: Fraction, level: PowerLevel | None) -> Fraction:
    if level is None:
        return watts
    return min(Fraction(level.limit_w), watts * Fraction(level.power))
