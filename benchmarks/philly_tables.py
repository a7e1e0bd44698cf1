"""Table 2 and figure 3 of ATC'19 beside rollouts of generated traces on a cluster as Philly's.

    python -m benchmarks.philly_tables                     # 96,260 jobs in 75 days, seed 0
    python -m benchmarks.philly_tables --seeds 5           # mean and range over seeds
    python -m benchmarks.philly_tables --gpus 1600 --policy philly:relax_after=5

Virtual clusters have 352 nodes (HeliosArtifact, philly_vc.csv). Each gets that share of the GPUs
there are as its quota, at least one server of 8; idle quota is lent. Servers of 8 and of 2 GPUs
stand in RDMA domains of 24 (assumed); their numbers are in the ratio of the public list, 231 to
321 (known to have faults: philly-traces, issue 8), so that 352 nodes have some 1,586 GPUs. How many
there are is an option; the load follows from it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from optsched.rollout import Scenario, first_waits, why_jobs_wait
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.traces import generate

NODES = {
    **{"6214e9": 64, "7f04ca": 32, "11cb48": 16, "b436b2": 64, "ee9e8c": 64, "e13805": 16},
    **{"6c71a0": 32, "2869ce": 16, "ed69ec": 8, "103959": 8, "0e4a51": 32},
}
SERVERS = {8: 231, 2: 321}
DOMAIN = 24
SHARES = {"2 to 4 GPUs": 59.4, "5 to 8 GPUs": 74.2, "more than 8 GPUs": 97.9}
# Minutes, least and greatest p50 and p90 of the virtual clusters: digitised, +-10 %.
WAITS = {
    "1 GPU": ((0.35, 35), (5.6, 156)),
    "2 to 4 GPUs": ((0.36, 2.6), (7.1, 30)),
    "5 to 8 GPUs": ((3.0, 3.2), (27, 111)),
}


def cluster(gpus: int, small: bool = True) -> list[dict[str, object]]:
    """Return groups of nodes with about so many GPUs, in RDMA domains."""
    ratio = gpus / (8 * SERVERS[8] + 2 * SERVERS[2]) if small else gpus / (8 * SERVERS[8])
    groups: list[dict[str, object]] = []
    for size in (8, 2) if small else (8,):
        left, number = round(SERVERS[size] * ratio), 0
        while left:
            count = min(DOMAIN, left)
            groups.append({"count": count, "gpus": size, "domain": f"{size}-{number}"})
            left, number = left - count, number + 1
    return groups


def world(gpus: int, small: bool = True) -> Scenario:
    """Return the scenario: Philly's virtual clusters on about so many GPUs."""
    nodes = cluster(gpus, small)
    total = sum(group["count"] * group["gpus"] for group in nodes)  # type: ignore[operator]
    per_node = total / sum(NODES.values())
    return Scenario(
        name="philly-paper",
        nodes=nodes,
        quotas={name: max(8, round(count * per_node)) for name, count in NODES.items()},
        lends_quotas=True,
        spread={"domains": {"counts": [1], "speed": [1.0]}},
        neighbours={"shared_server": 0.771},
        epoch_s=180,
        costs={"start_s": 30, "restore_s": 30, "checkpoint_every_s": 3600, "stop_loses_work": True},
        retries={"delay_s": 180},
        trace={"generator": "philly-atc19", "jobs": 96_260},
    )


def measured(
    scenario: Scenario, policy: str, jobs: int, days: float, seed: int
) -> dict[str, float]:
    """Return every figure of one rollout."""
    trace = generate("philly-atc19", jobs, seed, days=days, max_gpus=128)
    begun = time.process_time()
    record = Engine(scenario, trace, make(policy, scenario, seed), seed).run()
    figures = {"CPU s": time.process_time() - begun}
    held, window = record.jobs.allocated_gpu_us.sum(), record.window
    span = window[1].available_gpu_us - window[0].available_gpu_us
    figures["utilisation, %"] = 100 * (window[1].busy_gpu_us - window[0].busy_gpu_us) / max(1, span)
    figures["GPU-hours held per job"] = held / 3.6e9 / jobs
    figures["preemptions"] = int(record.jobs.preemptions.sum())
    why = why_jobs_wait(record)
    for size, row in why.iterrows():
        figures[f"table 2, fragmentation, %, {size}"] = 100 * row.fragmentation_share
        for kind in ("back_off", "fair_share", "capacity", "fragmentation", "order"):
            figures[f"delays by {kind}, {size}"] = row[f"{kind}_delays"]
    for size, row in first_waits(record, by_queue=False).iterrows():
        figures[f"figure 3, p50, min, {size}"] = row.p50
        figures[f"figure 3, p90, min, {size}"] = row.p90
    return figures


def published(name: str) -> str:
    """Return what the paper has, if anything."""
    size = name.rsplit(", ", 1)[-1]
    if name.startswith("table 2") and size in SHARES:
        return f"{SHARES[size]}"
    if name.startswith("figure 3") and size in WAITS:
        low, high = WAITS[size]["p90" in name]
        return f"{low:g} to {high:g}"
    return ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--policy", default="philly:spread=true")
    parser.add_argument("--jobs", type=int, default=96_260)
    parser.add_argument("--days", type=float, default=75.0)
    parser.add_argument("--gpus", type=int, default=1586)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only-8", action="store_true", help="no servers of 2 GPUs")
    chosen = parser.parse_args()
    scenario = world(chosen.gpus, not chosen.only_8)
    rows = [
        measured(scenario, chosen.policy, chosen.jobs, chosen.days, seed)
        for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    ]
    print(f"{chosen.policy}, {chosen.jobs:,} jobs in {chosen.days:g} days on {scenario.gpus} GPUs")
    print(f"{'':48}{'paper':>12}{'ours':>10}   least to greatest of {chosen.seeds} seeds")
    for name in rows[0]:
        values = np.array([row.get(name, np.nan) for row in rows], dtype=float)
        told = values[~np.isnan(values)]
        if len(told):
            text = f"{name:48}{published(name):>12}{told.mean():10.1f}"
            print(text + f"   {told.min():.1f} to {told.max():.1f}")


if __name__ == "__main__":
    main()
