"""A policy's row in a comparison: means over seeds, ratios to the first policy, and intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.intervals import bootstrapped, mean, percentiles
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
