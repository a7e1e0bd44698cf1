"""PAL's exact placement: seconds with objective, bound and gap, and Pyomo's F2 side by side.

    python benchmarks/pal_placement.py             # all
    python benchmarks/pal_placement.py --quick     # without the formulation in Pyomo

Bundled instances, and larger ones from the jobs and slowdowns of pal/racks-256: they are drawn from
those with seeds 0, 1 and 2, until 90 % of the GPUs are asked for. Slowdowns are exact, without
bins, unless a line says so. The seconds are those of `optsched.solve` as a whole: building,
solving, reading the plan off, checking it, and certifying the bound; after a first solve that
imports everything.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import numpy as np
from generators import ACROSS, base_columns, batch

import optsched
from optsched.cluster import binning
from optsched.pal import PalInstance
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.relaxation import all_options, relaxation

MILP_LIMIT_S = 120


def drawn(gpus, per_node, seed, racks=0):
    """Return an instance of nodes in one cluster, or in racks between."""
    rng = random.Random(seed)
    base, columns = base_columns()
    names = [[f"n{n}/{i}" for i in range(per_node)] for n in range(gpus // per_node)]
    domains = [{"id": "all", "level": "cluster"}]
    domains += [{"id": f"r{r}", "level": "rack", "parent": "all"} for r in range(racks)]
    for n, inside in enumerate(names):
        parent = f"r{n * racks // len(names)}" if racks else "all"
        domains.append({"id": f"n{n}", "level": "node", "parent": parent, "gpus": inside})
    picked = [rng.choice(columns) for _ in range(gpus)]
    jobs = list(batch(rng, base, 0.9 * gpus))
    middle = [(1 + ACROSS) / 2] if racks else []
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": f"{gpus} GPUs, {3 if racks else 2} levels",
            "topology": {
                "levels": ["node", *(["rack"] if racks else []), "cluster"],
                "domains": domains,
            },
            "profile": {
                "gpus": [gpu for inside in names for gpu in inside],
                "slowdown": {c: [row[c] for row in picked] for c in base.profile.classes},
                "kind": base.profile.kind,
            },
            "locality": {job["model"]: [1, *middle, ACROSS] for job in jobs},
            "jobs": jobs,
        }
    )


def binned(instance, epsilon):
    """Return an instance with slowdowns rounded up to bins."""
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    for name in instance.profile.classes:
        scores = binning.geometric(instance.profile.array(name), epsilon).scores
        document["profile"]["slowdown"][name] = scores.tolist()
    return PalInstance.from_document(document)


def line(instance, gap, method="exact", limit=None, note=""):
    result = optsched.solve(instance, method, gap=gap, time_limit_s=limit)
    if method == "exact":
        optsched.verify(instance, result)
    name = f"{instance.name}{note}, {len(instance.jobs)} jobs"
    print(
        f"{name:42} {method:6} {gap:8.0e} {result.objective:12.6f} {result.bound:12.6f} "
        f"{result.gap:9.1e} {result.seconds:8.3f}",
        flush=True,
    )
    return result


def build(instance):
    started = time.perf_counter()
    problem = arrays(instance)
    built = time.perf_counter() - started
    reward = np.ones(len(problem.types))
    program = relaxation(problem, all_options(problem), reward)
    both = time.perf_counter() - started
    shape = " x ".join(str(n) for n in program.matrix.shape)
    print(f"{instance.name}: arrays {built:.3f} s; with the program of {shape}: {both:.3f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the formulation in Pyomo")
    quick = parser.parse_args().quick
    optsched.solve(optsched.read("pal/tiny"))
    optsched.solve(optsched.read("pal/tiny"), "milp")
    print(f"{'instance':42} {'method':6} {'asked':>8} {'objective':>12} {'bound':>12} gap seconds")
    for name in ("frontera-32", "sia-64", "sia-64-persistent", "sticky", "overfull"):
        line(optsched.read(f"pal/{name}"), 1e-6)
    for name in ("sia-64", "sia-64-persistent"):
        line(optsched.read(f"pal/{name}"), 1e-3)
    for seed in range(3):
        line(drawn(64, 4, seed), 1e-3, note=f", seed {seed}", limit=60)
        line(drawn(64, 4, seed), 0.0, note=f", seed {seed}", limit=60)
    for seed in range(3):
        instance = drawn(256, 4, seed)
        line(instance, 1e-3, note=f", seed {seed}", limit=60)
        line(binned(instance, 0.01), 1e-3, note=f", seed {seed}, 1 % bins", limit=60)
    line(optsched.read("pal/racks-256"), 1e-3, limit=60)
    for seed in range(3):
        line(drawn(1024, 8, seed), 1e-3, note=f", seed {seed}", limit=20)
    line(drawn(1024, 8, 0, racks=16), 1e-3, note=", seed 0", limit=20)
    build(drawn(1024, 8, 0))
    if quick:
        return
    batches = [optsched.read(f"pal/{name}") for name in ("sia-64", "sia-64-persistent")]
    batches += [drawn(64, 4, seed) for seed in range(3)]
    ratios = []
    for instance in batches:
        slow = line(instance, 1e-3, "milp", MILP_LIMIT_S)
        fast = line(instance, 1e-3)
        ratios.append(slow.seconds / fast.seconds)
        print(f"ratio {ratios[-1]:.0f}")
    print(f"least ratio {min(ratios):.0f}, median {statistics.median(ratios):.0f}")


if __name__ == "__main__":
    main()
