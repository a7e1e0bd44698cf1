"""The parts of a rollout, put together: all that there is but the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.accounting import Accounts, Meter
from optsched.rollout.engine.closed_nodes import ClosedNodes
from optsched.rollout.engine.events import EventQueue
from optsched.rollout.engine.live_view import LiveView
from optsched.rollout.engine.rented_nodes import Fleet
from optsched.rollout.engine.rules.decision_rules import DecisionRules
from optsched.rollout.engine.rules.exchange import Exchange
from optsched.rollout.engine.state import State
from optsched.rollout.engine.transitions import Dispatch
from optsched.rollout.engine.waiting import Waiting
from optsched.rollout.engine.window import Window
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.estimates import Oracle
from optsched.rollout.physics.physics import Physics
from optsched.rollout.physics.regimes import busy_shares
from optsched.rollout.prices.node_rates import BILL
from optsched.rollout.results.parts_of_held_time import counted_until_now
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class Simulation(Restorable):
    """State, accounts, clocks, rules and physics of a scenario, and the time.

    Attributes
    ----------
    now
        The present moment in microseconds.
    busy_gpu_us, available_gpu_us, spent_gpu_us
        Integrals until now, as in `Record`.
    bill
        Integral of what nodes with prices cost, in units of 1 / `BILL` USD.
    has_news
        Whether the last decision said anything new of what waiting jobs accept.
    busy_shares
        By job the share of time for which its GPUs compute when it runs alone.
    """

    changing = (
        *("now", "busy_gpu_us", "available_gpu_us", "spent_gpu_us", "physics", "oracle", "state"),
        *("bill", "accounts", "waiting", "events", "fleet", "dispatch", "view", "meter", "window"),
    )

    def __init__(
        self, scenario: Scenario, trace: Trace, seed: int, keep_intervals: bool, told: Scenario
    ) -> None:
        every_s = scenario.costs.checkpoint_every_s
        self.trace, self.now, self.has_news = trace, 0, False
        self.busy_gpu_us = self.available_gpu_us = self.spent_gpu_us = self.bill = 0
        self.cluster = Cluster(scenario)
        self.physics = Physics(scenario, self.cluster, trace, seed)
        self.oracle = Oracle(scenario, trace, seed)
        self.state = State(scenario, self.cluster, trace)
        self.accounts = Accounts(self.state, None if every_s is None else round(every_s * US))
        self.waiting = Waiting(self.state, trace.queue, scenario.quotas, scenario.lends_quotas)
        self.events = EventQueue(self.cluster.nodes)
        self.closed_nodes = ClosedNodes(scenario)
        self.closed_nodes.announce(self.events)
        self.fleet = Fleet(scenario, self.state, self.events, seed)
        self.rules = DecisionRules(scenario, trace, self.state, self.physics, self.waiting.held)
        self.exchange = Exchange(self.state, self.physics, self.rules.asks_physics)
        self.dispatch = Dispatch(
            scenario,
            trace,
            self.state,
            self.accounts,
            self.waiting,
            self.events,
            self.physics,
            keep_intervals,
        )
        self.view = LiveView(
            told, self.cluster, trace, self.state, self.accounts, self.fleet, self.oracle
        )
        has_power = scenario.power is not None
        self.meter = Meter(self.physics, self.state) if has_power else None
        self.busy_shares = busy_shares(scenario, trace)
        self.window = Window(scenario, trace)

    def go_to(self, time: int) -> None:
        """Let time pass, in which nothing happens."""
        while self.window.next_us <= time:
            self._pass(self.window.next_us)
            self.window.note(counted_until_now(self))
        self._pass(time)

    def _pass(self, time: int) -> None:
        state, span = self.state, time - self.now
        self.busy_gpu_us += state.busy_gpus * span
        self.available_gpu_us += state.ready_gpus * span
        self.spent_gpu_us += state.paid_gpus * span
        self.bill += state.paid_rate * span
        self.now = time

    @property
    def billed_usd(self) -> float:
        """What nodes with prices have cost until now."""
        return self.bill / BILL

    def integrals(self) -> tuple[int, int, int, int, int]:
        """Return the present moment and the integrals up to it, in whole numbers."""
        return (self.now, self.busy_gpu_us, self.available_gpu_us, self.spent_gpu_us, self.bill)

    def go_back(self, integrals: Sequence[int]) -> None:
        """Go back to a moment after which nothing happened."""
        self.now, self.busy_gpu_us, self.available_gpu_us, self.spent_gpu_us, self.bill = integrals

    def apply(self, decision: Decision) -> int:
        """Apply a decision, all of it or nothing, and return how many things it changed.

        Raises
        ------
        InvalidDecision
            If it breaks a rule; then nothing of it was applied.
        """
        changes = self.rules.changes(decision)
        self.has_news = False
        count = len(changes.stops) + len(changes.places) + len(changes.trials)
        if count:
            if not (changes.are_checked or self.exchange.is_done(changes)):
                changes = self.rules.checked(decision)  # tells which rule is broken
            self.dispatch.apply(changes, decision.pre_run_us, self.now)
        for job, place in decision.accepts.items():
            self.has_news |= self.waiting.accept(job, (place[0], place[1]), self.now)
        if decision.rent is not None:
            count += self.fleet.rent(decision.rent, self.now)
        return count

    def settle(self) -> None:
        """Bring rates, clocks and watts up to date after the changes of a moment."""
        dispatch, fleet = self.dispatch, self.fleet
        if dispatch.touched or dispatch.dirty:
            dispatch.refresh(self.now)
        if not (dispatch.dirty or fleet.dirty or self.waiting.entered):
            return
        self.waiting.update(self.now, dispatch.dirty, fleet.dirty)
        if self.meter is not None:
            node_of = self.cluster.node_of
            nodes = {*fleet.dirty, *(node_of[gpu] for gpu in dispatch.dirty)}
            self.meter.update(sorted(nodes), self.now)
        dispatch.dirty.clear()
        fleet.dirty.clear()

    def settle_running(self) -> None:
        """Count what running jobs have had, done and lost up to now."""
        running = sorted(self.state.running)
        self.accounts.settle(running, self.now)
        self.accounts.losses.count(running)

    @property
    def joules(self) -> float:
        """The energy drawn until now; 0 without a power model."""
        return 0.0 if self.meter is None else self.meter.joules(self.now)
