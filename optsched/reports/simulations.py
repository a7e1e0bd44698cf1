"""Rollouts in a report: the data of the timeline, and pictures from the tables in their folders."""

from __future__ import annotations

import heapq
import shlex
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.documents.json_files import dumps
from optsched.reports import html as parts
from optsched.results.drawing import plain, styled
from optsched.rollout.results.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from optsched.documents.arrays import Floats
    from optsched.reports.rollout_folders import SimulatedTrace

    Bar = tuple[int, int, float, float, int]  # lane, lanes, from, to, job

MOST_MOMENTS = 4_000
RATIOS = ("jct_mean_s", "jct_p99_s", "makespan_s", "utilization", "energy_kwh", "cost_usd")
SERIES = {
    "busy_gpus": "GPUs with a job",
    "pending": "jobs that wait",
    "running": "jobs that run",
    "power_w": "power of the cluster (W)",
}


def timeline(source: SimulatedTrace) -> dict[str, Any]:
    """Return what the timeline of a rollout shows: series over time, and a bar for each stay."""
    chosen, note = _chosen(source.epochs)
    series = {key: text for key, text in SERIES.items() if chosen[key].any()}
    bars, lanes, left_out = _bars(source)
    jobs = source.jobs
    notes = [note, f"the {left_out:,} shortest stays are left out" if left_out else ""]
    return {
        "name": source.name,
        "end": _short(float(source.summary["end_s"])),
        "times": _list(chosen["now_s"]),
        "series": [{"name": text, "values": _list(chosen[key])} for key, text in series.items()],
        "lanes": lanes,
        "lane": "GPU" if source.intervals is not None else "row",
        "bars": [list(column) for column in zip(*bars, strict=True)] if bars else [[]] * 5,
        "jobs": {
            "name": jobs["job"].tolist(),
            "gpus": jobs["gpus"].tolist(),
            "outcome": jobs["outcome"].tolist(),
            "submit": _list(jobs["submit_s"]),
            "start": _list(jobs["first_start_s"]),
            "end": _list(jobs["end_s"]),
        },
        "note": "; ".join(text for text in notes if text),
    }


