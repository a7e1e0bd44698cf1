"""The engine: a rollout as moments in time, each with its events and then one decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.assembly import Simulation
from optsched.rollout.engine.decision import NOTHING, Decision, InvalidDecision
from optsched.rollout.engine.event_handlers import Delivery
from optsched.rollout.physics.beliefs import believed
from optsched.rollout.results.decision_log import EpochLog
from optsched.rollout.results.outcome import record_of
from optsched.rollout.settings import SETTINGS
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from optsched.rollout.engine.decision import Policy, SolveRecord
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


class Engine(Restorable):
    """One rollout; its state can be saved between two steps, and an engine goes on from there.

    Parameters
    ----------
    scenario, trace
        Where, and what comes.
    policy
        Who decides. It may have `every_epoch` (True: it is called at every epoch while there are
        jobs, not only after something happened), `retries(view, job, reason) -> bool` (asked when
        a job fails and would be retried; False: the job ends as failed) and `prepare(trace)`
        (called once, before the first moment, with all jobs that are to come: for a policy that
        is given to know the workload).
    seed
        Of everything that is drawn.
    keep_intervals
        Whether to keep which job held which GPUs and when.
    told
        The scenario as the view shows it; if none, as policies believe it.

    Notes
    -----
    A moment delivers all its events, ordered by kind: ends of phases, jobs and trials; failures;
    nodes; arrivals; spot nodes that are taken away. Then the policy is called once, if the moment
    is an epoch and something happened since the last call, or if an event triggers it: "arrival"
    stands for new jobs, jobs that are back in the queue and nodes that are ready, "finish" for ends
    and failures.

    The rollout ends when all jobs have, at `scenario.end_s`, or when nothing can happen any more:
    jobs wait, nothing runs or comes, and the policy, if it is called at every epoch, has changed
    nothing for `SETTINGS.idle_epochs` of them. Such a rollout ended when the last thing happened:
    the epochs since then are taken back, unless the scenario says when it ends.

    Attributes
    ----------
    is_starved
        Whether it ended since nothing could happen any more, with jobs left.
    """

    changing = (
        *("world", "delivery", "log", "last_epoch", "idle_epochs", "is_over"),
        *("is_starved", "quiet_since"),
    )

    def __init__(
        self,
        scenario: Scenario,
        trace: Trace,
        policy: Policy,
        seed: int,
        keep_intervals: bool = False,
        told: Scenario | None = None,
    ) -> None:
        self.scenario, self.trace, self.policy, self.seed = scenario, trace, policy, seed
        told = believed(scenario, seed) if told is None else told
        self.world = Simulation(scenario, trace, seed, keep_intervals, told)
        self.delivery = Delivery(scenario, self.world, policy)
        self.log = EpochLog()
        self.epoch_us = max(1, round(scenario.epoch_s * US))
        self.end_us = None if scenario.end_s is None else round(scenario.end_s * US)
        self.last_epoch = -1
        self.idle_epochs = 0
        self.is_over = self.is_starved = False
        self.quiet_since: tuple[int, ...] | None = None  # as `_moment` has it
        prepare = getattr(policy, "prepare", None)
        if prepare is not None:
            prepare(trace)

    def run(self, progress: Callable[[float], None] | None = None) -> Record:
        """Go on to the end; `progress` is called now and then with the share of jobs ended."""
        delivery, often = self.delivery, max(1, len(self.trace) // 100)
        told = delivery.ended_jobs
        while self.step():
            if progress is not None and delivery.ended_jobs >= told + often:
                told = delivery.ended_jobs
                progress(self.share)
        if progress is not None:
            progress(self.share)
        return self.record()

    @property
    def share(self) -> float:
        """The share of jobs that have ended."""
        return self.delivery.ended_jobs / len(self.trace) if len(self.trace) else 1.0

    @property
    def now_us(self) -> int:
        """The present moment."""
        return self.world.now

    def step(self) -> bool:
        """Go on by one moment; return False if there was none left.

        Raises
        ------
        InvalidDecision
            If the policy breaks a rule of the cluster; nothing of its decision was applied.
        """
        time = None if self.is_over else self._next_time()
        if time is None or (self.end_us is not None and time > self.end_us):
            self._finish(is_stuck=time is None)
            return False
        world, delivery = self.world, self.delivery
        world.go_to(time)
        if delivery.deliver():
            self.quiet_since = None
        is_epoch = time % self.epoch_us == 0 and time > self.last_epoch
        if delivery.is_triggered or (is_epoch and self._wants_epoch()):
            self._decide(is_epoch)
        else:
            world.settle()
        return True

    def record(self) -> Record:
        """Return what has happened so far."""
        return record_of(self)

    def saved(self) -> dict[str, Any]:
        """Return all that changes, the policy's state included, as plain data."""
        state = getattr(self.policy, "state", None)
        return {"engine": self.snapshot(), "policy": None if state is None else state()}

    def go_on_from(self, saved: Mapping[str, Any]) -> None:
        """Go on from what another engine has saved, which was made as this one was."""
        self.restore(saved["engine"])
        restore = getattr(self.policy, "restore", None)
        if restore is not None:
            restore(saved["policy"])

    def _next_time(self) -> int | None:
        """Return the time of the next moment, None if nothing can happen any more."""
        delivery = self.delivery
        if delivery.ended_jobs == len(self.trace):
            return None
        time = delivery.next_time()
        if time is None and self.quiet_since is None:
            self.quiet_since = self._moment()
        goes_on = time is not None or self.idle_epochs < SETTINGS.idle_epochs
        if goes_on and self._wants_epoch():
            epoch = (max(self.world.now, self.last_epoch) // self.epoch_us + 1) * self.epoch_us
            time = epoch if time is None else min(time, epoch)
        if time is None:
            return None
        if delivery.troubles:
            time = min(time, delivery.troubles[0][0])
        loss = self.world.fleet.next_loss()
        return time if loss is None else min(time, loss)

    def _wants_epoch(self) -> bool:
        """Return whether the policy is to be called at the next epoch."""
        if self.delivery.is_changed:
            return True
        state = self.world.state
        return getattr(self.policy, "every_epoch", False) and bool(state.waiting or state.running)

    def _finish(self, is_stuck: bool) -> None:
        is_cut = self.delivery.ended_jobs < len(self.trace)
        if not self.is_over and is_cut:
            self.is_starved = is_stuck
            if self.end_us is not None:
                self.world.go_to(self.end_us)
            elif self.quiet_since is not None:
                self._go_back(self.quiet_since)
        self.is_over = True

    def _moment(self) -> tuple[int, ...]:
        return (*self.world.integrals(), len(self.log), self.delivery.count)

    def _go_back(self, moment: tuple[int, ...]) -> None:
        *integrals, rows, self.delivery.count = moment
        self.world.go_back(integrals)
        self.log.cut(rows)

    def _decide(self, is_epoch: bool) -> None:
        """Call the policy, apply what it decides, and note it."""
        world, delivery, view = self.world, self.delivery, self.world.view
        view.open(world.now, is_epoch, world.spent_gpu_us, world.billed_usd)
        view.arrived, view.ended = delivery.arrived, delivery.ended
        view.failed, view.advanced = delivery.failed, delivery.advanced
        try:
            decision = self.policy.decide(view)
            if not isinstance(decision, Decision):
                raise InvalidDecision("no-decision", _no_decision(self.policy, decision))
            changes = 0 if decision is NOTHING else world.apply(decision)
            is_news = decision is not NOTHING and (changes > 0 or world.has_news)
        except InvalidDecision as error:
            error.time_s = world.now / US
            raise
        finally:
            world.settle()
        if is_news:
            self.quiet_since = None
        self.idle_epochs = 0 if delivery.is_changed or is_news else self.idle_epochs + 1
        if is_epoch:
            self.last_epoch = world.now
        delivery.forget()
        self._note(changes, decision.solves)

    def _note(self, changes: int, solves: Sequence[SolveRecord]) -> None:
        world, state = self.world, self.world.state
        whole = (
            world.now,
            len(state.waiting),
            len(state.running),
            state.busy_gpus,
            state.ready_gpus - state.busy_gpus,
            world.fleet.rented,
            changes,
            world.busy_gpu_us,
            world.available_gpu_us,
            world.spent_gpu_us,
        )
        meter = world.meter
        power = (0.0, 0.0) if meter is None else (meter.watts, meter.joules(world.now))
        self.log.append(whole, (*power, world.billed_usd), solves)


def _no_decision(policy: Policy, found: object) -> str:
    what = "nothing" if found is None else f"an object of type {type(found).__name__}"
    text = f"decide() of policy '{policy.name}' returned {what}"
    return f"{text}; expected an optsched.rollout.Decision, or NOTHING for no change"
