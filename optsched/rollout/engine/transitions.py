"""What happens to jobs: they start, move, stop, fail and end, with accounts and next events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.clocks import Clocks
from optsched.rollout.engine.events import ARRIVAL, FAILURE, FINISH
from optsched.rollout.engine.state import DELAYED, ENDED, RUNNING, TRIAL, WAITING
from optsched.rollout.physics.overheads import Overheads
from optsched.traces.failure_reasons import SHOWN_BY_ONE_GPU

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout.engine.accounting import Accounts
    from optsched.rollout.engine.events import EventQueue
    from optsched.rollout.engine.rules.decision_rules import Changes
    from optsched.rollout.engine.state import Relocation, State
    from optsched.rollout.engine.waiting import Waiting
    from optsched.rollout.physics.physics import Physics
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class Dispatch(Restorable):
    """Changes jobs; nothing is checked here.

    Rates are asked for once, by `refresh`, after all changes of a moment: no time passes between.

    Attributes
    ----------
    touched
        Jobs that run and need a new next event.
    dirty
        GPUs on which something changed.
    intervals
        (job, from, to, GPUs), if they are kept.
    """

    changing = ("touched", "dirty", "stopped", "trial_fails", "held_since", "intervals")

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace,
        state: State,
        accounts: Accounts,
        waiting: Waiting,
        events: EventQueue,
        physics: Physics,
        keep_intervals: bool,
    ) -> None:
        self.state, self.accounts, self.waiting = state, accounts, waiting
        self.events, self.trace = events, trace
        self.overheads = Overheads(scenario, trace.model)
        self.is_shared = scenario.sharing.max_jobs_per_gpu > 1
        self.stop_loses_work = scenario.costs.stop_loses_work
        saves = accounts.checkpoint_every_us is not None
        self.are_moves_free = (
            physics.is_plain and self.overheads.are_none and not (saves or self.stop_loses_work)
        )
        self.clocks = Clocks(scenario, trace, state, accounts, events, physics)
        self.touched: list[int] = []
        self.dirty: list[int] = []
        self.stopped: set[int] = set()
        self.trial_fails: dict[int, bool] = {}
        self.held_since: dict[int, int] | None = {} if keep_intervals else None
        self.intervals: list[tuple[int, int, int, tuple[int, ...]]] = []

    def apply(self, changes: Changes, pre_run_us: int, now: int) -> None:
        """Apply the changes of a decision: all who leave GPUs leave them first.

        Where they were not checked, the GPUs have changed hands already.
        """
        has_gpus = not changes.are_checked
        self.accounts.close(changes.stops, now)
        for job in changes.stops:
            self._stop(job, now, has_gpus)
        status = self.state.status
        if moves := [place for place in changes.places if status[place[0]] == RUNNING]:
            (self._move_freely if self.are_moves_free else self._move)(moves, now)
            self._change_gpus(moves, has_gpus)
        for job, gpus, _, _ in changes.places:
            if status[job] != RUNNING:
                self._start(job, gpus, now, has_gpus)
        for job, gpus in changes.trials:
            self._try(job, gpus, pre_run_us, now)

    # --- by the policy ------------------------------------------------------------------------

    def _start(self, job: int, gpus: tuple[int, ...], now: int, has_gpus: bool) -> None:
        state, accounts = self.state, self.accounts
        is_first = not accounts.attempts[job]
        overhead = self.overheads.start(job, is_first, job in self.stopped)
        self.stopped.discard(job)
        state.status[job] = RUNNING
        accounts.attempts[job] += 1
        self._leave_queue(job, now)
        self._put_on(job, gpus, overhead, now, has_gpus)
        self.touched.append(job)

    def _move(self, moves: Sequence[Relocation], now: int) -> None:
        """Put running jobs on other GPUs, as many or another number."""
        state, accounts, held, dirty = self.state, self.accounts, self.held_since, self.dirty
        gpus_of, ready_at, rescale_us = state.gpus_of, state.ready_at, self.overheads.rescale_us
        migrations, rescales, quotas = accounts.migrations, accounts.rescales, self.waiting.quotas
        jobs = [job for job, _, _, _ in moves]
        accounts.close(jobs, now)
        ready, resized, loses_work = now + self.overheads.move(), [], self.stop_loses_work
        for job, gpus, _, _ in moves:
            old = gpus_of[job]
            dirty += old
            dirty += gpus
            if held is not None:
                self.intervals.append((job, held.pop(job), now, old))
                held[job] = now
            if len(gpus) == len(old):
                migrations[job] += 1
                ready_at[job] = ready
                if loses_work:
                    accounts.lose(job)
            else:
                resized.append(job)
                rescales[job] += 1
                ready_at[job] = now + rescale_us[job]
                if quotas:
                    self.waiting.hold(job, len(gpus) - len(old))
        accounts.save(resized if loses_work else jobs)
        self.touched += jobs

    def _move_freely(self, moves: Sequence[Relocation], now: int) -> None:
        """Put running jobs on other GPUs, where they get on as before and nothing else happens."""
        gpus_of, migrations, held = self.state.gpus_of, self.accounts.migrations, self.held_since
        dirty, touched = self.dirty, self.touched
        for job, gpus, _, _ in moves:
            old = gpus_of[job]
            dirty += old
            dirty += gpus
            migrations[job] += 1
            touched.append(job)
            if held is not None:
                self.intervals.append((job, held.pop(job), now, old))
                held[job] = now

    def _change_gpus(self, moves: Sequence[Relocation], has_gpus: bool) -> None:
        gpus_of, widths = self.state.gpus_of, self.state.width
        if not has_gpus:
            self.state.move(moves, are_shared=self.is_shared)
            return
        for job, gpus, _, _ in moves:
            gpus_of[job], widths[job] = gpus, len(gpus)

    def _stop(self, job: int, now: int, has_left: bool) -> None:
        self._leave_gpus(job, now, has_left)
        self.accounts.preemptions[job] += 1
        if self.stop_loses_work:
            self.accounts.lose(job)
        else:
            self.accounts.save((job,))
        self.stopped.add(job)
        self.enter_queue(job, now)

    def _try(self, job: int, gpus: tuple[int, ...], pre_run_us: int, now: int) -> None:
        """Put a job on one GPU for a while: it makes no progress, but may fail early.

        It does so for a reason that one GPU shows; any other one waits for the whole gang.
        """
        state, failures = self.state, self.trace.failures.get(job, ())
        left = pre_run_us + 1
        if state.failed[job] < len(failures):
            failure = failures[state.failed[job]]
            if failure.reason in SHOWN_BY_ONE_GPU:
                left = failure.run_us - state.attempt_us[job]
        state.status[job] = TRIAL
        state.rate[job] = 0
        self._leave_queue(job, now)
        self._put_on(job, gpus, 0, now)
        self.trial_fails[job] = left <= pre_run_us
        kind = FAILURE if self.trial_fails[job] else FINISH
        self.events.set_all([(now + min(left, pre_run_us), kind, job)])

    # --- by themselves ------------------------------------------------------------------------

    def advance(self, job: int, now: int) -> bool:
        """Let a job go on to its next phase; return False if its work is done."""
        state = self.state
        self.accounts.close((job,), now)
        if not state.goal[job]:
            return False
        state.phase[job] += 1
        state.goal[job] = state.tail[job][state.phase[job]]
        self.touched.append(job)
        return True

    def ask_again(self, jobs: Iterable[int], now: int) -> None:
        """Ask for the rates of the jobs on a node anew."""
        running = [job for job in jobs if self.state.status[job] == RUNNING]
        self.accounts.close(running, now)
        self.touched += running

    def end_trial(self, job: int, now: int) -> None:
        """Put a job that stood its trial back into the queue."""
        self._take_off(job, now)
        del self.trial_fails[job]
        self.enter_queue(job, now)

    def fail(self, job: int, now: int) -> None:
        """Let an attempt fail: the job loses its GPUs and its work since the last checkpoint."""
        self._take_off(job, now)
        if self.trial_fails.pop(job, False):
            self.accounts.attempts[job] += 1
        self.accounts.lose(job)
        self.state.failed[job] += 1
        self.state.attempt_us[job] = 0
        self.state.status[job] = DELAYED
        self.waiting.fail(job, now)
        self.state.wait_since[job] = now

    def strike(self, job: int, now: int) -> None:
        """Let an outage of a node take a job off all of its GPUs."""
        self._take_off(job, now)
        if self.trial_fails.pop(job, None) is None:
            self.accounts.outages[job] += 1
        self.waiting.fail(job, now)
        self.accounts.lose(job)
        self.state.status[job] = DELAYED
        self.state.wait_since[job] = now

    def delay(self, job: int, until: int) -> None:
        """Let a job that failed come back later."""
        self.events.set_all([(until, ARRIVAL, job)])

    def end(self, job: int, outcome: int, now: int) -> None:
        """Let a job end for good."""
        if self.state.gpus_of[job]:
            self._take_off(job, now)
        self.state.status[job] = ENDED
        self.waiting.forget(job)
        self.accounts.end[job] = now
        self.accounts.outcome[job] = outcome
        self.stopped.discard(job)

    def enter_queue(self, job: int, now: int) -> None:
        """Let a job wait for GPUs."""
        state = self.state
        state.status[job] = WAITING
        state.wait_since[job] = now
        state.waiting.add(job)
        self.waiting.enter(job, now)

    # --- parts --------------------------------------------------------------------------------

    def _leave_queue(self, job: int, now: int) -> None:
        self.state.waiting.remove(job)
        self.waiting.leave(job, now)
        if self.accounts.first_start[job] < 0:
            self.accounts.first_start[job] = now

    def _put_on(
        self, job: int, gpus: tuple[int, ...], overhead: int, now: int, has_gpus: bool = False
    ) -> None:
        state = self.state
        state.attach(job, gpus, gpus if has_gpus else ())
        state.running.add(job)
        state.settled[job] = now
        state.ready_at[job] = now + overhead
        self.waiting.hold(job, len(gpus))
        self.dirty += gpus
        if self.held_since is not None:
            self.held_since[job] = now

    def _take_off(self, job: int, now: int) -> None:
        self.accounts.close((job,), now)
        self._leave_gpus(job, now)

    def _leave_gpus(self, job: int, now: int, has_left: bool = False) -> None:
        gpus = self.state.detach(job, self.state.gpus_of[job] if has_left else ())
        self.state.running.remove(job)
        self.waiting.hold(job, -len(gpus))
        self.events.forget(job)
        self.dirty += gpus
        if self.held_since is not None:
            self.intervals.append((job, self.held_since.pop(job), now, gpus))

    def refresh(self, now: int) -> None:
        """Ask for the rates that may have changed, and set the next events of these jobs."""
        status = self.state.status
        touched = [job for job in self.touched if status[job] == RUNNING]
        self.touched.clear()
        if self.are_moves_free:  # those that have an event are elsewhere, and end as before
            next_of = self.events.next_of
            self.events.renew([job for job in touched if job in next_of])
            touched = [job for job in touched if job not in next_of]
        self.clocks.refresh(touched, self.dirty, now)
