"""What a rollout leaves behind: everything that its metrics and files are computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.decision import SolveRecord
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


ACTIVE = -1
"""Outcome of a job that has not ended: it is unfinished."""


@dataclass(frozen=True, eq=False)
class JobsRecord:
    """One entry per job of the trace, in whole microseconds or GPU-microseconds.

    Attributes
    ----------
    first_start_us, end_us
        -1 if it never started or has not ended.
    outcome
        Numbers into `STATUSES`; `ACTIVE` if it has not ended.
    running_us, waiting_us
        While it held GPUs, and while it did not, between submission and end.
    back_off_us, fair_share_us, capacity_us, fragmentation_us, order_us
        Parts of `waiting_us`, by what would have let the job start: see docs/rollouts.md.
    back_off_delays, ..., order_delays
        Starts that were delayed by more than 60 s, by the kind in which the job waited longest.
    allocated_gpu_us
        GPUs held x time: the sum of the next nine.
    useful_gpu_us
        Work that was done and stayed done: run time at the reference x GPUs asked for. The
        reference is a job alone, at the best place, on GPUs of slowdown 1.
    width_loss_gpu_us
        Lost as more GPUs than asked for are less efficient; negative where fewer are more so.
    slow_gpu_loss_gpu_us
        Lost to slow GPUs; negative where they are faster than the reference.
    distance_loss_gpu_us, neighbour_loss_gpu_us, sharing_loss_gpu_us
        Lost to distance between GPUs, to other jobs on the same servers, and on the same GPUs.
    redone_gpu_us
        Held while doing work that failures and stops have undone.
    pre_run_gpu_us, overhead_gpu_us
        Trials; and start, restore, checkpoint, rescale, and waiting for the end of a round.
    effective_gpu_us
        Not a part: for how long the GPUs computed.
    attempts, preemptions, migrations, rescales, failures, outages
        Starts from the queue; stops by the policy; moves to as many other GPUs; changes of width;
        failed attempts; attempts that outages of nodes have ended.
    """

    first_start_us: Integers
    end_us: Integers
    outcome: Integers
    running_us: Integers
    waiting_us: Integers
    back_off_us: Integers
    fair_share_us: Integers
    capacity_us: Integers
    fragmentation_us: Integers
    order_us: Integers
    back_off_delays: Integers
    fair_share_delays: Integers
    capacity_delays: Integers
    fragmentation_delays: Integers
    order_delays: Integers
    allocated_gpu_us: Integers
    useful_gpu_us: Integers
    width_loss_gpu_us: Integers
    slow_gpu_loss_gpu_us: Integers
    distance_loss_gpu_us: Integers
    neighbour_loss_gpu_us: Integers
    sharing_loss_gpu_us: Integers
    redone_gpu_us: Integers
    pre_run_gpu_us: Integers
    overhead_gpu_us: Integers
    effective_gpu_us: Integers
    attempts: Integers
    preemptions: Integers
    migrations: Integers
    rescales: Integers
    failures: Integers
    outages: Integers


class Integrals(NamedTuple):
    """What was counted from the start until a moment.

    Attributes
    ----------
    busy_gpu_us, available_gpu_us, spent_gpu_us, energy_j, billed_usd
        As in `Record`.
    effective_gpu_us
        For how long GPUs computed, jobs side by side each for its share.
    waiting_us
        Time that jobs waited, all together.
    """

    now_us: int = 0
    busy_gpu_us: int = 0
    available_gpu_us: int = 0
    spent_gpu_us: int = 0
    effective_gpu_us: int = 0
    waiting_us: int = 0
    energy_j: float = 0.0
    billed_usd: float = 0.0


@dataclass(frozen=True)
class EpochRecord:
    """The cluster just after a decision.

    Attributes
    ----------
    busy_gpu_us, available_gpu_us, spent_gpu_us, energy_j, billed_usd
        The integrals of `Record` from the start until now.
    """

    now_us: int
    pending: int
    running: int
    busy_gpus: int
    free_gpus: int
    rented_nodes: int
    power_w: float
    changes: int
    solves: tuple[SolveRecord, ...] = ()
    busy_gpu_us: int = 0
    available_gpu_us: int = 0
    spent_gpu_us: int = 0
    energy_j: float = 0.0
    billed_usd: float = 0.0


@dataclass(frozen=True, eq=False)
class Record:
    """The outcome of one rollout.

    Attributes
    ----------
    end_us
        Moment of the last event.
    busy_gpu_us
        Time integral of GPUs with at least one job on them.
    available_gpu_us
        Time integral of GPUs in nodes that are ready.
    spent_gpu_us
        Time integral of GPUs that are paid for: ready or starting.
    energy_j
        Energy of the cluster, without PUE; 0 if the scenario has no power model.
    events
        How many events were processed.
    billed_usd
        What rented nodes with prices of their own cost; 0 if they have none.
    window
        What was counted until the steady state began, and until it ended.
    is_starved
        Whether jobs were left that the policy would never have started: nothing else could happen.
    """

    scenario: Scenario
    trace: Trace
    policy: str
    seed: int
    jobs: JobsRecord
    epochs: Sequence[EpochRecord]
    end_us: int
    busy_gpu_us: int
    available_gpu_us: int
    spent_gpu_us: int
    energy_j: float
    events: int
    intervals: tuple[tuple[int, int, int, tuple[int, ...]], ...] = field(default=())
    """(job, from, to, GPUs), if the rollout was asked to keep them."""
    origin: str = ""
    """Whose the policy is, and the hash of its source, if it is not one of optsched."""
    is_starved: bool = False
    window: tuple[Integrals, Integrals] = (Integrals(), Integrals())
    billed_usd: float = 0.0
