"""Paired effects with 95 % intervals, as text and as the tables of docs/guidelines.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.reproduction.philly.guidelines import BASE
from optsched.rollout.results.intervals import bootstrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats

    Figures = dict[str, dict[str, float]]

RELATIVE = {
    "jct_mean_s": "JCT",
    "queueing_delay_mean_s": "wait",
    "run_over_trace": "run time",
    "gpu_hours": "GPU-h",
    "redone_gpu_h": "redone",
    "overhead_gpu_h": "overhead",
    "failures": "failures",
}
"""Metrics whose change is told in per cent of the base."""

ABSOLUTE = {
    "goodput_gpu_h": "goodput",
    "neighbour_loss_gpu_h": "neighbours",
    "distance_loss_gpu_h": "distance",
    "pre_run_gpu_h": "trials",
    "passed": "passed",
    "false_stops": "false stops",
    "fragmentation_delays": "fragm. delays",
    "migrations": "moves",
    "servers_of_gangs": "servers",
}
"""Metrics whose change is told as it is, for they may be 0 in the base."""


class Effect(NamedTuple):
    """The change of a metric, and its interval; None where all pairs are equal."""

    change: float
    low: float | None
    high: float | None


def effect(values: Floats, base: Floats, relative: bool) -> Effect:
    """Return the effect on a metric, of values that are paired by seed."""
    statistic = _ratio if relative else _difference
    change = float(statistic(values, base, axis=-1))
    ends = bootstrapped((values, base), statistic) if np.ptp(values - base) else None
    return Effect(change, *(ends or (None, None)))


def _ratio(values: Floats, base: Floats, axis: int) -> Floats:
    """Return the change of the mean in per cent; 0 where the base is."""
    means = base.mean(axis=axis)
    safe = np.where(means == 0, 1.0, means)
    return np.asarray(np.where(means == 0, 0.0, 100 * (values.mean(axis=axis) / safe - 1)))


def _difference(values: Floats, base: Floats, axis: int) -> Floats:
    return np.asarray((values - base).mean(axis=axis))


def effects(seeds: Sequence[Figures]) -> dict[str, dict[str, Effect]]:
    """Return by guideline the effect on each metric."""
    found: dict[str, dict[str, Effect]] = {}
    for name in seeds[0]:
        if name == BASE:
            continue
        found[name] = {}
        for key in (*RELATIVE, *ABSOLUTE):
            values, base = (np.array([each[who][key] for each in seeds]) for who in (name, BASE))
            found[name][key] = effect(values, base, key in RELATIVE)
    return found


def base_line(seeds: Sequence[Figures]) -> str:
    """Return what the base has, in words."""
    mean = {key: np.mean([each[BASE][key] for each in seeds]) for key in seeds[0][BASE]}
    return (
        f"`philly`: JCT {mean['jct_mean_s']:,.0f} s, wait {mean['queueing_delay_mean_s']:,.0f} s, "
        f"run time of gangs / trace {mean['run_over_trace']:.3f}, held {mean['gpu_hours']:,.0f} "
        f"GPU-h (goodput {mean['goodput_gpu_h']:,.0f}, neighbours "
        f"{mean['neighbour_loss_gpu_h']:,.0f}, distance {mean['distance_loss_gpu_h']:,.0f}, redone "
        f"{mean['redone_gpu_h']:,.0f}, overhead {mean['overhead_gpu_h']:,.0f}), "
        f"{mean['failures']:,.0f} failures, {mean['passed']:,.0f} passed, "
        f"{mean['fragmentation_delays']:,.0f} delays by fragmentation, "
        f"{mean['servers_of_gangs']:.3f} times the fewest servers."
    )


def markdown(by_load: dict[float, Sequence[Figures]], head: str) -> str:
    """Return the tables for docs."""
    lines = [head]
    for load, seeds in by_load.items():
        lines += ["", f"### Load {load:g}", "", base_line(seeds)]
        found = effects(seeds)
        for keys, unit in ((RELATIVE, "change, %"), (ABSOLUTE, "change; GPU-h, jobs, or times")):
            lines += ["", f"| {unit} | {' | '.join(keys.values())} |"]
            lines.append("|---" + "|---:" * len(keys) + "|")
            for name, row in found.items():
                lines.append(f"| {name} | {' | '.join(cell(row[key]) for key in keys)} |")
    return "\n".join(lines)


def cell(found: Effect) -> str:
    """Return an effect with its interval, as short as it can be told."""
    if found.low is None or found.high is None:
        return _number(found.change)
    return f"{_number(found.change)} [{_number(found.low)}, {_number(found.high)}]"


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 1 else 2
    told = f"{value:+,.{digits}f}"
    return "0" if float(told.replace(",", "")) == 0 else told.replace("-", "\N{MINUS SIGN}")
