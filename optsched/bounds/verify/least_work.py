"""What each job must hold at least, as the verifiers of energy and cost read it for themselves.

Plainer, and never more, than what the relaxation reads: delays and rounds are left out, and a gang
is as fast as on so many of the best GPUs, wherever they are.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from optsched.bounds.places import speedup_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.bounds.schedules import Schedules
    from optsched.bounds.verify.groups import Group, JobTypes
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

PPB: Final = 1_000_000_000
US: Final = 1_000_000
FAILED: Final = 2
OUTWARD: Final = 1 + Fraction(1, 10**12)
"""More than what floats can lose in the products of a rate."""


class LeastWork(NamedTuple):
    """What a job needs at least, in whatever way it ends; microseconds, and GPU-microseconds.

    Attributes
    ----------
    time_us
        From its submission to its end.
    gpu_us
        Integral of GPUs held x the job's rate beside others on them.
    """

    time_us: Fraction
    gpu_us: Fraction


class Speeds(NamedTuple):
    """How fast a job can be: of each phase its share of the work, and by width its greatest rate.

    Attributes
    ----------
    phases
        Rates are parts of work per microsecond.
    overhead_us
        The least between holding GPUs, or another number of them, and getting on.
    """

    phases: tuple[tuple[Fraction, dict[int, Fraction]], ...]
    overhead_us: int

    @property
    def time(self) -> Fraction:
        """The least microseconds for a part of work."""
        return sum((share / max(rates.values()) for share, rates in self.phases), Fraction(0))

    @property
    def gpu_time(self) -> Fraction:
        """The least GPU-microseconds for a part of work."""
        least = (share * min(k / r for k, r in rates.items()) for share, rates in self.phases)
        return sum(least, Fraction(0))

    @property
    def width(self) -> int:
        """The least width."""
        return min((min(rates) for _, rates in self.phases), default=1)


class WorkReader:
    """Reads what jobs of a trace need at least in a scenario.

    Parameters
    ----------
    least_rate
        By job the least rate that it can have beside others.
    """

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace,
        schedules: Schedules,
        least_rate: Sequence[Fraction],
    ) -> None:
        self._scenario, self._trace, self._schedules = scenario, trace, schedules
        self._least_rate = least_rate
        self._gpus = scenario.gpus
        self._largest = largest_domains(scenario)
        self._known: dict[tuple[str, int, Fraction], tuple[Speeds, Fraction, Fraction]] = {}

    def all(self) -> list[LeastWork]:
        """Return what each job of the trace needs."""
        return [self.of(job) for job in range(len(self._trace))]

    def of(self, job: int) -> LeastWork:
        """Return what a job needs."""
        speeds, time, gpu_time = self._read(job)
        share = speeds.width * self._least_rate[job]
        run = self.work(job) * time + speeds.overhead_us
        held = self.work(job) * gpu_time + speeds.overhead_us * share
        if job not in self._trace.failures:
            return LeastWork(run, held)
        ways = self._ways(job, run, held, share)
        return LeastWork(min(way.time_us for way in ways), min(way.gpu_us for way in ways))

    def speeds(self, job: int) -> Speeds:
        """Return how fast a job can be."""
        return self._read(job)[0]

    def work(self, job: int) -> int:
        """Return the parts of a job's work, less what rounds its phases to whole parts."""
        return max(0, int(self._trace.run_us[job]) * PPB - 100)

    def _read(self, job: int) -> tuple[Speeds, Fraction, Fraction]:
        name, demand = self._trace.model[job], int(self._trace.gpus[job])
        key = (name, demand, self._least_rate[job])
        if key not in self._known:
            model = self._scenario.models.get(name)
            phases = tuple(self._phases(model, demand, self._least_rate[job]))
            speeds = Speeds(phases, self._overhead_us(model))
            self._known[key] = (speeds, speeds.time, speeds.gpu_time)
        return self._known[key]

    def _ways(self, job: int, run: Fraction, held: Fraction, share: Fraction) -> list[LeastWork]:
        """Return what is behind a job at each end that it can have, by its failures before.

        A failing attempt holds the least width for as long as it lasts. Checkpoints, or a trial on
        one GPU, may take it into the work; without them it is redone.
        """
        limits, failures = dict(self._scenario.retries.limits), self._trace.failures[job]
        keeps = self._scenario.costs.checkpoint_every_s is not None
        ways, lost, seen = [], 0, Counter[str]()
        for n, failure in enumerate(failures, start=1):
            if keeps or run <= failure.run_us:
                ways.append(self._passed(run, held, lost, share))
            lost += failure.run_us
            seen[failure.reason] += 1
            over = seen[failure.reason] > limits.get(failure.reason, len(failures))
            over |= n == len(failures) and int(self._trace.status[job]) == FAILED
            if over or self._schedules.gives_up:
                gpu_us = Fraction(0) if self._schedules.trials else lost * share
                ways.append(LeastWork(Fraction(lost), gpu_us))
            if over:
                return ways
        return [*ways, self._passed(run, held, lost, share)]

    def _passed(self, run: Fraction, held: Fraction, lost: int, share: Fraction) -> LeastWork:
        taken = Fraction(0) if self._schedules.trials else lost * share
        if self._scenario.costs.checkpoint_every_s is not None:
            return LeastWork(max(run, Fraction(lost)), max(held, taken))
        return LeastWork(run + lost, held + taken)

    def _phases(
        self, model: Model | None, demand: int, least_rate: Fraction
    ) -> Iterator[tuple[Fraction, dict[int, Fraction]]]:
        """Yield the phases of `Speeds`.

        A rate of the engine is a whole number of parts per billion, and at least one of them.
        """
        rounding = 2 / least_rate
        if model is None or not model.phases:
            yield Fraction(1), {demand: self._fastest(model, demand) * PPB + rounding}
            return
        widths = {demand, *(k for phase in model.phases for k in phase.curve.widths)}
        usable = [k for k in sorted(widths) if k <= self._gpus]
        place = {k: self._fastest(model, k) * OUTWARD * PPB for k in usable}
        own = [speedup_at(phase.curve, demand) for phase in model.phases]
        times = [Fraction(p.work_gpu_s) / s for p, s in zip(model.phases, own, strict=True)]
        whole = sum(times) * OUTWARD
        for phase, speed, span in zip(model.phases, own, times, strict=True):
            rates = {k: speedup_at(phase.curve, k) / speed * place[k] + rounding for k in usable}
            if rates:
                yield span / whole, rates

    def _overhead_us(self, model: Model | None) -> int:
        """Return the least overhead of a start or a change of width.

        A move right after it leaves only its own.
        """
        costs, own = self._scenario.costs, None if model is None else model.rescale_s
        seconds = [costs.start_s, costs.restore_s] if own is None else [own]
        if own is None and model is not None and model.phases:
            seconds.append(costs.rescale_s)
        if self._schedules.moves:
            seconds.append(costs.restore_s + costs.checkpoint_s)
        return max(0, round(min(seconds) * US) - 1)

    def _fastest(self, model: Model | None, width: int) -> Fraction:
        """Return a speed that no gang of a model exceeds, over that of the reference."""
        scenario, slow = self._scenario, Fraction(1)
        name = None if model is None else model.application_class
        if scenario.profile is not None and name is not None:
            slowdowns = sorted(float(value) for value in scenario.profile.slowdown[name])
            slow = Fraction(slowdowns[min(width, len(slowdowns)) - 1])
        if scenario.events is not None and scenario.events.application_class in (None, name):
            slow *= min(Fraction(1), Fraction(scenario.events.factor[0]))
        locality = (model.locality if model is not None else ()) or scenario.locality
        far = [
            Fraction(f) for f, gpus in zip(locality, self._largest, strict=False) if gpus >= width
        ]
        distance = min(far, default=Fraction(1)) if scenario.reference_place == "one-node" else 1
        return OUTWARD / (slow * distance)


