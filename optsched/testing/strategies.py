"""Strategies of Hypothesis: small instances, traces and worlds for property-based tests.

They need the package `hypothesis`, which is imported with this module alone. Everything that is
drawn is valid, small enough to be solved in milliseconds, and shrinks to something simple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from optsched.registry import PROBLEMS, UnknownNameError, problem
from optsched.rollout.scenario import Scenario
from optsched.testing.small_worlds import World
from optsched.traces.trace import Failure, trace_of

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from optsched.instance import Instance
    from optsched.traces.trace import Trace

TIMES = st.one_of(st.integers(1, 60).map(float), st.floats(0.5, 500.0))
GOODPUTS = st.one_of(st.integers(1, 12).map(float), st.floats(1e-3, 1e3), st.just(1.0))
MODELS = ("resnet", "bert")
REASON = "GPU out of memory"


def instances(name: str) -> SearchStrategy[Instance]:
    """Draw small instances of a problem; those of BOA, PAL and EaCO have a plan.

    Parameters
    ----------
    name
        ``"boa"``, ``"pal"``, ``"eaco"`` or ``"sia"``.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of rounds of Sia some have no plan, since jobs may have to run.

    Raises
    ------
    UnknownNameError
        If there is no such problem.

    Examples
    --------
    >>> from optsched.testing import instances
    >>> instances("pal").example().problem  # doctest: +SKIP
    'pal'
    """
    drawn = {"boa": _boa, "pal": _pal, "eaco": _eaco, "sia": sia_rounds}
    if name not in drawn:
        raise UnknownNameError("problem", name, list(PROBLEMS))
    kind = problem(name).instance
    return drawn[name]().map(lambda document: kind.from_document({"name": "drawn", **document}))


@st.composite
def _boa(draw: DrawFn) -> dict[str, Any]:
    """Every phase may run on one GPU, for which the budget always suffices."""
    classes, least = [], 0.0
    for number in range(draw(st.integers(1, 3))):
        rate, rescale_s = draw(TIMES), draw(st.sampled_from([0.0, 0.0, 30.0]))
        phases = []
        for _ in range(draw(st.integers(1, 3))):
            widths = [1, *sorted(draw(st.sets(st.sampled_from([2, 3, 4, 8]), max_size=2)))]
            speedup = [1.0, *(draw(st.floats(0.5, 1.2)) * width for width in widths[1:])]
            curve = {"kind": "table", "gpus": widths, "speedup": speedup}
            work = draw(TIMES)
            phases.append({"work_gpu_s": work, "speedup": curve})
            least += rate / 3600 * work
        least += rate / 3600 * rescale_s
        row = {"id": f"c{number}", "arrival_rate_per_h": rate, "rescale_s": rescale_s}
        classes.append(row | {"phases": phases})
    budget = least * draw(st.floats(1.01, 4.0))
    widths_kind = draw(st.sampled_from(["integer", "mixed"]))
    return {"budget_gpus": budget, "widths": widths_kind, "classes": classes}


@st.composite
def _pal(draw: DrawFn) -> dict[str, Any]:
    """Gangs that fit into the GPUs that there are, each of them on nodes below one switch."""
    nodes, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    gpus = [f"n{node}/{gpu}" for node in range(nodes) for gpu in range(each)]
    domains: list[dict[str, Any]] = [{"id": "all", "level": "cluster"}]
    for node in range(nodes):
        own = gpus[node * each : (node + 1) * each]
        domains.append({"id": f"n{node}", "level": "node", "parent": "all", "gpus": own})
    left, jobs = len(gpus), []
    for number in range(draw(st.integers(1, 5))):
        if left:
            gang = draw(st.integers(1, min(left, 4)))
            job = {"id": f"j{number}", "gpus": gang, "model": draw(st.sampled_from(MODELS))}
            jobs.append({**job, "application_class": "A"})
            left -= gang
    speeds = st.one_of(st.sampled_from([1.0, 1.0, 1.1, 2.5]), st.floats(0.8, 1.5))
    return {
        "topology": {"levels": ["node", "cluster"], "domains": domains},
        "profile": {
            "gpus": gpus, "slowdown": {"A": [draw(speeds) for _ in gpus]}, "kind": "persistent",
        },
        "locality": {model: [1.0, draw(st.floats(1.0, 3.0))] for model in MODELS},
        "jobs": jobs,
    }  # fmt: skip


@st.composite
def _eaco(draw: DrawFn) -> dict[str, Any]:
    """One GPU a job, and as many nodes as there are jobs: each may run alone."""
    count = draw(st.integers(1, 5))
    share = st.floats(0.05, 0.9)
    types = [{"id": name, "utilisation": draw(share), "memory_gb": 4.0} for name in MODELS]
    jobs = [
        {
            "id": f"j{number}", "type": draw(st.sampled_from(MODELS)), "gpus": 1,
            "work_s": 60.0 * draw(TIMES), "max_slowdown": draw(st.sampled_from([1.0, 1.2, 3.0])),
        }
        for number in range(count)
    ]  # fmt: skip
    power = {"bare_w": 30.0, "context_w": 40.0, "peak_w": 300.0}
    pool = {"id": "x", "gpu": "V100", "gpus": 1, "count": count, "power": {"base_w": 100.0}}
    return {
        "gpu_types": [{"id": "V100", "memory_gb": 16.0, "power": power}],
        "nodes": [pool],
        "types": types,
        "jobs": jobs,
        "interference": {"fallback": "utilisation"},
        "max_jobs_per_gpu": draw(st.integers(1, 3)),
    }


@st.composite
def _sia_jobs(draw: DrawFn, number: int, types: list[str]) -> dict[str, Any]:
    """Draw a job: it may run or wait, be kept where it is, or have to run; restarts cost or not."""
    group = st.tuples(st.sampled_from(types), st.integers(1, 5))
    groups = draw(st.lists(group, min_size=1, max_size=4, unique=True))
    rows = [{"type": t, "gpus": n, "goodput": draw(GOODPUTS)} for t, n in groups]
    must_run = draw(st.integers(0, 4)) == 0
    job: dict[str, Any] = {"id": f"j{number}", "configurations": rows, "must_run": must_run}
    if draw(st.booleans()):
        name, gpus = draw(st.sampled_from(groups))
        job["current"] = {"type": name, "gpus": gpus}
        job["restart_factor"] = draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
        job["preemptible"] = draw(st.integers(0, 3)) > 0
    return job


@st.composite
def sia_rounds(draw: DrawFn, most_jobs: int = 4) -> dict[str, Any]:
    """Draw the document of a round of few jobs, with or without a plan."""
    types = ["a", "b", "c"][: draw(st.integers(1, 3))]
    count = draw(st.integers(1, most_jobs))
    return {
        "gpus": {name: draw(st.integers(0, 8)) for name in types},
        "power": draw(st.sampled_from([-0.5, -1.0, -0.1, -3.0])),
        "waiting_cost": draw(st.sampled_from([1.1, 0.3, 1.0, 5.0, 1e6])),
        "jobs": [draw(_sia_jobs(n, types)) for n in range(count)],
    }


@st.composite
def traces(draw: DrawFn, most_gpus: int = 4, most_jobs: int = 8, failing: bool = True) -> Trace:
    """Draw traces of few jobs.

    Parameters
    ----------
    most_gpus
        Of the gang of a job.
    most_jobs
        How many there may be; at least one.
    failing
        Whether some may fail, or be killed by their users.

    Examples
    --------
    >>> from optsched.testing import traces
    >>> len(traces(most_jobs=3).example()) <= 3  # doctest: +SKIP
    True
    """
    number = draw(st.integers(1, most_jobs))

    def column(values: SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=number, max_size=number))

    status = column(st.sampled_from(["passed", "failed", "killed"] if failing else ["passed"]))
    attempts = [(Failure(REASON, 7_000_000),) if word == "failed" else () for word in status]
    columns = {
        "submit_s": sorted(column(st.floats(0.0, 300.0).map(lambda time: round(time, 3)))),
        "gpus": column(st.integers(1, most_gpus)),
        "run_s": column(TIMES.map(lambda time: round(time, 3))),
        "model": column(st.sampled_from(MODELS)),
        "status": status,
        "failures": attempts,
    }
    return trace_of("drawn", "optsched.testing.strategies", columns)


@st.composite
def worlds(draw: DrawFn) -> World:
    """Draw a scenario and a trace whose gangs all fit; what policies may count on, and no more.

    Policies are told no run times. There are starts and restarts that take time, failures that are
    tried again, and epochs; neither sharing nor rented nodes nor quotas.

    Examples
    --------
    >>> from optsched.testing import worlds
    >>> world = worlds().example()  # doctest: +SKIP
    >>> world.trace.gpus.max() <= world.scenario.gpus  # doctest: +SKIP
    True
    """
    nodes, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    some = st.sampled_from([0.0, 0.0, 1.0, 2.5])
    parts: dict[str, Any] = {}
    if draw(st.booleans()):
        parts["costs"] = {"start_s": draw(some), "restore_s": draw(some)}
        parts["costs"] |= {"checkpoint_every_s": draw(st.sampled_from([None, 10.0, 60.0]))}
    if draw(st.booleans()):
        parts["retries"] = {"delay_s": draw(some), "limits": {REASON: draw(st.integers(0, 2))}}
    scenario = Scenario(
        name="drawn", nodes=nodes, gpus_per_node=each, epoch_s=draw(st.sampled_from([10.0, 60.0])),
        estimates={"kind": "none"}, trace={"generator": "none", "jobs": 1}, **parts,
    )  # fmt: skip
    trace = draw(traces(most_gpus=min(nodes * each, 8), failing="retries" in parts))
    return World("drawn", scenario, trace)
