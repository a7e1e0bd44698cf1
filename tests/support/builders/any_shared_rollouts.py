"""Rollouts under policies that share GPUs, drawn by a seed, the same in every version.

    python -m tests.support.builders.any_shared_rollouts 0 2000 > digests.json

As `any_rollouts`, whose jobs these are, with all that is counted of jobs, and joules. Half of them
are cut at some moment and go on from what was saved.
"""

import dataclasses
import hashlib
import json
import random
import sys

from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.decision import InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import STATUSES, trace_of
from tests.support.builders.any_rollouts import any_scenario, any_trace

FAMILY = (
    *("fifo-exclusive", "least-utilised", "eaco-greedy", "eaco-greedy", "best-fit-memory"),
    *("best-delta-energy", "best-delta-energy", "sharing-scores", "lucid-ordered", "random-pairs"),
    *("longest-first", "fifo-packed", "eaco-trials"),
)
NAMES = "abcd"


def any_policy(draw, world):
    """The name and the options of a policy of the family that the scenario allows."""
    name = draw.choice(("eaco-greedy", "eaco-trials") if world.priorities else FAMILY)
    options = []
    if draw.random() < 0.2:
        options.append(f"window={draw.randint(1, 5)}")
    if name.startswith("eaco-") and draw.random() < 0.3:
        options.append(f"utilisation_threshold={draw.choice((0.3, 0.5, 0.9))}")
    if name.startswith("eaco-") and draw.random() < 0.3:
        options.append(f"memory_threshold={draw.choice((0.25, 0.6))}")
    return f"{name}:{','.join(options)}" if options else name


def any_world(draw):
    """A cluster whose GPUs may be shared, with or without power, memory, tolerances, priorities."""
    like = any_scenario(draw)
    kept = ("epoch_s", "end_s", "costs", "estimates", "decide_on", "locality", "neighbours")
    parts = {name: getattr(like, name) for name in kept}
    nodes, each = draw.randint(1, 8), draw.choice((1, 2, 4, 8))
    memory = draw.choice((None, None, 8.0, 16.0, 24.0))
    parts["models"] = {name: _model(draw, memory) for name in NAMES}
    parts["sharing"] = {
        "max_jobs_per_gpu": draw.choice((1, 2, 2, 3, 4)),
        "memory_gb": memory,
        "interference": _interference(draw),
    }
    if draw.random() < 0.2:
        closed = sorted(draw.sample(range(nodes), draw.randint(1, nodes)))
        kind = draw.choice(("drain", "outage"))
        parts["downtime"] = [{"nodes": closed, "from_s": 40.0, "to_s": 160.0, "kind": kind}]
    if draw.random() < 0.6:
        parts["power"] = {
            "gpu": {"bare_w": 20, "context_w": 45, "peak_w": 300},
            "node": {"base_w": 350, "sleep_w": 30},
            "idle_nodes": draw.choice(("on", "sleep")),
        }
    if draw.random() < 0.15:
        parts["priorities"] = {"q": 2.0, "r": draw.choice((1.0, 2.0))}
    if draw.random() < 0.1:
        parts["beliefs"] = {"interference": 0.4}
    trace = {"generator": "none", "jobs": 1}
    return Scenario(nodes=nodes, gpus_per_node=each, trace=trace, **parts)


def _model(draw, memory):
    model = {"utilisation": draw.choice((0.0, 0.1, 0.3, 0.3, 0.6, 1.0))}
    model["memory_gb"] = draw.choice((0.0, 3.3, 7.1, 8.0) if memory else (0.0, 3.3, 20.0))
    if draw.random() < 0.5:
        model["max_slowdown"] = draw.choice((1.0, 1.1, 1.5, 3.0))
    return model


def _interference(draw):
    groups = {}
    for _ in range(draw.choice((0, 0, 3, 8))):
        types = tuple(sorted(draw.choices(NAMES, k=draw.choice((2, 2, 3, 4)))))
        rates = {name: draw.choice((0.45, 0.5, 2 / 3, 0.9, 1.0)) for name in types}
        group = {"types": types, "rates": [rates[name] for name in types]}
        if draw.random() < 0.1:
            group["rates"] = [0.0] * len(types)
        if draw.random() < 0.4:
            group |= {"gpu_power_w": draw.choice((90.0, 140.0, 210.0)), "utilisation": 0.5}
        groups[types] = group
    fallback = draw.choice(("utilisation", "utilisation", "utilisation", "pairs", "larger", "none"))
    return {"groups": list(groups.values()), "fallback": fallback}


def any_shared_rollout(seed):
    """Scenario, jobs, policy and the moment of the cut of a seed; None: it is not cut."""
    draw = random.Random(f"shared {seed}")
    world = any_world(draw)
    jobs = any_trace(draw, world)
    told = {
        "submit_s": jobs.submit_us / 1e6,
        "gpus": jobs.gpus,
        "run_s": jobs.run_us / 1e6,
        "model": [draw.choice((*NAMES, *NAMES, *jobs.model)) for _ in range(len(jobs))],
        "queue": jobs.queue,
        "status": [STATUSES[n] for n in jobs.status.tolist()],
        "failures": [list(jobs.failures.get(job, ())) for job in range(len(jobs))],
    }
    if draw.random() < 0.12:
        due = [draw.choice((0.0, 0.0, draw.uniform(50, 900))) for _ in range(len(jobs))]
        whens = zip(told["submit_s"], due, strict=True)
        told["deadline_s"] = [since + after if after else -1.0 for since, after in whens]
    jobs = trace_of("any", "", told)
    cut = draw.randint(0, 60) if draw.random() < 0.5 else None
    return world, jobs, any_policy(draw, world), cut


def digest(seed):
    """What happened in the rollout of a seed, in 16 characters."""
    world, jobs, policy, cut = any_shared_rollout(seed)
    told = [policy]
    try:
        record = _rolled_out(world, jobs, policy, seed, cut)
    except (InvalidDecision, ValueError) as error:
        told.append(str(error))
    else:
        columns = dataclasses.asdict(record.jobs)
        told += [(name, column.tolist()) for name, column in sorted(columns.items())]
        told += [record.end_us, record.busy_gpu_us, record.energy_j, record.events]
        told.append(record.intervals)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _rolled_out(world, jobs, policy, seed, cut):
    engine = Engine(world, jobs, make(policy, world, seed), seed, keep_intervals=True)
    for _ in range(cut or 0):
        engine.step()
    if cut is not None:
        saved = of_json(to_json(engine.saved()))
        engine = Engine(world, jobs, make(policy, world, seed), seed, keep_intervals=True)
        engine.go_on_from(saved)
    return engine.run()


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:])
    print(json.dumps({seed: digest(seed) for seed in range(first, last)}, indent=0))
