"""What groups may do and what they take, for greedy rules: rules exact, costs in floats.

Both are remembered, so that rules may ask for the same group again and again.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.due_times import due_s
from optsched.eaco.greedy.type_mix import TypeMix, phases_of
from optsched.eaco.group_figures import JOULES_PER_KWH, TypeFigures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes, PowerLevel


class Draft(NamedTuple):
    """A group without a node yet.

    Attributes
    ----------
    jobs
        Their numbers, ascending.
    nodes
        Number of the pool of nodes.
    location
        Id of the running location that it takes over; None for other GPUs.
    level
        Number of the power level; None for full power.
    """

    jobs: tuple[int, ...]
    nodes: int
    location: str | None = None
    level: int | None = None


class GroupCosts:
    """Rules and costs of groups of an instance's jobs, which are meant by their numbers.

    Parameters
    ----------
    like
        Those of another instance with the same types, GPUs and interference: what they know of
        types side by side is taken over.
    """

    def __init__(self, instance: EacoInstance, like: GroupCosts | None = None) -> None:
        self.instance = instance
        self.jobs = instance.jobs
        self.nodes = instance.nodes
        self.figures: TypeFigures = TypeFigures(instance) if like is None else like.figures
        self.types, self.gpus = self.figures.types, self.figures.gpus
        self.places = {place.id: place for place in instance.running}
        self._mixes: dict[tuple[str, ...], TypeMix] = {} if like is None else like._mixes
        self._allowed: dict[Draft, bool] = {}
        self._costs: dict[Draft, float] = {}
        self._works: dict[tuple[int, int, bool], Fraction] = {}
        self._pool_of = {pool.id: n for n, pool in enumerate(self.nodes)}
        hosts: dict[tuple[str, int], list[int]] = {}
        for job in self.jobs:
            if (job.type, job.gpus) not in hosts:
                hosts[job.type, job.gpus] = self._hosts(job)
        self.hosts = [hosts[job.type, job.gpus] for job in self.jobs]
        self._due = [None if job.deadline_s is None else due_s(instance, job) for job in self.jobs]

    # --- parts --------------------------------------------------------------------------------

    def pool(self, draft: Draft) -> Nodes:
        """Return the pool of nodes that a group is on."""
        return self.nodes[draft.nodes]

    def gang(self, draft: Draft) -> int:
        """Return how many GPUs a group has."""
        return self.jobs[draft.jobs[0]].gpus

    def level(self, draft: Draft) -> PowerLevel | None:
        """Return the power level of a group; None for full power."""
        return None if draft.level is None else self.levels(draft)[draft.level]

    def levels(self, draft: Draft) -> Sequence[PowerLevel]:
        """Return the power levels that a group may have, besides full power."""
        return self.gpus[self.pool(draft).gpu].levels

    def home(self, job: int) -> tuple[str, int] | None:
        """Return the location at which a job runs now, and the number of its pool."""
        place = self.instance.location_of.get(self.jobs[job].id)
        if place is None:
            return None
        return place.id, self._pool_of[place.nodes]

    def is_moved(self, job: int, draft: Draft) -> bool:
        """Tell whether a job runs now, and the group has other GPUs."""
        place = self.instance.location_of.get(self.jobs[job].id)
        return place is not None and place.id != draft.location

    def mix(self, draft: Draft) -> TypeMix:
        """Return how the jobs of a group get on."""
        return self.side_by_side(self.pool(draft).gpu, [self.jobs[n].type for n in draft.jobs])

    def memory_gb(self, draft: Draft) -> float:
        """Return the memory that a group takes on each of its GPUs."""
        return sum(self.types[self.jobs[n].type].memory_gb for n in draft.jobs)

    def side_by_side(self, gpu: str, types: Sequence[str]) -> TypeMix:
        """Return how jobs of some types get on, on GPUs of one type."""
        key = (gpu, *sorted(types))
        if key not in self._mixes:
            self._mixes[key] = self._mix(gpu, key[1:])
        return self._mixes[key]

    def _mix(self, gpu: str, types: tuple[str, ...]) -> TypeMix:
        table = self.instance.rates[gpu]
        rates = table.of(types)
        if not rates.fits:
            return TypeMix(False, rates.is_known, {}, {}, 0.0, 0.0)
        busy = table.busy(types)
        watts = table.gpu_w(types, self.gpus[gpu].power, busy)
        speeds = {name: float(rate) for name, rate in rates.by_type.items()}
        may_share = len(types) == 1 or self.figures.may_share(types, gpu)
        return TypeMix(may_share, True, rates.by_type, speeds, float(busy), float(watts))

    # --- rules --------------------------------------------------------------------------------

    def allowed(self, draft: Draft) -> bool:
        """Tell whether a group keeps every rule but those of the nodes and the cluster; exact."""
        if draft not in self._allowed:
            self._allowed[draft] = self._is_allowed(draft)
        return self._allowed[draft]

    def _is_allowed(self, draft: Draft) -> bool:
        jobs = [self.jobs[n] for n in draft.jobs]
        for n, job in zip(draft.jobs, jobs, strict=True):
            if job.gpus != jobs[0].gpus or draft.nodes not in self.hosts[n]:
                return False
        if draft.location is not None:
            inside = self.places[draft.location].jobs
            if not any(job.id in inside for job in jobs):
                return False
        mix = self.side_by_side(self.pool(draft).gpu, [job.type for job in jobs])
        return mix.may_share and all(self._bears(n, draft, mix) for n in draft.jobs)

    def _bears(self, n: int, draft: Draft, mix: TypeMix) -> bool:
        job, level, due = self.jobs[n], self.level(draft), self._due[n]
        if due is None and level is None:
            return job.max_slowdown is None or mix.bears(job.type, job.max_slowdown)
        rate = mix.rates[job.type] * (Fraction(level.rate) if level else 1)
        if job.max_slowdown is not None and rate * Fraction(job.max_slowdown) < 1:
            return False
        return due is None or self._work(n, draft.nodes, self.is_moved(n, draft)) <= rate * due

    @cached_property
    def staying(self) -> list[int]:
        """The running jobs that must stay: alone elsewhere they would end too late."""
        return [
            n
            for n, due in enumerate(self._due)
            if due is not None
            and self.home(n) is not None
            and all(self._work(n, pool, True) > due for pool in self.hosts[n])
        ]

    def _hosts(self, job: Job) -> list[int]:
        """Return the pools on which a job fits alone, those with the fastest GPUs first."""
        speeds = self.types[job.type].speeds
        fitting = [n for n, pool in enumerate(self.nodes) if self.figures.fits_alone(job, pool)]
        return sorted(fitting, key=lambda n: -speeds.get(self.nodes[n].gpu, 1.0))

    def _work(self, n: int, pool: int, is_moved: bool) -> Fraction:
        key = (n, pool, is_moved)
        if key not in self._works:
            self._works[key] = self.figures.work_s(
                self.jobs[n], self.nodes[pool], is_moved=is_moved
            )
        return self._works[key]

    # --- costs --------------------------------------------------------------------------------

    def work_s(self, n: int, draft: Draft) -> float:
        """Return the seconds that a job would take alone at full power where the group is."""
        return float(self._work(n, draft.nodes, self.is_moved(n, draft)))

    def gpu_w(self, draft: Draft, mix: TypeMix) -> float:
        """Return the watts of each GPU of a group while some of its jobs run."""
        level = self.level(draft)
        return mix.gpu_w if level is None else min(mix.gpu_w * level.power, level.limit_w)

    def cost(self, draft: Draft) -> float:
        """Return what a group adds to the objective, before prices; without the cost of nodes.

        In kWh; for the objective 'eaco' in its own unit.
        """
        if draft not in self._costs:
            self._costs[draft] = self._cost(draft)
        return self._costs[draft]

    def _cost(self, draft: Draft) -> float:
        instance = self.instance
        if instance.objective == "epoch":
            return self._epoch_j(draft) / JOULES_PER_KWH
        energy = self.joules(draft) / JOULES_PER_KWH
        if instance.objective == "run-to-completion":
            return energy
        weight = instance.energy_weight or 0.0
        return weight * energy + (1 - weight) * self._hours(draft) / len(self.jobs)

    def joules(self, draft: Draft) -> float:
        """Return the joules of a group with its share of the node, until its last job ends."""
        node = self.pool(draft)
        share = (node.power.base_w - node.power.sleep_w) / node.gpus
        phases = self.phases(draft)
        return self.gang(draft) * sum(seconds * (watts + share) for seconds, watts in phases)

    def phases(self, draft: Draft) -> Iterator[tuple[float, float]]:
        """Yield seconds and watts of each GPU, phase by phase."""
        level, gpu = self.level(draft), self.pool(draft).gpu
        types = [self.jobs[n].type for n in draft.jobs]
        works = [self.work_s(n, draft) for n in draft.jobs]
        factor = 1.0 if level is None else level.rate
        for seconds, mix in phases_of(partial(self.side_by_side, gpu), types, works, factor):
            yield seconds, self.gpu_w(draft, mix)

    def peak_w(self, draft: Draft) -> float:
        """Return the greatest watts of each GPU of a group in any phase."""
        return max(watts for _, watts in self.phases(draft))

    def waiting_cost(self, n: int) -> float:
        """Return what a job that waits adds to the objective, before prices."""
        penalty = self.jobs[n].waiting_penalty_kwh or 0.0
        if self.instance.objective == "epoch":
            return penalty
        return penalty + min(self.joules(Draft((n,), p)) for p in self.hosts[n]) / JOULES_PER_KWH

    def _epoch_j(self, draft: Draft) -> float:
        """Return the joules of a group's GPUs in an epoch, less what the work is worth."""
        seconds, mix, level = self.instance.epoch_s or 0.0, self.mix(draft), self.level(draft)
        joules = seconds * self.gang(draft) * self.gpu_w(draft, mix)
        for n in draft.jobs:
            job = self.jobs[n]
            rate = mix.speeds[job.type] * (1.0 if level is None else level.rate)
            moving = job.migration_s if self.is_moved(n, draft) else 0.0
            speed = self.types[job.type].speeds.get(self.pool(draft).gpu, 1.0)
            joules -= self._credit_w(n) * speed * (seconds * rate - moving)
        return joules

    def _credit_w(self, n: int) -> float:
        job = self.jobs[n]
        if job.work_credit_w is not None:
            return job.work_credit_w
        home = self.home(n)
        stay = home[0] if home else None  # not moved, wherever it is
        return min(self.joules(Draft((n,), pool, stay)) for pool in self.hosts[n]) / job.work_s

    def _hours(self, draft: Draft) -> float:
        mix, level, gpu = self.mix(draft), self.level(draft), self.pool(draft).gpu
        hours = 0.0
        for job in (self.jobs[n] for n in draft.jobs):
            rate = mix.speeds[job.type] * (1.0 if level is None else level.rate)
            speed = self.types[job.type].speeds.get(gpu, 1.0)
            hours += (job.training_epoch_s or 0.0) / (rate * speed) / 3600
        return hours
