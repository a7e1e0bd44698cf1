"""`exact` side by side with HiGHS' plain MILP over all groups, and with networkx' matching.

    python benchmarks/eaco_exact_vs_milp.py             # all sizes
    python benchmarks/eaco_exact_vs_milp.py --quick     # small ones

Seconds of `exact` are those of `optsched.solve` as a whole; those of the others are inside HiGHS or
networkx alone, over groups that are enumerated already. All run in turn in the same process.
"""

from __future__ import annotations

import argparse
import math
import time

import networkx as nx
import numpy as np

import optsched
from optsched import highs
from optsched.eaco import EacoInstance
from optsched.eaco.columns import columns
from optsched.eaco.groups import job_classes
from optsched.eaco.master import Master, frame

SIZES = ((60, 4, 0.25, 1e-6), (120, 2, 0.25, 1e-6), (300, 2, 0.25, 1e-6), (1000, 2, 0.25, 1e-3))
QUICK = ((24, 4, 0.25, 1e-6), (60, 2, 0.25, 1e-6))
LIMIT_S = 120.0


def instance_of(jobs, most, tolerance, seed=0):
    """Jobs of types of their own: log-uniform work, uniform utilisations and memories."""
    draw = np.random.default_rng(seed)
    types = [
        {
            "id": f"t{n:04d}",
            "utilisation": round(float(draw.uniform(0.05, 0.6)), 3),
            "memory_gb": round(float(draw.uniform(1, 10)), 1),
        }
        for n in range(jobs)
    ]
    work = np.exp(draw.uniform(math.log(1800), math.log(180_000), jobs)).round().tolist()
    power = {"bare_w": 50, "context_w": 100, "peak_w": 350}
    node = {"id": "a", "gpu": "g", "gpus": 8, "count": -(-jobs // 8), "power": {"base_w": 400}}
    listed = [
        {"id": f"j{n}", "type": f"t{n:04d}", "work_s": work[n], "max_slowdown": 1 + tolerance}
        for n in range(jobs)
    ]
    return EacoInstance.from_document(
        {
            "schema": "optsched/eaco/1",
            "name": f"{jobs} jobs, {most} share, tolerance {tolerance}",
            "max_jobs_per_gpu": most,
            "gpu_types": [{"id": "g", "memory_gb": 24, "power": power}],
            "nodes": [node],
            "types": types,
            "jobs": listed,
        }
    )


def plain_milp(instance, found, classes, gap):
    """Solve the set partitioning over all groups with HiGHS."""
    program = Master(frame(instance, classes), 1e4, 0).whole(found)
    started = time.perf_counter()
    outcome = highs.solve(program, gap=gap, time_limit_s=LIMIT_S)
    return time.perf_counter() - started, outcome.objective, outcome.bound


def matching(found, jobs):
    """Solve pairs by networkx: weights are what sharing saves."""
    single = (found.members < jobs).sum(axis=1) == 1
    alone = np.zeros(jobs)
    alone[found.members[single].min(axis=1)] = found.cost[single]
    graph = nx.Graph()
    pairs = found.members[~single][:, :2]
    saved = alone[pairs].sum(axis=1) - found.cost[~single]
    for (a, b), weight in zip(pairs.tolist(), saved.tolist(), strict=True):
        if weight > 0:
            graph.add_edge(a, b, weight=weight)
    started = time.perf_counter()
    pairs = nx.max_weight_matching(graph)
    seconds = time.perf_counter() - started
    return seconds, alone.sum() - sum(graph[a][b]["weight"] for a, b in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    for jobs, most, tolerance, gap in QUICK if parser.parse_args().quick else SIZES:
        instance = instance_of(jobs, most, tolerance)
        started = time.perf_counter()
        classes = job_classes(instance)
        found = columns(instance, classes)
        enumerated = time.perf_counter() - started
        print(f"{instance.name}: {len(found.cost):,} groups in {enumerated:.2f} s", flush=True)
        result = optsched.solve(instance, gap=gap, time_limit_s=LIMIT_S)
        started = time.perf_counter()
        optsched.verify(instance, result)
        verified = time.perf_counter() - started
        text = f"objective {result.objective:.6f}, bound {result.bound:.6f}, gap {result.gap:.1e}"
        print(
            f"  exact     {result.seconds:8.2f} s  {text}, verified in {verified:.2f} s", flush=True
        )
        if most == 2 and jobs <= 300:
            seconds, objective = matching(found, jobs)
            ratio = f"{seconds / result.seconds:.1f} x"
            print(f"  networkx  {seconds:8.2f} s  objective {objective:.6f}, {ratio}", flush=True)
        if jobs <= 300:
            seconds, objective, bound = plain_milp(instance, found, classes, gap)
            ratio = f"{seconds / result.seconds:.1f} x"
            text = f"objective {objective:.6f}, bound {bound:.6f}, {ratio}"
            print(f"  plain MILP{seconds:8.2f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
