"""Where the GPU time that jobs held went: whole GPU-microseconds that add up exactly."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.engine.state import PPB
from optsched.rollout.physics.regimes import LOSSES
from optsched.rollout.results.record import Integrals

if TYPE_CHECKING:
    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.assembly import Simulation

LOST = tuple(f"{cause}_loss" for cause in LOSSES)
PARTS = ("useful", *LOST, "redone", "pre_run", "overhead")
"""In this order they are rounded: each to the sum up to it, rounded down, less the sum before."""


def parts_of_held_time(world: Simulation) -> dict[str, Integers]:
    """Return the parts of the GPU time that jobs held, by job; running jobs are settled.

    `useful` is work that was done and stayed done, at the reference: the run time that it takes
    alone on the gang asked for, at the best place, on GPUs of slowdown 1, times these GPUs. What
    is left of the last microsecond of a phase is overhead.
    """
    state, accounts = world.state, world.accounts
    count = len(state.status)
    parts = np.zeros((count, len(PARTS)), dtype=np.int64)
    is_plain = world.physics.is_plain
    for job in range(state.submitted):
        held = accounts.allocated[job]
        if not held:
            continue
        work = state.demand[job] * (state.total[job] - state.remaining[job])
        if is_plain:
            exact = (work // PPB, *(0,) * len(LOST), accounts.redone[job], accounts.pre_run[job])
            parts[job] = (*exact, held - sum(exact))
            continue
        lost = accounts.losses.total.get(job, [0] * len(LOST))[: len(LOST)]
        known = (work, *lost, accounts.redone[job] * PPB, accounts.pre_run[job] * PPB)
        sums = [0, *(part // PPB for part in accumulate(known)), held]
        parts[job] = [after - before for before, after in pairwise(sums)]
    return {name: parts[:, n].copy() for n, name in enumerate(PARTS)}


def effective_gpu_us(world: Simulation) -> Integers:
    """Return by job for how long its GPUs computed: time at work x busy share x what slows it.

    Distance, neighbours and sharing slow it, a slow GPU is busy all the same. Never above what a
    GPU has: jobs that would want more of one have it in turns. Starts, restores and trials do not
    count. Rounded down.
    """
    accounts = world.accounts
    idle = zip(accounts.allocated, accounts.overhead, accounts.pre_run, strict=True)
    at_work = np.array([held - over - tried for held, over, tried in idle], dtype=np.int64)
    for job, total in accounts.losses.total.items():
        at_work[job] -= -(-total[-1] // PPB)
    return np.floor(np.maximum(at_work, 0) * world.busy_shares).astype(np.int64)


def waiting_us(world: Simulation) -> Integers:
    """Return by job for how long it has waited, between submission and end; jobs are settled."""
    state, accounts = world.state, world.accounts
    end = np.array(accounts.end, dtype=np.int64)
    until = np.where(end < 0, world.now, end)
    is_seen = np.arange(len(end)) < state.submitted
    present = np.where(is_seen, until - world.trace.submit_us, 0)
    waited: Integers = present - np.array(accounts.running, dtype=np.int64)
    return waited


def counted_until_now(world: Simulation) -> Integrals:
    """Return what was counted from the start until now."""
    world.settle_running()
    return Integrals(
        *world.integrals()[:4],
        int(effective_gpu_us(world).sum()),
        int(waiting_us(world).sum()),
        world.joules,
        world.billed_usd,
    )