def largest_domains(scenario: Scenario) -> list[int]:
    """Return by level from the node up how many GPUs its largest domain has."""
    topology = scenario.topology
    if topology is not None:
        return [max(Counter(level).values()) for level in topology.ancestors.T.tolist()]
    sizes = scenario.node_sizes
    largest = [max(sizes), sum(sizes)]
    together = Counter[str | None]()
    for group in scenario.node_groups:
        together[group.domain] += group.count * group.gpus
    if any(group.domain is not None for group in scenario.node_groups):
        largest.insert(1, max(together.values()))
    return largest


def least_rates(groups: Sequence[Group], types: JobTypes) -> list[Fraction]:
    """Return by job the least rate of its type in any group; never 0, for such groups are none."""
    least = [Fraction(1)] * len(types.names)
    for group in groups:
        for number, rate in zip(group.types, group.rates, strict=True):
            least[number] = min(least[number], rate)
    return [least[number] for number in types.of_job]


def least_end_us(scenario: Scenario, trace: Trace, works: Sequence[LeastWork]) -> Fraction:
    """Return when the last job ends at least: alone, or with all that comes after it."""
    capacity = scenario.gpus * scenario.sharing.max_jobs_per_gpu
    latest = held = Fraction(0)
    late_first = sorted(
        zip(trace.submit_us.tolist(), works, strict=True), key=_moment, reverse=True
    )
    for submit, work in late_first:
        held += work.gpu_us
        latest = max(latest, submit + work.time_us, submit + held / capacity)
    return latest


def _moment(row: tuple[int, LeastWork]) -> int:
    return row[0]
