"""Table 5 and figure 4 of a rollout that kept its intervals: what jobs saw on how many servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.reproduction.philly.targets import TABLE_5
from optsched.rollout.physics.cluster import Cluster
from optsched.traces import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.results.record import Record

GANG = 16
"""GPUs of the jobs of table 5."""
LARGE = ((5, 8), (9, 10**9))
FEWEST = 10
"""Jobs of which quantiles of waits are told."""
SERVERS = (1, 2, 4, 8, 16)


def of_places(record: Record) -> dict[str, float]:
    """Return the cells by their names in `targets`."""
    return {**dict(busy_by_servers(record)), **dict(waits_by_servers(record))}


def busy_by_servers(record: Record) -> Iterator[tuple[str, float]]:
    """Yield table 5: GPUs that compute in gangs of 16, by the servers that they are on, in %.

    A job counts where it was always on so many; the mean is over GPU time. The paper's quantiles
    are of samples of each minute, these of jobs, by GPU time.
    """
    servers, is_one = servers_of(record)
    held, used = record.jobs.allocated_gpu_us, record.jobs.effective_gpu_us
    for number in TABLE_5:
        chosen = (record.trace.gpus == GANG) & (servers == number) & is_one & (held > 0)
        if chosen.any():
            time, share = held[chosen], 100 * used[chosen] / held[chosen]
            yield f"table 5, {number} servers, mean", float(share @ time / time.sum())
            for level in (50, 90, 95):
                yield f"table 5, {number} servers, p{level}", quantile(share, time, level / 100)
            yield f"table 5, {number} servers, jobs", float(chosen.sum())


def quantile(values: Floats, weights: Integers, level: float) -> float:
    """Return the least value that has so much of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order]) / weights.sum()
    first = int(np.searchsorted(upto, level))
    return float(values[order][min(first, len(order) - 1)])


def waits_by_servers(record: Record) -> Iterator[tuple[str, float]]:
    """Yield figure 4: the wait for the first start in minutes, by the servers of that start."""
    servers, _ = servers_of(record)
    wait = (record.jobs.first_start_us - record.trace.submit_us) / (60 * US)
    for least, most in LARGE:
        of_size = (record.trace.gpus >= least) & (record.trace.gpus <= most)
        name = f"{least} to {most}" if most < LARGE[-1][1] else f"more than {least - 1}"
        for number in SERVERS:
            chosen = of_size & (servers == number)
            if chosen.sum() >= FEWEST:
                for level in (50, 90):
                    value = float(np.percentile(wait[chosen], level))
                    yield f"figure 4, {name} GPUs on {number}, p{level}, minutes", value


def servers_of(record: Record) -> tuple[Integers, Integers]:
    """Return on how many servers each job was first, 0 if on none; and whether it always was."""
    node_of = Cluster(record.scenario).node_of
    first, is_one = np.zeros(len(record.trace), dtype=np.int64), np.ones(len(record.trace), bool)
    for job, _, _, gpus in sorted(record.intervals, key=lambda interval: interval[1]):
        number = len({node_of[gpu] for gpu in gpus})
        if first[job]:
            is_one[job] &= first[job] == number
        else:
            first[job] = number
    return first, is_one
