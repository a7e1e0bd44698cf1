"""What BOA has to know of a stream of jobs: arrival rates and mean works, known or learnt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.boa.instance import BoaInstance, JobClass, Phase, Table
from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.physics.beliefs import factor
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from optsched.boa.plan import BoaPlan
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curves
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.scenario_parts import Beliefs
    from optsched.traces.trace import Trace

Key = tuple[str, int]
LEAST_WORK_S = 1e-6


class Stream(NamedTuple):
    """Jobs of one class: their arrival rate and the mean work of each phase.

    `works_s` in seconds on a GPU of speedup 1, as `Phase.work_gpu_s`.
    """

    rate_per_h: float
    works_s: tuple[float, ...]


class Sums(Restorable):
    """Arrivals and works of classes, added up job by job.

    Jobs of a model with phases are one class, whatever they ask for; of other models and gang sizes
    each is a class of its own, whose width is fixed.
    """

    changing = ("counts", "_works")

    def __init__(self, curves: Curves) -> None:
        self.curves = curves
        self.counts: dict[Key, int] = {}
        self._works: dict[Key, list[float]] = {}

    def key(self, model: str, demand: int) -> Key:
        """Return the class of a job."""
        return (model, 0) if self.curves.phases(model) else (model, demand)

    def add(self, model: str, demand: int, run_s: float) -> None:
        """Count a job; an unknown run time (NaN) is what its model declares, or a minute."""
        if math.isnan(run_s):
            usual = self.curves.usual_run_s(model, demand)
            run_s = 60.0 if math.isnan(usual) else usual
        key = self.key(model, demand)
        works = self.curves.works(model, demand)
        total = self._works.setdefault(key, [0.0] * len(works))
        self.counts[key] = self.counts.get(key, 0) + 1
        for phase, work in enumerate(works):
            total[phase] += work * run_s

    def streams(self, seconds: float) -> dict[Key, Stream]:
        """Return the streams, if all came within so many seconds."""
        hours = max(seconds, 1.0) / 3600
        return {
            key: Stream(count / hours, tuple(work / count for work in self._works[key]))
            for key, count in sorted(self.counts.items())
        }


def of_trace(trace: Trace, curves: Curves) -> dict[Key, Stream]:
    """Return the streams of a trace: jobs over the time of the last arrival.

    Source: arrival rates of the BOA authors' code, Li-Zhouzi/adaptdl, _configs.py.
    """
    sums = Sums(curves)
    for model, demand, run_us in zip(
        trace.model, trace.gpus.tolist(), trace.run_us.tolist(), strict=True
    ):
        sums.add(model, demand, run_us / US)
    return sums.streams(int(trace.submit_us[-1]) / US if len(trace) else 0.0)


def with_errors(streams: Mapping[Key, Stream], beliefs: Beliefs, seed: int) -> dict[Key, Stream]:
    """Return streams as they are believed: a draw for each class's rate and one for its works."""
    told = {}
    for (model, demand), stream in streams.items():
        of_rate, of_work = (
            factor(sigma, seed, name, model, str(demand))
            for name, sigma in (("arrivals", beliefs.arrivals), ("works", beliefs.works))
        )
        works = tuple(work * of_work for work in stream.works_s)
        told[model, demand] = Stream(stream.rate_per_h * of_rate, works)
    return told


def of_instance(name: str, curves: Curves) -> dict[Key, Stream]:
    """Return the streams of a BOA instance; ids of its classes are models of the scenario.

    Raises
    ------
    ValueError
        If it is of another problem, or its classes do not match the scenario's models.
    """
    from optsched.instance import read

    instance: Any = read(name)
    if not isinstance(instance, BoaInstance):
        raise ValueError(f"rates: '{name}' is no instance of BOA")
    for job_class in instance.classes:
        if len(curves.phases(job_class.id)) != len(job_class.phases):
            text = f"has {len(job_class.phases)} phases there, not as many in the scenario"
            raise ValueError(f"rates: class '{job_class.id}' of '{name}' {text}")
    return {
        (c.id, 0): Stream(c.arrival_rate_per_h, tuple(p.work_gpu_s for p in c.phases))
        for c in instance.classes
    }


class History(Restorable):
    """Streams as they were seen so far: arrivals until now, works as the oracle told them."""

    changing = ("sums",)

    def __init__(self, curves: Curves) -> None:
        self.sums = Sums(curves)

    def arrive(self, view: View, job: int) -> None:
        """Take note of a job at its arrival."""
        run_s = float(view.remaining_us([job])[0]) / US
        self.sums.add(view.model(job), view.demand(job), run_s)

    def streams(self, now_us: int) -> dict[Key, Stream]:
        """Return the streams until now."""
        return self.sums.streams(now_us / US)


def instance_of(
    scenario: Scenario, curves: Curves, streams: Mapping[Key, Stream], budget: float, widths: str
) -> BoaInstance:
    """Return the BOA instance of some streams; a class for each, in the same order."""
    classes = tuple(_job_class(scenario, curves, key, stream) for key, stream in streams.items())
    return BoaInstance(name="rollout", budget_gpus=budget, widths=widths, classes=classes)


def rescale_s(scenario: Scenario, model: str) -> float:
    """Return the seconds that a job of a model loses at a start or change of width."""
    known = scenario.models.get(model)
    if known is None or not known.phases:
        return scenario.costs.start_s
    return scenario.costs.rescale_s if known.rescale_s is None else known.rescale_s


def _job_class(scenario: Scenario, curves: Curves, key: Key, stream: Stream) -> JobClass:
    model, demand = key
    phases = tuple(
        Phase(
            work_gpu_s=max(work, LEAST_WORK_S),
            speedup=Table(gpus=curve.gpus, speedup=curve.speed),
        )
        for work, curve in zip(stream.works_s, curves.of(model, demand), strict=True)
    )
    return JobClass(
        id=f"{model} x{demand}" if demand else model or "?",
        arrival_rate_per_h=stream.rate_per_h,
        rescale_s=rescale_s(scenario, model),
        phases=phases,
    )


Widths = dict[Key, tuple[tuple[float, tuple[int, ...]], ...]]


def widths_of(streams: Mapping[Key, Stream], plan: BoaPlan) -> Widths:
    """Return by class the width sequences of a plan, each with the share of jobs up to it."""
    widths: Widths = {}
    for key, planned in zip(streams, plan.classes, strict=True):
        upto, rows = 0.0, []
        for sequence in planned.sequences:
            upto += sequence.share
            rows.append((upto, tuple(int(width) for width in sequence.gpus)))
        widths[key] = tuple(rows)
    return widths


def least_use(streams: Iterable[Key], curves: Curves) -> Widths:
    """Return the widths that take the least GPU time: what is left if the budget is too small."""
    return {
        (model, demand): (
            (1.0, tuple(cheapest(c.gpus, c.speed) for c in curves.of(model, demand))),
        )
        for model, demand in streams
    }


def cheapest(gpus: tuple[int, ...], speed: tuple[float, ...]) -> int:
    """Return the width that takes the least GPU time per unit of work."""
    return min(zip(gpus, speed, strict=True), key=lambda pair: (pair[0] / pair[1], pair[0]))[0]
