"""Widths for a stream of jobs whose rates and works are known, or learnt on the way."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.elastic import Elastic, ElasticOptions
from optsched.rollout.policy_options import Positive  # noqa: TC001  pydantic needs it
from optsched.rollout.prices.node_rates import prices_of_types
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class StreamOptions(ElasticOptions):
    """A budget, and what is known of the jobs to come."""

    budget: Positive | None = Field(
        default=None,
        description="Time-average GPUs, or USD per hour where GPUs are of several types; null: the "
        "scenario's, else all its GPUs.",
    )
    rates: Annotated[str, Field(min_length=1)] = Field(
        default="trace",
        description="Where arrival rates and mean works are from: trace, all jobs of the "
        "rollout's trace, as the authors take them; history, the jobs so far; else a BOA instance.",
    )
    every_s: Positive = Field(
        default=300.0,
        description="history: seconds between two looks at the jobs so far, which hold from a "
        "job's next phase.",
    )


def budget_of(scenario: Scenario) -> float:
    """Return the budget of a scenario, else what all its GPUs would take; in the unit of both."""
    if len(set(scenario.node_types)) < 2:
        return scenario.budget_gpus or float(scenario.gpus)
    prices = prices_of_types(scenario)
    pairs = zip(scenario.node_types, scenario.node_sizes, strict=True)
    return scenario.budget_usd_per_h or sum(prices[name] * size for name, size in pairs)


class StreamWidths(Elastic):
    """Widths that follow from the streams of jobs and a budget; another class says which."""

    changing: ClassVar[tuple[str, ...]] = (*Elastic.changing, "next_us", "streams", "history")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: StreamOptions) -> None:
        super().__init__(name, scenario, options)
        self.seed = seed
        self.budget = options.budget or budget_of(scenario)
        self.every_us = round(options.every_s * US)
        self.next_us = 0
        self.streams: dict[known.Key, known.Stream] = {}
        self.history = known.History(self.curves) if options.rates == "history" else None
        self._rates = options.rates
        if options.rates not in ("trace", "history"):
            self.streams = known.of_instance(options.rates, self.curves)
        self.sums = known.Sums(self.curves)

    def prepare(self, trace: Trace) -> None:
        """Take the streams from the trace of the rollout, where they are to be from there."""
        if self._rates == "trace":
            streams = known.of_trace(trace, self.curves)
            self.streams = known.with_errors(streams, self.scenario.beliefs, self.seed)

    @abstractmethod
    def renewed(self) -> None:
        """Bring what follows from the streams up to date."""

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and learn from it."""
        if self.history is not None and not view.failures(job):
            self.history.arrive(view, job)
        self.learn(view)
        super().arrive(view, job)

    def learn(self, view: View) -> None:
        """Look at the streams again, if it is time."""
        if view.now_us < self.next_us:
            return
        if self.history is not None:
            self.streams = self.history.streams(view.now_us)
            self.next_us = view.now_us + self.every_us
        else:
            self.next_us = 1 << 62
        self.renewed()
