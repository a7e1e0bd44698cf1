"""PAL on large clusters: seconds, memory, objective, bound and gap, and the time of the judge.

    python benchmarks/pal_scale.py             # to 100,000 GPUs
    python benchmarks/pal_scale.py --quick     # 1,024 and 4,096 GPUs

Slowdowns and jobs are drawn from pal/racks-256. Clusters of three and four levels have a slowdown
for each GPU of its own; the last two have 16 classes of equal nodes, and jobs of at most a node.
Seconds are of the CPU, for `optsched.solve` as a whole.
"""

from __future__ import annotations

import argparse
import random
import resource
import time

from pal_placement import ACROSS, batch, rows

import optsched
from optsched.pal import PalInstance

PER_NODE = 8
KINDS = 16


def base_columns():
    """Return a bundled instance, and the slowdowns of each of its GPUs by class."""
    base = optsched.read("pal/racks-256")
    return base, [dict(zip(base.profile.classes, row, strict=True)) for row in rows(base)]


def document(name, domains, levels, picked, penalty, jobs, base):
    """Return an instance with a slowdown for each GPU of its lowest domains."""
    names = [gpu for domain in domains for gpu in domain.get("gpus", ())]
    slowdown = {c: [row[c] for row in picked] for c in base.profile.classes}
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": name,
            "topology": {"levels": levels, "domains": domains},
            "profile": {"gpus": names, "slowdown": slowdown, "kind": base.profile.kind},
            "locality": {job["model"]: penalty for job in jobs},
            "jobs": jobs,
        }
    )


def tree(gpus, fanouts, seed=0):
    """Return a cluster with so many domains of each level in one of the next, up to the root."""
    rng = random.Random(seed)
    base, columns = base_columns()
    levels = ["node", *(f"level-{n}" for n in range(len(fanouts))), "cluster"]
    domains, counts = [{"id": "all", "level": "cluster"}], [gpus // PER_NODE]
    for fanout in fanouts:
        counts.append(-(-counts[-1] // fanout))
    for height in range(len(counts) - 1, -1, -1):
        for n in range(counts[height]):
            top = height == len(counts) - 1
            parent = "all" if top else f"{levels[height + 1]}-{n // fanouts[height]}"
            domains.append({"id": f"{levels[height]}-{n}", "level": levels[height]})
            domains[-1]["parent"] = parent
            if not height:
                domains[-1]["gpus"] = [f"n{n}/{i}" for i in range(PER_NODE)]
    picked = [rng.choice(columns) for _ in range(gpus)]
    jobs = list(batch(rng, base, 0.9 * gpus))
    top = len(levels) - 1
    penalty = [1 + (ACROSS - 1) * n / top for n in range(len(levels))]
    name = f"{gpus:,} GPUs, {len(levels)} levels"
    return document(name, domains, levels, picked, penalty, jobs, base)


def classes(gpus, count, seed=0):
    """Return a cluster of nodes of a few classes, and jobs that stay within a node."""
    rng = random.Random(seed)
    base, columns = base_columns()
    kinds = [[rng.choice(columns) for _ in range(PER_NODE)] for _ in range(KINDS)]
    nodes = [rng.randrange(KINDS) for _ in range(gpus // PER_NODE)]
    domains = [{"id": "all", "level": "cluster"}]
    for n in range(len(nodes)):
        inside = [f"n{n}/{i}" for i in range(PER_NODE)]
        domains.append({"id": f"n{n}", "level": "node", "parent": "all", "gpus": inside})
    combinations = sorted({(job.model, job.application_class) for job in base.jobs})
    jobs = []
    for n in range(count):
        model, name = rng.choice(combinations)
        size = rng.choices([1, 2, 4, 8], [0.6, 0.2, 0.12, 0.08])[0]
        job = {"id": f"j{n}", "gpus": size, "application_class": name, "model": model}
        jobs.append(job | {"highest_level": "node"})
    picked = [row for kind in nodes for row in kinds[kind]]
    name = f"{gpus:,} GPUs, {KINDS} node classes"
    return document(name, domains, ["node", "cluster"], picked, [1, ACROSS], jobs, base)


def line(instance, gap, limit_s):
    """Solve, judge, and print a row."""
    started = time.process_time()
    result = optsched.solve(instance, gap=gap, time_limit_s=limit_s)
    seconds = time.process_time() - started
    started = time.process_time()
    optsched.check(instance, result.plan)
    checked = time.process_time() - started
    started = time.process_time()
    optsched.verify(instance, result)
    verified = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{instance.name:30} {len(instance.jobs):6,} {gap:7.0e} {result.objective:14.4f} "
        f"{result.bound:14.4f} {result.gap:8.1e} {seconds:8.1f} {checked:7.2f} {verified:7.2f} "
        f"{memory:6.2f}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 4,096 GPUs")
    options = parser.parse_args()
    optsched.solve(optsched.read("pal/tiny"))
    heads = f"{'cluster':30} {'jobs':>6} {'asked':>7} {'objective':>14} {'bound':>14} {'gap':>8}"
    print(f"{heads} {'CPU s':>8} {'check':>7} {'verify':>7} {'GiB':>6}")
    line(tree(1024, [8]), 2e-3, 60)
    line(tree(4096, [8, 8]), 5e-3, 60)
    if not options.quick:
        line(tree(16384, [8, 16]), 1e-2, 120)
        line(classes(10_000, 4_000), 5e-3, 60)
        line(classes(100_000, 40_000), 2e-2, 120)


if __name__ == "__main__":
    main()
