"""What events do, and the news of them for the policy."""

from __future__ import annotations

from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.events import DOWNTIME, FAILURE, FINISH, NODE
from optsched.rollout.engine.retries import ends_with, is_over
from optsched.rollout.engine.state import DOWN, READY, TRIAL
from optsched.traces.trace import STATUSES, US

if TYPE_CHECKING:
    from optsched.rollout.engine.assembly import Simulation
    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.scenario import Scenario

FAILED = STATUSES.index("failed")


class Delivery(Restorable):
    """Delivers the events of a moment to the world, in the order of their kinds.

    Attributes
    ----------
    is_changed, is_triggered
        Since the last decision: whether anything happened, and whether anything that calls the
        policy at once.
    ended_jobs, count
        Jobs that have ended, and events delivered, since the start.
    """

    changing = (
        "ended_jobs",
        "count",
        "troubles",
        "is_changed",
        "is_triggered",
        "arrived",
        "ended",
        "failed",
        "advanced",
    )

    def __init__(self, scenario: Scenario, world: Simulation, policy: Policy) -> None:
        self.world, self.policy = world, policy
        self.limits = dict(scenario.retries.limits)
        self.delay_us = round(scenario.retries.delay_s * US)
        self.on_arrival = "arrival" in scenario.decide_on
        self.on_finish = "finish" in scenario.decide_on
        self.ended_jobs = self.count = 0
        transients = world.physics.transients
        ends = [] if transients is None else transients.until_us
        self.troubles = [(time, node) for node, time in enumerate(ends)]
        heapify(self.troubles)
        self.forget()

    def forget(self) -> None:
        """Begin a new collection of news."""
        self.is_changed = self.is_triggered = False
        self.arrived: list[int] = []
        self.ended: list[int] = []
        self.failed: list[int] = []
        self.advanced: list[int] = []

    def next_time(self) -> int | None:
        """Return the time of the next event, None if nothing can happen any more.

        Passing trouble of nodes alone is nothing: it can go on for ever.
        """
        state = self.world.state
        time = self.world.events.next_time()
        if state.submitted < len(state.submit):
            arrival = state.submit[state.submitted]
            if time is None or arrival < time:
                return arrival
        return time

    def deliver(self) -> bool:
        """Deliver all events that are due now; return whether there was any but passing trouble."""
        world, is_news = self.world, False
        now, state, events = world.now, world.state, world.events
        while (event := events.pop_at(now)) is not None:
            kind, subject = event
            self.count += 1
            self.is_changed = is_news = True
            if kind == FINISH:
                self._on_finish(subject)
            elif kind == FAILURE:
                self._on_failure(subject)
            elif kind == NODE:
                world.fleet.make_ready(subject, now)
                self.is_triggered |= self.on_arrival
            elif kind == DOWNTIME:
                self._on_downtime(subject)
            else:
                self._enter_queue(subject)
        while (node := world.fleet.pop_loss(now)) is not None:
            self.count += 1
            self.is_changed = is_news = True
            self._strike_jobs(node)
            world.fleet.replace(node, now)
        while self.troubles and self.troubles[0][0] == now:
            self._on_trouble(self.troubles[0][1])
        while state.submitted < len(state.submit) and state.submit[state.submitted] == now:
            self.count += 1
            self.is_changed = is_news = True
            job = state.submitted
            state.submit_job(job, world.physics.phases(job))
            self._enter_queue(job)
        return is_news

    def _enter_queue(self, job: int) -> None:
        self.world.dispatch.enter_queue(job, self.world.now)
        self.arrived.append(job)
        self.is_triggered |= self.on_arrival

    def _on_finish(self, job: int) -> None:
        world = self.world
        self.is_triggered |= self.on_finish
        if world.state.status[job] == TRIAL:
            world.dispatch.end_trial(job, world.now)
            self.arrived.append(job)
            self.is_triggered |= self.on_arrival
        elif world.dispatch.advance(job, world.now):
            self.advanced.append(job)
        else:
            self._end(job, ends_with(world.trace, job, world.state.failed[job]))

    def _on_failure(self, job: int) -> None:
        world = self.world
        self.is_triggered |= self.on_finish
        world.dispatch.fail(job, world.now)
        self.failed.append(job)
        failures = world.state.failed[job]
        if is_over(world.trace, job, failures, self.limits) or self._is_given_up(job, failures):
            self._end(job, FAILED)
        else:
            world.dispatch.delay(job, world.now + self.delay_us)

    def _is_given_up(self, job: int, failures: int) -> bool:
        world = self.world
        retries = getattr(self.policy, "retries", None)
        if retries is None:
            return False
        world.view.open(world.now, False, world.spent_gpu_us, world.billed_usd)
        return not retries(world.view, job, world.trace.failures[job][failures - 1].reason)

    def _on_downtime(self, node: int) -> None:
        """Close or open a node; jobs on one that is down fail by no fault of theirs."""
        world = self.world
        state, status = world.state, world.closed_nodes.status(node, world.now)
        if status == state.node_state[node]:
            return
        if status == DOWN:
            self._strike_jobs(node)
        state.close_or_open(node, status)
        world.fleet.dirty.append(node)
        if status == READY:
            self.is_triggered |= self.on_arrival

    def _strike_jobs(self, node: int) -> None:
        """Let the jobs on a node lose all of their GPUs, and be back in the queue later."""
        world = self.world
        for job in world.physics.jobs_on_node(node, world.state):
            world.dispatch.strike(job, world.now)
            self.failed.append(job)
            self.is_triggered |= self.on_finish
            world.dispatch.delay(job, world.now + self.delay_us)

    def _on_trouble(self, node: int) -> None:
        world, transients = self.world, self.world.physics.transients
        if transients is None:
            return
        self.count += 1
        heapreplace(self.troubles, (transients.change(node), node))
        world.dispatch.ask_again(world.physics.jobs_on_node(node, world.state), world.now)

    def _end(self, job: int, outcome: int) -> None:
        self.world.dispatch.end(job, outcome, self.world.now)
        self.world.oracle.ended(job)
        self.ended.append(job)
        self.ended_jobs += 1
