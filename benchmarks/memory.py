"""The memory that methods take, against what `optsched.solve` estimates before it begins.

    python benchmarks/memory.py             # about ten minutes
    python benchmarks/memory.py --quick     # the smaller ones

Each solve has a process of its own. Measured is what its resident set grows by at its peak, from
when the instance is there; solves stop at a gap of 1 % or after 30 s.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psutil
from generators import WIDTHS, classes, curves, sharing, sharing_in_types, tree

import optsched
from optsched.boa import BoaInstance
from optsched.registry import problem

MIB = 2**20


def phases(count, widths, rescale_s=0.0, owners=10):
    """Return an instance of BOA with so many phases of 16 widths each, in ten classes."""
    load, speedup = curves(count, WIDTHS, 0.05)
    widths_ = WIDTHS.astype(int).tolist()
    tables = [{"kind": "table", "gpus": widths_, "speedup": row} for row in speedup.tolist()]
    listed = [
        {"work_gpu_s": 100 * work, "speedup": table}
        for work, table in zip(load.tolist(), tables, strict=True)
    ]
    return BoaInstance.from_document(
        {
            "schema": "optsched/boa/1",
            "name": f"{count:,} phases, {widths}, rescaling {rescale_s:g} s",
            "widths": widths,
            "budget_gpus": float(100 * load.sum() * 6 / 3600 * 1.6),
            "classes": [
                {
                    "id": f"c{n}",
                    "arrival_rate_per_h": 6.0,
                    "rescale_s": rescale_s,
                    "phases": listed[n::owners],
                }
                for n in range(owners)
            ],
        }
    )


QUICK = (
    ("exact", partial(phases, 20_000, "mixed")),
    ("milp", partial(phases, 1000, "mixed")),
    ("milp", partial(phases, 1000, "integer", 5.0)),
    ("exact", partial(tree, 256, [8])),
    ("exact", partial(tree, 1024, [8])),
    ("pal-greedy", partial(tree, 1024, [8])),
    ("milp", partial(tree, 64)),
    ("milp", partial(tree, 256, [8])),
    ("exact", partial(classes, 10_000, 4_000)),
    ("exact", partial(sharing, 60, 3, 0.3)),
    ("exact", partial(sharing, 100, 3, 0.3)),
    ("milp", partial(sharing, 60, 2, 0.3)),
)
LARGER = (
    ("exact", partial(phases, 60_000, "mixed")),
    ("milp", partial(phases, 4000, "mixed")),
    ("milp", partial(phases, 3000, "integer", 5.0)),
    ("exact", partial(tree, 2048, [8])),
    ("milp", partial(tree, 512, [8])),
    ("decomposition", partial(tree, 4096, [8, 8])),
    ("decomposition", partial(tree, 8192, [8, 8])),
    ("pal-multilevel", partial(tree, 16384, [8, 16])),
    ("exact", partial(classes, 100_000, 40_000)),
    ("exact", partial(sharing, 60, 4, 0.3)),
    ("exact", partial(sharing, 200, 3, 0.3)),
    ("columns", partial(sharing, 500, 3, 0.3)),
    ("columns", partial(sharing, 1000, 3, 0.3)),
    ("columns", partial(sharing_in_types, 10_000, 50, 4, 0.3)),
)


def measured(method, instance):
    """Return name, estimate and growth in bytes, and seconds of the estimate."""
    entry = problem(instance.problem)
    started = time.process_time()
    estimate = entry.memory(instance, method)
    seconds = time.process_time() - started
    before = psutil.Process().memory_info().rss
    forget_peak()
    optsched.solve(instance, method, gap=0.01, time_limit_s=30, memory_gib=1e9)
    return instance.name, estimate, peak() - before, seconds


def forget_peak():
    """Let the peak begin again, so that reading the instance is not in it."""
    Path("/proc/self/clear_refs").write_text("5")


def peak():
    """Return the peak of the resident set since then; `ru_maxrss` would be that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smaller ones only")
    rows = QUICK if parser.parse_args().quick else QUICK + LARGER
    print(f"{'instance':44} {'method':14} {'estimate':>9} {'measured':>9} {'ratio':>6} {'ms':>6}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for method, make in rows:
            name, estimate, grown, seconds = pool.submit(measured, method, make()).result()
            print(
                f"{name:44} {method:14} {estimate / MIB:5,.0f} MiB {grown / MIB:5,.0f} MiB "
                f"{estimate / grown:6.2f} {1000 * seconds:6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
