"""Rollouts and comparisons as tables for a terminal of 80 columns or a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from optsched.rollout import registry
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.run import metric_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from optsched.rollout.results.policy_comparison import Comparison
    from optsched.rollout.run import Rollout
    from optsched.rollout.scenario import Scenario

SHOWN = {
    "jct_mean_s": "mean JCT s",
    "jct_p99_s": "p99 JCT s",
    "makespan_s": "makespan s",
    "utilization": "utilization",
    "cost_usd": "cost USD",
    "energy_kwh": "energy kWh",
}
"""Metrics that are shown side by side, and what they are called there."""
DECIMALS = {"utilization": 3}  # of those; others have one


def figures(rollout: Rollout) -> Table:
    """Return what was run and its metrics, those that could be measured."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    record = rollout.record
    for name, text in (
        ("scenario", record.scenario.name),
        ("trace", f"{record.trace.name}, {len(record.trace):,} jobs"),
        ("policy", record.policy),
    ):
        table.add_row(name, "", text)
    for key, value in rollout.metrics.items():
        if value is not None:
            table.add_row(key, metric_text(value), METRICS[key])
    return table


def comparison(compared: Comparison) -> list[Table | str]:
    """Return a row for each policy: metrics, and below them their ratios to the first."""
    frame = compared.frame()
    keys = [key for key in SHOWN if frame[key].notna().any() and (frame[key] != 0).any()]
    first = frame.index[0]
    values, ratios = _table("policy", keys), _table(f"to {first}", keys)
    for name, row in frame.iterrows():
        values.add_row(str(name), *(_value(row, key) for key in keys))
        ratios.add_row(str(name), *(_ratio(row, key) for key in keys))
    parts: list[Table | str] = [values, "", ratios]
    return [*parts, "", compared.basis] if compared.basis else parts


def policies() -> Table:
    """Return a table of the policies."""
    table = _frame()
    for heading in ("policy", "what it does", "source"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "policy")
    for entry in registry.ENTRIES:
        table.add_row(entry.name, entry.summary, entry.source)
    return table


def policy_options(name: str) -> Table:
    """Return a table of the options of a policy: types, defaults, and what they mean.

    Raises
    ------
    UnknownNameError
        If there is no such policy.
    """
    from optsched.rollout.policy_options import described

    entry = registry.entry(name)
    title = f"{entry.name}: {entry.summary}"
    table = _frame(title=title, title_justify="left", title_style="")
    for heading in ("option", "type", "default", "what it is"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "option")
    for row in described(entry.maker().options):
        table.add_row(*map(escape, row))
    return table


def scenarios(named: Iterable[tuple[str, Scenario]]) -> Table:
    """Return a table of scenarios: their GPUs, trace and policies."""
    table = _frame()
    for heading in ("scenario", "GPUs", "trace", "jobs", "what it is"):
        right = heading in ("GPUs", "jobs")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for name, scenario in named:
        trace = scenario.trace
        jobs = "" if trace.jobs is None else f"{trace.jobs:,}"
        first = scenario.description.partition(". ")[0]
        described = Text(first, no_wrap=True, overflow="ellipsis")
        source = trace.generator or trace.file or ""
        table.add_row(name, f"{scenario.gpus:,}", source, jobs, described)
    return table


def _frame(**options: Any) -> Table:
    style: dict[str, Any] = {"padding": (0, 1, 0, 0), "header_style": "bold"}
    return Table(box=box.SIMPLE_HEAD, show_edge=False, **style, **options)


def _table(first: str, keys: list[str]) -> Table:
    table = _frame()
    table.add_column(first, overflow="fold")
    for key in keys:
        table.add_column(SHOWN[key], justify="right", overflow="fold")
    return table


def _value(row: pd.Series, key: str) -> str:
    return "" if row.isna()[key] else f"{row[key]:,.{DECIMALS.get(key, 1)}f}"


def _ratio(row: pd.Series, key: str) -> str:
    name = f"{key}_ratio"
    if row.isna()[name]:
        return ""
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    interval = "" if low is None or low == high or low != low else f" [{low:.3f}, {high:.3f}]"
    return f"{row[name]:.3f}{interval}"
