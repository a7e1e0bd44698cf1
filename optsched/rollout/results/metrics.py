"""Metrics of a rollout: times, use of GPUs, money, energy, fairness and churn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.results.billing.budgets import billed
from optsched.rollout.results.decision_log import all_solves
from optsched.rollout.results.fairness import finish_time_fairness, jain_index
from optsched.rollout.results.given_up import given_up
from optsched.rollout.results.parts_of_held_time import PARTS
from optsched.rollout.results.record import ACTIVE, Integrals
from optsched.rollout.results.size_classes import by_size
from optsched.rollout.results.time_averages import GPU_H, WHOLE, counted, of_time, of_window
from optsched.rollout.results.why_jobs_wait import delays_of
from optsched.traces.summary import seen_us
from optsched.traces.trace import FAILED, KILLED, PASSED, STATUSES, US

if TYPE_CHECKING:
    import pandas as pd

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.results.record import Record


SLOWDOWN_FLOOR_US = 60 * US
METRICS = {
    "jct_mean_s": "mean job completion time (JCT)",
    "jct_median_s": "median JCT",
    "jct_p95_s": "95th percentile of the JCT",
    "jct_p99_s": "99th percentile of the JCT",
    "jct_geomean_s": "geometric mean of the JCT",
    "makespan_s": "first submission to last end",
    "bounded_slowdown_mean": "mean JCT / run time alone",
    "queueing_delay_mean_s": "mean time in the queue, all waits",
    "back_off_delay_mean_s": "of it, between failure and queue",
    "fair_share_delay_mean_s": "of it, for quota of the queue",
    "capacity_delay_mean_s": "of it, for GPUs, too few being free",
    "fragmentation_delay_mean_s": "of it, for a place near enough",
    "order_delay_mean_s": "of it, for its turn",
    "delayed_starts": "starts after a wait of more than 60 s",
    "fragmentation_share": "of those by it or by fair share",
    "first_start_delay_mean_s": "mean time until the first start",
    "utilization": "GPUs with a job / GPUs ready",
    "utilization_effective": "GPUs that compute / GPUs ready",
    "gpu_hours": "held by jobs: sum of the next nine",
    "goodput_gpu_h": "work that stayed done, at the reference",
    "width_loss_gpu_h": "lost to gangs wider than asked for",
    "slow_gpu_loss_gpu_h": "lost to slow GPUs",
    "distance_loss_gpu_h": "lost to distance between GPUs",
    "neighbour_loss_gpu_h": "lost to jobs on the same servers",
    "sharing_loss_gpu_h": "lost to jobs on the same GPUs",
    "redone_gpu_h": "for work undone by failures and stops",
    "pre_run_gpu_h": "trials",
    "overhead_gpu_h": "starts, restores, changes of width",
    "rented_gpu_hours": "paid for: nodes ready or starting",
    "rented_gpus_mean": "GPUs paid for, average over time",
    "idle_gpu_h": "of them ready, and held by no job",
    "unready_gpu_h": "of them not ready yet",
    "over_budget_gpu_h": "of them beyond budget and drain",
    "least_budget_gpus": "no schedule keeps a smaller budget",
    "cost_usd": "rent and energy",
    "energy_kwh": "energy of the site, with PUE",
    "steady_s": "first to last submission, or `steady_s`",
    "steady_utilization": "utilization in that window",
    "steady_utilization_effective": "GPUs that compute, in it",
    "steady_waiting_jobs_mean": "jobs that wait, average over it",
    "steady_rented_gpus_mean": "GPUs paid for, average over it",
    "steady_cost_usd": "rent and energy in it",
    "steady_energy_kwh": "energy in it",
    "drain_s": "from its end to that of the rollout",
    "drain_utilization": "utilization in that time",
    "finish_time_fairness_max": "greatest JCT / JCT in an own share",
    "finish_time_fairness_p95": "95th percentile of the same",
    "finish_time_fairness_share": "share of jobs above 1",
    "jain_index": "evenness of the queues' GPU-hours",
    "attempts": "starts from the queue",
    "preemptions": "stops by the policy",
    "migrations": "moves to as many other GPUs",
    "rescales": "changes of width",
    "failures": "failed attempts",
    "outages": "attempts ended by outages of nodes",
    "retries": "queued again after a failure",
    "given_up": "failed jobs with a retry left",
    "false_stops": "of them, those that would have passed",
    "deadline_misses": "not ended by their deadline",
    "jobs": "jobs of the trace, or of the window",
    "passed": "ended with their work done",
    "killed": "ended by their users",
    "failed": "ended by a failure",
    "unfinished": "not ended, and in no mean of times",
    "decisions": "calls of the policy",
    "solver_calls": "calls of solvers in decisions",
    "solver_fallbacks": "of these, the greedy plan, unproven",
    "solver_gap_max": "greatest relative gap that is stated",
}
"""What each metric is; units stand at the end of the names."""


def metrics(record: Record, window: tuple[int, int] | None = None) -> dict[str, float | int | None]:
    """Return the metrics of a rollout.

    Parameters
    ----------
    window
        Numbers (from, to) of jobs, `to` excluded: only these count, so that warm-up and drain can
        be dropped. Utilisation, rent, cost, energy, decisions and solvers are of the whole rollout;
        `steady_...` are those of a window of time.

    Returns
    -------
    dict
        A value for each key of `METRICS`; None where there is nothing to measure: no job ended, no
        power model.

    Raises
    ------
    ValueError
        If the window holds no job of a trace that has some.

    Notes
    -----
    JCT = end - submission, of the jobs that ended, however they did; queueing delays and slowdowns
    are of these jobs too. The run time alone of a job is that of its attempts that fail and, unless
    the trace says that it fails, its work; for slowdowns it is at least 60 s. The own share of a
    job is 1/n of the cluster (see `finish_time_fairness`). Jain's index is 1 if all queues have
    equal GPU-hours. Queueing delay and its parts after Jeon et al., ATC'19.
    """
    figures = of_jobs(record, _window(record, window)) | _of_cluster(record)
    return {key: figures[key] for key in METRICS}


def metrics_by(record: Record) -> pd.DataFrame:
    """Return the metrics of jobs by class of size and by status.

    Returns
    -------
    pandas.DataFrame
        A row for each class of size (ATC'19, figure 2) and each status, `unfinished` being one; the
        index has the levels `by` and `group`.
    """
    import pandas as pd

    groups = {("size", name): jobs for name, jobs in by_size(record.trace).items()}
    groups |= {("status", name): jobs for name, jobs in _by_status(record).items()}
    rows = {key: of_jobs(record, jobs) for key, jobs in groups.items() if len(jobs)}
    index = pd.MultiIndex.from_tuples(list(rows), names=["by", "group"])
    return pd.DataFrame(list(rows.values()), index=index)


def of_jobs(record: Record, chosen: Integers) -> dict[str, float | int | None]:
    """Return the metrics that can be told of some jobs."""
    ended = chosen[record.jobs.outcome[chosen] != ACTIVE]
    return {
        **_times(record, chosen, ended),
        **_delays(record, chosen, ended),
        **_work(record, chosen),
        **_fairness(record, chosen, ended),
        **_counts(record, chosen),
    }


def _times(record: Record, chosen: Integers, ended: Integers) -> dict[str, float | None]:
    submit, end = record.trace.submit_us, record.jobs.end_us[ended]
    jct = end - submit[ended]
    alone = np.maximum(seen_us(record.trace)[ended], SLOWDOWN_FLOOR_US)
    return {
        "jct_mean_s": _seconds(_mean(jct)),
        "jct_median_s": _seconds(_percentile(jct, 50)),
        "jct_p95_s": _seconds(_percentile(jct, 95)),
        "jct_p99_s": _seconds(_percentile(jct, 99)),
        "jct_geomean_s": _geometric_mean(jct / US),
        "makespan_s": _seconds(end.max() - submit[chosen].min() if len(ended) else None),
        "bounded_slowdown_mean": _mean(np.maximum(jct / alone, 1.0)),
    }


def _delays(record: Record, chosen: Integers, ended: Integers) -> dict[str, float | None]:
    jobs = record.jobs
    started = chosen[jobs.first_start_us[chosen] >= 0]
    until_start = jobs.first_start_us[started] - record.trace.submit_us[started]
    return {
        "queueing_delay_mean_s": _seconds(_mean(jobs.waiting_us[ended])),
        **{
            f"{kind}_delay_mean_s": _seconds(_mean(getattr(jobs, f"{kind}_us")[ended]))
            for kind in KINDS
        },
        **delays_of(jobs, chosen),
        "first_start_delay_mean_s": _seconds(_mean(until_start)),
    }


def _work(record: Record, chosen: Integers) -> dict[str, float]:
    jobs = record.jobs
    return {
        "gpu_hours": _hours(jobs.allocated_gpu_us[chosen]),
        **{
            "goodput_gpu_h" if key == "useful" else f"{key}_gpu_h": _hours(
                getattr(jobs, f"{key}_gpu_us")[chosen]
            )
            for key in PARTS
        },
    }


def _fairness(record: Record, chosen: Integers, ended: Integers) -> dict[str, float | None]:
    rho = finish_time_fairness(record, seen_us(record.trace))[ended]
    rho = rho[np.isfinite(rho)]
    return {
        "finish_time_fairness_max": float(rho.max()) if len(rho) else None,
        "finish_time_fairness_p95": _percentile(rho, 95),
        "finish_time_fairness_share": _mean(rho > 1),
        "jain_index": jain_index(record.trace.queue, record.jobs.allocated_gpu_us, chosen),
    }


def _counts(record: Record, chosen: Integers) -> dict[str, int]:
    jobs = record.jobs
    churn = ("attempts", "preemptions", "migrations", "rescales", "failures", "outages")
    counts = {key: int(getattr(jobs, key)[chosen].sum()) for key in churn}
    status = {name: int((jobs.outcome[chosen] == n).sum()) for n, name in enumerate(STATUSES)}
    return {
        **counts,
        "retries": counts["failures"] - status[FAILED],
        **given_up(record, chosen),
        "deadline_misses": _late(record, chosen),
        "jobs": len(chosen),
        **{name: status[name] for name in (PASSED, KILLED, FAILED)},
        "unfinished": int((jobs.outcome[chosen] == ACTIVE).sum()),
    }


def _of_cluster(record: Record) -> dict[str, float | int | None]:
    """Return the metrics of the cluster and the policy."""
    whole = of_time(record, Integrals(), counted(record))
    solves = all_solves(record)
    gaps = [solve.gap for solve in solves if math.isfinite(solve.gap)]
    return {
        **{key: whole[key] for key in WHOLE},
        **billed(record),
        **of_window(record),
        "decisions": len(record.epochs),
        "solver_calls": len(solves),
        "solver_fallbacks": sum(solve.fallback for solve in solves),
        "solver_gap_max": max(gaps, default=None),
    }


def _window(record: Record, window: tuple[int, int] | None) -> Integers:
    count = len(record.trace)
    first, last = (0, count) if window is None else window
    chosen = np.arange(max(first, 0), min(last, count))
    if count and not len(chosen):
        raise ValueError(f"window {first} to {last} holds none of the {count} jobs")
    return chosen


def _by_status(record: Record) -> dict[str, Integers]:
    codes = {name: n for n, name in enumerate(STATUSES)} | {"unfinished": ACTIVE}
    return {name: np.flatnonzero(record.jobs.outcome == code) for name, code in codes.items()}


def _late(record: Record, chosen: Integers) -> int:
    deadline = record.trace.deadline_us[chosen]
    end = record.jobs.end_us[chosen]
    end = np.where(record.jobs.outcome[chosen] == ACTIVE, record.end_us, end)
    return int(((deadline >= 0) & (end > deadline)).sum())


def _hours(gpu_us: Integers) -> float:
    return int(gpu_us.sum()) / GPU_H


def _seconds(us: Any) -> float | None:
    return None if us is None else float(us) / US


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _percentile(values: Any, share: float) -> float | None:
    return float(np.percentile(values, share)) if len(values) else None


def _geometric_mean(seconds: Floats) -> float | None:
    """Return the geometric mean, no job counting as shorter than a microsecond."""
    return float(np.exp(np.log(np.maximum(seconds, 1 / US)).mean())) if len(seconds) else None
