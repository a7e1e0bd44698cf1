"""BOA's policies: the stationary widths of the problem BOA, and widths by simpler rules.

Jobs hold what `Elastic` gives them; these say which width a job wants in each phase.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.elastic import Elastic, ElasticOptions
from optsched.rollout.policies.epoch_solver import recorded, solved
from optsched.rollout.policy_options import Count, Gap, Positive, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.width_curves import Curve
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


def _is_method(name: str) -> str:
    from optsched.registry import problem

    names = [method.name for method in problem("boa").methods]
    if name not in names:
        raise ValueError(", ".join(names))
    return name


class BoaOptions(ElasticOptions):
    """What BOA's widths are solved for, and how."""

    budget: Positive | None = Field(
        default=None, description="Time-average GPUs; null: the scenario's, else all its GPUs."
    )
    method: Annotated[str, AfterValidator(_is_method)] | None = Field(
        default=None,
        description="A method of BOA: the exact one if null; greedy ones are stationary rules too.",
    )
    rates: Annotated[str, Field(min_length=1)] = Field(
        default="trace",
        description="Where arrival rates and mean works are from: trace, all jobs of the "
        "rollout's trace, as the authors take them; history, the jobs so far; else a BOA instance.",
    )
    widths: Literal["integer", "mixed"] = Field(
        default="integer", description="mixed: a class may have two widths, drawn job by job."
    )
    every_s: Positive = Field(
        default=300.0,
        description="history: seconds between two solutions, which hold from a job's next phase.",
    )
    gap: Gap = Field(default=1e-3, description="Relative gap at which a search ends.")
    time_limit_s: Positive = Field(default=60.0, description="Of each search.")


class Boa(Elastic):
    """The stationary widths that the problem BOA gives for the stream of jobs (B0 of its theory).

    If not even the least use of GPUs keeps within the budget, jobs get the widths of least use.
    """

    changing: ClassVar[tuple[str, ...]] = (
        *Elastic.changing,
        "next_us",
        "table",
        "streams",
        "history",
        "_solves",
    )

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BoaOptions) -> None:
        super().__init__(name, scenario, options)
        self.seed = seed
        self.budget = options.budget or scenario.budget_gpus or float(scenario.gpus)
        self.method, self.widths = options.method, options.widths
        self.gap, self.time_limit_s = options.gap, options.time_limit_s
        self.every_us = round(options.every_s * US)
        self.next_us = 0
        self.table: known.Widths = {}
        self.streams: dict[known.Key, known.Stream] = {}
        self.history = known.History(self.curves) if options.rates == "history" else None
        self._rates = options.rates
        if options.rates not in ("trace", "history"):
            self.streams = known.of_instance(options.rates, self.curves)
        self._sums = known.Sums(self.curves)
        self._solves: list[SolveRecord] = []

    def prepare(self, trace: Trace) -> None:
        """Take the streams from the trace of the rollout, where they are to be from there."""
        if self._rates == "trace":
            self.streams = known.of_trace(trace, self.curves)

    def width(self, view: View, job: int) -> int:
        """Return the width that the table has for a job in its phase."""
        phases = self.sequence(view, job)
        return phases[min(view.phase(job), len(phases) - 1)]

    def sequence(self, view: View, job: int) -> tuple[int, ...]:
        """Return the widths of a job in all of its phases."""
        key = self._sums.key(view.model(job), view.demand(job))
        rows = self.table.get(key) or known.least_use([key], self.curves)[key]
        if len(rows) == 1:
            return rows[0][1]
        draw = random.Random(f"{self.seed}/{job}").random()
        return next((widths for upto, widths in rows if draw < upto), rows[-1][1])

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and learn from it."""
        if self.history is not None and not view.failures(job):
            self.history.arrive(view, job)
        if view.now_us >= self.next_us:
            self._renew(view.now_us)
        super().arrive(view, job)

    def refresh(self, view: View) -> list[SolveRecord]:
        """Return the solves since the last decision."""
        solves, self._solves = self._solves, []
        return solves

    def _renew(self, now_us: int) -> None:
        """Look at the streams again, and solve for the widths."""
        if self.history is not None:
            self.streams = self.history.streams(now_us)
            self.next_us = now_us + self.every_us
        else:
            self.next_us = 1 << 62
        self._solve()

    def _solve(self) -> None:
        from optsched.boa.plan import BoaPlan

        instance = known.instance_of(
            self.scenario, self.curves, self.streams, self.budget, self.widths
        )
        result = solved(instance, self.method, gap=self.gap, time_limit_s=self.time_limit_s)
        plan = result.plan
        self.table = known.least_use(self.streams, self.curves)
        if isinstance(plan, BoaPlan):
            self.table = known.widths_of(self.streams, plan)
        self._solves.append(recorded(instance, result))


class FixedOptions(ElasticOptions):
    """One width."""

    k: Count = Field(default=4, description="GPUs of every job.")


class FixedWidth(Elastic):
    """Every job k GPUs for life, or the largest width below k that its phase has, or its least.

    Source: the fixed-width policy "dummy" of the BOA authors' code, Li-Zhouzi/artifacts.
    """

    def __init__(self, name: str, scenario: Scenario, options: FixedOptions) -> None:
        super().__init__(name, scenario, options)
        self.k = options.k

    def width(self, view: View, job: int) -> int:
        """Return the width of a job."""
        curve = self.curve(view, job)
        return curve.at_most(self.k) or curve.least


class EfficiencyOptions(ElasticOptions):
    """One efficiency."""

    theta: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="Least speedup per GPU, as a share of the best width's."
    )


class Efficiency(Elastic):
    """The largest width at which a GPU does at least theta of what it does at the best width."""

    def __init__(self, name: str, scenario: Scenario, options: EfficiencyOptions) -> None:
        super().__init__(name, scenario, options)
        self.theta = options.theta
        self._found: dict[Curve, int] = {}

    def width(self, view: View, job: int) -> int:
        """Return the width of a job."""
        curve = self.curve(view, job)
        if curve not in self._found:
            shares = [speed / gpus for gpus, speed in zip(curve.gpus, curve.speed, strict=True)]
            least = self.theta * max(shares) * (1 - 1e-12)
            pairs = zip(curve.gpus, shares, strict=True)
            self._found[curve] = max(gpus for gpus, share in pairs if share >= least)
        return self._found[curve]


# --- policies ---------------------------------------------------------------------------------


class OneWidthOptions(BoaOptions):
    """As `BoaOptions`, by another method."""

    method: Annotated[str, AfterValidator(_is_method)] | None = Field(
        default="class-width", description="A method of BOA; null: the exact one."
    )


@takes(BoaOptions, draws=True)
def boa(scenario: Scenario, seed: int, options: BoaOptions) -> Boa:
    """Give jobs the stationary widths of least mean JCT within the budget."""
    return Boa("boa", scenario, seed, options)


@takes(OneWidthOptions, draws=True)
def one_width_per_class(scenario: Scenario, seed: int, options: OneWidthOptions) -> Boa:
    """Give all jobs of a class one width for life, the best within the budget."""
    return Boa("one-width-per-class", scenario, seed, options)


@takes(FixedOptions)
def fixed_width(scenario: Scenario, seed: int, options: FixedOptions) -> FixedWidth:
    """Give every job k GPUs."""
    return FixedWidth("fixed-width", scenario, options)


@takes(EfficiencyOptions)
def efficiency_threshold(scenario: Scenario, seed: int, options: EfficiencyOptions) -> Efficiency:
    """Give every job the largest width of a given efficiency."""
    return Efficiency("efficiency-threshold", scenario, options)
