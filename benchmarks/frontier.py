"""The frontier of cbd-85 at 200 budgets: at once, budget by budget, and from the cache.

    python benchmarks/frontier.py             # 200 budgets
    python benchmarks/frontier.py --quick     # 20

The first is of mixed widths without rescaling, each point with its plan and verified; the other two
are of integer widths with rescaling, as the instance has them, each budget solved to a relative gap
of 1e-6. Seconds are those of the calls of `optsched.frontier` as a whole, the processes that it
starts included; imports are not.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np

import optsched


def timed(function):
    started = time.perf_counter()
    value = function()
    return time.perf_counter() - started, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 budgets only")
    parser.add_argument("--processes", type=int, default=None, help="default: as it pays")
    arguments = parser.parse_args()
    budgets = np.linspace(20.5, 80, 20 if arguments.quick else 200)
    base = optsched.read("boa/cbd-85")
    free = base.changed({"classes.*.rescale_s": 0, "widths": "mixed"})
    optsched.frontier(free, budgets=budgets[:2])  # import everything
    optsched.frontier(base, budgets=budgets[:2], executor=1)

    def run(instance, **options):
        return optsched.frontier(instance, budgets=budgets, **options)

    at_once = min(timed(lambda: run(free))[0] for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        options = {"executor": arguments.processes, "cache": folder}
        swept, whole = timed(lambda: run(base, **options))
        cached = min(timed(lambda: run(base, **options))[0] for _ in range(5))
    assert all(point.status == "optimal" for point in whole.points)
    print(f"{len(budgets)} budgets                                    seconds")
    print(f"mixed widths, no rescaling, at once        {at_once:9.3f}")
    print(f"integer widths, rescaling, solved          {swept:9.3f}")
    print(f"integer widths, rescaling, from the cache  {cached:9.3f}")


if __name__ == "__main__":
    main()