def _chosen(epochs: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the decisions to show: all, or in each stretch of time those of most and least use."""
    table = epochs.sort_values("now_s", kind="stable")
    if len(table) <= MOST_MOMENTS:
        return table, ""
    busy = table["busy_gpus"].to_numpy()
    parts = np.array_split(np.arange(len(table)), MOST_MOMENTS // 2)
    kept = {int(part[pick(busy[part])]) for part in parts for pick in (np.argmin, np.argmax)}
    rows = sorted(kept | {0, len(table) - 1})
    return table.iloc[rows], f"{len(rows):,} of {len(table):,} decisions are shown"


def _bars(source: SimulatedTrace, most: int = 20_000) -> tuple[list[Bar], int, int]:
    """Return the longest bars, the lanes that they take, and how many bars are left out."""
    number = {name: n for n, name in enumerate(source.jobs["job"])}
    bars = list(
        _from_start_to_end(source.jobs)
        if source.intervals is None
        else _held(source.intervals, number)
    )
    left_out = max(0, len(bars) - most)
    if left_out:
        bars = sorted(bars, key=lambda bar: bar[2] - bar[3])[:most]
    bars = sorted(bars, key=lambda bar: (bar[2], bar[0]))
    return bars, max((bar[0] + bar[1] for bar in bars), default=1), left_out


def _held(intervals: pd.DataFrame, number: Mapping[str, int]) -> Iterator[Bar]:
    """Yield a bar for each run of consecutive GPUs that a job held."""
    columns = (intervals[key] for key in ("job", "from_s", "to_s", "gpus"))
    for job, start, end, gpus in zip(*columns, strict=True):
        held = np.array(sorted(int(gpu) for gpu in gpus.split()))
        for run in np.split(held, np.flatnonzero(np.diff(held) > 1) + 1):
            yield int(run[0]), len(run), _short(start), _short(end), number[job]


def _from_start_to_end(jobs: pd.DataFrame) -> Iterator[Bar]:
    """Yield a bar for each job from its first start to its end, in rows that are free by then."""
    started = jobs[jobs["first_start_s"].notna() & jobs["end_s"].notna()]
    ordered = started.sort_values(["first_start_s", "end_s"], kind="stable")
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    columns = (ordered.index, ordered["first_start_s"], ordered["end_s"])
    for job, start, end in zip(*columns, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        yield lane, 1, _short(start), _short(end), int(job)


def jct_picture(sources: Iterable[SimulatedTrace], ax: Axes) -> Axes:
    """Draw the share of jobs whose JCT is at most so long; jobs that have not ended count."""
    from optsched.rollout.results.plot import label_jct_distribution

    for source, style in styled(sources):
        jct = np.sort(source.jobs["jct_s"].dropna().to_numpy())
        share = np.arange(1, len(jct) + 1) / max(len(source.jobs), 1)
        ax.step(np.maximum(jct, 1.0), share, where="post", label=source.name, **style)
    label_jct_distribution(ax)
    return _finished(ax)


def usage_picture(sources: Iterable[SimulatedTrace], ax: Axes) -> Axes:
    """Draw the share of all GPUs of ready nodes that have a job, averaged over stretches."""
    held = list(sources)
    longest = max(float(source.summary["end_s"]) for source in held)
    unit, seconds = ("hours", 3600.0) if longest < 3 * 86400 else ("days", 86400.0)
    for source, style in styled(held):
        edges, share = _usage(source.epochs)
        ax.stairs(100 * share, edges / seconds, baseline=None, label=source.name, **style)
    ax.set(ylim=(0, 103), xlabel=f"time ({unit})", ylabel="GPUs allocated (% of those ready)")
    ax.set_xlim(left=0)
    return _finished(ax)


def _finished(ax: Axes) -> Axes:
    plain(ax)
    ax.legend(fontsize=8, frameon=False)
    return ax


def _usage(epochs: pd.DataFrame) -> tuple[Floats, Floats]:
    now = epochs["now_s"].to_numpy(float)
    edges = np.linspace(0.0, max(float(now[-1]), 1e-9), 121)
    busy, ready = (
        np.diff(np.interp(edges, now, epochs[f"{key}_gpu_s"].to_numpy(float)))
        for key in ("busy", "available")
    )
    return edges, np.divide(busy, ready, out=np.zeros(len(busy)), where=ready > 0)


def _list(column: pd.Series) -> list[float | None]:
    return [None if np.isnan(value) else _short(value) for value in column.to_numpy(float)]


def _short(value: float) -> float | int:
    """Return a number with no more digits than a screen can show."""
    rounded = round(float(value), 2)
    return int(rounded) if rounded.is_integer() else rounded


# --- sections of the page ---------------------------------------------------------------------


def rollouts(simulated: list[SimulatedTrace]) -> Iterator[parts.Section]:
    """Yield the sections of rollouts: metrics and pictures of all, a timeline of each."""
    tables = (_metrics(simulated), _left_out(simulated), _ratios(simulated))
    yield parts.section("Rollouts", *tables, *_pictures(simulated))
    for source in simulated:
        label = escape(source.name, quote=True)
        yield parts.section(
            f"Timeline: {source.name}",
            f"<div class='timeline' data-label='{label}'></div>",
            _repeat_rollout(source),
        )


def _metrics(simulated: list[SimulatedTrace]) -> str:
    head = ("what", *(source.name for source in simulated), "key")
    rows = [
        (METRICS.get(key, key), *(_metric(key, value) for value in values), key)
        for key, values in _by_metric(simulated).items()
    ]
    return parts.table(head, rows)


def _by_metric(simulated: list[SimulatedTrace]) -> dict[str, list[float | None]]:
    """Return the values of each metric that some rollout has."""
    keys = {key: None for source in simulated for key in source.summary["metrics"]}
    values = {key: [source.summary["metrics"].get(key) for source in simulated] for key in keys}
    return {key: row for key, row in values.items() if any(value is not None for value in row)}


def _metric(key: str, value: float | None) -> str | float | None:
    """Return a value as a reader wants it: times in hours and minutes, the rest as a number."""
    return parts.duration(value) if value is not None and key.endswith("_s") else value


def _ratios(simulated: list[SimulatedTrace]) -> str:
    """Return the first metrics of all rollouts relative to the first one; "" of a single one."""
    if len(simulated) < 2:
        return ""
    known = _by_metric(simulated)
    ratios = {key: _relative(known.get(key, [None])) for key in RATIOS}
    rows = [(METRICS[key], *row) for key, row in ratios.items() if row]
    head = ("", *(source.name for source in simulated))
    title = f"<h3>Relative to {escape(simulated[0].name)}</h3>"
    return title + parts.table(head, rows) if rows else ""


def _left_out(simulated: list[SimulatedTrace]) -> str:
    """Say which jobs are in no mean, as they have not ended; "" if all have."""
    told = []
    for source in simulated:
        figures = source.summary["metrics"]
        if figures.get("unfinished"):
            told.append(f"{source.name} {figures['unfinished']:,} of {figures['jobs']:,}")
    text = f"Unfinished jobs, in no mean of times: {', '.join(told)}."
    return f"<p>{escape(text)}</p>" if told else ""


def _relative(values: list[float | None]) -> list[float]:
    """Return values divided by the first of them; none if one is missing or zero."""
    told = [value for value in values if value]
    return [value / told[0] for value in told] if len(told) == len(values) else []


def _pictures(simulated: list[SimulatedTrace]) -> Iterator[str]:
    import matplotlib.pyplot as plt

    panels = ((jct_picture, "Distribution of the job completion times"),
              (usage_picture, "Share of the GPUs that have a job, over time"))  # fmt: skip
    for draw, text in panels:
        drawing, ax = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
        draw(simulated, ax)
        yield parts.picture(drawing, text)


def _repeat_rollout(source: SimulatedTrace) -> str:
    summary = source.summary
    scenario, trace = summary["scenario"], summary["trace"]
    name = f"{scenario.get('name', 'scenario')}.json".replace("/", "-")
    rows = {key: str(value) for key, value in trace.items()} | {"seed": str(summary["seed"])}
    rows |= {"policy": summary["policy_origin"]} if "policy_origin" in summary else {}
    line = f"optsched rollout {shlex.quote(name)} --policy {shlex.quote(summary['policy'])}"
    line += f" --seed {shlex.quote(str(summary['seed']))}"
    link = f"<p>Scenario: {parts.download(dumps(scenario), name)}</p>"
    command = f"{parts.command(line)}{parts.code_note(summary['policy'])}"
    return f"<h3>To repeat it</h3>{parts.rows_table(rows)}{link}{command}"
