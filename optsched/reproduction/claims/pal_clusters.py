"""Rollouts of PAL on its other clusters: Synergy's 256 GPUs, and the testbed on Frontera."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.instance import read
from optsched.reproduction.claims.pal_rollouts import BASE, EXACT, FIRST, GREEDY, ORDERS, crossed
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.generators.random_draws import pick, streams
from optsched.traces.generators.workload_models import philly
from optsched.traces.trace import trace_of

if TYPE_CHECKING:
    from optsched.reproduction.estimates import Figures
    from optsched.traces.trace import Trace

LOADS = (8, 10, 12, 14)
"""Jobs an hour."""
ORDERED_LOAD = 12
JOBS, LARGEST = 600, 16
MODEL = "resnet50"
"""Of class A, as every job of the released runs is."""


def synergy_jobs(load: float, seed: int) -> Trace:
    """Return jobs as the released parser makes them of Philly's.

    Poisson arrivals; gangs as in Philly, up to 16; run times 60 x 10 ** U(1.5, 3) s for four jobs
    of five, 60 x 10 ** U(3, 4) s for the fifth.
    """
    rng, world = streams(seed, ("arrivals", "sizes", "work")), philly()
    sizes = np.array(world.sizes)
    shares = np.where(sizes <= LARGEST, world.size_shares, 0.0)
    is_long = rng["work"].random(JOBS) < 0.2
    power = np.where(is_long, 3.0, 1.5) + np.where(is_long, 1.0, 1.5) * rng["work"].random(JOBS)
    columns = {
        "submit_s": np.rint(np.cumsum(rng["arrivals"].exponential(3600 / load, JOBS))),
        "gpus": sizes[pick(rng["sizes"].random(JOBS), shares.tolist())],
        "run_s": 60 * 10**power,
        "model": [MODEL] * JOBS,
    }
    source = "durations of Gavel's generator, gangs of Philly, as in hal-uw/blox-pal"
    return trace_of(f"synergy-like, {load:g} jobs an hour, seed {seed}", source, columns)


def on_256_gpus(task: Task) -> Figures:
    """Measure a policy at a load, both named by the cell."""
    policy, _, load = task.cell.rpartition(" at ")
    instance: Any = read("pal/racks-256")
    scenario = read_scenario("pal-64").changed(
        {"nodes": 64, "epoch_s": 300, "profile": instance.profile.model_dump(mode="json")}
    )
    trace = synergy_jobs(float(load), task.seed)
    return simulate(scenario, policy, trace=trace, seed=task.seed).metrics


def on_frontera(task: Task) -> Figures:
    """Measure a policy on 32 measured GPUs."""
    instance: Any = read("pal/frontera-32")
    scenario = read_scenario("pal-64").changed(
        {
            "nodes": 8,
            "locality": [1.0, 1.734],
            "profile": instance.profile.model_dump(mode="json"),
            "trace": {"generator": "sia-like", "jobs": 50, "options": {"max_gpus": 32}},
        }
    )
    return simulate(scenario, task.cell, seed=task.seed).metrics


def _loads(level: Level) -> list[str]:
    loads = LOADS[1:2] if level is Level.QUICK else LOADS
    fifo = [f"{policy} at {load}" for load in loads for policy in (BASE, FIRST, GREEDY)]
    if level is Level.QUICK:
        return fifo
    ordered = [
        f"{crossed(policy, order)} at {ORDERED_LOAD}"
        for order in ORDERS
        for policy in (BASE, FIRST, GREEDY)
    ]
    exact = [f"{EXACT} at {load}" for load in loads if level is Level.FULL]
    return [*exact, *fifo, *ordered]


def _testbed(level: Level) -> list[str]:
    return [*([] if level is Level.QUICK else [EXACT]), BASE, FIRST, GREEDY]


STUDIES = (
    Study(
        "pal-synergy",
        Basis.GENERATED,
        "64 nodes of 4 GPUs, rounds of 300 s, 600 jobs of class A at 8 to 14 an hour, slowdowns "
        "of single runs of 256 GPUs",
        _loads,
        on_256_gpus,
        {Level.QUICK: 1, Level.DEFAULT: 4, Level.FULL: 20},
    ),
    Study(
        "pal-frontera",
        Basis.GENERATED,
        "8 nodes of 4 GPUs with slowdowns measured on Frontera, penalty 1.734, 50 jobs like those "
        "of the Sia-Philly workloads, gangs up to 32",
        _testbed,
        on_frontera,
        {Level.QUICK: 2, Level.DEFAULT: 8, Level.FULL: 20},
    ),
)
