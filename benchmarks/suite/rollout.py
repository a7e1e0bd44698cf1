"""Rollouts of a trace as Philly's: a policy of BOA that scales with the load, and bare engines."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.suite.measure import Outcome, measured
from optsched.rollout.checkpoints import checkpoint as checkpoint_file
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.json_traces import write_trace
from optsched.traces.trace import US, trace_of

JOBS = 82_247  # as in the file of Pollux' artifact
NODES, PER_NODE = 311, 8
LOAD = 0.8
MODELS = {"steep": 0.999, "middling": 0.98, "flat": 0.9}  # parallel fraction of Amdahl's law
BUDGET = 1.5  # GPUs on average, relative to what the jobs use as they ask


def source_of(jobs: int, file: str | None = None) -> dict[str, Any]:
    """Tell where so many jobs as in Philly are from: a generator, or the published file."""
    if file is not None:
        return {"file": _written(jobs, file)}
    options: dict[str, Any] = {
        "models": ",".join(f"{name}:1" for name in MODELS),
        "gpus": NODES * PER_NODE,
        "load": LOAD,
        "early_failure": 0.0,
        "late_failure": 0.0,
    }
    return {"generator": "philly-atc19", "jobs": jobs, "options": options}


def _written(jobs: int, file: str) -> str:
    """Write the first jobs of the published file as a trace with models; return its path."""
    import pandas as pd

    table = pd.read_csv(file).head(jobs)
    when = pd.to_datetime(table["timestamp"])
    names = list(MODELS)
    columns = {
        "submit_s": (when - when.min()).dt.total_seconds().to_numpy(),
        "gpus": table["num_gpus"],
        "run_s": table["duration"],
        "model": [names[n % len(names)] for n in range(len(table))],
    }
    made = trace_of(f"philly, {len(table)} jobs", "philly_jobs_pollux.csv", columns)
    path = Path(tempfile.mkdtemp()) / "trace.json"
    atexit.register(shutil.rmtree, path.parent)
    write_trace(made, path)
    return str(path)


def boa(jobs: int, file: str | None = None) -> Outcome:
    """Rent nodes, two minutes ahead, for the widths that BOA chooses for each model."""
    source = source_of(jobs, file)
    scenario = Scenario(
        nodes=2 * NODES,
        gpus_per_node=PER_NODE,
        epoch_s=60,
        rented={"provision_s": 120},
        costs={"rescale_s": 30},
        models={name: speedup_of(fraction) for name, fraction in MODELS.items()},
        trace=source,
    )
    trace = jobs_of(scenario)
    used = float((trace.gpus * trace.run_us).sum()) / float(trace.submit_us[-1])
    return _run(scenario.model_copy(update={"budget_gpus": BUDGET * used}), trace, "boa")


def speedup_of(fraction: float) -> dict[str, Any]:
    """Return a model whose parallel fraction is given, by Amdahl's law."""
    speedup = {"kind": "amdahl", "parallel_fraction": fraction, "max_gpus": 64}
    return {"phases": [{"work_gpu_s": 3600, "speedup": speedup}]}


def fifo(jobs: int, file: str | None = None) -> Outcome:
    """Run the engine alone: first in, first out, best fit, on every GPU of 311 nodes."""
    scenario = _fixed(jobs, file)
    return _run(scenario, jobs_of(scenario), "fifo")


def _fixed(jobs: int, file: str | None) -> Scenario:
    source = source_of(jobs, file)
    return Scenario(nodes=NODES, gpus_per_node=PER_NODE, epoch_s=300, trace=source)


def _run(scenario: Scenario, trace: Any, policy: str) -> Outcome:
    outcome = Outcome(f"{trace.name}, {scenario.nodes} nodes of {PER_NODE}")

    def run() -> Any:
        return Engine(scenario, trace, make(policy, scenario), seed=0).run()

    record = measured(outcome, run)
    outcome.objective = float((record.jobs.end_us - trace.submit_us).mean()) / US
    outcome.note = f"objective: mean JCT, s; {record.events:,} events"
    return outcome


def checkpoint(jobs: int, file: str | None = None, *, is_saved: bool) -> Outcome:
    """Save a rollout that is half done, or load what was saved into a new engine."""
    scenario = _fixed(jobs, file)
    trace = jobs_of(scenario)
    key = checkpoint_file.key_of(scenario, trace, "fifo", 0, False)
    half = Engine(scenario, trace, make("fifo", scenario), seed=0)
    while half.share < 0.5 and half.step():
        pass
    outcome = Outcome(f"{trace.name}, {half.share:.0%} done")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def save() -> None:
            checkpoint_file._save(folder, key, half, 1.0)

        def load() -> None:
            fresh = Engine(scenario, trace, make("fifo", scenario), seed=0)
            checkpoint_file._load(folder, key, fresh)

        save()
        measured(outcome, save if is_saved else load)
        size = (folder / checkpoint_file.NAME).stat().st_size
    outcome.note = f"{size / 1e6:.1f} MB"
    return outcome


def simpy(jobs: int, file: str | None = None) -> Outcome:
    """Run the same jobs through one SimPy container: no nodes, no places, no accounts."""
    trace = jobs_of(_fixed(jobs, file))
    outcome = Outcome(f"{trace.name}, {NODES} nodes of {PER_NODE}")
    outcome.objective = measured(outcome, in_container, trace, NODES)
    outcome.note = "objective: mean JCT, s; one container of GPUs, no nodes"
    return outcome


def in_container(trace: Any, nodes: int) -> float:
    """Return the mean JCT in seconds of jobs that take GPUs of one container, in order."""
    import simpy as library

    times: list[float] = []

    def job(environment: Any, pool: Any, gpus: int, run: int) -> Any:
        asked = environment.now
        yield pool.get(gpus)
        yield environment.timeout(run)
        yield pool.put(gpus)
        times.append(environment.now - asked)

    def source(environment: Any, pool: Any) -> Any:
        rows = zip(trace.submit_us, trace.gpus, trace.run_us, strict=True)
        for submit, gpus, run in [tuple(map(int, row)) for row in rows]:
            yield environment.timeout(submit - environment.now)
            environment.process(job(environment, pool, gpus, run))

    environment = library.Environment()
    total = nodes * PER_NODE
    pool = library.Container(environment, capacity=total, init=total)
    environment.process(source(environment, pool))
    environment.run()
    return sum(times) / len(times) / US
