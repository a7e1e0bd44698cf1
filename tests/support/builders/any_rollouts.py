"""Rollouts drawn by a seed, the same in every version: scenario, jobs, policy, and what happened.

    python -m tests.support.builders.any_rollouts 0 2000 > digests.json

Two versions that decide alike print the same digests; the file of another one is compared with
``diff``. Rows of epochs are left out, for rounds that change nothing need not be there.
"""

import hashlib
import json
import random
import sys

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import Failure, trace_of

ORDERED = (
    *("packed-sticky", "packed-non-sticky", "random-sticky", "random-non-sticky"),
    *("pm-first", "pal-greedy", "pal-multilevel"),
)
BINNED = ("pm-first", "pal-greedy", "pal-multilevel")
PREEMPTIVE = ("srtf", "las", "tiresias", "tiresias-gittins", "wsrpt")
GANGS = ("fifo", "philly", "philly:dedicated=true,defragment=true", "philly:pre_run=true")
ELASTIC = (
    *("equi", "marginal-greedy", "srpt-k", "fifo-requested", "pollux", "sia"),
    *("fixed-width:k=2", "fixed-width:k=3,placement=best-fit", "efficiency-threshold:theta=0.6"),
    *("equi:placement=pal", "marginal-greedy:placement=best-fit"),
)
CURVES = (
    {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 16},
    {"kind": "table", "gpus": [1, 2, 4, 8], "speedup": [1.0, 1.5, 3.2, 4.1]},
    {"kind": "table", "gpus": [2, 3, 7], "speedup": [1.7, 2.4, 2.9]},
)


def any_policy(draw, world):
    """The name and the options of a policy that the scenario allows."""
    kinds = [ORDERED, ORDERED, BINNED, PREEMPTIVE, GANGS]
    if not world.quotas and world.models:
        kinds += [ELASTIC, ELASTIC, ELASTIC]
    name = draw.choice(draw.choice(kinds))
    if name not in ORDERED:
        return name
    options = [f"order={draw.choice(('fifo', 'fifo', 'las', 'srtf', 'tiresias'))}"]
    options.append(f"backfill={draw.choice(('true', 'false'))}")
    if name in BINNED and draw.random() < 0.3:
        options.append(f"bins={draw.choice(('released', 'silhouette', 'exact'))}")
    return f"{name}:{','.join(options)}"


def any_scenario(draw):
    """A cluster of 2 to 12 nodes, with or without each kind of physics and of rules."""
    nodes, each = draw.randint(2, 12), draw.choice((1, 2, 4, 8))
    parts = {"epoch_s": draw.choice((10.0, 60.0)), "end_s": 4000.0}
    parts["costs"] = {"start_s": draw.choice((0.0, 5.0)), "restore_s": draw.choice((0.0, 7.0))}
    parts["costs"]["checkpoint_every_s"] = draw.choice((None, 30.0))
    parts["estimates"] = {"kind": draw.choice(("exact", "exact", "none", "history"))}
    parts["decide_on"] = draw.choice((("arrival", "finish"), ("arrival", "finish"), ("finish",)))
    if draw.random() < 0.3:
        parts["locality"] = [1.0, draw.choice((1.2, 1.7))]
    if draw.random() < 0.2:
        parts["neighbours"] = {"shared_server": 0.77}
    classes = draw.random() < 0.6
    if classes:
        parts["profile"] = _profile(draw, nodes * each)
    if classes or draw.random() < 0.5:
        parts["models"] = {name: _model(draw, classes) for name in "abc"}
    if draw.random() < 0.15:
        parts["quotas"] = {"q": draw.randint(1, nodes * each), "r": draw.randint(1, nodes * each)}
    if draw.random() < 0.15:
        parts["downtime"] = [_downtime(draw, nodes) for _ in range(draw.randint(1, 3))]
    trace = {"generator": "none", "jobs": 1}
    return Scenario(nodes=nodes, gpus_per_node=each, trace=trace, **parts)


def _profile(draw, gpus):
    values = draw.choice(((0.9, 1.0, 1.3), (1.0,), tuple(0.9 + 0.05 * n for n in range(9))))
    slowdown = {name: [draw.choice(values) for _ in range(gpus)] for name in "AB"}
    return {"gpus": [f"g{n}" for n in range(gpus)], "slowdown": slowdown, "kind": "persistent"}


def _model(draw, classes):
    model = {}
    if classes:
        model["application_class"] = draw.choice("AB")
    if draw.random() < 0.4:
        model["locality"] = [1.0, draw.choice((1.1, 2.0))]
    if draw.random() < 0.8:
        phases = [{"work_gpu_s": 100, "speedup": draw.choice(CURVES)}]
        model["phases"] = phases * draw.choice((1, 1, 2))
    return model


def _downtime(draw, nodes):
    begin = draw.choice((0.0, 20.0, 55.0, 100.0))
    closed = draw.sample(range(nodes), draw.randint(1, nodes))
    end = begin + draw.choice((10.0, 120.0, 500.0))
    kind = draw.choice(("drain", "outage"))
    return {"nodes": sorted(closed), "from_s": begin, "to_s": end, "kind": kind}


def any_trace(draw, world):
    """More jobs than fit, of many widths, many of them alike."""
    rows, failures, columns = [], [], {"model": [], "queue": [], "status": []}
    for _ in range(draw.randint(1, 60)):
        size = draw.choice([n for n in (1, 1, 1, 2, 2, 3, 4, 8, 8, 16, 24) if n <= world.gpus])
        rows.append((draw.choice((0.0, draw.uniform(0, 300))), size, draw.uniform(0, 200)))
        fails = draw.random() < 0.15
        reason, after = "CPU out of memory", draw.randint(0, 20) * 1_000_000
        failures.append([Failure(reason, after)] if fails else [])
        columns["model"].append(draw.choice(("", "unknown", *world.models)))
        columns["queue"].append(draw.choice(("q", "r", "s")))
        columns["status"].append(draw.choice(("passed", "passed", "killed", "failed")))
    submit, gpus, run = zip(*rows, strict=True)
    told = {"submit_s": submit, "gpus": gpus, "run_s": run, "failures": failures}
    return trace_of("any", "", told | columns)


def any_rollout(seed):
    """Scenario, jobs and policy of a seed."""
    draw = random.Random(seed)
    world = any_scenario(draw)
    return world, any_trace(draw, world), any_policy(draw, world)


def digest(seed):
    """What happened in the rollout of a seed, in 16 characters."""
    world, jobs, policy = any_rollout(seed)
    record = Engine(world, jobs, make(policy, world, seed), seed, keep_intervals=True).run()
    table = (record.jobs.first_start_us.tolist(), record.jobs.end_us.tolist())
    rest = (record.jobs.outcome.tolist(), record.end_us, record.busy_gpu_us, record.intervals)
    return hashlib.sha256(repr((policy, table, rest)).encode()).hexdigest()[:16]


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    print(json.dumps({seed: digest(seed) for seed in range(first, last)}, indent=0))
