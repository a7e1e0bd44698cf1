"""Bounds of whole traces: what they take, and what their verifier takes."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.measure import Clock, Outcome, measured
from benchmarks.suite.rollout import NODES, PER_NODE
from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

FEW_NODES = 52
LOAD = 0.9
"""Of 311 nodes by generated jobs; that of the published ones on 52 nodes is as high."""


class NoFileError(ValueError):
    """The published file is not at hand."""


def generated(jobs: int) -> Outcome:
    """Bound so many jobs as in Philly, with its failures and neighbours, on 311 nodes of 8."""
    options = {"load": LOAD, "gpus": NODES * PER_NODE, "max_gpus": 128}
    source = {"generator": "philly-atc19", "jobs": jobs, "seed": 1, "options": options}
    changes = {"name": "generated", "nodes": NODES, "gpus_per_node": PER_NODE, "trace": source}
    return _bounded(read_scenario("philly-small").changed(changes))


def published(file: str | None = None) -> Outcome:
    """Bound the published jobs on 52 nodes of 8."""
    if file is None:
        raise NoFileError("name philly_jobs_pollux.csv by --philly FILE")
    source = {"file": file, "format": "philly-csv", "drop_larger": True}
    scenario = Scenario(nodes=FEW_NODES, gpus_per_node=PER_NODE, epoch_s=60, trace=source)
    return _bounded(scenario)


def _bounded(scenario: Scenario) -> Outcome:
    trace = jobs_of(scenario)
    outcome = Outcome(f"{trace.name}, {len(trace):,} jobs, {scenario.gpus:,} GPUs")
    found: Any = measured(outcome, bound_of, scenario, trace, Schedules())
    clock = Clock()
    verify_bounds(scenario, trace, found)
    outcome.verify_s, outcome.bound = clock.cpu_s, found.jct_mean_s
    outcome.note = f"bound of mean JCT, s; makespan at least {found.makespan_s:,.0f} s"
    return outcome
