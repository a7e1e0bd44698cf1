"""Table 2 and figure 3 of a rollout, and what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout import first_waits, why_jobs_wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.results.record import Record

KINDS = ("back_off", "fair_share", "capacity", "fragmentation", "order")


def of_waiting(record: Record) -> dict[str, float]:
    """Return the cells by their names in `targets`."""
    return {**dict(delays(record)), **dict(waits(record)), **cluster(record)}


def delays(record: Record) -> Iterator[tuple[str, float]]:
    """Yield table 2: the share of fragmentation, in %; and all delays of more than 60 s by kind."""
    for size, row in why_jobs_wait(record).iterrows():
        if row.fragmentation_delays + row.fair_share_delays:
            yield f"table 2, {size}", 100 * float(row.fragmentation_share)
        for kind in KINDS:
            yield f"delays by {kind.replace('_', ' ')}, {size}", float(row[f"{kind}_delays"])


def waits(record: Record) -> Iterator[tuple[str, float]]:
    """Yield figure 3: quantiles of the wait for the first start, in minutes."""
    for size, row in first_waits(record, by_queue=False).iterrows():
        for level in ("p50", "p90"):
            yield f"figure 3, {size}, {level}, minutes", float(row[level])


def cluster(record: Record) -> dict[str, float]:
    """Return how full the cluster was while jobs came, and where the GPU time that was held went.

    In % of what was held.
    """
    begin, end = record.window
    ready = end.available_gpu_us - begin.available_gpu_us
    jobs, held = record.jobs, record.jobs.allocated_gpu_us.sum()
    parts = {
        "work": jobs.useful_gpu_us,
        "distance": jobs.distance_loss_gpu_us,
        "neighbours": jobs.neighbour_loss_gpu_us,
        "work undone": jobs.redone_gpu_us,
        "starts": jobs.overhead_gpu_us,
    }
    busy = 100 * (end.busy_gpu_us - begin.busy_gpu_us) / max(1, ready)
    shares = {name: 100 * float(part.sum() / held) for name, part in parts.items()}
    return {
        "utilisation while jobs come, %": busy,
        **{f"GPU time held, % {name}": share for name, share in shares.items()},
        "preemptions": float(jobs.preemptions.sum()),
        "unfinished jobs": float((jobs.outcome < 0).sum()),
    }
