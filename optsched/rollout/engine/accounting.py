"""Accounts: work done and undone, and the GPU-time and energy it took, as things change.

Work and GPU-time are whole numbers of microseconds, GPU-microseconds or work units, so that the
parts of an account add up exactly. Energy is the integral of the cluster's watts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.losses import Losses
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.physics import Physics


class Accounts(Restorable):
    """What jobs have had and done so far; one list entry per job.

    GPU time is whole microseconds x GPUs held. Of `allocated`, `redone` went into work that was
    undone, `overhead` and `pre_run` into no work at all; the rest is work and `losses`. Time for
    which a job holds its GPUs after its work is done (`finish_at_epochs`) counts as overhead.
    """

    changing = (
        "first_start",
        "end",
        "outcome",
        "running",
        "allocated",
        "redone",
        "overhead",
        "pre_run",
        "attempts",
        "preemptions",
        "migrations",
        "rescales",
        "outages",
        "losses",
    )

    def __init__(self, state: State, checkpoint_every_us: int | None) -> None:
        count = len(state.status)
        self.state = state
        self.checkpoint_every_us = checkpoint_every_us
        self.first_start = [-1] * count
        self.end = [-1] * count
        self.outcome = [-1] * count
        self.running = [0] * count
        self.allocated = [0] * count
        self.redone = [0] * count
        self.overhead = [0] * count
        self.pre_run = [0] * count
        self.attempts = [0] * count
        self.preemptions = [0] * count
        self.migrations = [0] * count
        self.rescales = [0] * count
        self.outages = [0] * count
        self.losses = Losses(state)

    def settle(self, jobs: Iterable[int], now: int) -> None:
        """Count running jobs' work and GPU-time up to now."""
        state, every = self.state, self.checkpoint_every_us
        settled, widths, rates, ready_at = state.settled, state.width, state.rate, state.ready_at
        remaining, goals, attempt_us = state.remaining, state.goal, state.attempt_us
        unsaved_us, unsaved_gpu_us = state.unsaved_us, state.unsaved_gpu_us
        running, allocated = self.running, self.allocated
        for job in jobs:
            start = settled[job]
            span = now - start
            if not span:
                continue
            settled[job] = now
            width, rate, ready = widths[job], rates[job], ready_at[job]
            running[job] += span
            allocated[job] += width * span
            worked = 0  # for how long the job has really got on since `start`
            if rate and ready < now:
                worked = now - ready if ready > start else span
                before, goal = remaining[job], goals[job]
                after = before - rate * worked
                if after < goal:
                    worked, after = -((goal - before) // rate), goal
            if worked < span:
                idle = self.overhead if rate else self.pre_run  # nothing gets on in a trial
                idle[job] += width * (span - worked)
            if not worked:
                continue
            remaining[job] = after
            attempt_us[job] += worked
            unsaved_us[job] += worked
            unsaved_gpu_us[job] += width * worked
            if every is not None and unsaved_us[job] >= every:
                since = unsaved_us[job] % every
                unsaved_us[job] = since
                unsaved_gpu_us[job] = width * since
                state.saved[job] = max(goal, before - rate * (worked - since))

    def close(self, jobs: Collection[int], now: int) -> None:
        """Count running jobs' work and GPU-time up to now, where their regimes end."""
        self.settle(jobs, now)
        self.losses.end(jobs)

    def remaining(self, job: int, now: int) -> int:
        """Return the work that remains of a job now, without counting it."""
        state = self.state
        left = state.remaining[job]
        if not state.gpus_of[job]:
            return left
        span = now - max(state.settled[job], state.ready_at[job])
        return max(state.goal[job], left - state.rate[job] * span) if span > 0 else left

    def done_shares(self, jobs: Sequence[int], now: int) -> list[float]:
        """Return the shares of their work that jobs have done until now, without counting it."""
        state, shares = self.state, []
        total, remaining, goal, held = state.total, state.remaining, state.goal, state.gpus_of
        settled, ready_at, rate = state.settled, state.ready_at, state.rate
        for job in jobs:
            left, whole = remaining[job], total[job]
            if held[job]:
                since, ready = settled[job], ready_at[job]
                span = now - (since if since > ready else ready)
                if span > 0:
                    left -= rate[job] * span
                    if left < goal[job]:
                        left = goal[job]
            shares.append(1 - left / whole if whole else 1.0)
        return shares

    def attained(self, job: int, now: int) -> int:
        """Return the microseconds for which a job has held GPUs until now."""
        since = now - self.state.settled[job] if self.state.gpus_of[job] else 0
        return self.running[job] + since

    def lose(self, job: int) -> None:
        """Undo the work since the last checkpoint; the job is settled, its regime over."""
        state = self.state
        self.redone[job] += state.unsaved_gpu_us[job]
        self.losses.undo(job)
        remaining = state.remaining[job] = state.saved[job]
        state.unsaved_us[job] = state.unsaved_gpu_us[job] = 0
        tail = state.tail.get(job)
        if tail is None:
            return
        phase = state.phase[job]
        while phase and remaining > tail[phase - 1]:
            phase -= 1
        state.phase[job], state.goal[job] = phase, tail[phase]

    def save(self, jobs: Iterable[int]) -> None:
        """Write checkpoints, where the scenario has any; jobs are settled, their regimes over."""
        if self.checkpoint_every_us is None:
            return
        state = self.state
        for job in jobs:
            self.losses.save(job)
            state.saved[job] = state.remaining[job]
            state.unsaved_us[job] = state.unsaved_gpu_us[job] = 0


class Meter(Restorable):
    """The energy that the cluster has drawn.

    Attributes
    ----------
    watts
        Of the whole cluster now.
    """

    changing = ("watts", "_watts", "_joules", "_at")

    def __init__(self, physics: Physics, state: State) -> None:
        self._physics, self._state = physics, state
        self._watts = [physics.node_watts(node, state) for node in range(len(state.node_state))]
        self._units = sum(map(_units, self._watts))
        self.watts = self._units / _UNITS
        self._joules, self._at = 0.0, 0

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the exact sum follows from it."""
        super().restore(state)
        self._units = sum(map(_units, self._watts))

    def update(self, nodes: Iterable[int], now: int) -> None:
        """Ask for the watts of nodes on which something changed."""
        has_changed = False
        for node in nodes:
            watts, before = self._physics.node_watts(node, self._state), self._watts[node]
            if watts != before:
                has_changed = True
                self._units += _units(watts) - _units(before)
                self._watts[node] = watts
        if has_changed:
            self._joules, self._at = self.joules(now), now
            self.watts = self._units / _UNITS

    def joules(self, now: int) -> float:
        """Return the energy drawn until now."""
        return self._joules + self.watts * (now - self._at) / US


_UNITS = 1 << 1074
"""Of a number, so that every double is a whole number of units."""


def _units(number: float) -> int:
    """Return a number in units: sums of these are exact, and rounded once when divided."""
    above, below = number.as_integer_ratio()
    return above * (_UNITS // below)
