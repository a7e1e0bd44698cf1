"""Rollouts of BOA: what policies that rent nodes are billed, and the mean JCT that they reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError
from optsched.instance import read
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.importers.registry import import_trace
from optsched.traces.trace import US, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.reproduction.estimates import Figures
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

BILL, USD, JCT = "steady_rented_gpus_mean", "cost_usd", "jct_mean_s"
BOA, AUTOSCALING = "boa", "pollux-autoscaling"
BANDS = ("0.35,high=0.65", "0.45,high=0.7", "0.55,high=0.8", "0.6,high=0.85", "0.7,high=0.95")
BUDGETS = (22, 24, 27, 30, 33, 36, 40, 45, 50)
FIXED = (28, 32, 36, 40, 44, 48)
SWEEPS = {
    BOA: [f"boa:budget={b}" for b in BUDGETS],
    "one-width-per-class": [f"one-width-per-class:budget={b}" for b in BUDGETS[1::2]],
    AUTOSCALING: [f"{AUTOSCALING}:low={band}" for band in BANDS],
    "sia": [f"sia:gpus={gpus}" for gpus in FIXED[::2]],
    "equi": [f"equi:gpus={gpus}" for gpus in FIXED],
    "fixed-width": [f"fixed-width:k={k}" for k in (1, 2, 4, 8)],
}
"""By policy the values of its own parameter that make its curve."""
COSTS = (34, 38, 42)
"""GPUs billed on average at which curves are compared: those that all of them reach."""
LARGE_SWEEPS = {
    BOA: [f"boa:budget={b}" for b in (140, 150, 160, 180, 200, 240, 300)],
    AUTOSCALING: [f"{AUTOSCALING}:low={band}" for band in BANDS],
    "pollux": [f"pollux:gpus={gpus}" for gpus in (120, 160, 200)],
    "sia": [f"sia:gpus={gpus}" for gpus in (120, 200)],
    "equi": [f"equi:gpus={gpus}" for gpus in (160, 240)],
    "fixed-width": [f"fixed-width:k={k}" for k in (2, 4, 8, 16)],
    "one-width-per-class": [f"one-width-per-class:budget={b}" for b in (140, 160, 200, 240)],
}
HEADLINE = (BOA, AUTOSCALING)
"""Policies that a published figure compares: they have more seeds than the others."""
SHARES = (0.25, 0.5, 0.75)
"""Where curves of the larger workload are compared: shares of the range of bills of both."""
FEW = 3
"""A sweep of so many values is short."""
SIGMAS = (0.1, 0.25, 0.5)
ERRORS = {"arrivals": "arrival rates", "works": "mean works", "speedups": "speedup curves"}
BELIEVING = " believing "
"""Between a policy and what it is told with errors, in the name of a cell."""


def on_rented_nodes(task: Task) -> Figures:
    """Measure a policy on the authors' stream of three models; it may believe wrong figures."""
    policy, _, belief = task.cell.partition(BELIEVING)
    scenario = read_scenario("boa-cloud")
    if belief:
        kind, sigma = belief.split()
        scenario = scenario.changed({f"beliefs.{kind}": float(sigma)})
    trace = None if task.data is None else authors_jobs(task.data)
    return _figures(scenario, policy, task.seed, trace)


def authors_jobs(path: str) -> Trace:
    """Return the jobs of a workload of Pollux, those of BOA's three models, from the first on.

    The file does not say how long jobs are: each has the mean work of its class on one GPU, and
    asks for one GPU, as in the generated jobs.

    Raises
    ------
    InstanceError
        If the file is not of this kind, or has none of these models.
    """
    instance: Any = read("boa/cbd-85")
    works = {each.id: sum(phase.work_gpu_s for phase in each.phases) for each in instance.classes}
    trace = import_trace(path, "pollux")
    models = list(trace.model or ())
    kept = [n for n, model in enumerate(models) if model in works]
    if not kept:
        raise InstanceError(path, [f"holds no job of {', '.join(works)}"])
    columns = {
        "submit_s": [int(trace.submit_us[n]) / US for n in kept],
        "gpus": [1] * len(kept),
        "run_s": [works[models[n]] for n in kept],
        "model": [models[n] for n in kept],
    }
    return trace_of(trace.name, trace.source, columns)


def _is_one(path: str) -> int:
    return 1


def on_many_nodes(task: Task) -> Figures:
    """Measure a policy on six models, as many jobs as the authors' larger streams have."""
    scenario = read_scenario("boa-large")
    if task.level is Level.QUICK:
        scenario = scenario.changed({"trace.jobs": 200})
    return _figures(scenario, task.cell, task.seed)


def _figures(scenario: Scenario, policy: str, seed: int, trace: Trace | None = None) -> Figures:
    told = simulate(scenario, policy, trace=trace, seed=seed).metrics
    return {key: told[key] for key in (BILL, JCT, USD, "unfinished")}


def _swept(level: Level) -> list[str]:
    return [
        cell for cells in (*SWEEPS.values(), *ERRONEOUS.values()) for cell in _some(cells, level)
    ]


def _swept_large(level: Level) -> list[str]:
    names = HEADLINE if level is Level.QUICK else tuple(LARGE_SWEEPS)
    return [cell for name in names for cell in _some(LARGE_SWEEPS[name], level)]


def _some(cells: list[str], level: Level) -> list[str]:
    """Return every other cell of a sweep and its last where little is measured, else all.

    Of three: both ends, for a curve is to reach as far as it can.
    """
    if level is not Level.QUICK:
        return cells
    return [*cells[1:-1:2], cells[-1]] if len(cells) > FEW else [cells[0], cells[-1]]


def believing(kind: str, sigma: float) -> str:
    """Return the cell of BOA at its budget of 30 GPUs where one kind of figure has errors."""
    return f"boa:budget=30{BELIEVING}{kind} {sigma:g}"


ERRONEOUS = {kind: [believing(kind, sigma) for sigma in SIGMAS] for kind in ERRORS}
"""By kind of figure the cells in which it has errors."""


def _others(sweeps: Iterable[tuple[str, list[str]]], seeds: int) -> dict[str, int]:
    """Return a number of seeds for all cells but those of the headline."""
    return {cell: seeds for name, cells in sweeps if name not in HEADLINE for cell in cells}


STUDIES = (
    Study(
        "boa",
        Basis.GENERATED,
        "boa-cloud: 170 jobs at the rates of the authors' 85-job workload, up to 40 rented nodes "
        "of 4 GPUs",
        _swept,
        on_rented_nodes,
        {Level.QUICK: 1, Level.DEFAULT: 5, Level.FULL: 20},
        _others([*SWEEPS.items(), *ERRONEOUS.items()], 3),
        workloads_of=_is_one,
    ),
    Study(
        "boa-large",
        Basis.GENERATED,
        "boa-large: 960 jobs of six models in 48 hours (--quick: 200 jobs), up to 100 rented nodes "
        "of 4 GPUs",
        _swept_large,
        on_many_nodes,
        {Level.QUICK: 1, Level.DEFAULT: 3, Level.FULL: 20},
        _others(LARGE_SWEEPS.items(), 2),
    ),
)
