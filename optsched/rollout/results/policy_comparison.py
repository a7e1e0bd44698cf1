"""What compare() gives back: metrics of several policies, and ratios to the first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from optsched.instance import html_rows
from optsched.rollout.results.as_recorded import NAME, RecordedSchedule, recorded_schedule
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.settings import SETTINGS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from optsched.documents.arrays import Floats
    from optsched.rollout.run import Rollout


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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rollouts of several policies, each with the same seeds and so the same traces.

    Attributes
    ----------
    rollouts
        By policy, in the order asked for, one for each seed; the same one where the seed draws
        nothing.
    is_one_trace
        Whether all seeds ran the same jobs.
    block
        Jobs in a block, if traces were drawn from one trace in blocks.
    seeds
        The seeds that each policy was run with.

    Examples
    --------
    >>> import optsched
    >>> scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
    >>> list(optsched.compare(scenario, ["fifo", "srtf"]).rollouts)
    ['fifo', 'srtf']
    """

    rollouts: dict[str, tuple[Rollout, ...]]
    is_one_trace: bool = False
    block: int | None = None
    seeds: tuple[int, ...] = (0,)

    def frame(self) -> pd.DataFrame:
        """Return one row per policy: the metrics, and ratios to the first policy.

        If the trace has a record, a last row `as recorded` measures it; see `recorded`.

        Returns
        -------
        pandas.DataFrame
            Each metric is the mean over the seeds. For those in `RATIOS`, `<metric>_ratio` is the
            geometric mean over the seeds of the ratio to the first policy. With several seeds
            `..._low` and `..._high` beside both are 95 % bootstrap intervals (percentiles; seeds
            are resampled); of traces that were drawn in blocks from one, the 2.5th and 97.5th
            percentile over these. There are none where nothing differs between seeds: see `basis`.
        """
        import pandas as pd

        return pd.DataFrame(self._rows, index=pd.Index(list(self._values), name="policy"))

    @cached_property
    def _rows(self) -> list[dict[str, float | None]]:
        first = next(iter(self.rollouts))
        return [self._row(name, first) for name in self._values]

    @cached_property
    def recorded(self) -> RecordedSchedule | None:
        """The schedule that the trace recorded, if it did and seeds draw no other jobs."""
        if self.block is not None or not (self.is_one_trace or len(self.seeds) == 1):
            return None
        first = next(iter(self.rollouts.values()))[0].record
        return recorded_schedule(first.trace, first.scenario)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the recorded schedule breaks the world of the scenario."""
        return self.recorded.warnings if self.recorded is not None else ()

    @cached_property
    def _varying(self) -> frozenset[str]:
        """The policies of which some metric differs between seeds."""
        import numpy as np

        return frozenset(
            name
            for name, values in self._values.items()
            if any(not np.array_equal(row, row[::-1][:1].repeat(len(row)), equal_nan=True)
                   for row in values.values())
        )  # fmt: skip

    @cached_property
    def became(self) -> dict[str, str]:
        """By policy what it has become, if the scenario lacks what it is about."""
        from optsched.rollout.declarations.names import became_of

        scenario = next(iter(self.rollouts.values()))[0].record.scenario
        told = {name: became_of(scenario, name) for name in self.rollouts}
        return {name: text for name, text in told.items() if text}

    def label(self, policy: str) -> str:
        """Return what a policy is called in tables: in brackets what it has become."""
        return f"{policy} ({self.became[policy]})" if policy in self.became else policy

    @property
    def basis(self) -> str:
        """What means and intervals are over, in words; empty for one seed."""
        means = f"Means over {len(self.seeds)} "
        if len(self.seeds) == 1:
            return ""
        if self.block is not None:
            drawn = f"traces, drawn from one in blocks of {self.block:,} jobs; "
            return f"{means}{drawn}ratios: geometric means, with 95 % intervals over these traces."
        ratios = "ratios: geometric means, with 95 % bootstrap intervals"
        if not self.is_one_trace:
            return f"{means}seeds; {ratios}."
        if not self._varying:
            return (
                "One trace, and seeds change nothing: figures of one rollout each, no intervals. "
                "--resample JOBS (resample=) draws traces from it in blocks."
            )
        alone = "of what policies and physics draw, not of other jobs"
        return f"One trace. {means}seeds; {ratios} {alone}."

    @property
    def left_out(self) -> str:
        """Say which jobs are in no mean, as they have not ended; empty if all have."""
        told = []
        for name, values in self._values.items():
            count, jobs = float(values["unfinished"].mean()), float(values["jobs"].mean())
            if count:
                told.append(f"{name} {count:,.4g} of {jobs:,.4g}")
        return f"Unfinished jobs, in no mean of times: {', '.join(told)}." if told else ""

    def plot(self) -> Figure:
        """Draw JCTs, utilisation, cost and power of the first seed, a line for each policy."""
        from optsched.rollout.results.plot import overview

        return overview({self.label(key): runs[0].record for key, runs in self.rollouts.items()})

    def __repr__(self) -> str:
        name = next(iter(self.rollouts.values()))[0].record.scenario.name
        return f"<Comparison on {name}: {', '.join(self.rollouts)}; seeds: {len(self.seeds)}>"

    def __str__(self) -> str:
        table = str(self._short().to_string())
        return "\n".join([table, *filter(None, (self.left_out, *self.warnings))])

    def _repr_html_(self) -> str:
        first = next(iter(self.rollouts.values()))[0].record
        rows = {"scenario": first.scenario.name, "jobs": f"{len(first.trace):,}"}
        rows |= {"seeds": ", ".join(map(str, self.seeds))}
        rows |= {"ratios": f"to {next(iter(self.rollouts))}"}
        rows |= {"basis": self.basis} if self.basis else {}
        rows |= {"unfinished": self.left_out} if self.left_out else {}
        rows |= {NAME: "; ".join(self.warnings)} if self.warnings else {}
        html: str = self._short().to_html()
        return html_rows(rows) + html

    def _short(self) -> pd.DataFrame:
        keys = ("jct_mean_s", "jct_p99_s", "makespan_s", "utilization", "cost_usd", "energy_kwh")
        frame = self.frame()
        columns = [name for key in keys for name in (key, f"{key}_ratio") if name in frame]
        columns += ["unfinished"] if self.left_out else []
        return frame[columns].dropna(axis="columns", how="all").rename(index=self.label)

    @cached_property
    def _values(self) -> dict[str, dict[str, Floats]]:
        """By policy and metric the values of the seeds, NaN where there is none."""
        import numpy as np

        table = {}
        for name, runs in self.rollouts.items():
            told = [run.metrics for run in runs]
            table[name] = {key: np.array([t[key] for t in told], dtype=float) for key in METRICS}
        if self.recorded is not None:
            alike = self.recorded.metrics.items()
            table[NAME] = {
                key: np.full(len(self.seeds), value, dtype=float) for key, value in alike
            }
        return table

    def _row(self, name: str, first: str) -> dict[str, float | None]:
        row: dict[str, float | None] = {}
        for key in METRICS:
            values = self._values[name][key]
            row[key] = float(values.mean() if name in self._varying else values[0])
            if key not in RATIOS:
                continue
            ratios = _ratios(values, self._values[first][key])
            row[f"{key}_ratio"] = math.exp(ratios.mean()) if len(ratios) else None
            if self._varying:
                low, high = self._interval(values, {name})
                row |= {f"{key}_low": low, f"{key}_high": high}
                ends = self._interval(ratios, {name, first})
                low, high = (None if end is None else math.exp(end) for end in ends)
                row |= {f"{key}_ratio_low": low, f"{key}_ratio_high": high}
        return row

    def _interval(self, values: Floats, policies: set[str]) -> tuple[float | None, float | None]:
        """Return the interval of the mean of values of policies, if any of these varies."""
        import numpy as np

        if not policies & self._varying or not len(values) or np.isnan(values).any():
            return None, None
        if len(values) == 1 or np.ptp(values) == 0:
            return float(values.mean()), float(values.mean())
        if self.block is not None:  # each is a draw of the whole already
            share = 100 * (1 - SETTINGS.confidence) / 2
            low, high = np.percentile(values, [share, 100 - share])
            return float(low), float(high)
        return _bootstrapped(values)


def _ratios(values: Floats, base: Floats) -> Floats:
    """Return the logarithms of the ratios that can be told."""
    import numpy as np

    told = (values > 0) & (base > 0)
    logs: Floats = np.log(values[told] / base[told])
    return logs


def _bootstrapped(values: Floats) -> tuple[float, float]:
    """Return a bootstrap interval of the mean."""
    import numpy as np
    from scipy.stats import bootstrap

    interval = bootstrap(
        (values,), np.mean, confidence_level=SETTINGS.confidence, n_resamples=SETTINGS.resamples,
        method="percentile", rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return float(interval.low), float(interval.high)
