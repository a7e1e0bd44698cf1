"""`exact` side by side with the MILP over all groups in Pyomo and HiGHS, and networkx' matching.

    python benchmarks/eaco_exact_vs_milp.py                 # all sizes
    python benchmarks/eaco_exact_vs_milp.py --quick         # small ones
    python benchmarks/eaco_exact_vs_milp.py --bundled       # quads-60 and pairs-60

All run in turn in the same process, on one thread; seconds are of its CPU, so that they mean the
same on a machine that others use, too. Those of `exact` and `milp` are of `optsched.solve` as a
whole, with enumeration, greedy start and certificate (`milp` without the proof that `exact` adds
to it); those of networkx are of `max_weight_matching` alone, over pairs that are enumerated
already: on twice as many vertices as GPUs, with a dummy for each that stays empty, which obeys
their number (docs/math/eaco.md, Matching), and without, which is right only where GPUs are plenty.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time

import networkx as nx
import numpy as np
from generators import sharing as instance_of

import optsched
from optsched.eaco.groups.columns import columns
from optsched.eaco.groups.enumeration import job_classes

SIZES = (
    (60, 4, 0.25, 1e-6),
    (120, 2, 0.25, 1e-6),
    (300, 2, 0.25, 1e-6),
    (1000, 2, 0.25, 1e-3),
)
QUICK = ((24, 4, 0.25, 1e-6), (60, 2, 0.25, 1e-6))
LIMIT_S = 600.0  # of wall-clock time, for each solve
MOST_MATCHED = 300  # jobs, for networkx
MOST_IN_MILP = 60  # jobs, for the model in Pyomo


class Clock:
    """Seconds of CPU since it was made."""

    def __init__(self):
        self._started = time.process_time()

    @property
    def seconds(self):
        return time.process_time() - self._started


def pairs_of(groups, jobs):
    """Return what each job costs alone, pairs, and what they cost."""
    single = (groups.members < jobs).sum(axis=1) == 1
    alone = np.zeros(jobs)
    alone[groups.members[single].min(axis=1)] = groups.cost[single]
    return alone, groups.members[~single][:, :2].tolist(), groups.cost[~single].tolist()


def matching(groups, jobs, _gpus):
    """Solve pairs by networkx: weights are what sharing saves."""
    alone, pairs, costs = pairs_of(groups, jobs)
    graph = nx.Graph()
    for (a, b), cost in zip(pairs, costs, strict=True):
        if alone[a] + alone[b] > cost:
            graph.add_edge(a, b, weight=alone[a] + alone[b] - cost)
    clock = Clock()
    chosen = nx.max_weight_matching(graph)
    return clock.seconds, alone.sum() - sum(graph[a][b]["weight"] for a, b in chosen)


def dummy_matching(groups, jobs, gpus):
    """Solve pairs by networkx: a perfect matching on twice as many vertices as GPUs."""
    alone, pairs, costs = pairs_of(groups, jobs)
    dummies, most = range(jobs, 2 * gpus), float(groups.cost.max()) + 1.0
    edges = [(a, b, most - cost) for (a, b), cost in zip(pairs, costs, strict=True)]
    edges += [(job, dummy, most - alone[job]) for job in range(jobs) for dummy in dummies]
    edges += [(a, b, most) for a, b in itertools.combinations(dummies, 2)]
    graph = nx.Graph()
    graph.add_weighted_edges_from(edges)
    clock = Clock()
    chosen = nx.max_weight_matching(graph, maxcardinality=True)
    return clock.seconds, sum(most - graph[a][b]["weight"] for a, b in chosen)


def row(method, seconds, result, ratio, more=""):
    """Print a line of the table."""
    objective, bound, gap = result
    figures = f"{objective:14.6f} {bound:14.6f} {gap:8.1e}"
    print(f"  {method:22} {seconds:9.2f} s {figures} {ratio:>8} {more}", flush=True)


def solved(instance, method, gap):
    """Solve; return seconds and the result."""
    clock = Clock()
    result = optsched.solve(instance, method=method, gap=gap, time_limit_s=LIMIT_S)
    return clock.seconds, result


def figures(result):
    """Return objective, bound and gap."""
    known = (result.objective, result.bound, result.gap)
    return tuple(math.nan if value is None else value for value in known)


def compare(instance, gap):
    """Print what each method takes for an instance."""
    clock = Clock()
    classes = job_classes(instance)
    groups = columns(instance, classes)
    print(f"{instance.name}: {len(groups.cost):,} groups in {clock.seconds:.2f} s", flush=True)
    seconds, result = solved(instance, "exact", gap)
    clock = Clock()
    optsched.verify(instance, result)
    row("exact", seconds, figures(result), "", f"verified in {clock.seconds:.2f} s")
    jobs = len(instance.jobs)
    if instance.max_jobs_per_gpu == 2 and jobs == len(classes) <= MOST_MATCHED:
        gpus = sum(nodes.gpus * nodes.count for nodes in instance.nodes)
        for name, rival in (("networkx, dummies", dummy_matching), ("networkx", matching)):
            taken, objective = rival(groups, jobs, gpus)
            row(name, taken, (objective, math.nan, math.nan), f"{taken / seconds:.1f} x")
    if jobs <= MOST_IN_MILP:
        taken, other = solved(instance, "milp", gap)
        row("milp", taken, figures(other), f"{taken / seconds:.1f} x", other.message)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--bundled", action="store_true", help="quads-60 and pairs-60 instead")
    chosen = parser.parse_args()
    optsched.solve(instance_of(4, 2, 0.25), method="milp")  # imports everything
    head = f"{'objective':>14} {'bound':>14} {'gap':>8} {'ratio':>8}"
    print(f"  {'method':22} {'CPU':>11} {head}")
    if chosen.bundled:
        for name in ("eaco/quads-60", "eaco/pairs-60"):
            compare(optsched.read(name), 1e-6)
        return
    for jobs, most, tolerance, gap in QUICK if chosen.quick else SIZES:
        compare(instance_of(jobs, most, tolerance), gap)


if __name__ == "__main__":
    main()
