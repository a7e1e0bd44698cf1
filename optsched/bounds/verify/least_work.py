"""What each job must hold at least, as the verifiers of energy and cost read it for themselves.

Plainer, and never more, than what the relaxation reads: overheads, delays and rounds are left out,
and a gang is as fast as on so many of the best GPUs, wherever they are.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from optsched.bounds.places import speedup_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.bounds.schedules import Schedules
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

PPB: Final = 1_000_000_000
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


class _Speeds(NamedTuple):
    """Of a model and a demand: seconds, and GPU-seconds, for each unit of work; least width."""

    time: Fraction
    gpu_time: Fraction
    width: int


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
        self._known: dict[tuple[str, int, Fraction], _Speeds] = {}

    def all(self) -> list[LeastWork]:
        """Return what each job of the trace needs."""
        return [self._of(job) for job in range(len(self._trace))]

    def _of(self, job: int) -> LeastWork:
        trace, name = self._trace, self._trace.model[job]
        demand, least_rate = int(trace.gpus[job]), self._least_rate[job]
        key = (name, demand, least_rate)
        if key not in self._known:
            self._known[key] = self._speeds(self._scenario.models.get(name), demand, least_rate)
        speeds = self._known[key]
        work = max(0, int(trace.run_us[job]) * PPB - 100)  # phases are rounded to whole units
        run, held = work * speeds.time, work * speeds.gpu_time
        if job not in trace.failures:
            return LeastWork(run, held)
        ways = self._ways(job, run, held, speeds.width * least_rate)
        return LeastWork(min(way.time_us for way in ways), min(way.gpu_us for way in ways))

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

    def _speeds(self, model: Model | None, demand: int, least_rate: Fraction) -> _Speeds:
        """Return the least time, and GPU time, of a unit of work, and the least width.

        A rate of the engine is a whole number of parts per billion, and at least one of them.
        """
        rounding = 2 / least_rate
        if model is None or not model.phases:
            rate = self._fastest(model, demand) * PPB + rounding
            return _Speeds(1 / rate, demand / rate, demand)
        widths = {demand, *(k for phase in model.phases for k in phase.curve.widths)}
        usable = [k for k in sorted(widths) if k <= self._gpus]
        if not usable:
            return _Speeds(Fraction(0), Fraction(0), demand)
        place = {k: self._fastest(model, k) for k in usable}
        own = [speedup_at(phase.curve, demand) for phase in model.phases]
        times = [Fraction(p.work_gpu_s) / s for p, s in zip(model.phases, own, strict=True)]
        time = gpu_time = Fraction(0)
        for phase, speed, span in zip(model.phases, own, times, strict=True):
            share = span / sum(times) / OUTWARD
            rates = {
                k: speedup_at(phase.curve, k) / speed * place[k] * OUTWARD * PPB + rounding
                for k in usable
            }
            time += share / max(rates.values())
            gpu_time += share * min(k / rate for k, rate in rates.items())
        return _Speeds(time, gpu_time, usable[0])

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
    groups = () if isinstance(scenario.nodes, int) or scenario.nodes is None else scenario.nodes
    together = Counter[str | None]()
    for group in groups:
        together[group.domain] += group.count * group.gpus
    if any(group.domain is not None for group in groups):
        largest.insert(1, max(together.values()))
    return largest
