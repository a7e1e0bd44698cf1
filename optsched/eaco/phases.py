"""The judge of EaCO: lower bounds on what a group costs, by its phases, in fixed-point integers."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.energy import JOULES_PER_KWH, Book
from optsched.eaco.plan import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.eaco.instance import EacoInstance, Job, Nodes, PowerLevel

BITS = 96
ONE = 1 << BITS
SLACK = 50  # a figure is lowered by 2**-50 of it; what is computed is right to 2**-80
TIE = 60  # jobs that end within 2**-60 of a phase end together
INSTANT = 40  # a phase shorter than 2**-40 of the run does not count for the greatest watts


class Pace(NamedTuple):
    """How jobs of some types run side by side at full power: rates by type, and watts."""

    rates: dict[str, int]
    utilisation: int
    watts: int


class Run(NamedTuple):
    """A group's run: joules and seconds of one GPU, watts at first and at most, rates at first."""

    joules: int
    seconds: int
    first_w: int
    greatest_w: int
    rates: dict[str, int]


def fixed(value: float | Fraction) -> int:
    """Return a number as a multiple of 2**-96, rounded down."""
    exact = Fraction(value)
    return exact.numerator * ONE // exact.denominator


class Costs:
    """Least costs of groups, in multiples of 2**-96 of the unit of the objective."""

    def __init__(self, instance: EacoInstance, book: Book) -> None:
        self.instance, self.book = instance, book
        weight = Fraction(1)
        if instance.objective == "eaco":
            weight = Fraction(instance.energy_weight or 0)
        self._per_j = weight * instance.per_kwh / JOULES_PER_KWH
        self._all_known = instance.interference.fallback == "utilisation"
        self._levels: dict[int, tuple[int, int, int]] = {}
        self._works: dict[tuple[str, str, bool], int] = {}
        self._share = {n.id: fixed(book.node_share_w(n)) for n in instance.nodes}
        self._bare = {g.id: fixed(g.power.bare_w) for g in instance.gpu_types}

    def least(
        self,
        jobs: Sequence[Job],
        nodes: Nodes,
        level: PowerLevel | None,
        place: str | None,
        pace: Callable[[tuple[str, ...]], Pace | None],
    ) -> tuple[int, int]:
        """Return lower bounds on the cost of a group, and on its watts above those of bare GPUs."""
        location = self.instance.location_of
        moved = (
            [job.id in location and location[job.id].id != place for job in jobs]
            if location
            else [False] * len(jobs)
        )
        run = self._run(jobs, moved, nodes, level, pace)
        if run is None:
            run = self._exactly(jobs, nodes, level, place)
        gang = jobs[0].gpus
        watts = gang * (run.greatest_w - (run.greatest_w >> SLACK) - self._bare[nodes.gpu] - 1)
        if self.instance.objective == "epoch":
            return self._epoch(jobs, moved, nodes, run), watts
        joules = gang * (run.joules + (self._share[nodes.id] * run.seconds >> BITS))
        cost = joules * self._per_j.numerator // self._per_j.denominator
        if self.instance.objective == "eaco":
            cost += self._hours(jobs, nodes, run)
        return cost - (cost >> SLACK) - 1, watts

    def work(self, job: Job, gpu: str, *, moved: bool) -> int:
        """Return the seconds that a job takes alone at full power."""
        key = (job.id, gpu, moved)
        if key not in self._works:
            speed = Fraction(self.book.types[job.type].speeds.get(gpu, 1.0))
            exact = Fraction(job.work_s) / speed + (Fraction(job.migration_s) if moved else 0)
            self._works[key] = fixed(exact)
        return self._works[key]

    def _epoch(self, jobs: Sequence[Job], moved: list[bool], nodes: Nodes, run: Run) -> int:
        """Return the cost of an epoch, less what its work is worth."""
        seconds = fixed(self.instance.epoch_s or 0)
        drawn = jobs[0].gpus * (seconds * (run.first_w - self._bare[nodes.gpu]) >> BITS)
        worth = 0
        for job, is_moved in zip(jobs, moved, strict=True):
            done = seconds * run.rates[job.type] >> BITS
            if is_moved:
                done -= fixed(job.migration_s)
            value = self.book.credit_w(job) * self.book.speed(job, nodes)
            worth += done * value.numerator // value.denominator
        slack = (abs(drawn) + abs(worth) >> SLACK) + 1
        slack += fixed(self.instance.epoch_s or 0) * jobs[0].gpus * run.first_w >> (BITS + SLACK)
        joules = drawn - worth - slack
        return joules * self._per_j.numerator // self._per_j.denominator

    def _hours(self, jobs: Sequence[Job], nodes: Nodes, run: Run) -> int:
        """Return the weighted hours per training epoch."""
        total = 0
        for job in jobs:
            seconds = Fraction(job.training_epoch_s or 0) / self.book.speed(job, nodes)
            total += fixed(seconds) * ONE // run.rates[job.type]
        weight = (1 - Fraction(self.instance.energy_weight or 0)) / len(self.book.jobs) / 3600
        return total * weight.numerator // weight.denominator

    def _run(
        self,
        jobs: Sequence[Job],
        moved: list[bool],
        nodes: Nodes,
        level: PowerLevel | None,
        pace: Callable[[tuple[str, ...]], Pace | None],
    ) -> Run | None:
        """Follow the phases; None if two jobs end so near to each other that it may matter."""
        left = [
            (self.work(job, nodes.gpu, moved=m), job.type)
            for job, m in zip(jobs, moved, strict=True)
        ]
        joules = total = 0
        phases = []
        rates: dict[str, int] = {}
        watts, at_first = 0, None
        while left:
            found = pace(tuple(kind for _, kind in left))
            if found is not None:
                rates, watts = found.rates, found.watts
                if level is not None:
                    rates, watts = self._limited(rates, watts, level)
            times = [work * ONE // rates[kind] for work, kind in left]
            seconds = min(times)
            at_first = at_first or rates
            joules += seconds * watts >> BITS
            total += seconds
            phases.append((seconds, watts))
            until = seconds + (seconds >> TIE) + 1
            if not self._all_known:
                ended = {left[n] for n, time in enumerate(times) if time <= until}
                if len(ended) > 1:
                    return None
            left = [
                (work - (seconds * rates[kind] >> BITS), kind)
                for (work, kind), time in zip(left, times, strict=True)
                if time > until
            ]
        greatest = max(watts for seconds, watts in phases if seconds << INSTANT >= total)
        return Run(joules, total, phases[0][1], greatest, at_first or {})

    def _limited(
        self, rates: dict[str, int], watts: int, level: PowerLevel
    ) -> tuple[dict[str, int], int]:
        factor, power, limit = fixed(level.rate), fixed(level.power), fixed(level.limit_w)
        slower = {name: rate * factor >> BITS for name, rate in rates.items()}
        return slower, min(watts * power >> BITS, limit)

    def _exactly(
        self, jobs: Sequence[Job], nodes: Nodes, level: PowerLevel | None, place: str | None
    ) -> Run:
        """Follow the phases in fractions."""
        group = Group(
            jobs=tuple(job.id for job in jobs),
            nodes=nodes.id,
            level=None if level is None else level.id,
            location=place,
        )
        phases = self.book.phases(group)
        joules = sum((phase.seconds * phase.gpu_w for phase in phases), Fraction(0))
        seconds = sum((phase.seconds for phase in phases), Fraction(0))
        by_type = {self.book.jobs[name].type: fixed(r) for name, r in phases[0].rates.items()}
        greatest = max(phase.gpu_w for phase in phases)
        first = fixed(phases[0].gpu_w)
        return Run(fixed(joules), fixed(seconds), first, fixed(greatest), by_type)
