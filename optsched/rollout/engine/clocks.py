"""When jobs that run will next end a phase or fail, as their rates are from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.events import FAILURE, FINISH
from optsched.rollout.engine.state import PPB, RUNNING
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.accounting import Accounts
    from optsched.rollout.engine.events import EventQueue
    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.physics import Physics
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class Clocks:
    """Sets rates and next events of jobs on which something changed."""

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace,
        state: State,
        accounts: Accounts,
        events: EventQueue,
        physics: Physics,
    ) -> None:
        self.state, self.accounts, self.events, self.physics = state, accounts, events, physics
        self.failures = trace.failures
        self.ends_at_us = round(scenario.epoch_s * US) if scenario.finish_at_epochs else 1

    def refresh(self, touched: Sequence[int], dirty: Iterable[int], now: int) -> None:
        """Ask for the rates that may have changed, and set the next events of these jobs.

        Parameters
        ----------
        touched
            Jobs that run, settled, whose regimes are over.
        dirty
            GPUs on which something changed: others on them may feel it.
        """
        state, physics, losses = self.state, self.physics, self.accounts.losses
        status, rates = state.status, state.rate
        if physics.is_plain:
            for job in touched:
                rates[job] = PPB
            self._schedule(touched, now)
            return
        news = set(touched)
        affected = physics.affected(dirty, state)
        others = [job for job in affected if job not in news and status[job] == RUNNING]
        jobs = sorted([*news, *others])
        regimes = physics.regimes(jobs, state)
        if others:
            regimes = [
                (job, regime)
                for job, regime in regimes
                if job in news or regime.rate != rates[job] or not losses.lasts(job, regime)
            ]
            jobs = [job for job, _ in regimes]
            self.accounts.close([job for job in jobs if job not in news], now)
        losses.begin(regimes)
        for job, regime in regimes:
            rates[job] = regime.rate
        self._schedule(jobs, now)

    def _schedule(self, jobs: Sequence[int], now: int) -> None:
        """Set the next events of jobs that are settled: the end of a phase, or a failure."""
        state, failures_of, epoch_us = self.state, self.failures, self.ends_at_us
        ready_at, goals, remaining, rates = state.ready_at, state.goal, state.remaining, state.rate
        events = []
        for job in jobs:
            begin, goal = ready_at[job], goals[job]
            if begin < now:
                begin = now
            done = begin - (goal - remaining[job]) // rates[job]
            failures = failures_of.get(job)
            if failures is not None and state.failed[job] < len(failures):
                left = failures[state.failed[job]].run_us - state.attempt_us[job]
                if begin + left < done:
                    events.append((begin + max(0, left), FAILURE, job))
                    continue
            if epoch_us > 1 and not goal:
                done = -(-done // epoch_us) * epoch_us
            events.append((done, FINISH, job))
        self.events.set_all(events)
