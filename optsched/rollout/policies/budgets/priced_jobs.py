"""Jobs at a price: their classes, how long each of them is, and its plans at prices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from pydantic import Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.priced_widths import (
    PricedPlan,
    Work,
    WorkOnTypes,
    billed,
    priced_plan,
)
from optsched.rollout.policies.budgets.streams import StreamOptions, StreamWidths
from optsched.rollout.policies.held_gpus import PLACEMENT, Placement
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.budgets.priced_widths import Held
    from optsched.rollout.scenario import Scenario

STEPS_OF_PRICE = 10  # of each factor e: prices are rounded to them, so that plans are kept
STEPS_OF_SIZE = 2  # of each factor 2
HOLES = 1.05  # GPUs billed per GPU that jobs hold of nodes that they share
DEAREST, CHEAPEST = 30, -90  # steps of prices, in seconds of JCT per GPU-second
UNKNOWN_S = 60.0  # run time of a job of a class that nothing is known of


class PricedOptions(StreamOptions):
    """How long jobs are taken to be."""

    placement: Placement = Field(
        default="lowest", description="Of clusters that are not rented: " + PLACEMENT
    )
    sizes: Literal["observed", "mean", "estimates"] = Field(
        default="observed",
        description="How long a job is: as its class on average, and from the end of its first "
        "phase on as that phase showed; always as its class; or as the oracle tells.",
    )


class LeastUse(NamedTuple):
    """Seconds, and GPU-seconds billed, of a job at its widths of least use."""

    seconds: float
    gpu_s: float


class Facts(NamedTuple):
    """What never changes of a job.

    Attributes
    ----------
    key
        Its class.
    last
        Its last phase.
    over
        The share of its run time that is over when each phase begins, then 1.
    work
        Of all phases, per second of its run time, at speedup 1.
    """

    key: known.Key
    last: int
    over: Sequence[float]
    work: float


class PricedJobs(StreamWidths):
    """Jobs with plans at prices, each as long as it is known to be.

    Attributes
    ----------
    step
        The price of the moment, in steps.
    scales
        By job, how much longer it is than the mean of its class.
    shown
        By job of which nobody knows that yet, how much longer it is on average, as it still runs.
    """

    changing: ClassVar[tuple[str, ...]] = (*StreamWidths.changing, "step", "scales", "shown")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: PricedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.sizes = options.sizes
        rented = scenario.rented
        self.provision_s = 0.0 if rented is None else rented.provision_s
        self.is_rented = rented is not None
        self.node_gpus = 1 if rented is None else self.held.cluster.largest
        self.step = 0
        self.scales: dict[int, float] = {}
        self.shown: dict[int, float] = {}
        self._plans: dict[tuple[known.Key, float, int], PricedPlan] = {}
        self._least: dict[known.Key, LeastUse] = {}
        self._facts: dict[int, Facts] = {}
        self._known_works: dict[known.Key, tuple[float, ...]] = {}
        self._totals: dict[known.Key, float] = {}

    def holding(self, job: int) -> Held:
        """Return what a job holds, in the words of plans."""
        return self.held.width(job)

    def renewed(self) -> None:
        """Forget plans for streams as they were."""
        self._plans.clear()
        self._least.clear()
        self._known_works.clear()
        self._totals.clear()

    def forget(self, job: int) -> None:
        """Let a job want nothing."""
        super().forget(job)
        self.scales.pop(job, None)
        self.shown.pop(job, None)
        self._facts.pop(job, None)

    def facts(self, view: View, job: int) -> Facts:
        """Return what never changes of a job."""
        facts = self._facts.get(job)
        if facts is None:
            own, curves = (view.model(job), view.demand(job)), self.curves
            last, work = len(curves.of(*own)) - 1, sum(curves.works(*own))
            facts = Facts(self.sums.key(*own), last, curves.marks(*own), work)
            self._facts[job] = facts
        return facts

    # --- how long jobs are --------------------------------------------------------------------

    def observe(self, view: View) -> None:
        """Learn from phases that ended how long their jobs are, from the last one, too."""
        if self.sizes != "observed":
            return
        for job in view.advanced:
            self._size(view, job, self.facts(view, job).over[self.phase(view, job)])
        for job in view.ended:
            if job not in self.scales:
                self._size(view, job, 1.0)

    def _size(self, view: View, job: int, over: float) -> None:
        """Take note of how long a job is, of which such a share is over."""
        if job in self.held.of and over > 0:
            run_s = float(view.done_us([job])[0]) / US / over
            self.scales[job] = self._ratio(view, job, run_s)

    def overdue(self, view: View) -> list[int]:
        """Return jobs that are longer than was known: exponential ones have a mean one left."""
        if self.sizes != "observed":
            return []
        jobs = [job for job in self.held.of if job not in self.scales]
        found = []
        for job, done_us in zip(jobs, view.done_us(jobs).tolist() if jobs else (), strict=True):
            over = self.facts(view, job).over[self.phase(view, job) + 1]
            ratio = 1.0 + (self._ratio(view, job, done_us / US / over) if done_us else 0.0)
            if ratio > self.shown.get(job, 1.0):
                self.shown[job] = ratio
                found.append(job)
        return found

    def scale(self, view: View, job: int) -> float:
        """Return how much longer than the mean of its class a job is."""
        if self.sizes == "estimates" and job not in self.scales:
            run_s = float(view.remaining_us([job])[0]) / US
            self.scales[job] = self._ratio(view, job, run_s)
        return self.scales.get(job) or self.shown.get(job, 1.0)

    def _ratio(self, view: View, job: int, run_s: float) -> float:
        facts = self.facts(view, job)
        ratio = run_s * facts.work / self._total_work(facts.key) if run_s > 0 else 1.0
        return min(max(ratio, 1e-3), 1e3)

    # --- plans --------------------------------------------------------------------------------

    def phase(self, view: View, job: int) -> int:
        """Return the phase of a job, the last one if all its work is done."""
        return min(view.phase(job), self.facts(view, job).last)

    def key(self, view: View, job: int) -> known.Key:
        """Return the class of a job."""
        return self.facts(view, job).key

    def plan(self, view: View, job: int) -> PricedPlan:
        """Return the plan of a job at the price of the moment."""
        return self.plan_at(self.key(view, job), rounded(self.scale(view, job)), self.step)

    def plan_at(self, key: known.Key, scale: float, step: int) -> PricedPlan:
        """Return the plan of a class at a price."""
        named = (key, scale, step)
        if named not in self._plans:
            price = math.exp(step / STEPS_OF_PRICE)
            self._plans[named] = priced_plan(self.work(key, scale), price)
        return self._plans[named]

    def work(self, key: known.Key, scale: float) -> Work | WorkOnTypes:
        """Return what a job of a class does that is so much longer than the mean of its class."""
        rescale_s = known.rescale_s(self.scenario, key[0])
        curves, works = self.curves.of(*key), self.scaled(key, scale)
        return Work(works, curves, rescale_s, self.provision_s, self.node_gpus, HOLES)

    def scaled(self, key: known.Key, scale: float) -> tuple[float, ...]:
        """Return the works of a class, so much longer than they are on average."""
        return tuple(work * scale for work in self._works(key))

    def least_use(self, key: known.Key) -> LeastUse:
        """Return what the mean job of a class takes at its widths of least use."""
        if key not in self._least:
            seconds = gpu_s = 0.0
            for work, (rent, speed) in zip(self._works(key), self.cheapest(key), strict=True):
                seconds += work / speed
                gpu_s += rent * work / speed
            self._least[key] = LeastUse(seconds, gpu_s)
        return self._least[key]

    def cheapest(self, key: known.Key) -> list[tuple[float, float]]:
        """Return by phase of a class what its width of least use is billed, and how fast it is."""
        found: list[tuple[float, float]] = []
        for curve in self.curves.of(*key):
            gpus = known.cheapest(curve.gpus, curve.speed)
            found.append((gpus, curve.speed_at(gpus)))
        return found

    def _works(self, key: known.Key) -> tuple[float, ...]:
        """Return the works of a class; of one that nobody has seen yet, those that it declares."""
        works = self._known_works.get(key)
        if works is None:
            works = self._known_works[key] = self._told_works(key)
        return works

    def _total_work(self, key: known.Key) -> float:
        total = self._totals.get(key)
        if total is None:
            total = self._totals[key] = sum(self._works(key))
        return total

    def _told_works(self, key: known.Key) -> tuple[float, ...]:
        stream = self.streams.get(key)
        if stream is not None:
            return tuple(max(work, known.LEAST_WORK_S) for work in stream.works_s)
        declared = self.curves.phases(key[0])
        if declared:
            return tuple(phase.work_gpu_s for phase in declared)
        return tuple(UNKNOWN_S * work for work in self.curves.works(*key))

    # --- what is left -------------------------------------------------------------------------

    def left_of_phases(self, view: View) -> dict[int, float]:
        """Return by running job the share of its phase that is still to be done."""
        jobs = list(self.held.of)
        left = {}
        for job, done_us in zip(jobs, view.done_us(jobs).tolist() if jobs else (), strict=True):
            facts = self.facts(view, job)
            phase, over = self.phase(view, job), facts.over
            run_s = self.scale(view, job) * self._total_work(facts.key) / facts.work
            rest = over[phase + 1] - done_us / US / run_s
            left[job] = min(max(rest / max(over[phase + 1] - over[phase], 1e-12), 0.0), 1.0)
        return left

    def phase_s(self, view: View, job: int, width: int) -> float:
        """Return the seconds of a whole phase, the one in which a job is, at a width or below."""
        curve = self.curve(view, job)  # of the type that it holds, where there are several
        speed = curve.speed_at(max(curve.at_most(width), curve.least))
        work = self._works(self.key(view, job))[self.phase(view, job)]
        return work * self.scale(view, job) / speed

    def rest_cost(
        self, view: View, job: int, left: float, width: int, overhead_s: float = 0.0
    ) -> float:
        """Return what the rest of a job costs at the price of the moment, in seconds.

        That is its time + price x GPU time billed, if it has `left` of its phase to do at a width
        that its GPUs are ready for, and goes on as planned.
        """
        phase, plan = self.phase(view, job), self.plan(view, job)
        run_s = left * self.phase_s(view, job, width) + overhead_s
        rate = 1 + self.mu * billed(width, self.node_gpus, HOLES)
        return rate * run_s + float(plan.cost[phase + 1, plan.place(width)])

    @property
    def mu(self) -> float:
        """The price of the moment."""
        return math.exp(self.step / STEPS_OF_PRICE)

    def gap_s(self) -> float:
        """Return the mean time between two arrivals."""
        rate_per_h = sum(stream.rate_per_h for stream in self.streams.values())
        return 3600 / rate_per_h if rate_per_h else 0.0


def rounded(scale: float) -> float:
    """Return a scale that few jobs differ in, so that plans are kept; bills are of the true one."""
    return float(2.0 ** (round(STEPS_OF_SIZE * math.log2(scale)) / STEPS_OF_SIZE))
