"""How many rounds of a rollout need nothing new, and what a round costs: PAL, warm and cold.

    python benchmarks/epochs.py                 # 64 GPUs, 160 jobs
    python benchmarks/epochs.py --jobs 40

Warm: a round begins with the plan and the GPU prices of the last one, and if these close the gap,
no linear program is solved ("nothing new"). Cold: every round begins from the greedy plans. Rounds
in which no job came or went are not counted: they place nothing.
"""

from __future__ import annotations

import argparse
import time

from optsched.rollout.engine import Engine
from optsched.rollout.jobs import jobs_of
from optsched.rollout.policies.pal_exact import Exact
from optsched.rollout.read import read_scenario
from optsched.rollout.registry import make

SCENARIOS = ("pal-64", "pal-64-persistent")
GAP = 1e-3


class Timed:
    """Places batches by another placement, and counts CPU seconds; cold: it forgets every time."""

    sticky = False
    settled = True

    def __init__(self, is_cold: bool) -> None:
        self.is_cold, self.seconds = is_cold, []
        self.inner = Exact(gap=GAP)

    def place(self, batch):
        if self.is_cold:
            self.inner._last = None
        started = time.process_time()
        placed = self.inner.place(batch)
        self.seconds.append(time.process_time() - started)
        return placed


def run(name, jobs, is_cold):
    scenario = read_scenario(name).changed({"trace.jobs": jobs})
    policy = make("pal", scenario)
    policy.placement = timed = Timed(is_cold)
    record = Engine(scenario, jobs_of(scenario), policy, seed=0).run()
    solves = [solve for epoch in record.epochs for solve in epoch.solves]
    seconds = sorted(timed.seconds[1:])  # the first one imports
    warm = sum(solve.is_warm for solve in solves)
    closed = sum(solve.gap <= GAP for solve in solves)
    gaps = sum(solve.gap for solve in solves) / len(solves)
    print(
        f"{name:<18} {'cold' if is_cold else 'warm':<5} {len(solves):6} {warm:12} {closed:7} "
        f"{gaps:9.1e} {1e3 * sum(seconds) / len(seconds):8.1f} "
        f"{1e3 * seconds[len(seconds) // 2]:8.1f} {1e3 * seconds[-1]:8.1f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=160)
    options = parser.parse_args()
    print(f"{'':24} rounds  nothing new  closed  mean gap   CPU ms: mean, median, most")
    for name in SCENARIOS:
        for is_cold in (True, False):
            run(name, options.jobs, is_cold)


if __name__ == "__main__":
    main()
