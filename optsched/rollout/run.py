"""simulate(): one policy over one trace."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.instance import html_rows
from optsched.rollout.checkpoints.checkpoint import check_folder, key_of, run_in_folder
from optsched.rollout.declarations.names import known_as
from optsched.rollout.engine.decision import InvalidDecision
from optsched.rollout.registry import label_of, make, origin
from optsched.rollout.results.metrics import METRICS, metrics, metrics_by
from optsched.rollout.results.outputs import epochs_frame, intervals_frame, jobs_frame, timing
from optsched.rollout.results.starvation import tell_starvation
from optsched.rollout.trace_source import jobs_of, scenario_of, with_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from matplotlib.figure import Figure

    from optsched.rollout.engine.engine import Engine
    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.rollout.trace_source import TraceLike


@dataclass(frozen=True, eq=False)
class Rollout:
    """The outcome of one policy on one trace.

    Attributes
    ----------
    record
        What everything else is computed from, in whole microseconds.
    wall_s
        Seconds that it took.

    Examples
    --------
    >>> import optsched
    >>> scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 40})
    >>> optsched.simulate(scenario, "srtf").metrics_by().index.names
    FrozenList(['by', 'group'])
    """

    record: Record
    wall_s: float

    @cached_property
    def metrics(self) -> dict[str, float | int | None]:
        """The metrics, by name; `optsched.rollout.METRICS` says what each is."""
        return metrics(self.record)

    def metrics_of(self, first: int, last: int) -> dict[str, float | int | None]:
        """Return the metrics of the jobs first, ..., last - 1, to drop warm-up and drain."""
        return metrics(self.record, (first, last))

    def metrics_by(self) -> pd.DataFrame:
        """Return the metrics of jobs by class of size and by status."""
        return metrics_by(self.record)

    def jobs(self) -> pd.DataFrame:
        """Return one row per job, with times in seconds."""
        return jobs_frame(self.record)

    def epochs(self) -> pd.DataFrame:
        """Return one row per decision."""
        return epochs_frame(self.record)

    def intervals(self) -> pd.DataFrame:
        """Return which job held which GPUs and when, if `keep_intervals` was asked for."""
        return intervals_frame(self.record)

    def timing(self) -> dict[str, Any]:
        """Return the seconds that the rollout and its solvers took."""
        return timing(self.record, self.wall_s)

    def plot(self) -> Figure:
        """Draw JCTs, utilisation, cost and power; see `optsched.rollout.results.plot`."""
        from optsched.rollout.results.plot import overview

        return overview({self.record.policy: self.record})

    def summary(self) -> dict[str, str]:
        """Return what was run, and its metrics as text, by name."""
        record = self.record
        head = {"scenario": record.scenario.name, "trace": record.trace.name}
        head |= {"policy": known_as(record.scenario, record.policy), "seed": str(record.seed)}
        return head | {key: metric_text(value) for key, value in self.metrics.items()}

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows))
        return "\n".join(f"{key:<{width}}  {value}" for key, value in rows.items())

    def __repr__(self) -> str:
        record = self.record
        jct = metric_text(self.metrics["jct_mean_s"])
        return (
            f"<Rollout of {record.policy} on {record.scenario.name}: "
            f"{len(record.trace)} jobs, mean JCT {jct} s>"
        )

    def _repr_html_(self) -> str:
        rows = self.summary()
        return html_rows({key: _with_meaning(key, text) for key, text in rows.items()})


def simulate(
    scenario: Scenario | str | Path,
    policy: PolicyLike = "fifo",
    *,
    trace: TraceLike | None = None,
    seed: int = 0,
    output: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[float], None] | None = None,
    keep_intervals: bool = False,
) -> Rollout:
    """Run a policy over a trace of jobs on a simulated cluster.

    Parameters
    ----------
    scenario
        A scenario, its file, or the name of a bundled one such as ``"philly-small"``.
    policy
        A name with options, such as ``"fifo:relax_s=600"`` (`optsched policies` lists them); or
        one of your own: ``"my.py:Fair:alpha=0.5"`` of a file, ``"module:Fair"``, a class, or an
        object, which is copied first.
    trace
        Instead of the scenario's own: a trace, a source of one (file, format, workload), or a file
        that `optsched trace` wrote.
    seed
        Seed of everything that is drawn, the trace included where it is generated.
    output
        Folder for summary.json, jobs.csv, epochs.csv and timing.json, of one policy and one rollout
        at a time. A checkpoint is kept there until the end, if the policy has a state
        (`optsched.rollout.Policy`) or keeps nothing; else a warning says that there is none.
    resume
        Whether to go on from the checkpoint in `output`; the files are the same as without a break.
    progress
        Called now and then with the share of jobs that have ended.
    keep_intervals
        Whether to keep which job held which GPUs and when.

    Warns
    -----
    RuntimeWarning
        If the policy leaves jobs waiting for ever: nothing runs and nothing else can happen.

    Raises
    ------
    UnknownNameError, PluginError
        If there is no such policy, or it is one of others that cannot be used.
    InstanceError, OSError
        If the scenario or trace cannot be read.
    InvalidDecision
        If the policy breaks a rule of the cluster.
    ValueError
        If a job asks for more GPUs than there are, or an option is unknown; if another rollout
        runs in `output`, or one of another policy ended there; or if `resume` meets a checkpoint
        that is damaged or of another rollout.

    Examples
    --------
    >>> import optsched
    >>> result = optsched.simulate("philly-small", policy="fifo")
    >>> result.metrics["jobs"]
    400
    """
    rollout = rolled_out(
        scenario, policy, trace, seed, output, resume, progress, keep_intervals=keep_intervals
    )
    tell_starvation(rollout.record)
    return rollout


def rolled_out(
    scenario: Scenario | str | Path,
    policy: PolicyLike,
    trace: TraceLike | None,
    seed: int,
    output: str | Path | None = None,
    resume: bool = False,
    progress: Callable[[float], None] | None = None,
    *,
    keep_intervals: bool = False,
) -> Rollout:
    """Return what `simulate` does; nothing is said of jobs that wait for ever."""
    from optsched.rollout.engine.engine import Engine

    where = with_trace(scenario_of(scenario), trace)
    made, label, whose = make(policy, where, seed), label_of(policy), origin(policy)
    if output is not None:  # before anything that takes time
        check_folder(Path(output), label, resume)
    jobs = jobs_of(where, trace, seed)

    def start() -> Engine:
        return Engine(where, jobs, made, seed, keep_intervals)

    if resume and output is None:
        raise ValueError("resume: name the output folder of the rollout that is to go on")
    with _telling_whose_fault(label, whose):
        if output is None:
            begun = time.monotonic()
            record = replace(start().run(progress), policy=label, origin=whose)
            seconds = time.monotonic() - begun
        else:
            key = key_of(where, jobs, label, seed, keep_intervals, whose)
            record, seconds = run_in_folder(start, made, Path(output), key, resume, progress)
    return Rollout(record, seconds)


@contextmanager
def _telling_whose_fault(policy: str, origin: str) -> Iterator[None]:
    """Say of an error that came out of a policy which one it was and where, in one line."""
    try:
        yield
    except InvalidDecision as error:
        raise error.of(policy, is_of_others=bool(origin)) from None
    except Exception as error:
        from optsched.plugins.errors import failure
        from optsched.plugins.sources import is_raised_by_others

        if not origin or not is_raised_by_others(error):
            raise
        raise failure(f"policy '{policy}'", "failed", error) from error


def metric_text(value: float | int | None) -> str:
    """Write a metric for a reader: whole numbers whole, others to four digits or more."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:,.4g}"


def _with_meaning(key: str, text: str) -> str:
    return f"{text}  ({METRICS[key]})" if key in METRICS else text
