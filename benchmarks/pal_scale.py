"""PAL on large clusters: seconds, memory, objective, bound and gap, and the time of the verifier.

    python benchmarks/pal_scale.py             # to 100,000 GPUs
    python benchmarks/pal_scale.py --quick     # 1,024 and 4,096 GPUs

Slowdowns and jobs are drawn from pal/racks-256. Clusters of three and four levels have a slowdown
for each GPU of its own; the last two have 16 classes of equal nodes, and jobs of at most a node.
Seconds are of the CPU, for `optsched.solve` as a whole.
"""

from __future__ import annotations

import argparse
import resource
import time

from generators import classes, tree

import optsched


def line(instance, gap, limit_s):
    """Solve, verify, and print a row."""
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
