"""compare(): several policies over the same traces, as ratios to the first."""

from __future__ import annotations

from contextlib import closing
from operator import index
from typing import TYPE_CHECKING

from optsched.rollout.code_in_files import refuse_policies
from optsched.rollout.registry import draws, label_of, make
from optsched.rollout.resampling import resampled
from optsched.rollout.results.policy_comparison import Comparison
from optsched.rollout.rollout_tasks import RolloutTask, rollouts_of
from optsched.rollout.trace_source import jobs_of, scenario_of, with_trace
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from optsched.executors.under_way import Listener
    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.trace_source import TraceLike

    Progress = Callable[[float], None] | None


def compare(
    scenario: Scenario | str | Path,
    policies: Sequence[PolicyLike] | None = None,
    *,
    trace: TraceLike | None = None,
    seeds: int | Iterable[int] = 1,
    resample: int | None = None,
    executor: Executor | int | None = None,
    cache: str | Path | None = None,
    progress: Progress = None,
    under_way: Listener | None = None,
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
        Any `concurrent.futures.Executor`; or how many processes on this machine, 1 for the one that
        calls. By default all CPUs, once that saves time. What a dead worker leaves is computed in
        this process. The results are the same.
    cache
        Folder where each rollout is kept as it ends, by the hash of scenario, trace, policy, seed
        and versions. A comparison that was killed goes on from there. Policies that are objects or
        classes are not kept.
    progress
        Called with the share of the rollouts that have ended.
    under_way
        Called with the rollouts that are running, whenever one of them is further; not of those in
        an executor of your own.

    Raises
    ------
    ValueError
        If there is no seed, no policy or one twice, or nothing to resample; and whatever
        `optsched.simulate` raises, with a note on the policy and seed, once those beside it ended.

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
    numbers = numbered(seeds)
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
        RolloutTask(where, policy, traces[n % len(traces)], seed)
        for name, policy in by_name.items()
        for n, seed in enumerate(numbers[: runs[name]])
    ]
    with closing(rollouts_of(tasks, executor, cache, progress, under_way)) as ending:
        ended = dict(ending)  # Ctrl-C here ends its processes, too
    done = iter([ended[number] for number in range(len(tasks))])
    firsts = {name: [next(done) for _ in range(count)] for name, count in runs.items()}
    rollouts = {
        name: tuple(firsts[name][n % runs[name]] for n in range(len(numbers))) for name in by_name
    }
    return Comparison(rollouts, is_one and len(numbers) > 1, resample, numbers)


def numbered(seeds: int | Iterable[int]) -> tuple[int, ...]:
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


def part(progress: Progress, number: int, count: int) -> Progress:
    """Return what tells the progress of one of several equal parts as that of all."""
    if progress is None:
        return None
    return lambda share: progress((number + share) / count)
