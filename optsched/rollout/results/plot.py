"""Pictures of rollouts: JCTs, utilisation, cost and power over time, and who held which GPU.

Every function draws on axes and returns them; by default on a new figure. Several rollouts are
given by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.plugins.plugin import short_names
from optsched.results.drawing import COLOURS, axes, plain, styled
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.results.billing.budgets import allowed_so_far
from optsched.rollout.results.decision_log import epoch_column
from optsched.rollout.results.record import ACTIVE
from optsched.rollout.results.time_averages import GPU_H
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optsched.documents.arrays import Floats
    from optsched.rollout.results.record import Record

    Records = Mapping[str, Record]

FILLS = COLOURS[:-1]  # of areas, for which black is too heavy
TICKS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21_600: "6 h",
         86_400: "1 d", 864_000: "10 d", 8_640_000: "100 d"}  # fmt: skip


@dataclass(frozen=True)
class TimelineLayout:
    """What there is space for.

    Attributes
    ----------
    named_nodes, named_jobs
        Most nodes, and most jobs, that are called by their names.
    edge_width
        Share of the axis of time: an edge would hide a bar that is no wider.
    letter_width
        Share of the axis of time, for each letter of a name.
    """

    named_nodes: int = 40
    named_jobs: int = 60
    edge_width: float = 0.004
    letter_width: float = 0.012


LAYOUT = TimelineLayout()


def overview(records: Records) -> Figure:
    """Draw JCTs, utilisation, cost and power in one figure."""
    import matplotlib.pyplot as plt

    records = dict(zip(short_names(records), records.values(), strict=True))
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    panels = (jct_distribution, utilization_over_time, cost_over_time, power_over_time)
    for panel, ax in zip(panels, axes.flat, strict=True):
        panel(records, ax)
        legend = ax.get_legend()
        if legend is not None and ax is not axes.flat[0]:
            legend.remove()
    first = next(iter(records.values()))
    name, gpus = first.scenario.name, first.scenario.gpus
    figure.suptitle(f"{name}: {len(first.trace):,} jobs on {gpus:,} GPUs")
    return figure


def jct_distribution(records: Records, ax: Axes | None = None) -> Axes:
    """Draw by rollout the share of jobs whose JCT is at most so long; x is logarithmic.

    Jobs that have not ended count as longer than all: their curve ends below 1.
    """
    ax = _axes(ax)
    for name, record, style in _styled(records):
        ended = record.jobs.outcome != ACTIVE
        jct = np.sort(record.jobs.end_us[ended] - record.trace.submit_us[ended]) / US
        jct = np.maximum([*jct[:1], *jct], 1.0)  # shorter ones have no place on the axis
        share = np.arange(len(jct)) / max(len(record.trace), 1)
        ax.step(jct, share, where="post", label=name, **style)
    label_jct_distribution(ax)
    return _finished(ax, records)


def utilization_over_time(records: Records, ax: Axes | None = None) -> Axes:
    """Draw by rollout the share of the GPUs of ready nodes that have a job."""
    ax = _axes(ax)
    unit = _unit(records)
    for name, record, style in _styled(records):
        edges, (busy, available) = _windows(record, "busy_gpu_us", "available_gpu_us")
        used, there = np.diff(busy), np.diff(available)
        share = np.divide(100 * used, there, out=np.zeros(len(used)), where=there > 0)
        ax.stairs(share, edges / unit[1], baseline=None, label=name, **style)
    ax.set_ylim(0, 103)
    ax.set_ylabel("GPUs allocated (% of those ready)")
    return _over_time(ax, records, unit)


def cost_over_time(records: Records, ax: Axes | None = None) -> Axes:
    """Draw by rollout the money spent so far, or the GPU-hours if they have no price.

    Dashed: what the budget of rented nodes allows, until the last arrival, and with the drain.
    """
    ax = _axes(ax)
    unit = _unit(records)
    priced = any(_prices(r) != (0, 0) or r.scenario.has_prices for r in records.values())
    for name, record, style in _styled(records):
        edges, (spent, energy, billed) = _windows(record, "spent_gpu_us", "energy_j", "billed_usd")
        gpu_hour, joule = _prices(record) if priced else (1.0, 0.0)
        total = spent / GPU_H * gpu_hour + energy * joule + billed
        ax.plot(edges / unit[1], total, label=name, **style)
        seconds, allowed = allowed_so_far(record)
        told = allowed * (gpu_hour or 1.0)  # of several GPU types it is money already
        ax.plot(seconds / unit[1], told, **style | {"linestyle": "--", "linewidth": 1})
    ax.set_ylim(bottom=0)
    ax.set_ylabel("cost so far (USD)" if priced else "GPU-hours paid for so far")
    return _over_time(ax, records, unit)


def power_over_time(records: Records, ax: Axes | None = None) -> Axes:
    """Draw by rollout the power of the site in kW, PUE included."""
    ax = _axes(ax)
    unit = _unit(records)
    ax.set_ylabel("power of the site (kW)")
    if all(record.scenario.power is None for record in records.values()):
        ax.text(0.5, 0.5, "no power model in the scenario", transform=ax.transAxes, ha="center")
        ax.set_yticks([])
        return _over_time(ax, records, unit)
    for name, record, style in _styled(records):
        edges, (energy,) = _windows(record, "energy_j")
        pue = 1.0 if record.scenario.power is None else record.scenario.power.pue
        watts = pue * np.diff(energy) / np.maximum(np.diff(edges), 1e-9)
        ax.stairs(watts / 1000, edges / unit[1], baseline=None, label=name, **style)
    ax.set_ylim(bottom=0)
    return _over_time(ax, records, unit)


def timeline(record: Record, ax: Axes | None = None) -> Axes:
    """Draw which job held which GPU and when: a row for each GPU, a bar for each stay.

    Colours repeat; if jobs are few, longer stays are named. Jobs that share a GPU share its row's
    height.

    Raises
    ------
    ValueError
        If the rollout was not asked to keep its intervals.
    """
    if not record.intervals and record.jobs.allocated_gpu_us.any():
        raise ValueError("the rollout kept no intervals: run it with keep_intervals=True")
    cluster = Cluster(record.scenario)
    ax = axes(ax, (9, min(14.0, max(2.5, 1.2 + 0.16 * cluster.gpus))))
    unit = _unit({"": record})
    whole = max(record.end_us / US / unit[1], 1e-9)
    named = len({job for job, *_ in record.intervals}) <= LAYOUT.named_jobs
    lane, lanes = _lanes(record)
    for number, (job, start, end, gpus) in enumerate(record.intervals):
        left, width = start / US / unit[1], (end - start) / US / unit[1]
        edge = "white" if width > LAYOUT.edge_width * whole else "none"
        bar: dict[str, Any] = {"color": FILLS[job % len(FILLS)], "edgecolor": edge}
        height = 0.92 / lanes
        for gpu in gpus:
            ax.barh(gpu - 0.46 + height * (lane[number] + 0.5), width, height, left, lw=0.4, **bar)
        if named and width > LAYOUT.letter_width * whole * len(record.trace.ids[job]):
            lower = height * (lane[number] + 0.5) - 0.46
            _name(ax, record.trace.ids[job], left + width / 2, lower, gpus)
    _rows(ax, cluster)
    ax.set_title(f"{record.policy} on {record.scenario.name}", fontsize=10)
    ax.set_xlim(0, whole)
    ax.set_xlabel(unit[0])
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def label_jct_distribution(ax: Axes) -> None:
    """Make the axis of times logarithmic, with times that people name, and label both."""
    ax.set_xscale("log")
    limits = ax.get_xlim()
    ax.set_xticks(list(TICKS), list(TICKS.values()))
    ax.minorticks_off()
    ax.set_xlim(limits)
    ax.set(ylim=(0, 1.02), xlabel="job completion time (log scale)", ylabel="share of jobs")


def _styled(records: Records) -> Iterator[tuple[str, Record, dict[str, Any]]]:
    for (name, record), style in styled(records.items()):
        yield name, record, style | {"linewidth": 1.5}


def _axes(ax: Axes | None) -> Axes:
    return axes(ax, (6.5, 4.2))


def _prices(record: Record) -> tuple[float, float]:
    """Return dollars per GPU-hour and per joule of the cluster."""
    power = record.scenario.power
    joule = 0.0 if power is None else power.price_usd_per_kwh * power.pue / 3.6e6
    return record.scenario.price_usd_per_gpu_h, joule


def _windows(record: Record, *keys: str) -> tuple[Floats, list[Floats]]:
    """Return the ends of 200 windows of time in seconds, and there the sums of columns so far.

    Between two decisions sums are taken to grow evenly.
    """
    edges = np.linspace(0, record.end_us, 201)
    now = np.array([0, *epoch_column(record, "now_us"), record.end_us], dtype=float)
    totals = []
    for key in keys:
        told = np.array([0, *epoch_column(record, key), getattr(record, key)], dtype=float)
        totals.append(np.interp(edges, now, told))
    return edges / US, totals


def _unit(records: Records) -> tuple[str, float]:
    """Return the label of the axis of time, and its unit in seconds."""
    longest = max(record.end_us for record in records.values()) / US
    if longest < 2 * 3600:
        return "time (minutes)", 60.0
    return ("time (hours)", 3600.0) if longest < 3 * 86400 else ("time (days)", 86400.0)


def _over_time(ax: Axes, records: Records, unit: tuple[str, float]) -> Axes:
    ax.set_xlabel(unit[0])
    ax.set_xlim(left=0)
    return _finished(ax, records)


def _finished(ax: Axes, records: Records) -> Axes:
    plain(ax)
    if len(records) > 1 and ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, frameon=False)
    return ax


def _stretches(gpus: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive GPUs."""
    first = last = gpus[0]
    for gpu in gpus[1:]:
        if gpu != last + 1:
            yield first, last
            first = gpu
        last = gpu
    yield first, last


