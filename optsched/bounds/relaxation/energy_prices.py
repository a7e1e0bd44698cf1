"""Prices of work by type of job that charge no group more than it draws: a linear program."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import csr_array

from optsched.bounds.certificate import MOST_PRICE_UW, EnergyCertificate
from optsched.mip import highs
from optsched.rollout.physics.colocation import Colocation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.bounds.least_times import World
    from optsched.bounds.schedules import Schedules
    from optsched.documents.arrays import Floats
    from optsched.rollout.physics.colocation import Mix
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

MOST_GROUPS: Final = 100_000
UW: Final = 1e6


def energy_prices(
    scenario: Scenario, trace: Trace, world: World, schedules: Schedules
) -> EnergyCertificate | None:
    """Return prices of work, in microwatts per GPU; None without watts, or with too many groups.

    They maximise the sum of price x GPU time over all jobs, where in each group that a GPU can have
    the prices of its jobs, times their rates, are at most its watts.
    """
    if scenario.power is None or not len(trace):
        return None
    mixes = Colocation(scenario, trace)
    kinds = list(dict.fromkeys(mixes.type_of))
    most = scenario.sharing.max_jobs_per_gpu
    if comb(len(kinds) + most, most) > MOST_GROUPS:
        return None
    number = {kind: n for n, kind in enumerate(kinds)}
    work = np.zeros(len(kinds))
    for kind, job in zip(mixes.type_of, world.jobs, strict=True):
        gpus = sum(piece.rate * float(piece.width) for piece in job.pieces) / (1 << 16)
        work[number[kind]] += gpus * job.length_us / 1e6
    rows, watts = [], []
    for key, mix in _groups(scenario, mixes, schedules):
        row = np.zeros(len(kinds))
        for kind in key:
            row[number[kind]] += mix.rates[kind]
        rows.append(row)
        watts.append(mix.gpu_w)
    prices = _prices(work, np.array(rows), np.array(watts) + _busy_w(scenario, watts))
    return EnergyCertificate(
        prices_uw=[min(MOST_PRICE_UW, max(0, int(price * UW))) for price in prices]
    )


def _groups(
    scenario: Scenario, mixes: Colocation, schedules: Schedules
) -> Iterator[tuple[Sequence[str], Mix]]:
    """Yield the groups that can be on a GPU, by the types of their jobs."""
    first: dict[str, int] = {}
    for job, kind in enumerate(mixes.type_of):
        first.setdefault(kind, job)
    limit_gb, models = scenario.sharing.memory_gb, scenario.models
    for size in range(1, scenario.sharing.max_jobs_per_gpu + 1):
        for key in combinations_with_replacement(first, size):
            mix = mixes.of(tuple(first[kind] for kind in key))
            if not (mix.is_known and mix.fits) or (
                limit_gb is not None and mix.memory_gb > limit_gb
            ):
                continue
            slowest = [
                rate * (models[kind].max_slowdown or np.inf)
                for kind, rate in mix.rates.items()
                if kind in models
            ]
            if size > 1 and schedules.within_slowdowns and min(slowest, default=1.0) < 1:
                continue
            yield key, mix


def _busy_w(scenario: Scenario, watts: Sequence[float]) -> float:
    """Return what a GPU with jobs draws beyond its group's watts, those of idle nodes aside."""
    power = scenario.power
    if power is None:
        return 0.0
    largest = max(scenario.node_sizes, default=1) if scenario.topology is None else scenario.gpus
    if scenario.rented is not None:
        return power.node.base_w / largest
    if power.idle_nodes == "sleep":
        return max(0.0, power.node.base_w - power.node.sleep_w) / largest
    return -min([power.gpu.bare_w, *watts])


def _prices(work: Floats, rows: Floats, watts: Floats) -> Floats:
    """Return the prices of the most worth; 0 of types that no group has."""
    used = rows.any(axis=0) if len(rows) else np.zeros(len(work), bool)
    prices = np.zeros(len(work))
    if not used.any():
        return prices
    count = int(used.sum())
    program = highs.Program(
        cost=-np.maximum(work[used], 1e-9 * max(1.0, float(work.max()))),
        offset=0.0,
        lower=np.zeros(count),
        upper=np.full(count, np.inf),
        integer=np.zeros(count, bool),
        matrix=csr_array(rows[:, used]),
        row_lower=np.full(len(rows), -np.inf),
        row_upper=watts,
    )
    found = highs.solve(program).x
    if found is not None:
        prices[used] = found
    return prices
