"""What compare() gives back: metrics of several policies, and ratios to the first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from optsched.instance import html_rows
from optsched.rollout.results.as_recorded import NAME, RecordedSchedule, recorded_schedule
from optsched.rollout.results.bounds.rows import BELOW, BoundRow, means
from optsched.rollout.results.comparison_rows import RATIOS as RATIOS
from optsched.rollout.results.comparison_rows import basis_of, comparison_row
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.results.paired_differences import Difference, differences

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.documents.arrays import Floats
    from optsched.rollout.results.comparison_files import ComparisonDocument
    from optsched.rollout.run import Rollout


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
    bounds
        Of `bounded`: what no schedule can be below, by policy and seed.

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
    bounds: tuple[BoundRow, ...] = ()

    def frame(self) -> pd.DataFrame:
        """Return one row per policy: the metrics, and ratios to the first policy.

        If the trace has a record, a last row `as recorded` measures it; see `recorded`.

        Returns
        -------
        pandas.DataFrame
            Each metric is the mean over the seeds. For those in `RATIOS`, `<metric>_ratio` is the
            geometric mean over the seeds of the ratio to the first policy. With several seeds
            `..._low` and `..._high` beside both are 95 % bootstrap intervals (BCa from 10 seeds
            on, else percentiles; seeds are resampled); of traces that were drawn in blocks from
            one, the 2.5th and 97.5th percentile over these. There are none where nothing differs
            between seeds: see `basis`. `seeds` is how many rollouts a row is of. With bounds,
            `<metric>_bound` and `<metric>_above` are means over the seeds; see `bounded`.
        """
        import pandas as pd

        return pd.DataFrame(self._rows, index=pd.Index(list(self.values), name="policy"))

    def differences(self) -> pd.DataFrame:
        """Return what each policy has more of than the first one, on the same jobs.

        Every policy has the same traces and random numbers with the same seed, so that differences
        are taken seed by seed: an interval that does not hold 0 tells two policies apart, even
        where their own intervals overlap. Of one trace, with which seeds change nothing, means over
        jobs have an interval over blocks of its jobs in the order of submission; it says how much
        hangs on which of these jobs came, not how other jobs would have met each other.

        Returns
        -------
        pandas.DataFrame
            By policy and metric: `value`, `base` (of the first policy), `difference`, `low` and
            `high` (95 %; NaN if there is no interval), and `over`, what the interval is over.
            Of traces drawn in blocks (`resample`) it holds the middle 95 % of them.

        Examples
        --------
        >>> import optsched
        >>> compared = optsched.compare("philly-small", ["fifo", "srtf"], seeds=3)
        >>> told = compared.differences().loc[("srtf", "jct_mean_s")]
        >>> bool(told["high"] < 0), told["over"]
        (True, '3 seeds')
        """
        import pandas as pd

        keys = list(Difference.__dataclass_fields__)
        table = pd.DataFrame(map(vars, self.paired), columns=keys)
        table[keys[2:-1]] = table[keys[2:-1]].astype(float)
        return table.set_index(keys[:2])

    def bounded(self) -> Comparison:
        """Return the same with certified bounds: what no schedule of these jobs can be below.

        Each rollout is set beside the bound of the least class of schedules that it is in; see
        `optsched.bound`. The recorded schedule is, too: below the bound, it tells in `warnings`
        that the modelled world is too slow.

        Raises
        ------
        UnknownPhysics
            If no bound is known for the scenario.

        Examples
        --------
        >>> import optsched
        >>> scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
        >>> compared = optsched.compare(scenario, ["fifo", "srtf"]).bounded()
        >>> bool((compared.frame()["jct_mean_s_above"] >= 0).all())
        True
        """
        from optsched.bounds.above import rows_above

        return replace(self, bounds=rows_above(self.rollouts, self.recorded))

    def runs(self) -> pd.DataFrame:
        """Return one row per policy and seed: all metrics; of one that seeds change not, one row.

        Examples
        --------
        >>> import optsched
        >>> scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
        >>> optsched.compare(scenario, ["fifo", "srtf"], seeds=[3, 7]).runs()["seed"].tolist()
        [3, 7, 3, 7]
        """
        import pandas as pd

        bounds = {(row.policy, row.seed): row.figures() for row in self.bounds}
        rows = [
            {
                "policy": name,
                "seed": run.record.seed,
                **run.metrics,
                **bounds.get((name, run.record.seed), {}),
            }
            for name, runs in self.rollouts.items()
            for run in dict.fromkeys(runs)
        ]
        return pd.DataFrame(rows)

    def document(self) -> ComparisonDocument:
        """Return all of it as data: `optsched.write` writes it, and `optsched.report` reads it."""
        from optsched.rollout.results.comparison_files import comparison_document

        return comparison_document(self)

    @cached_property
    def paired(self) -> tuple[Difference, ...]:
        """The differences of `differences`, one by one."""
        return tuple(differences(self))

    @cached_property
    def _rows(self) -> list[dict[str, float | None]]:
        first = next(iter(self.rollouts))
        return [comparison_row(self, name, first) | self._bound_of(name) for name in self.values]

    def _bound_of(self, name: str) -> dict[str, float | None]:
        return means(row for row in self.bounds if row.policy == name) if self.bounds else {}

    @cached_property
    def recorded(self) -> RecordedSchedule | None:
        """The schedule that the trace recorded, if it did and seeds draw no other jobs."""
        if self.block is not None or not (self.is_one_trace or len(self.seeds) == 1):
            return None
        first = next(iter(self.rollouts.values()))[0].record
        return recorded_schedule(first.trace, first.scenario)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where the recorded schedule breaks the world of the scenario, or is below its bound."""
        told = self.recorded.warnings if self.recorded is not None else ()
        is_below = any(row.is_below for row in self.bounds if row.policy == NAME)
        return (*told, f"{NAME}: {BELOW}") if is_below else told

    @cached_property
    def varying(self) -> frozenset[str]:
        """The policies of which some metric differs between seeds."""
        import numpy as np

        return frozenset(
            name
            for name, values in self.values.items()
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
        """Return what a policy is called in tables: in brackets what it has become, or foresees."""
        from optsched.rollout.declarations.names import KNOWS_ALL, knows_all

        told = [self.became[policy]] if policy in self.became else []
        told += [KNOWS_ALL] if knows_all(policy) else []
        return f"{policy} ({'; '.join(told)})" if told else policy

    @property
    def basis(self) -> str:
        """What means and intervals are over, in words; empty if there is but one figure each."""
        return basis_of(self)

    @property
    def left_out(self) -> str:
        """Say which jobs are in no mean, as they have not ended; empty if all have."""
        told = []
        for name, values in self.values.items():
            count, jobs = float(values["unfinished"].mean()), float(values["jobs"].mean())
            if count:
                told.append(f"{name} {count:,.4g} of {jobs:,.4g}")
        return f"Unfinished jobs, in no mean of times: {', '.join(told)}." if told else ""

    def plot_bounds(self, ax: Axes | None = None) -> Axes:
        """Draw mean JCTs as bars, with the bound as a line; return the axes; see `bounded`.

        Raises
        ------
        ValueError
            If there are no bounds.
        """
        from optsched.rollout.results.bounds.bars import drawn

        return drawn(self, ax)

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
        columns += ["jct_mean_s_above"] if self.bounds else []
        columns += ["unfinished"] if self.left_out else []
        return frame[columns].dropna(axis="columns", how="all").rename(index=self.label)

    @cached_property
    def values(self) -> dict[str, dict[str, Floats]]:
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
