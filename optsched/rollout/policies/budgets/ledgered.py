"""Jobs at a price that a ledger sets, so that what is billed keeps to a budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from optsched.rollout.policies.budgets.ledger import LULL, Ledger
from optsched.rollout.policies.budgets.priced_jobs import (
    CHEAPEST,
    DEAREST,
    STEPS_OF_PRICE,
    PricedJobs,
    PricedOptions,
    rounded,
)
from optsched.rollout.policies.budgets.priced_widths import priced_bills
from optsched.rollout.policy_options import NonNegative, Positive  # noqa: TC001  pydantic needs it
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.budgets.arrival_rates import Key
    from optsched.rollout.policies.budgets.priced_widths import Held
    from optsched.rollout.scenario import Scenario

AHEAD_S = 86_400.0  # so long it is believed that jobs come
DEARER = 10  # steps of price
GRID = tuple(range(DEAREST, CHEAPEST - 1, -3))
PRICES = np.exp(np.array(GRID) / STEPS_OF_PRICE)
LOOK_US = 60 * US  # between two looks at the price, if no job comes or ends
PLANNED = 0.99  # of the budget: the rest is for jobs that turn out longer than they seemed


class BudgetedOptions(PricedOptions):
    """How the budget is kept."""

    settle_s: Positive = Field(
        default=28_800.0,
        description="Seconds over which what was saved is given out, and a debt paid back, at "
        "least: where jobs have come for longer, as long as they have.",
    )
    price: Positive | None = Field(
        default=None,
        description="A price for good, in seconds of JCT per GPU-second (USD/h x s of several GPU "
        "types), whatever is billed: no budget is kept. null: as the ledger says.",
    )
    advance_s: Positive = Field(
        default=600.0,
        description="Seconds of the budget that may be promised before they are allowed, so "
        "that the first jobs of a stream need not wait for it.",
    )
    notice_s: NonNegative = Field(
        default=0.0,
        description="Of rented nodes of one type: seconds before it comes that a job is announced, "
        "so that nodes can be ready for it; the rollout's trace tells. 0: not at all.",
    )


class Ledgered(PricedJobs):
    """Widths at a price, which a ledger sets so that what is billed keeps to the budget.

    What jobs at hand will be billed at their plans, and jobs to come within `settle_s`, is to be
    what the budget allows by then and was not billed yet: that sets the price, one for all of them.
    Another class says how jobs hold GPUs.
    """

    changing = (*PricedJobs.changing, "ledger", "look_us")

    def __init__(self, name: str, scenario: Scenario, seed: int, options: BudgetedOptions) -> None:
        super().__init__(name, scenario, seed, options)
        self.ledger = Ledger(PLANNED * self.budget)
        self.settle_s = options.settle_s
        self.advance = options.advance_s * self.ledger.budget_gpus
        self.look_us = 0
        self._demand: Floats | None = None
        self._bills_of: dict[tuple[Key, float], Floats] = {}
        self.price = options.price

    def decide(self, view: View) -> Decision:
        """Set the price; then decide at it."""
        self.learn(view)
        known = len(self.scales)
        self.observe(view)
        if len(self.scales) > known:  # a job has a size now, and so its width for the rest of it
            self.look_us = view.now_us
        for job in view.arrived:
            self._enter(view, job)
        for job in (*view.advanced, *view.ended):
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
        self._bills_of.clear()

    def _enter(self, view: View, job: int) -> None:
        least, scale = self.least_use(self.key(view, job)), self.scale(view, job)
        self.ledger.enter(job, view.submit_us(job) / US, least, scale)

    # --- the price ----------------------------------------------------------------------------

    def _set_price(self, view: View) -> None:
        """Set the price at which all that is to be billed is what is allowed."""
        if self.price is None:
            if view.now_us >= self.look_us or view.arrived or view.ended:
                for job in self.overdue(view):
                    self._enter(view, job)
                self.step = self._step_of(view)
                self.look_us = view.now_us + LOOK_US
        else:
            self.step = round(STEPS_OF_PRICE * math.log(self.price))

    def _step_of(self, view: View) -> int:
        """Return the price at which what is promised and will be taken is what is allowed by then.

        In a lull nothing counts but what jobs at hand are promised and what is allowed if nobody
        comes any more. Before, that makes the price dearer by `DEARER` at most: jobs to come pay
        debts back, too.
        """
        now_s, billed, waste = view.now_us / US, self.billed_s(view), self.ledger.waste
        promised, sure = self._promised(view), self.ledger.sure(now_s)
        if self.ledger.silence_s > LULL * super().gap_s():
            return round(_price(sure - billed, waste * promised))
        # for all that is known, a stream goes on for as long as it has lasted
        settle_s = max(self.settle_s, now_s - self.ledger.since_s)
        ahead = sure + settle_s * self._growth(now_s, sure)
        steady = _price(ahead - billed, waste * (promised + settle_s * self._taken()))
        alone = _price(sure + self.advance - billed, waste * promised)
        return round(max(steady, min(alone, steady + DEARER)))

    def gap_s(self) -> float:
        """Return the mean time between two arrivals; in a lull, how long it has lasted.

        Without end before the first one: what is billed then no budget allows.
        """
        return max(super().gap_s(), self.ledger.silence_s) if self.ledger.since_s >= 0 else math.inf

    def phase_bill(self, view: View, job: int) -> tuple[Held, float]:
        """Return what a job holds, or will once nodes are there, and what its phase is billed."""
        width = self.wanted[job] if job in self.growing else self.held.width(job)
        return width, width * self.phase_s(view, job, width)

    def _promised(self, view: View) -> Floats:
        """Return by price of the grid the GPU-seconds that jobs at hand are still to be billed.

        Of a phase that runs, what it holds or waits for; of later ones, their plans. A job whose
        phase has just begun gets its width at the price that is to be set.
        """
        total, begun = np.zeros(len(GRID)), {*view.advanced, *self.stale}
        for job in (*self.waiting, *view.arrived):
            total += self._bills(view, job, self.phase(view, job), 0)
        for job, left in self.left_of_phases(view).items():
            phase, plan = self.phase(view, job), self.plan(view, job)
            if job in begun and not self.held.is_stuck(job):
                total += self._bills(view, job, phase, plan.place(self.holding(job)))
            else:
                held, bill = self.phase_bill(view, job)
                total += left * bill + self._bills(view, job, phase + 1, plan.place(held))
        return total

    def _bills(self, view: View, job: int, phase: int, place: int) -> Floats:
        """Return by price what a job will be billed from a phase on, for what it held before."""
        scale = self.scale(view, job)
        near = rounded(scale)
        bills: Floats = self._bills_at(self.key(view, job), near)[phase, place]
        return scale / near * bills

    def _bills_at(self, key: Key, scale: float) -> Floats:
        """Return the bills of plans: shape (phases + 1, widths held before, prices of the grid)."""
        if (key, scale) not in self._bills_of:
            self._bills_of[key, scale] = priced_bills(self.work(key, scale), PRICES)
        return self._bills_of[key, scale]

    def _taken(self) -> Floats:
        """Return by price of the grid how many GPUs the streams are billed for on average."""
        if self._demand is None:
            self._demand = np.zeros(len(GRID))
            for key, stream in self.streams.items():
                self._demand += stream.rate_per_h / 3600 * self._bills_at(key, 1.0)[0, 0]
        return self._demand

    def _growth(self, now_s: float, sure: float) -> float:
        """Return by how many GPUs what is allowed grows within a day, if jobs come as they do."""
        later = self.ledger.allowed(now_s + AHEAD_S) + self._drain(AHEAD_S)
        return (later - sure) / AHEAD_S

    def _drain(self, ahead_s: float) -> float:
        """Return the drain that jobs which are still to come will have by then, on average.

        Of their sizes the means are known, and so they are taken to be exponential, the law of most
        entropy: what stands at a moment is mostly of long jobs, twice as much as of equal ones.
        """
        total = 0.0
        for key, stream in self.streams.items():
            least = self.least_use(key)
            share_s = -least.seconds * math.expm1(-ahead_s / least.seconds)
            total += stream.rate_per_h / 3600 * least.gpu_s * share_s
        return total


def _price(gpu_s: float, bills: Floats) -> float:
    """Return the price of the grid, in steps, at which a bill is so much."""
    return float(np.interp(gpu_s, np.maximum.accumulate(bills), GRID))
