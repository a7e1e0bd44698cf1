"""Rollouts of EaCO: jobs of 8 GPUs on its two clusters, and what its tables say of sets of jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.instance import read
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.results.decision_log import epoch_column
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.solving import solve
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.eaco import EacoInstance
    from optsched.reproduction.estimates import Figures
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario

TABLES = "eaco-tables"
FOUR = "eaco/paper-four"
BOUND = "bound"
GREEDY, EXACT, LEARNING = "eaco-greedy", "eaco", "eaco:rates=learnt"
TRIALS = {
    "eaco-trials": "learning all rates",
    "eaco-trials:begins_with=told": "told measured rates",
}
"""EaCO's algorithm to its end: watched for an epoch, and undone where a rule is broken."""
BASELINES = {"fifo-exclusive": "FIFO", "fifo-packed": "FIFO_packed", "random-pairs": "Gandiva"}
WINDOW_H, WINDOWS = 12, 40
"""Windows in which active nodes are counted: their length, and how many there are."""


# --- the tables -------------------------------------------------------------------------------


def in_tables(task: Task) -> Figures:
    """Return what sharing saves by the tables: of each measured set, and of the best plan."""
    instance: Any = read(FOUR)
    if task.cell == EXACT:
        alone = sum(_kwh(instance, (name,)) for name in _models(instance))
        best = solve(instance).objective
        return {"saving_pct": None if best is None else 100 * (1 - best / alone)}
    sets = [group for group in instance.interference.groups if len(group.types) > 1]
    saved = [_saving(instance, tuple(group.types)) for group in sets]
    used = [group.utilisation for group in instance.interference.groups]
    return {
        "saving_least_pct": min(saved),
        "saving_most_pct": max(saved),
        "utilisation_most_pct": 100 * max(share for share in used if share is not None),
        "slowdown_most_of_3_pct": max(
            100 * (1 / min(group.rates) - 1) for group in sets if len(group.types) <= 3
        ),
    }


def _models(instance: EacoInstance) -> list[str]:
    return [kind.id for kind in instance.types]


def _saving(instance: EacoInstance, models: tuple[str, ...]) -> float:
    """Return how much less energy a set takes than its jobs alone, in %."""
    alone = sum(_kwh(instance, (name,)) for name in models)
    return 100 * (1 - _kwh(instance, models) / alone)


def _kwh(instance: EacoInstance, models: tuple[str, ...]) -> float:
    """Return the energy of a measured set, whose jobs all have the same work."""
    groups = {tuple(group.types): group for group in instance.interference.groups}
    group, job = groups[models], instance.jobs[0]
    assert group.gpu_power_w is not None, "the tables have the watts of all sets"
    hours = job.work_s / 3600 / min(group.rates)
    return group.gpu_power_w * job.gpus * hours / 1000


# --- rollouts ---------------------------------------------------------------------------------


def on_nodes(name: str, task: Task) -> Figures:
    """Measure a policy on one of the two clusters, or what no schedule can save."""
    scenario = read_scenario(name)
    if task.level is Level.QUICK:
        scenario = scenario.changed({"trace.jobs": 80})
    return on_cluster(scenario, task)


def on_cluster(scenario: Scenario, task: Task) -> Figures:
    """Measure a policy in a scenario, or what no schedule can save."""
    trace = jobs_of(scenario, None, task.seed)
    if task.cell == BOUND:
        bounds = bound_of(scenario, trace, Schedules())
        verify_bounds(scenario, trace, bounds)
        return {"energy_kwh": bounds.energy_kwh, "jct_mean_s": bounds.jct_mean_s}
    run = simulate(scenario, task.cell, trace=trace, seed=task.seed)
    told = {"run_over_alone": run_over_alone(run.record)} | active_nodes(run.record)
    return dict(run.metrics) | told


def run_over_alone(record: Record) -> float:
    """Return the time for which jobs ran over their run times alone, mean over jobs."""
    return float(np.mean(record.jobs.running_us / record.trace.run_us))


def active_nodes(record: Record) -> dict[str, float]:
    """Return how many nodes have jobs in each window, on average; all jobs have whole nodes."""
    times = [0, *epoch_column(record, "now_us"), record.end_us]
    busy = [0, *epoch_column(record, "busy_gpu_us"), record.busy_gpu_us]
    ends_us = WINDOW_H * 3600 * US * np.arange(WINDOWS + 1)
    held = np.diff(np.interp(ends_us, times, busy)) / (WINDOW_H * 3600 * US)
    nodes = (held / Cluster(record.scenario).largest).tolist()
    return {window_key(n): count for n, count in enumerate(nodes)}


def window_key(number: int) -> str:
    """Return the name of the active nodes in a window."""
    return f"active_nodes_from_{number * WINDOW_H}_h"


def while_learning(task: Task) -> Figures:
    """Measure a policy on fewer jobs, for the exact method takes long."""
    jobs = 30 if task.level is Level.QUICK else 60
    return on_cluster(read_scenario("eaco-28").changed({"trace.jobs": jobs}), task)


def _policies(level: Level) -> list[str]:
    exact = [] if level is Level.QUICK else [EXACT]
    return [*exact, *BASELINES, GREEDY, *TRIALS, BOUND]


def _learning(level: Level) -> list[str]:
    return [EXACT, LEARNING, "fifo-exclusive", GREEDY, next(iter(TRIALS)), BOUND]


def _once(level: Level) -> list[str]:
    return ["sets", EXACT]


ONE = dict.fromkeys(Level, 1)
SEEDS_OF_LEARNING = {Level.QUICK: 1, Level.DEFAULT: 3, Level.FULL: 20}
SEEDS = {Level.QUICK: 2, Level.DEFAULT: 5, Level.FULL: 20}
STUDIES = (
    Study(
        TABLES, Basis.TABLES, "the ten measured sets of tables 1 to 4", _once, in_tables, ONE,
    ),
    *(
        Study(
            name,
            Basis.GENERATED,
            f"{name}: {nodes} nodes of 8 V100s, 240 jobs of 8 GPUs (--quick: 80)",
            _policies,
            partial(on_nodes, name),
            SEEDS,
            {EXACT: 1},
        )
        for name, nodes in (("eaco-28", 28), ("eaco-64", 64))
    ),
    Study(
        "eaco-learning",
        Basis.GENERATED,
        "eaco-28 with 60 jobs (--quick: 30), since the exact method takes long",
        _learning,
        while_learning,
        SEEDS_OF_LEARNING,
        {EXACT: 2, LEARNING: 2},
    ),
)  # fmt: skip