def _lanes(record: Record) -> tuple[list[int], int]:
    """Return for each interval a lane in its rows, so that jobs side by side do not hide another.

    Without sharing there is one lane.
    """
    lanes = record.scenario.sharing.max_jobs_per_gpu
    free_at: dict[tuple[int, int], int] = {}
    chosen = [0] * len(record.intervals)
    for number in sorted(range(len(chosen)), key=lambda n: record.intervals[n][1]):
        _, start, end, gpus = record.intervals[number]
        fits = (n for n in range(lanes) if all(free_at.get((g, n), 0) <= start for g in gpus))
        chosen[number] = next(fits, 0)
        free_at |= {(gpu, chosen[number]): end for gpu in gpus}
    return chosen, lanes


def _name(ax: Axes, name: str, x: float, lower: float, gpus: tuple[int, ...]) -> None:
    """Write a job's name in the middle of the longest run of its GPUs."""
    first, last = max(_stretches(gpus), key=lambda ends: ends[1] - ends[0])
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
    y = (first + last) / 2 + lower
    ax.text(x, y, name, ha="center", va="center", fontsize=6.5, bbox=box,
            clip_on=True)  # fmt: skip


def _rows(ax: Axes, cluster: Cluster) -> None:
    """Name the nodes beside their GPUs, and draw lines between them."""
    for first in cluster.first[1:]:
        ax.axhline(first - 0.5, color="0.75", lw=0.5, zorder=0)
    ends = zip(cluster.first, cluster.size, strict=True)
    middle = [first + (size - 1) / 2 for first, size in ends]
    if cluster.nodes <= LAYOUT.named_nodes:
        ax.set_yticks(middle, cluster.names, fontsize=7)
    else:
        ax.set_ylabel("GPU")
    ax.set_ylim(cluster.gpus - 0.4, -0.6)
