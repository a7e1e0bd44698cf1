"""Rollouts of one trace under Philly's scheduler, with and without its study's guidelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout import Scenario
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.traces import generate

if TYPE_CHECKING:
    from optsched.rollout.results.record import Record

KEPT = Path(__file__).parents[1] / "results" / "guidelines"
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


def measured(load: float, jobs: int, seed: int, again: bool = False) -> dict[str, dict[str, float]]:
    """Return the figures of all policies on one trace, from a file if they were measured before."""
    path = KEPT / f"{load:g}-{jobs}-{seed}.json"
    if path.exists() and not again:
        kept: dict[str, dict[str, float]] = json.loads(path.read_text())
        if list(kept) == [BASE, *GUIDELINES]:
            return kept
    scenario, gpus = world(), NODES * GPUS_PER_NODE
    trace = generate("philly-atc19", jobs, seed, load=load, gpus=gpus, max_gpus=LARGEST)
    found = {}
    for name, policy in {BASE: BASE, **GUIDELINES}.items():
        engine = Engine(scenario, trace, make(policy, scenario, seed), seed, keep_intervals=True)
        found[name] = figures(engine.run())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found


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
