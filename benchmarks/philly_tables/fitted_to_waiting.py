"""Table 2 and figure 3 in a world that was fitted to them: what it differs in from philly-atc19.

    python -m benchmarks.philly_tables.fitted_to_waiting --gpus 1390 --seed 0

- Servers of 8 and of 2 GPUs as in Philly's own list, 231 to 321, in place of RAPS' 469 to 83.
- The quota of each virtual cluster is its share of the GPU time in Philly, not of the nodes.
- Run times are as recorded: distance and neighbours do not add to them.
- Gangs of two GPUs or more get the emptiest server, and accept one server more at a time.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from benchmarks.philly_tables.waiting import of_waiting
from optsched import read_scenario
from optsched.instances.philly_parts import DOMAIN
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.traces import generate
from optsched.traces.generators.philly_statistics import PHILLY

if TYPE_CHECKING:
    from optsched.rollout import Scenario

POLICY = "philly:spread=true,relax_by=one"
LISTED = {8: 231, 2: 321}


def world(gpus: int) -> Scenario:
    """Return the scenario, on about so many GPUs."""
    ratio = gpus / sum(size * count for size, count in LISTED.items())
    nodes: list[dict[str, int | str]] = []
    for size, count in LISTED.items():
        left = round(count * ratio)
        for number, first in enumerate(range(0, left, DOMAIN)):
            servers = min(DOMAIN, left - first)
            nodes.append({"count": servers, "gpus": size, "domain": f"{size}-{number}"})
    total = sum(int(group["count"]) * int(group["gpus"]) for group in nodes)
    hours = {name: share for name, _, share in PHILLY.virtual_clusters}
    per_hour = total / sum(hours.values())
    quotas = {name: max(8, round(share * per_hour)) for name, share in hours.items()}
    changes = {"nodes": nodes, "quotas": quotas, "reference_place": "recorded"}
    return read_scenario("philly-atc19").changed({**changes, "epoch_s": 60, "decide_on": []})


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", type=int, default=1390)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    scenario = world(chosen.gpus)
    trace = generate(
        "philly-atc19", PHILLY.jobs, chosen.seed, days=PHILLY.window_days, max_gpus=128
    )
    begun = time.process_time()
    record = Engine(scenario, trace, make(POLICY, scenario, chosen.seed), chosen.seed).run()
    print(f"{POLICY}, {scenario.gpus:,} GPUs, {time.process_time() - begun:.1f} CPU s")
    for name, value in of_waiting(record).items():
        print(f"{name:48}{value:10.1f}")


if __name__ == "__main__":
    main()
