"""Metrics of a stretch of time: use of GPUs, money, energy; from what was counted at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.results.record import Integrals
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.results.record import Record

GPU_H = 3600 * US  # GPU-microseconds
WHOLE = ("utilization", "utilization_effective", "rented_gpus_mean", "cost_usd", "energy_kwh")
"""Metrics of time that are told of the whole rollout and of its steady state."""


def counted(record: Record) -> Integrals:
    """Return what was counted until the end of a rollout."""
    return Integrals(
        record.end_us,
        record.busy_gpu_us,
        record.available_gpu_us,
        record.spent_gpu_us,
        int(record.jobs.effective_gpu_us.sum()),
        int(record.jobs.waiting_us.sum()),
        record.energy_j,
        record.billed_usd,
    )


def of_time(record: Record, begin: Integrals, end: Integrals) -> dict[str, float | None]:
    """Return the metrics of the time between two moments; None where there is nothing to divide."""
    scenario = record.scenario
    span, busy, available, spent, effective, waiting, joules, billed_usd = (
        after - before for before, after in zip(begin, end, strict=True)
    )
    energy = None
    cost = billed_usd if scenario.has_prices else spent / GPU_H * scenario.price_usd_per_gpu_h
    if scenario.power is not None:
        energy = joules / 3.6e6 * scenario.power.pue
        cost += energy * scenario.power.price_usd_per_kwh
    return {
        "utilization": busy / available if available else None,
        "utilization_effective": effective / available if available else None,
        "waiting_jobs_mean": waiting / span if span else None,
        "rented_gpus_mean": spent / span if span else None,
        "cost_usd": cost,
        "energy_kwh": energy,
    }


def of_window(record: Record) -> dict[str, float | None]:
    """Return the metrics of the steady state, and of the time from then to the end."""
    begin, end = record.window
    steady, drain = of_time(record, begin, end), of_time(record, end, counted(record))
    return {
        "steady_s": (end.now_us - begin.now_us) / US,
        **{f"steady_{key}": steady[key] for key in (*WHOLE, "waiting_jobs_mean")},
        "drain_s": (record.end_us - end.now_us) / US,
        "drain_utilization": drain["utilization"],
    }
