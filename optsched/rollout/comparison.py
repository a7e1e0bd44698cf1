"""compare(): several policies over the same traces, as ratios to the first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from optsched.instance import html_rows
from optsched.rollout.jobs import jobs_of, scenario_of, with_trace
from optsched.rollout.metrics import METRICS
from optsched.rollout.registry import make
from optsched.rollout.run import Rollout, rollout
from optsched.traces.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from optsched.rollout.jobs import TraceLike
    from optsched.rollout.scenario import Scenario

    Floats = NDArray[np.float64]
    Progress = Callable[[float], None] | None
    Task = tuple[str, int]

RATIOS = (
    "jct_mean_s",
    "jct_median_s",
    "jct_p95_s",
    "jct_p99_s",
    "jct_geomean_s",
    "makespan_s",
    "queueing_delay_mean_s",
    "utilization",
    "gpu_hours",
    "rented_gpu_hours",
    "cost_usd",
    "energy_kwh",
)
"""Metrics of which `Comparison.frame` gives ratios and intervals."""

CONFIDENCE, RESAMPLES = 0.95, 9999


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rollouts of several policies, each with the same seeds and so the same traces.

    Attributes
    ----------
    rollouts
        By policy, in the order asked for, one for each seed.
    """

    rollouts: dict[str, tuple[Rollout, ...]]

    def frame(self) -> pd.DataFrame:
        """Return one row per policy: the metrics, and ratios to the first policy.

        Returns
        -------
        pandas.DataFrame
            Each metric is the mean over the seeds. For those in `RATIOS`, `<metric>_ratio` is the
            geometric mean over the seeds of the ratio to the first policy. With several seeds
            `..._low` and `..._high` beside both are 95 % bootstrap intervals (percentiles; seeds
            are resampled).
        """
        import pandas as pd

        return pd.DataFrame(self._rows, index=pd.Index(list(self.rollouts), name="policy"))

    @cached_property
    def _rows(self) -> list[dict[str, float | None]]:
        first = next(iter(self.rollouts))
        return [self._row(name, first) for name in self.rollouts]

    @property
    def seeds(self) -> int:
        """How many seeds each policy was run with."""
        return len(next(iter(self.rollouts.values())))

    def plot(self) -> Figure:
        """Draw JCTs, utilisation, cost and power of the first seed, a line for each policy."""
        from optsched.rollout.plot import overview

        return overview({name: runs[0].record for name, runs in self.rollouts.items()})

    def __repr__(self) -> str:
        name = next(iter(self.rollouts.values()))[0].record.scenario.name
        return f"<Comparison on {name}: {', '.join(self.rollouts)}; seeds: {self.seeds}>"

    def __str__(self) -> str:
        return str(self._short().to_string())

    def _repr_html_(self) -> str:
        first = next(iter(self.rollouts.values()))[0].record
        rows = {"scenario": first.scenario.name, "jobs": f"{len(first.trace):,}"}
        rows |= {"seeds": str(self.seeds), "ratios": f"to {next(iter(self.rollouts))}"}
        html: str = self._short().to_html()
        return html_rows(rows) + html

    def _short(self) -> pd.DataFrame:
        keys = ("jct_mean_s", "jct_p99_s", "makespan_s", "utilization", "cost_usd", "energy_kwh")
        frame = self.frame()
        columns = [name for key in keys for name in (key, f"{key}_ratio") if name in frame]
        return frame[columns].dropna(axis="columns", how="all")

    @cached_property
    def _values(self) -> dict[str, dict[str, Floats]]:
        """By policy and metric the values of the seeds, NaN where there is none."""
        import numpy as np

        table = {}
        for name, runs in self.rollouts.items():
            told = [run.metrics for run in runs]
            table[name] = {key: np.array([t[key] for t in told], dtype=float) for key in METRICS}
        return table

    def _row(self, name: str, first: str) -> dict[str, float | None]:
        row: dict[str, float | None] = {}
        for key in METRICS:
            values = self._values[name][key]
            row[key] = float(values.mean())
            if key not in RATIOS:
                continue
            row |= _interval(key, values)
            ratios = _ratios(values, self._values[first][key])
            row[f"{key}_ratio"] = math.exp(ratios.mean()) if len(ratios) else None
            row |= {k: v if v is None else math.exp(v)
                    for k, v in _interval(f"{key}_ratio", ratios, len(values)).items()}  # fmt: skip
        return row


