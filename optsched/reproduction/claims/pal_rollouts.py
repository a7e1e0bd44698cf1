"""Rollouts of PAL: placements on its cluster of 64 GPUs, in several worlds."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.files import open_trace
from optsched.traces.importers.registry import import_trace
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.reproduction.estimates import Figures
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

BASE, GREEDY, EXACT, FIRST = "packed-sticky", "pal-greedy", "pal", "pm-first"
BOUND = "bound"
RANDOM = ("packed-non-sticky", "random-sticky", "random-non-sticky")
PENALTIES = (1.0, 1.5, 2.0, 2.5, 3.0)
ORDERS = {"las": "order=las,one_dimensional=true", "srtf": "order=srtf"}
SEEDS = {Level.QUICK: 2, Level.DEFAULT: 8, Level.FULL: 20}
FEWER_SEEDS = {**SEEDS, Level.QUICK: 1, Level.DEFAULT: 3}
"""Of experiments of ours, which no published figure stands beside."""
WORLD = (
    "pal-64: 16 nodes of 4 GPUs, rounds of 360 s, FIFO, penalty 1.7 across nodes, slowdowns of "
    "single runs as the released simulator draws them"
)


def workloads_of(path: str) -> int:
    """Return how many workloads a file in PAL's format holds."""
    return len(_names(path))


def _names(path: str) -> list[str | None]:
    text = open_trace(Path(path), None, "*.csv")[1]
    rows = csv.DictReader(io.StringIO(text))
    if "workload" not in (rows.fieldnames or ()):
        return [None]
    return list(dict.fromkeys(row["workload"] for row in rows))


def jobs(task: Task, scenario: Scenario) -> Trace:
    """Return the jobs of a seed, or those of a workload of the authors."""
    if task.data is None:
        return jobs_of(scenario, None, task.seed)
    return import_trace(task.data, "pal", _names(task.data)[task.seed])


def in_single_runs(task: Task) -> Figures:
    """Measure on slowdowns of single runs."""
    scenario = read_scenario("pal-64")
    return figures(scenario, jobs(task, scenario), task)


def in_medians(task: Task) -> Figures:
    """Measure on slowdowns that last: of each GPU the median of its runs."""
    scenario = read_scenario("pal-64-persistent")
    return figures(scenario, jobs(task, scenario), task)


def half_a_round_later(task: Task) -> Figures:
    """Measure with all submissions half a round later, on the clock of the rounds."""
    scenario = read_scenario("pal-64")
    trace = jobs(task, scenario)
    late = round(scenario.epoch_s * US / 2)
    moved = dataclasses.replace(trace, submit_us=trace.submit_us + late)
    return figures(scenario, moved, task)


def across_nodes(task: Task) -> Figures:
    """Measure a policy at another penalty across nodes, which the cell names."""
    policy, _, penalty = task.cell.partition(" at ")
    scenario = read_scenario("pal-64").changed({"locality": [1.0, float(penalty)]})
    return figures(scenario, jobs(task, scenario), task._replace(cell=policy))


def figures(scenario: Scenario, trace: Trace, task: Task) -> Figures:
    """Return the metrics of a rollout, or the bounds of all schedules."""
    if task.cell != BOUND:
        told = simulate(scenario, task.cell, trace=trace, seed=task.seed).metrics
        return told | _work_done(told, scenario.gpus)
    bounds = bound_of(scenario, trace, Schedules())
    verify_bounds(scenario, trace, bounds)
    return {"jct_mean_s": bounds.jct_mean_s, "makespan_s": bounds.makespan_s}


def _work_done(told: Figures, gpus: int) -> dict[str, float]:
    """Return the work that stayed done per GPU-hour that was held, and per GPU-hour there was."""
    work, held, span = (float(told[k] or 0) for k in ("goodput_gpu_h", "gpu_hours", "makespan_s"))
    return {
        "work_per_held_gpu_h": work / held if held else 0.0,
        "work_per_gpu_h": 3600 * work / (gpus * span) if span else 0.0,
    }


def crossed(placement: str, order: str) -> str:
    """Return the policy of a placement and an order."""
    return f"{placement}:{ORDERS[order]}"


def _cells(level: Level) -> list[str]:
    ordered = [crossed(p, order) for order in ORDERS for p in (BASE, FIRST, GREEDY)]
    exact = [crossed(EXACT, order) for order in ORDERS if level is not Level.QUICK]
    return [EXACT, *exact, BASE, *RANDOM, FIRST, GREEDY, *ordered, BOUND]


def _few(level: Level) -> list[str]:
    return [*([] if level is Level.QUICK else [EXACT]), BASE, FIRST, GREEDY, BOUND]


def _swept(level: Level) -> list[str]:
    return [f"{p} at {x:g}" for x in PENALTIES for p in (BASE, FIRST, GREEDY)]


STUDIES = (
    Study(
        "pal",
        Basis.GENERATED,
        WORLD,
        _cells,
        in_single_runs,
        SEEDS,
        {crossed(EXACT, "las"): 2},
        workloads_of,
    ),
    Study(
        "pal-medians",
        Basis.GENERATED,
        "pal-64-persistent: the same, each GPU with the median of the runs of a measured GPU",
        _few,
        in_medians,
        FEWER_SEEDS,
        workloads_of=workloads_of,
    ),
    Study(
        "pal-shifted",
        Basis.GENERATED,
        "pal-64 with all submissions 180 s later, half a round",
        _few,
        half_a_round_later,
        FEWER_SEEDS,
        workloads_of=workloads_of,
    ),
    Study(
        "pal-penalty",
        Basis.GENERATED,
        "pal-64 with penalties across nodes from 1.0 to 3.0",
        _swept,
        across_nodes,
        SEEDS,
        workloads_of=workloads_of,
    ),
)
