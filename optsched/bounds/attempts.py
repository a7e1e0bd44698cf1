"""What failing attempts add to a job's time on GPUs, and what checkpoints could save of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.bounds.schedules import Schedules
    from optsched.rollout.scenario import Model, Scenario
    from optsched.traces.trace import Trace

US: Final = 1_000_000
FAILED: Final = 2
NEVER: Final = 1 << 62


class Least(NamedTuple):
    """The least that a job can have behind it at its end, over all ways to end; microseconds.

    Attributes
    ----------
    held_us
        For which a rigid job holds its gang, overheads and failing attempts included.
    progress_us
        For which an elastic job gets on at full speed in what counts for its end.
    before_us
        Between the first decision and the beginning of that.
    shift_us
        Delays before retries, averaged over what is held before them.
    end_us
        From the first decision to the end, if work is done then.
    fails_us
        The same where it ends by a failure; NEVER if it does not.
    is_straight
        Whether it can only end with its work done, without a failing attempt before.
    """

    held_us: int
    progress_us: int
    before_us: int
    shift_us: int
    end_us: int
    fails_us: int
    is_straight: bool


class _Ending(NamedTuple):
    """A way to end: after some failures, with the work done or by the last of them."""

    failures: int
    passes: bool


class Attempts:
    """Failures, retries, checkpoints and overheads of a scenario, as bounds see them."""

    def __init__(self, scenario: Scenario, schedules: Schedules) -> None:
        costs = scenario.costs
        self._schedules = schedules
        self._limits = dict(scenario.retries.limits)
        self._delay = round(scenario.retries.delay_s * US)
        every = costs.checkpoint_every_s
        self._every = None if every is None else round(every * US)
        self._loses = costs.stop_loses_work
        self._start, self._restore, self._checkpoint, self._rescale = (
            round(value * US)
            for value in (costs.start_s, costs.restore_s, costs.checkpoint_s, costs.rescale_s)
        )

    def least(self, trace: Trace, job: int, running: int, model: Model | None) -> Least:
        """Return the least of a job whose work takes so many microseconds at its best speed."""
        first, later = self.overheads(model)
        if job not in trace.failures and not self._schedules.trials:
            held = first + running
            return Least(held, running, first, 0, held, NEVER, is_straight=True)
        fails = [failure.run_us for failure in trace.failures.get(job, ())]
        ways = [
            self._after(ending, fails, running, (first, later), model)
            for ending in self._endings(trace, job, running)
        ]
        return Least(
            held_us=min(way.held_us for way in ways),
            progress_us=min(way.progress_us for way in ways),
            before_us=min(way.before_us for way in ways),
            shift_us=min(way.shift_us for way in ways),
            end_us=min(way.end_us for way in ways),
            fails_us=min(way.fails_us for way in ways),
            is_straight=all(way.is_straight for way in ways),
        )

    def overheads(self, model: Model | None) -> tuple[int, int]:
        """Return the least overhead of a first attempt, and of a later one or after a break.

        A start that is broken off soon, by a change of width or by a move where schedules may
        move jobs, leaves only that overhead.
        """
        own = None if model is None or model.rescale_s is None else round(model.rescale_s * US)
        later = self._restore if own is None else own
        if self._schedules.moves:
            later = min(later, self._restore + self._checkpoint)
        if model is not None and model.phases:
            later = min(later, self._rescale if own is None else own)
        return min(self._start if own is None else own, later), later

    def _endings(self, trace: Trace, job: int, running: int) -> Iterator[_Ending]:
        """Yield the ways in which a job can end, by the failures before its end."""
        failures = trace.failures.get(job, ())
        seen: dict[str, int] = {}
        kept = 0
        for count, failure in enumerate(failures):
            if running - kept <= failure.run_us:
                yield _Ending(count, passes=True)
            if self._every is not None:
                kept += failure.run_us
            seen[failure.reason] = seen.get(failure.reason, 0) + 1
            is_last = count + 1 == len(failures) and int(trace.status[job]) == FAILED
            over = seen[failure.reason] > self._limits.get(failure.reason, NEVER)
            if is_last or over or self._schedules.gives_up:
                yield _Ending(count + 1, passes=False)
            if is_last or over:
                return
        yield _Ending(len(failures), passes=True)

    def _after(
        self,
        ending: _Ending,
        fails: list[int],
        running: int,
        overheads: tuple[int, int],
        model: Model | None,
    ) -> Least:
        first, later = overheads
        count, failed = ending.failures, fails[: ending.failures]
        delays = self._delay * (count if ending.passes else count - 1)
        if self._schedules.trials:  # a trial can take the failure, on one GPU and at no overhead
            first = min(first, later)
            time = sum(failed)
            work = running if ending.passes else 0
            total = max(time, work) + first if ending.passes else time
            if self._every is None and ending.passes:
                total = time + work + first
            way = self._way(ending, work, 0, 0, total + delays, count)
            return way._replace(progress_us=work)
        is_elastic = model is not None and bool(model.phases)
        lost = sum(self._lost(run, later, is_elastic) for run in failed)
        spent = [run + (later if n else first) for n, run in enumerate(failed)]
        if not ending.passes:
            return self._way(ending, sum(spent), 0, 0, sum(spent) + delays, count)
        overhead = first + later * count
        if self._every is None:
            held, before = overhead + sum(failed) + running, sum(spent) + delays
            before += later if count else first
        else:
            held, before = overhead + max(sum(failed), running + lost), first
        shift = self._shift(spent, held)
        way = self._way(ending, held, shift, before, held + delays, count)
        return way._replace(progress_us=running)

    def _way(
        self, ending: _Ending, held: int, shift: int, before: int, end: int, count: int
    ) -> Least:
        times = (end, NEVER) if ending.passes else (NEVER, end)
        return Least(held, 0, before, shift, *times, is_straight=ending.passes and not count)

    def _lost(self, run: int, later: int, is_elastic: bool) -> int:
        """Return what a failing attempt costs: what followed its last checkpoint, or a break.

        A stop or move right before the failure saves all work, unless the scenario says that it
        loses as much; a change of width always does.
        """
        since = run % (self._every or 1)
        return since if self._loses and not is_elastic else min(since, later)

    def _shift(self, spent: list[int], held: int) -> int:
        if not held:
            return 0
        upto, total = 0, 0
        for time in spent:
            upto += time
            total += self._delay * min(held, upto)
        return total // held
