"""A record made by hand: four jobs on two nodes of two GPUs, every figure small enough to check.

    GPU  0 s  10   20   50   100  110        160
    0    a ........................ b .......
    1    a ........................ b .......
    2              c ...            b .......
    3                               b .......

a asks for 2 GPUs, has 10 s of overhead, and loses 50 GPU-seconds to slow GPUs, distance and
neighbours; c is tried for 2 s and fails after 30 s; b waits for a and holds all GPUs, d
comes at 100 s, asks for one GPU and waits until the rollout ends at 160 s.
"""

import numpy as np

from optsched.rollout.engine.decision import SolveRecord
from optsched.rollout.results.record import ACTIVE, EpochRecord, Integrals, JobsRecord, Record
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import Failure, trace_of

US = 1_000_000
GPU_POWER = {"bare_w": 50.0, "context_w": 50.0, "busy_w": 250.0}

JOBS = {
    "first_start_us": [0, 20, 110, -1],
    "end_us": [110, 50, 160, -1],
    "outcome": [0, 2, 0, ACTIVE],
    "running_us": [110, 30, 50, 0],
    "waiting_us": [0, 0, 100, 60],
    "back_off_us": [0, 0, 0, 0],
    "fair_share_us": [0, 0, 70, 0],
    "capacity_us": [0, 0, 0, 50],
    "fragmentation_us": [0, 0, 25, 0],
    "order_us": [0, 0, 5, 10],
    "back_off_delays": [0, 0, 0, 0],
    "fair_share_delays": [0, 0, 1, 0],
    "capacity_delays": [0, 0, 0, 0],
    "fragmentation_delays": [0, 0, 0, 0],
    "order_delays": [0, 0, 0, 0],
    "allocated_gpu_us": [220, 30, 200, 0],
    "useful_gpu_us": [150, 0, 200, 0],
    "width_loss_gpu_us": [0, 0, 0, 0],
    "slow_gpu_loss_gpu_us": [20, 0, -10, 0],
    "distance_loss_gpu_us": [14, 0, 0, 0],
    "neighbour_loss_gpu_us": [16, 0, 0, 0],
    "sharing_loss_gpu_us": [0, 0, 10, 0],
    "redone_gpu_us": [0, 28, 0, 0],
    "pre_run_gpu_us": [0, 2, 0, 0],
    "overhead_gpu_us": [20, 0, 0, 0],
    "effective_gpu_us": [85, 28, 152, 0],
    "attempts": [1, 1, 1, 0],
    "preemptions": [0, 0, 0, 0],
    "migrations": [0, 0, 2, 0],
    "rescales": [0, 1, 0, 0],
    "failures": [0, 1, 0, 0],
    "outages": [0, 0, 0, 0],
}
SOLVE = SolveRecord("optimal", 10.0, 9.9, 0.25, verified=True, verification_s=0.05)
LATE = SolveRecord("error", 4.0, 3.0, 0.5, fallback=True)
# now, pending, running, busy GPUs, rented nodes, changes, solves, busy GPU-s so far
DECISIONS = (
    (0, 0, 1, 2, 2, 1, (SOLVE,), 0),
    (10, 1, 1, 2, 2, 0, (), 20),
    (20, 1, 2, 3, 2, 1, (SOLVE, LATE), 40),
    (100, 2, 1, 2, 2, 0, (), 230),
    (110, 1, 1, 4, 2, 1, (), 250),
)


def scenario(**changes):
    document = {
        "schema": "optsched/scenario/1",
        "name": "by hand",
        "nodes": 2,
        "gpus_per_node": 2,
        "trace": {"generator": "poisson", "jobs": 4},
        "models": {"bert": {"utilisation": 0.5}},
        "price_usd_per_gpu_h": 3.6,
    }
    return Scenario.from_document(document | changes)


def trace():
    return trace_of(
        "four",
        "made by hand",
        {
            "ids": ["a", "c", "b", "d"],
            "submit_s": [0, 20, 10, 100],
            "gpus": [2, 1, 4, 1],
            "run_s": [100, 500, 50, 1000],
            "model": ["bert", "", "", ""],
            "queue": ["x", "x", "y", "y"],
            "status": ["passed", "failed", "passed", "passed"],
            "utilization": [np.nan, np.nan, 0.8, 0.9],
            "deadline_s": [105, np.nan, 200, 150],
            "failures": [(), (Failure("oom", 30 * US),), (), ()],
        },
    )


def record(**changes):
    """Return the record; jobs are numbered a, b, c, d, as they are submitted."""
    order = [0, 2, 1, 3]
    columns = {}
    for key, values in JOBS.items():
        scale = US if key.endswith("_us") else 1
        columns[key] = np.array([values[n] * (scale if values[n] != -1 else 1) for n in order])
    epochs = tuple(
        EpochRecord(
            now_us=now * US, pending=pending, running=running, busy_gpus=busy, free_gpus=4 - busy,
            rented_nodes=nodes, power_w=1000.0 + 100 * busy, changes=changed, solves=solves,
            busy_gpu_us=used * US, available_gpu_us=4 * now * US, spent_gpu_us=4 * now * US,
            energy_j=1000.0 * now + 100 * used,
        )
        for now, pending, running, busy, nodes, changed, solves, used in DECISIONS
    )  # fmt: skip
    made = {
        "scenario": scenario(),
        "trace": trace(),
        "policy": "fifo",
        "seed": 0,
        "jobs": JobsRecord(**columns),
        "epochs": epochs,
        "end_us": 160 * US,
        "busy_gpu_us": 450 * US,
        "available_gpu_us": 640 * US,
        "spent_gpu_us": 640 * US,
        "energy_j": 1000.0 * 160 + 100 * 450,
        "events": 9,
        "window": (
            Integrals(0, 0, 0, 0, 0, 0, 0.0),
            Integrals(100 * US, 230 * US, 400 * US, 400 * US, 153 * US, 90 * US, 123_000.0),
        ),
        "intervals": (
            (0, 0, 110 * US, (0, 1)),
            (2, 20 * US, 50 * US, (2,)),
            (1, 110 * US, 160 * US, (0, 1, 2, 3)),
        ),
    }
    return Record(**(made | changes))
