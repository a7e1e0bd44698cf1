"""From the engine's lists to the record of a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.results.parts_of_held_time import (
    counted_until_now,
    effective_gpu_us,
    parts_of_held_time,
    waiting_us,
)
from optsched.rollout.results.record import JobsRecord, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.assembly import Simulation
    from optsched.rollout.engine.engine import Engine


def record_of(engine: Engine) -> Record:
    """Return the record of a rollout up to the engine's last moment; the rollout can go on."""
    world = engine.world
    counted = counted_until_now(world)
    return Record(
        scenario=engine.scenario,
        trace=engine.trace,
        policy=engine.policy.name,
        seed=engine.seed,
        jobs=_jobs(world),
        epochs=engine.log.copy(),
        end_us=world.now,
        busy_gpu_us=world.busy_gpu_us,
        available_gpu_us=world.available_gpu_us,
        spent_gpu_us=world.spent_gpu_us,
        energy_j=world.joules,
        billed_usd=world.billed_usd,
        events=engine.delivery.count,
        is_starved=engine.is_starved,
        window=world.window.ends(counted),
        intervals=tuple(world.dispatch.intervals) + _open_intervals(world),
    )


def _open_intervals(world: Simulation) -> tuple[tuple[int, int, int, tuple[int, ...]], ...]:
    """Return the intervals of jobs that still hold GPUs, up to now."""
    held, gpus_of = world.dispatch.held_since, world.state.gpus_of
    if held is None:
        return ()
    return tuple((job, held[job], world.now, gpus_of[job]) for job in sorted(held))


def _jobs(world: Simulation) -> JobsRecord:
    """Return the figures of all jobs, which are settled."""
    accounts, state = world.accounts, world.state
    parts = {f"{name}_gpu_us": part for name, part in parts_of_held_time(world).items()}
    return JobsRecord(
        first_start_us=_whole(accounts.first_start),
        end_us=_whole(accounts.end),
        outcome=_whole(accounts.outcome),
        running_us=_whole(accounts.running),
        waiting_us=waiting_us(world),
        **_kinds_of_waiting(world),
        allocated_gpu_us=_whole(accounts.allocated),
        **parts,
        effective_gpu_us=effective_gpu_us(world),
        attempts=_whole(accounts.attempts),
        preemptions=_whole(accounts.preemptions),
        migrations=_whole(accounts.migrations),
        rescales=_whole(accounts.rescales),
        failures=_whole(state.failed),
        outages=_whole(accounts.outages),
    )


def _kinds_of_waiting(world: Simulation) -> dict[str, Integers]:
    """Return by kind the time that jobs waited, and how many of their attempts it delayed."""
    waiting = world.waiting
    spent = np.zeros((len(KINDS), len(world.trace)), dtype=np.int64)
    delays = np.zeros_like(spent)
    for job in {**waiting.spent, **waiting.begun}:
        spent[:, job] = waiting.split(job, world.now)
    for job, counts in waiting.delays.items():
        delays[:, job] = counts
    times = {f"{kind}_us": spent[n] for n, kind in enumerate(KINDS)}
    return times | {f"{kind}_delays": delays[n] for n, kind in enumerate(KINDS)}


def _whole(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)
