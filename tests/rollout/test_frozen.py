"""Frozen rollouts: who ran where and when, as it was before any physics was added that is off here.

The trace is a file, so that no generator can change it. A digest that differs means that something
which is switched off changes what happens.
"""

import hashlib
from pathlib import Path

import pytest

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.json_traces import read_trace

TRACE = Path(__file__).parents[1] / "golden" / "rollouts" / "philly-60.json"
CURVE = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 16}
PLAIN = {
    "schema": "optsched/scenario/1", "nodes": 4, "gpus_per_node": 8, "epoch_s": 180,
    "costs": {"start_s": 30, "restore_s": 30, "checkpoint_every_s": 3600},
    "retries": {"delay_s": 180}, "trace": {"file": "philly-60.json"},
}  # fmt: skip
WORLDS = {
    "plain": PLAIN,
    "distance and neighbours": PLAIN | {
        "locality": [1.0, 1.171], "neighbours": {"shared_server": 0.771},
    },
    "sharing": PLAIN | {"sharing": {"max_jobs_per_gpu": 2}},
    "trouble": PLAIN | {"events": {"mean_between_s": 40_000, "mean_length_s": 9_000}},
    "widths": PLAIN | {"models": {"m": {"phases": [{"work_gpu_s": 1, "speedup": CURVE}]}}},
}  # fmt: skip
SINCE = {"distance and neighbours": {"reference_place": "one-node"}}
"""What a world has to say now to be as it was."""
FROZEN = {
    ("plain", "fifo"): "d5a0a50fd20e3238",
    ("plain", "philly"): "6894d56f000b300e",
    ("plain", "srtf"): "a0ca786bf17421af",
    ("plain", "packed-sticky"): "d5a0a50fd20e3238",
    ("distance and neighbours", "fifo"): "ad8040c6aad02dd7",
    ("distance and neighbours", "philly"): "2d84d4f5475205f2",
    ("distance and neighbours", "las"): "83a194bd60ddff8e",
    ("distance and neighbours", "pm-first"): "30615115e6b8f6df",
    ("sharing", "eaco-greedy"): "59e401e015663b9c",
    ("trouble", "fifo"): "385b06b5b6605bf8",
    ("trouble", "las"): "f3f7a9975d37b876",
    ("widths", "equi"): "d1424ede1632431b",
    ("widths", "srpt-k"): "f1e789b138fdb0f9",
    ("widths", "marginal-greedy"): "78ea8cb71e40bc3b",
}


def digest(world, policy):
    scenario = Scenario.from_document(WORLDS[world] | SINCE.get(world, {}))
    trace = read_trace(TRACE)
    record = Engine(scenario, trace, make(policy, scenario, 0), 0, keep_intervals=True).run()
    jobs = record.jobs
    told = (jobs.first_start_us.tolist(), jobs.end_us.tolist(), jobs.outcome.tolist())
    return hashlib.sha256(repr((told, sorted(record.intervals))).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("world", "policy"), FROZEN)
def test_rollouts_are_as_before_what_is_off(world, policy):
    assert digest(world, policy) == FROZEN[world, policy]
