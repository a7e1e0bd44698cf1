"""compare(): several policies over the same traces, as ratios to the first."""

from __future__ import annotations

import warnings
from operator import index
from typing import TYPE_CHECKING

from optsched.executors import is_lost, submitted
from optsched.rollout.code_in_files import refuse_policies
from optsched.rollout.registry import draws, label_of, make
from optsched.rollout.resampling import resampled
from optsched.rollout.results.policy_comparison import Comparison
from optsched.rollout.results.starvation import tell_starvation
from optsched.rollout.run import simulate
from optsched.rollout.trace_source import jobs_of, scenario_of, with_trace
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.run import Rollout
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.trace_source import TraceLike

    Progress = Callable[[float], None] | None
    Task = tuple[PolicyLike, Trace, int]


def compare(
    scenario: Scenario | str | Path,
    policies: Sequence[PolicyLike] | None = None,
    *,
    trace: TraceLike | None = None,
    seeds: int | Iterable[int] = 1,
    resample: int | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
) -> Comparison:
    """Run several policies over the same traces.

    Parameters
    ----------
    scenario, trace
        As in `optsched.simulate`.
    policies
        As `optsched.simulate` takes them, your own ones too; ratios are to the first. By default
        those that the scenario names.
    seeds
        How many seeds, 0, 1, ...; or which, such as ``range(5)`` or ``[3, 7]``. Each draws a trace
        of its own where it is generated, and is the same for every policy. Of one trace, such as a
        file's, a policy for which the seed draws nothing is run once, and has no intervals.
    resample
        Draw the trace of each seed from that one trace, in blocks of so many jobs; see
        `optsched.rollout.resampling.resampled`. The same traces for every policy.
    executor
        Runs the rollouts, for example a `concurrent.futures.ProcessPoolExecutor`; by default they
        run one after the other. What a dead worker leaves is simulated in this process.
    progress
        Called now and then with the share that is done.

    Raises
    ------
    ValueError
        If there is no seed, no policy or one twice, or nothing to resample; and whatever
        `optsched.simulate` raises.

    Examples
    --------
    >>> import optsched
    >>> comparison = optsched.compare("philly-small", ["fifo", "las"])
    >>> bool(comparison.frame().loc["las", "jct_mean_s_ratio"] < 1)
    True
    """
    where = with_trace(scenario_of(scenario), trace)
    chosen: Sequence[PolicyLike] = where.policies if policies is None else policies
    if policies is None:
        refuse_policies(where)
    by_name = {label_of(policy): policy for policy in chosen}
    numbers = _numbers(seeds)
    if not by_name or len(by_name) < len(chosen):
        found = ", ".join(map(label_of, chosen)) or "none"
        raise ValueError(f"policies: expected some, each once, found {found}")
    for policy in chosen:  # a misspelt one must not be found after hours
        make(policy, where, 0)
    traces = _traces(where, trace, numbers, resample)
    is_one = len(traces) == 1
    runs = {
        name: len(numbers) if not is_one or _draws(where, policy) else 1
        for name, policy in by_name.items()
    }
    tasks = [
        (policy, traces[n % len(traces)], seed)
        for name, policy in by_name.items()
        for n, seed in enumerate(numbers[: runs[name]])
    ]
    run = _in_turn if executor is None else _on(executor)
    done = iter(list(run(where, tasks, progress)))
    firsts = {name: [next(done) for _ in range(count)] for name, count in runs.items()}
    rollouts = {
        name: tuple(firsts[name][n % runs[name]] for n in range(len(numbers))) for name in by_name
    }
    return Comparison(rollouts, is_one and len(numbers) > 1, resample, numbers)


def _numbers(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds that are asked for."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise ValueError(f"seeds: must be at least 1, found {seeds}")
        return tuple(range(seeds))
    numbers = tuple(map(index, seeds))
    if not numbers or len(set(numbers)) < len(numbers) or min(numbers) < 0:
        found = ", ".join(map(str, numbers)) or "none"
        raise ValueError(f"seeds: expected some, 0 or more, each once, found {found}")
    return numbers


def _traces(
    scenario: Scenario, trace: TraceLike | None, seeds: Sequence[int], resample: int | None
) -> list[Trace]:
    """Return a trace for each seed, or the only one that there is."""
    is_drawn = scenario.trace.generator is not None and not isinstance(trace, Trace)
    if resample is not None and (is_drawn or len(seeds) < 2):
        reason = "each seed draws a trace of its own" if is_drawn else "give several seeds"
        raise ValueError(f"resample: it draws a trace for each seed from one; {reason}")
    if is_drawn:
        return [jobs_of(scenario, trace, seed) for seed in seeds]
    one = jobs_of(scenario, trace)
    if resample is None:
        return [one]
    return [resampled(one, resample, seed) for seed in seeds]


def _draws(scenario: Scenario, policy: PolicyLike) -> bool:
    """Tell whether rollouts of the same jobs may differ between seeds."""
    return scenario.events is not None or scenario.estimates.kind == "noisy" or draws(policy)


def _in_turn(scenario: Scenario, tasks: list[Task], progress: Progress) -> Iterator[Rollout]:
    for number, (name, trace, seed) in enumerate(tasks):
        tell = part(progress, number, len(tasks))
        yield simulate(scenario, name, trace=trace, seed=seed, progress=tell)


def part(progress: Progress, number: int, count: int) -> Progress:
    """Return what tells the progress of one of several equal parts as that of all."""
    if progress is None:
        return None
    return lambda share: progress((number + share) / count)


def _on(executor: Executor) -> Callable[..., Iterator[Rollout]]:
    def run(scenario: Scenario, tasks: list[Task], progress: Progress) -> Iterator[Rollout]:
        futures = [
            submitted(executor, simulate, scenario, name, trace=trace, seed=seed)
            for name, trace, seed in tasks
        ]
        is_told = False
        for number, (task, future) in enumerate(zip(tasks, futures, strict=True), start=1):
            try:
                rollout = future.result()
            except Exception as error:
                if not is_lost(error):
                    raise
                if not is_told:
                    text = "a worker died; what it left is simulated in this process"
                    warnings.warn(text, RuntimeWarning, stacklevel=4)
                is_told = True
                name, trace, seed = task
                rollout = simulate(scenario, name, trace=trace, seed=seed)
            else:
                tell_starvation(rollout.record)
            yield rollout
            if progress is not None:
                progress(number / len(tasks))

    return run
