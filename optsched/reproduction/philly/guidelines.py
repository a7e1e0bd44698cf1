"""The guidelines of ATC'19, each beside Philly's scheduler on the same traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.scenario import Scenario
from optsched.traces import generate

if TYPE_CHECKING:
    from optsched.rollout.results.record import Record
    from optsched.traces.trace import Trace

BASE = "philly"
GUIDELINES = {
    "any place at once": "philly:relax_after=0",
    "wait for locality, a day": "philly:relax_after=480",
    "dedicated": "philly:dedicated=true",
    "defragment": "philly:defragment=true",
    "dedicated, defragment": "philly:dedicated=true,defragment=true",
    "pre-run of 1 s": "philly:pre_run=true,pre_run_s=1",
    "pre-run": "philly:pre_run=true",
    "pre-run, pool of 1": "philly:pre_run=true,pool=1",
    "stop retrying": "philly:stop_retrying=true",
    "all": "philly:relax_after=480,dedicated=true,defragment=true,pre_run=true,stop_retrying=true",
}
"""What is compared with `BASE`; "all" has the four guidelines, with a wait of a day."""

NODES, GPUS_PER_NODE, LARGEST = 40, 8, 64


def world() -> Scenario:
    """Return 40 servers in two RDMA domains, with the constants of `philly-small`."""
    groups = [{"count": NODES // 2, "gpus": GPUS_PER_NODE, "domain": name} for name in "ab"]
    return Scenario.from_document(
        {
            "schema": "optsched/scenario/1",
            "name": "guidelines",
            "nodes": groups,
            "spread": {},
            "neighbours": {"shared_server": 0.771},
            "epoch_s": 180,
            "costs": {"start_s": 30, "restore_s": 30, "checkpoint_every_s": 3600},
            "retries": {"delay_s": 180},
            "trace": {"generator": "philly-atc19", "jobs": 1},
        }
    )


def jobs_at(load: float, jobs: int, seed: int) -> Trace:
    """Return jobs that fill the world to a load."""
    gpus = NODES * GPUS_PER_NODE
    return generate("philly-atc19", jobs, seed, load=load, gpus=gpus, max_gpus=LARGEST)


def rolled(policy: str, trace: Trace, seed: int) -> dict[str, float]:
    """Return the figures of a policy on a trace."""
    scenario = world()
    engine = Engine(scenario, trace, make(policy, scenario, seed), seed, keep_intervals=True)
    return figures(engine.run())


def figures(record: Record) -> dict[str, float]:
    """Return the figures of a rollout: metrics, and those that only gangs have."""
    jobs, trace = record.jobs, record.trace
    told = {name: float(value) for name, value in metrics(record).items() if value is not None}
    smooth = np.array([not trace.failures.get(job) for job in range(len(trace))])
    gangs = smooth & (trace.gpus > 1) & (jobs.outcome >= 0)
    told["run_over_trace"] = float(jobs.running_us[gangs].sum() / trace.run_us[gangs].sum())
    told["fragmentation_delays"] = float(jobs.fragmentation_delays.sum())
    told["servers_of_gangs"] = servers_of_gangs(record)
    return told


def servers_of_gangs(record: Record) -> float:
    """Return over how many times the fewest servers a gang was, mean over stretches of running."""
    times = []
    for job, _, _, gpus in record.intervals:
        if len(gpus) > 1:
            least = -(-int(record.trace.gpus[job]) // GPUS_PER_NODE)
            times.append(len({gpu // GPUS_PER_NODE for gpu in gpus}) / least)
    return float(np.mean(times)) if times else 1.0
