"""The jobs of a scenario: generated, read from a file, or given; and whether they can ever run."""

from __future__ import annotations

from pathlib import Path

from optsched.plugins.errors import PluginError
from optsched.rollout.code_in_files import format_fault
from optsched.rollout.physics.gpu_types import GpuTypes
from optsched.rollout.scenario import Scenario, TraceSource
from optsched.traces.trace import Trace

TraceLike = Trace | TraceSource | str | Path


def scenario_of(scenario: Scenario | str | Path) -> Scenario:
    """Return a scenario, read from its file or by its name if it is not one yet.

    The file of its trace is then told from the current folder, no longer from the scenario's.
    """
    if isinstance(scenario, Scenario):
        return scenario
    from optsched.rollout.scenario_files import find_scenario, read_scenario

    loaded = read_scenario(scenario)
    if loaded.trace.file is None:
        return loaded
    path = find_scenario(scenario).parent / loaded.trace.file
    source = loaded.trace.model_copy(update={"file": str(path)})
    return loaded.model_copy(update={"trace": source})


def with_trace(scenario: Scenario, trace: TraceLike | None) -> Scenario:
    """Return the scenario with the source of another trace; a `Trace` itself leaves it."""
    if trace is None or isinstance(trace, Trace):
        return scenario
    source = trace if isinstance(trace, TraceSource) else TraceSource(file=str(trace))
    return scenario.model_copy(update={"trace": source})


def jobs_of(scenario: Scenario, trace: TraceLike | None = None, seed: int = 0) -> Trace:
    """Return the jobs of a rollout.

    Parameters
    ----------
    trace
        Instead of the scenario's own: a trace, the source of one, or a file that
        `optsched trace` wrote.
    seed
        Added to the seed of a generator, so that each seed has a trace of its own.

    Raises
    ------
    ValueError
        If a job asks for more GPUs than it can ever have: those of the cluster, with all nodes that
        may be rented, or the quota of its queue. `drop_larger` in the source leaves such jobs out.
    """
    source = with_trace(scenario, trace).trace
    if trace is None and (fault := format_fault(scenario)):
        raise PluginError(f"scenario '{scenario.name}': {fault}")
    jobs = trace if isinstance(trace, Trace) else _from_source(source, seed)
    if source.drop_larger:
        most = _most(jobs, scenario)
        jobs = jobs.kept([job for job in range(len(jobs)) if jobs.gpus[job] <= most[job]])
    _check_gangs(jobs, scenario)
    return jobs


def _from_source(source: TraceSource, seed: int) -> Trace:
    if source.generator is not None:
        from optsched.traces.generators.registry import generate

        return generate(source.generator, source.jobs or 1, source.seed + seed, **source.options)
    from optsched.traces.importers.registry import import_trace
    from optsched.traces.json_traces import read_trace

    path = source.file or ""
    if source.format is None:
        return read_trace(path)
    return import_trace(path, source.format, source.workload, **source.options)


def _most(trace: Trace, scenario: Scenario) -> list[int]:
    """Return by job the most GPUs that it can ever have."""
    quotas = {} if scenario.lends_quotas else scenario.quotas
    types = GpuTypes(scenario)
    most = [types.most_gpus(model) for model in trace.model]
    return [min(quotas.get(queue, n), n) for queue, n in zip(trace.queue, most, strict=True)]


def _check_gangs(trace: Trace, scenario: Scenario) -> None:
    most = _most(trace, scenario)
    large = [job for job in range(len(trace)) if trace.gpus[job] > most[job]]
    if not large:
        return
    job, types = large[0], GpuTypes(scenario)
    limit = f"scenario '{scenario.name}' has {most[job]}"
    if types.are_several:
        limit = f"it can have {most[job]} of one type in scenario '{scenario.name}'"
    if most[job] < types.most_gpus(trace.model[job]):
        limit = f"the quota of its queue '{trace.queue[job]}' is {most[job]}"
    more = f"; {len(large) - 1} more jobs are too large" if len(large) > 1 else ""
    text = f"job '{trace.ids[job]}' needs {trace.gpus[job]} GPUs, but {limit}"
    raise ValueError(f"trace '{trace.name}': {text}{more} (drop_larger leaves such jobs out)")
