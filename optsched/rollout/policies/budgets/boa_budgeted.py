"""BOA within a budget of what is billed: widths at a price that follows what was saved.

Source: docs/math/boa.md, Widths at a price, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.priced_widths import (
    PricedPlan,
    Surroundings,
    Work,
    priced_plan,
    width_among_nodes,
)
from optsched.rollout.policies.budgets.streams import StreamOptions, StreamWidths
from optsched.rollout.policy_options import Positive, takes
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

STEPS_OF_PRICE = 10  # of each factor e: prices are rounded to them, so that plans are kept
STEPS_OF_SIZE = 2  # of each factor 2
DEAREST, CHEAPEST = 3.0, -9.0  # logarithms of prices, in seconds of JCT per GPU-second
UNKNOWN_S = 60.0  # run time of a job of a class that nothing is known of
FIRST_S, FIRST_WASTE = 3600.0, 1.1  # so long it is believed that so much is billed per GPU held
MOST_WASTE = 1.5


class BudgetedOptions(StreamOptions):
    """How the budget is kept."""

    sizes: Literal["mean", "estimates"] = Field(
        default="mean",
        description="How long a job is: as its class on average, or as the oracle tells.",
    )
    settle_s: Positive = Field(
        default=14_400.0,
        description="Seconds over which what was saved or overspent is given back.",
    )


class Budgeted(StreamWidths):
    """Widths at a price, which an integral controller sets so that what is billed is the budget.

    At the price mu a job gets the widths of least time + mu x GPU time billed (`priced_plan`), and
    GPUs that are billed but idle, of nodes that cannot be returned, cost it nothing for a while
    (`width_among_nodes`). Let "saved" be budget x time - what was billed so far - what jobs at hand
    will use beyond their least. The price is that at which the streams are billed the budget +
    saved / `settle_s`, from the streams' demand at each price and what is billed per GPU held so
    far. So a shortfall is made up, and jobs at hand can always be drained at their least widths.
    """

    changing = (*StreamWidths.changing, "price", "scales", "_held_us", "_last")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.settle_s, self.sizes = options.settle_s, options.sizes
        self.is_rented = scenario.rented is not None
        self.provision_s = 0.0 if scenario.rented is None else scenario.rented.provision_s
        self.price = 0.0
        self.scales: dict[int, float] = {}
        self._held_us = 0
        self._last = (0, 0)
        self._plans: dict[tuple[known.Key, float, int], PricedPlan] = {}
        self._demand: tuple[list[float], list[float]] | None = None

    def width(self, view: View, job: int) -> int:
        """Return the width that a job wants in its phase, at the price of the moment."""
        key, scale, held = self._key(view, job), self._scale(view, job), self.held.width(job)
        plan = self._plan(key, scale, self.price)
        phase = min(view.phase(job), len(plan.best) - 1)
        if not held or not self.is_rented or job in self.growing:
            return plan.width(phase, held)
        idle = 0 if self.waiting or self.growing else self.held.free
        around = Surroundings(held, idle, self.held.cluster.largest, self._gap_s())
        price = math.exp(_step(self.price) / STEPS_OF_PRICE)
        return width_among_nodes(self._work(key, scale), plan, phase, price, around)

    def decide(self, view: View) -> Decision:
        """Set the price; then as in `Elastic`."""
        before, gpus = self._last
        self._held_us += (view.now_us - before) * gpus
        self.learn(view)
        self._set_price(view)
        decision = super().decide(view)
        self._last = (view.now_us, sum(map(len, self.held.of.values())))
        return decision

    def forget(self, job: int) -> None:
        """Let a job want nothing."""
        super().forget(job)
        self.scales.pop(job, None)

    def renewed(self) -> None:
        """Forget plans for streams as they were."""
        self._plans.clear()
        self._demand = None

    # --- the price ----------------------------------------------------------------------------

    def _set_price(self, view: View) -> None:
        """Set the price at which the streams are billed the budget and what was saved."""
        is_free = not self.is_rented
        billed_s = (self._held_us if is_free else view.spent_gpu_us) / US
        held_s = self._held_us / US
        saved = self.budget * view.now_us / US - billed_s - self._committed_s(view)
        first = FIRST_S * self.budget
        believed = first if is_free else first * FIRST_WASTE
        waste = min(max((billed_s + believed) / (held_s + first), 1.0), MOST_WASTE)
        self.price = self._price_of((self.budget + saved / self.settle_s) / waste)

    def _committed_s(self, view: View) -> float:
        """Return the GPU time that the jobs at hand are to use beyond their least."""
        total = 0.0
        for job in self.held.of:
            key, scale = self._key(view, job), self._scale(view, job)
            plan = self._plan(key, scale, self.price)
            phase = min(view.phase(job), len(plan.best) - 1)
            at = phase, plan.place(self.held.width(job))
            least = self._plan(key, scale, math.exp(DEAREST))
            total += float(plan.gpu_s[at] - least.gpu_s[at])
        return max(total, 0.0)

    def _price_of(self, gpus: float) -> float:
        """Return the price at which the streams take so many GPUs on average."""
        if self._demand is None:
            logs = np.arange(DEAREST, CHEAPEST - 0.1, -3 / STEPS_OF_PRICE)
            taken = [self._taken(math.exp(price)) for price in logs]
            self._demand = np.maximum.accumulate(taken).tolist(), logs.tolist()
        return math.exp(float(np.interp(gpus, *self._demand)))

    def _taken(self, price: float) -> float:
        """Return how many GPUs the streams are billed for on average at a price."""
        return sum(
            stream.rate_per_h / 3600 * float(self._plan(key, 1.0, price).gpu_s[0, 0])
            for key, stream in self.streams.items()
        )

    # --- jobs ---------------------------------------------------------------------------------

    def _key(self, view: View, job: int) -> known.Key:
        return self.sums.key(view.model(job), view.demand(job))

    def _scale(self, view: View, job: int) -> float:
        """Return how much longer than the mean of its class a job is, rounded."""
        if self.sizes == "mean":
            return 1.0
        if job not in self.scales:
            run_s = float(view.remaining_us([job])[0]) / US
            works = self.curves.works(view.model(job), view.demand(job))
            usual = sum(self._works(self._key(view, job)))
            ratio = run_s * sum(works) / usual if run_s > 0 else 1.0
            step = round(STEPS_OF_SIZE * math.log2(min(max(ratio, 1e-3), 1e3)))
            self.scales[job] = 2.0 ** (step / STEPS_OF_SIZE)
        return self.scales[job]

    def _works(self, key: known.Key) -> tuple[float, ...]:
        """Return the works of a class; of one that nobody has seen yet, those that it declares."""
        stream = self.streams.get(key)
        if stream is not None:
            return tuple(max(work, known.LEAST_WORK_S) for work in stream.works_s)
        declared = self.curves.phases(key[0])
        if declared:
            return tuple(phase.work_gpu_s for phase in declared)
        return tuple(UNKNOWN_S * work for work in self.curves.works(*key))

    def _work(self, key: known.Key, scale: float) -> Work:
        works = tuple(work * scale for work in self._works(key))
        rescale_s = known.rescale_s(self.scenario, key[0])
        return Work(works, self.curves.of(*key), rescale_s, self.provision_s)

    def _plan(self, key: known.Key, scale: float, price: float) -> PricedPlan:
        named = (key, scale, _step(price))
        if named not in self._plans:
            rounded = math.exp(named[2] / STEPS_OF_PRICE)
            self._plans[named] = priced_plan(self._work(key, scale), rounded)
        return self._plans[named]

    def _gap_s(self) -> float:
        """Return the mean time between two arrivals."""
        rate_per_h = sum(stream.rate_per_h for stream in self.streams.values())
        return 3600 / rate_per_h if rate_per_h else 0.0


def _step(price: float) -> int:
    """Return the number of a price: plans are made for those only."""
    log = math.log(price) if price > 0 else CHEAPEST
    return round(STEPS_OF_PRICE * min(max(log, CHEAPEST), DEAREST))


@takes(BudgetedOptions, draws=True)
def boa_budgeted(scenario: Scenario, seed: int, options: BudgetedOptions) -> Budgeted:
    """Give jobs widths at a price that keeps what is billed within the budget."""
    return Budgeted("boa-budgeted", scenario, seed, options)
