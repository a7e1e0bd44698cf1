"""Sharing policies on EaCO's two clusters: ratios of energy and run time beside the paper's.

    python benchmarks/eaco_rollout.py [--jobs N] [--policies a,b,...]

Energy, run time and nodes in use are relative to FIFO without sharing; the last line of each
cluster is the fluid bound (O3): no schedule in groups that users bear takes less energy.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

from optsched.reproduction.claims.eaco import bound_kwh, run_over_alone
from optsched.rollout import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario

SCENARIOS = ("eaco-28", "eaco-64")
POLICIES = (
    *(
        "fifo-exclusive",
        "fifo-packed",
        "random-pairs",
        "least-utilised",
        "sharing-scores",
        "best-fit-memory",
    ),
    *("eaco-greedy", "best-delta-energy", "longest-first", "eaco"),
)
# EaCO's savings against three baselines, arXiv 2412.08294, section 6: as energy relative to FIFO.
PAPER = {
    ("eaco-28", "fifo-packed"): 0.61 / 0.755,
    ("eaco-28", "random-pairs"): 0.61 / 0.917,
    ("eaco-28", "eaco-greedy"): 0.61,
    ("eaco-64", "fifo-packed"): 1.0,
    ("eaco-64", "random-pairs"): 1.0,
    ("eaco-64", "eaco-greedy"): 0.61,
}
PAPER_NODES = {("eaco-28", "eaco-greedy"): 0.70, ("eaco-64", "eaco-greedy"): 0.53}


def busy_node_hours(record: Record) -> float:
    """Return node-hours in use: all gangs are whole nodes."""
    return record.busy_gpu_us / US / 3600 / int(record.trace.gpus[0])


def measure(name: str, scenario: Scenario, policies: list[str]) -> None:
    """Run the policies on one cluster and print a line for each."""
    print(f"\n{name}: {scenario.trace.jobs} jobs, relative to {policies[0]}")
    head = (
        "policy",
        "energy",
        "paper",
        "run time",
        "JCT",
        "nodes",
        "paper",
        "moves",
        "CPU s",
        "gap",
    )
    print(f"{head[0]:<20}" + "".join(f"{word:>10}" for word in head[1:]))
    first = None
    for policy in policies:
        begun = time.process_time()
        result = simulate(scenario, policy)
        seconds = time.process_time() - begun
        record, metrics = result.record, result.metrics
        energy, jct = metrics["energy_kwh"] or 0.0, metrics["jct_mean_s"] or 0.0
        run = run_over_alone(record)
        nodes = busy_node_hours(record)
        first = first or (energy, jct, nodes)
        gaps = [s.gap for epoch in record.epochs for s in epoch.solves]
        gap = f"{np.median(gaps):>9.2%}" if gaps else f"{'-':>9}"
        key = (name, policy.partition(":")[0])
        told = [
            f"{table[key]:>10.3f}" if key in table else f"{'':>10}"
            for table in (PAPER, PAPER_NODES)
        ]
        print(
            f"{policy:<20}{energy / first[0]:>10.3f}{told[0]}{run:>10.3f}{jct / first[1]:>10.3f}"
            f"{nodes / first[2]:>10.3f}{told[1]}{metrics['migrations']:>10}{seconds:>10.1f} {gap}",
            flush=True,
        )
    if first is not None:
        print(f"{'fluid bound':<20}{bound_kwh(scenario, record.trace) / first[0]:>10.3f}")


def main() -> None:
    """Read the options and measure both clusters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=240)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    for name in SCENARIOS:
        scenario = read_scenario(name).changed({"trace.jobs": options.jobs})
        measure(name, scenario, options.policies.split(","))


if __name__ == "__main__":
    main()
