"""BOA within a budget of what is billed: widths at a price that follows a ledger.

Source: docs/math/boa.md, Widths at a price, after EPEW'24, arXiv 2406.15560.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from optsched.rollout.policies.budgets.ledger import Ledger
from optsched.rollout.policies.budgets.priced_jobs import (
    CHEAPEST,
    DEAREST,
    PricedOptions,
)
from optsched.rollout.policies.budgets.shared_nodes import SharedNodes
from optsched.rollout.policy_options import Positive, takes
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
    repay_s: Positive = Field(
        default=7_200.0,
        description="Seconds over which a debt is paid back; with a debt of the budget of so many "
        "seconds jobs get the widths of the dearest price.",
    )


class Budgeted(SharedNodes):
    """Widths at a price, which a ledger sets so that what is billed keeps to the budget.

    At the price mu a job gets the widths of least time + mu x GPU time billed (`priced_plan`).
    The balance of the ledger is what the budget allows - what was billed - what jobs at hand will
    be billed at their plans; the price is that at which the streams are billed the budget and a
    share of the balance. With a debt of `repay_s` of the budget it is the dearest one.
    """

    changing = (*SharedNodes.changing, "ledger")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.ledger = Ledger(PLANNED * self.budget, options.repay_s, options.settle_s)
        self._demand: tuple[list[float], list[int]] | None = None

    def width(self, view: View, job: int) -> int:
        """Return the width that a job wants in its phase, at the price of the moment."""
        plan = self.plan(view, job)
        return plan.width(self.phase(view, job), self.held.width(job))

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait, and enter it."""
        super().arrive(view, job)
        self._enter(view, job)

    def decide(self, view: View) -> Decision:
        """Set the price; then as in `SharedNodes`."""
        self.learn(view)
        self.observe(view)
        for job in view.advanced:
            if job in self.held.of:
                self._enter(view, job)
        self.ledger.pass_time(view.now_us)
        self._set_price(view)
        decision = super().decide(view)
        held = sum(map(len, self.held.of.values()))
        ready = self.held.ready_nodes * self.node_gpus if self.is_rented else held
        self.ledger.hold(held, ready)
        return decision

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
        self.step = self._step_of(self.ledger.affordable(self.balance(view)))

    def balance(self, view: View) -> float:
        """Return the GPU-seconds that are neither billed nor promised to jobs at hand."""
        billed_s = (view.spent_gpu_us if self.is_rented else self.ledger.held_us) / US
        promised = self.ledger.waste * self._promised(view)
        return self.ledger.allowed(view.now_us / US) - billed_s - promised

    def _promised(self, view: View) -> float:
        """Return the GPU-seconds that jobs at hand are to be billed at their plans."""
        total = sum(
            float(self.plan(view, job).gpu_s[self.phase(view, job), 0]) for job in self.waiting
        )
        for job, left in self.left_of_phases(view).items():
            plan, phase, width = self.plan(view, job), self.phase(view, job), self.held.width(job)
            total += left * self.phase_s(view, job, width) * width
            total += float(plan.gpu_s[phase + 1, plan.place(width)])
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


@takes(BudgetedOptions, draws=True)
def boa_budgeted(scenario: Scenario, seed: int, options: BudgetedOptions) -> Budgeted:
    """Give jobs widths at a price that keeps what is billed within the budget."""
    return Budgeted("boa-budgeted", scenario, seed, options)
