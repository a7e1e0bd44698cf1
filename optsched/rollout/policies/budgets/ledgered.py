"""Jobs at a price that a ledger sets, so that what is billed keeps to a budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from optsched.rollout.policies.budgets.ledger import Ledger
from optsched.rollout.policies.budgets.priced_jobs import (
    CHEAPEST,
    DEAREST,
    STEPS_OF_PRICE,
    PricedJobs,
    PricedOptions,
)
from optsched.rollout.policy_options import Positive  # noqa: TC001  pydantic needs it
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario

PLANNED = 0.99  # of the budget: the rest is for jobs that turn out longer than they seemed


class BudgetedOptions(PricedOptions):
    """How the budget is kept."""

    settle_s: Positive = Field(
        default=28_800.0, description="Seconds over which what was saved is given out."
    )
    price: Positive | None = Field(
        default=None,
        description="A price for good, in seconds of JCT per GPU-second (USD/h x s of several GPU "
        "types), whatever is billed: no budget is kept. null: as the ledger says.",
    )
    repay_s: Positive = Field(
        default=7_200.0,
        description="Seconds over which a debt is paid back; with a debt of the budget of so many "
        "seconds jobs get the widths of the dearest price.",
    )


class Ledgered(PricedJobs):
    """Widths at a price, which a ledger sets so that what is billed keeps to the budget.

    The balance of the ledger is what the budget allows - what was billed - what jobs at hand will
    be billed at their plans; the price is that at which the streams are billed the budget and a
    share of the balance. With a debt of `repay_s` of the budget it is the dearest one. Another
    class says how jobs hold GPUs.
    """

    changing = (*PricedJobs.changing, "ledger")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.ledger = Ledger(PLANNED * self.budget, options.repay_s, options.settle_s)
        self._demand: tuple[list[float], list[int]] | None = None
        self.price = options.price

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and enter it."""
        super().arrive(view, job)
        self._enter(view, job)

    def decide(self, view: View) -> Decision:
        """Set the price; then decide at it."""
        self.learn(view)
        self.observe(view)
        for job in view.advanced:
            if job in self.held.of:
                self._enter(view, job)
        self.ledger.pass_time(view.now_us)
        self._set_price(view)
        decision = super().decide(view)
        self.ledger.hold(*self.use(view))
        return decision

    def use(self, view: View) -> tuple[float, float]:
        """Return how many GPUs are held, and how many are ready."""
        held = sum(map(len, self.held.of.values()))
        return held, self.held.ready_nodes * self.node_gpus if self.is_rented else held

    def billed_s(self, view: View) -> float:
        """Return the GPU-seconds billed so far."""
        return (view.spent_gpu_us if self.is_rented else self.ledger.held_us) / US

    def renewed(self) -> None:
        """Forget what follows from streams as they were."""
        super().renewed()
        self._demand = None

    def _enter(self, view: View, job: int) -> None:
        least, scale = self.least_use(self.key(view, job)), self.scale(view, job)
        self.ledger.enter(job, view.submit_us(job) / US, least, scale)

    # --- the price ----------------------------------------------------------------------------

    def _set_price(self, view: View) -> None:
        """Set the price at which the streams are billed what the ledger can afford."""
        if self.price is None:
            self.step = self._step_of(self.ledger.affordable(self.balance(view)))
        else:
            self.step = round(STEPS_OF_PRICE * math.log(self.price))

    def balance(self, view: View) -> float:
        """Return the GPU-seconds that are neither billed nor promised to jobs at hand."""
        promised = self.ledger.waste * self._promised(view)
        return self.ledger.allowed(view.now_us / US) - self.billed_s(view) - promised

    def rent_of(self, job: int) -> float:
        """Return what a job is billed for what it holds."""
        return self.held.width(job)

    def _promised(self, view: View) -> float:
        """Return the GPU-seconds that jobs at hand are to be billed at their plans."""
        total = sum(
            float(self.plan(view, job).gpu_s[self.phase(view, job), 0]) for job in self.waiting
        )
        for job, left in self.left_of_phases(view).items():
            plan, phase, width = self.plan(view, job), self.phase(view, job), self.held.width(job)
            total += left * self.phase_s(view, job, width) * self.rent_of(job)
            total += float(plan.gpu_s[phase + 1, plan.place(self.holding(job))])
        return total

    def _step_of(self, gpus: float) -> int:
        """Return the price at which the streams take so many GPUs on average."""
        if self._demand is None:
            steps = list(range(DEAREST, CHEAPEST - 1, -3))
            taken = np.maximum.accumulate([self._taken(step) for step in steps])
            self._demand = taken.tolist(), steps
        return round(float(np.interp(gpus, *self._demand)))

    def _taken(self, step: int) -> float:
        """Return how many GPUs the streams are billed for on average at a price."""
        return sum(
            stream.rate_per_h / 3600 * float(self.plan_at(key, 1.0, step).gpu_s[0, 0])
            for key, stream in self.streams.items()
        )
