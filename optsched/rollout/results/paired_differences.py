"""Differences between policies that ran the same jobs: by seed, or over blocks of one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.as_recorded import NAME
from optsched.rollout.results.intervals import (
    block_length,
    block_sums,
    bootstrapped,
    difference_of_means,
    mean,
    percentiles,
)
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats
    from optsched.rollout.results.intervals import Ends
    from optsched.rollout.results.policy_comparison import Comparison
    from optsched.rollout.results.record import Record

DIFFERENCES = (
    *("jct_mean_s", "jct_median_s", "jct_p95_s", "jct_p99_s", "makespan_s"),
    *("queueing_delay_mean_s", "utilization", "utilization_effective", "steady_utilization"),
    *("gpu_hours", "goodput_gpu_h", "rented_gpu_hours", "cost_usd", "energy_kwh"),
)
"""Metrics of which differences are told."""


@dataclass(frozen=True)
class Difference:
    """What a policy has more of than the first one, on the same jobs.

    Attributes
    ----------
    value, base
        Of this policy and of the first one: means over what `over` says.
    difference
        The mean of the paired differences.
    low, high
        A 95 % interval; None where there is none.
    over
        What the interval is over, such as ``"5 seeds"``; of one trace ``"20 blocks of 20 jobs"``.
    """

    policy: str
    metric: str
    value: float
    base: float
    difference: float
    low: float | None
    high: float | None
    over: str


def differences(compared: Comparison) -> Iterator[Difference]:
    """Yield the differences of all policies but the first, metric by metric."""
    values = compared.values
    first = next(iter(values))
    for name in (name for name in values if name != first):
        for metric in DIFFERENCES:
            pairs = values[name][metric], values[first][metric]
            if np.isnan(pairs).any():
                continue
            ends, over = _interval(compared, name, metric, pairs[0] - pairs[1])
            value, base, difference = (_mean(each) for each in (*pairs, pairs[0] - pairs[1]))
            low, high = ends or (None, None)
            over = over if ends else ""
            yield Difference(name, metric, value, base, difference, low, high, over)


def _mean(values: Floats) -> float:
    """Return the mean; of one number many times, that number to the last bit."""
    return float(values.mean() if np.ptp(values) else values[0])


def _interval(
    compared: Comparison, name: str, metric: str, found: Floats
) -> tuple[Ends | None, str]:
    """Return the interval of the mean of differences by seed, and what it is over."""
    count = len(compared.seeds)
    if compared.block is not None:
        return percentiles(found), f"{count} traces"
    if count > 1 and (not compared.is_one_trace or np.ptp(found) > 0):
        return bootstrapped((found,), mean), f"{count} seeds"
    first = next(iter(compared.rollouts))
    if NAME in (name, first) or not _is_fixed(compared, name, first):
        return None, ""
    record, base = (compared.rollouts[each][0].record for each in (name, first))
    return _over_jobs(record, base, metric)


def _is_fixed(compared: Comparison, *names: str) -> bool:
    """Tell whether policies did the same with every seed."""
    return not set(names) & compared.varying


def _over_jobs(record: Record, base: Record, metric: str) -> tuple[Ends | None, str]:
    """Return the interval of the difference between means over the jobs of one trace.

    Blocks of jobs in the order of submission are drawn, the same for both policies: what happens
    within a block, such as a rush, stays together. Metrics that are no means over jobs have none.
    """
    of = {"jct_mean_s": _jct_s, "queueing_delay_mean_s": _waiting_s}.get(metric)
    if of is None:
        return None, ""
    block = block_length(len(record.trace))
    sums = [*block_sums(of(record), block), *block_sums(of(base), block)]
    if min(*sums[1], *sums[3]) < 1:
        return None, ""  # a block of which no job ended: some draws would have no mean
    count = len(sums[0])
    return bootstrapped(sums, difference_of_means), f"{count} blocks of {block} jobs"


def _jct_s(record: Record) -> Floats:
    """Return the JCT of each job, NaN of those that have not ended."""
    jct = (record.jobs.end_us - record.trace.submit_us) / US
    return np.where(record.jobs.outcome >= 0, jct, np.nan)


def _waiting_s(record: Record) -> Floats:
    return np.where(record.jobs.outcome >= 0, record.jobs.waiting_us / US, np.nan)
