"""A policy's row in a comparison: means over seeds, ratios to the first policy, intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.intervals import MANY, bootstrapped, mean, percentiles
from optsched.rollout.results.metrics import METRICS

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.rollout.results.policy_comparison import Comparison

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


def comparison_row(compared: Comparison, name: str, first: str) -> dict[str, float | None]:
    """Return the metrics of a policy, and of those in `RATIOS` ratios to the first."""
    row: dict[str, float | None] = {}
    alike = compared.is_one_trace and name not in compared.varying
    for key in METRICS:
        values = compared.values[name][key]
        row[key] = float(values.mean() if name in compared.varying else values[0])
        if key not in RATIOS:
            continue
        ratios = _ratios(values, compared.values[first][key])
        row[f"{key}_ratio"] = math.exp(ratios.mean()) if len(ratios) else None
        if compared.varying:
            low, high = _interval(compared, values, {name})
            row |= {f"{key}_low": low, f"{key}_high": high}
            ends = _interval(compared, ratios, {name, first})
            low, high = (None if end is None else math.exp(end) for end in ends)
            row |= {f"{key}_ratio_low": low, f"{key}_ratio_high": high}
    row["seeds"] = 1 if alike else len(compared.seeds)
    return row


def _interval(
    compared: Comparison, values: Floats, policies: set[str]
) -> tuple[float | None, float | None]:
    """Return the interval of the mean of values of policies, if any of these varies."""
    if not policies & compared.varying:
        return None, None
    if compared.block is not None:  # each is a draw of the whole already
        return percentiles(values) or (None, None)
    return bootstrapped((values,), mean) or (None, None)


def _ratios(values: Floats, base: Floats) -> Floats:
    """Return the logarithms of the ratios that can be told."""
    told = (values > 0) & (base > 0)
    logs: Floats = np.log(values[told] / base[told])
    return logs


def basis_of(compared: Comparison) -> str:
    """Return what means and intervals of a comparison are over, in words."""
    count = len(compared.seeds)
    if compared.block is not None:
        drawn = f"Means over {count} traces, drawn from one in blocks of {compared.block:,} jobs"
        few = _few("traces", count)
        return f"{drawn}; ratios: geometric means; 95 % intervals are over these traces{few}."
    blocks = next((told.over for told in compared.paired if told.over.endswith(" jobs")), "")
    one = f"95 % intervals of differences are over {blocks} of one trace" if blocks else ""
    one += f"{_few('blocks', int(blocks.partition(' ')[0]))}." if blocks else ""
    if count == 1:
        return one
    means = f"Means over {count} seeds; ratios: geometric means, with 95 % bootstrap intervals"
    if not compared.is_one_trace:
        return f"{means}{_few('seeds', count)}."
    if not compared.varying:
        return (
            "One trace, and seeds change nothing: figures of one rollout each, no intervals of "
            f"seeds. {one}{' ' if one else ''}"
            "--resample JOBS (resample=) draws traces from it in blocks."
        )
    alone = "of what policies and physics draw, not of other jobs"
    return f"One trace. {means} {alone}{_few('seeds', count)}."


def _few(unit: str, count: int) -> str:
    """Return a warning where a bootstrap draws from too little."""
    return "" if count >= MANY else f", too narrow as {unit} are fewer than {MANY}"