def compare(
    scenario: Scenario | str | Path,
    policies: Sequence[str] | None = None,
    *,
    trace: TraceLike | None = None,
    seeds: int = 1,
    executor: Executor | None = None,
    progress: Progress = None,
) -> Comparison:
    """Run several policies over the same traces.

    Parameters
    ----------
    scenario, trace
        As in `optsched.rollout`.
    policies
        Names with options; ratios are to the first. By default those that the scenario names.
    seeds
        How many seeds, 0, 1, ...: each draws a trace of its own where it is generated, and is the
        same for every policy.
    executor
        Runs the rollouts, for example a `concurrent.futures.ProcessPoolExecutor`; by default they
        run one after the other.
    progress
        Called now and then with the share that is done.

    Raises
    ------
    ValueError
        If there is no seed, no policy or one twice; and whatever `optsched.rollout` raises.

    Examples
    --------
    >>> import optsched
    >>> found = optsched.compare("philly-small", ["fifo", "las"])
    >>> bool(found.frame().loc["las", "jct_mean_s_ratio"] < 1)
    True
    """
    where = with_trace(scenario_of(scenario), trace)
    names = list(where.policies if policies is None else policies)
    if seeds < 1:
        raise ValueError(f"seeds: must be at least 1, found {seeds}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"policies: expected some, each once, found {', '.join(names) or 'none'}")
    for name in names:  # a misspelt one must not be found after hours
        make(name, where, 0)
    is_drawn = where.trace.generator is not None and not isinstance(trace, Trace)
    drawn = [jobs_of(where, trace, seed) for seed in range(seeds if is_drawn else 1)]
    traces = drawn if is_drawn else drawn * seeds
    tasks = [(name, seed) for name in names for seed in range(seeds)]
    run = _in_turn if executor is None else _on(executor)
    done = dict(zip(tasks, run(where, traces, tasks, progress), strict=True))
    return Comparison({name: tuple(done[name, s] for s in range(seeds)) for name in names})


def _in_turn(
    scenario: Scenario, traces: list[Trace], tasks: list[Task], progress: Progress
) -> Iterator[Rollout]:
    for number, (name, seed) in enumerate(tasks):
        tell = _part(progress, number, len(tasks))
        yield rollout(scenario, name, trace=traces[seed], seed=seed, progress=tell)


def _part(progress: Progress, number: int, count: int) -> Progress:
    """Return what tells the progress of one of several equal parts as that of all."""
    if progress is None:
        return None
    return lambda share: progress((number + share) / count)


def _on(executor: Executor) -> Callable[..., Iterator[Rollout]]:
    def run(
        scenario: Scenario, traces: list[Trace], tasks: list[Task], progress: Progress
    ) -> Iterator[Rollout]:
        futures = [
            executor.submit(rollout, scenario, name, trace=traces[seed], seed=seed)
            for name, seed in tasks
        ]
        for number, future in enumerate(futures, start=1):
            yield future.result()
            if progress is not None:
                progress(number / len(tasks))

    return run


def _ratios(values: Floats, base: Floats) -> Floats:
    """Return the logarithms of the ratios that can be told."""
    import numpy as np

    told = (values > 0) & (base > 0)
    logs: Floats = np.log(values[told] / base[told])
    return logs


def _interval(key: str, values: Floats, seeds: int | None = None) -> dict[str, float | None]:
    """Return a bootstrap interval of the mean; nothing if there is but one seed."""
    import numpy as np
    from scipy.stats import bootstrap

    if (len(values) if seeds is None else seeds) < 2:
        return {}
    low: float | None = None
    high: float | None = None
    if len(values) and not np.isnan(values).any():
        low = high = float(values.mean())
    if low is not None and len(values) > 1 and np.ptp(values) > 0:
        found = bootstrap(
            (values,), np.mean, confidence_level=CONFIDENCE, n_resamples=RESAMPLES,
            method="percentile", rng=np.random.default_rng(0),
        ).confidence_interval  # fmt: skip
        low, high = float(found.low), float(found.high)
    return {f"{key}_low": low, f"{key}_high": high}
