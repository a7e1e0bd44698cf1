"""Small scenarios, traces and occupancies for tests of a rollout's physics."""

from __future__ import annotations

from hypothesis import strategies as st

from optsched.rollout.engine.state import READY
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.physics import Physics
from optsched.rollout.scenario import Scenario
from optsched.traces import trace_of

SOURCE = {"generator": "poisson", "jobs": 1}


def scenario(nodes=2, gpus_per_node=4, **more):
    document = {"nodes": nodes, "gpus_per_node": gpus_per_node, "trace": SOURCE} | more
    if "topology" in more:
        del document["nodes"], document["gpus_per_node"]
    return Scenario.from_document({"schema": "optsched/scenario/1", **document})


def jobs(gpus, model="", run_s=100.0, **more):
    """Return a trace of jobs with these gang sizes; what is not a list is the same for all."""
    count = len(gpus)
    columns = {"submit_s": [0.0] * count, "gpus": gpus, "model": model, "run_s": run_s} | more
    for key, value in columns.items():
        if not isinstance(value, list | tuple):
            columns[key] = [value] * count
    return trace_of("test", "test", columns)


class Held:
    """Who holds what: an occupancy without an engine."""

    def __init__(self, jobs, cluster):
        self.gpus_of = [()] * jobs
        self.jobs_on = [()] * cluster.gpus
        self.phase = [0] * jobs
        self.node_state = [READY] * cluster.nodes

    def place(self, job, *gpus):
        self.free(job)
        self.gpus_of[job] = tuple(gpus)
        for gpu in gpus:
            self.jobs_on[gpu] = (*self.jobs_on[gpu], job)
        return self

    def free(self, job):
        for gpu in self.gpus_of[job]:
            self.jobs_on[gpu] = tuple(other for other in self.jobs_on[gpu] if other != job)
        self.gpus_of[job] = ()


def physics(world, trace, *places, seed=0):
    """Return the physics of a scenario, and an occupancy in which job n is on places[n]."""
    cluster = Cluster(world)
    held = Held(len(trace), cluster)
    for job, gpus in enumerate(places):
        if gpus:
            held.place(job, *gpus)
    return Physics(world, cluster, trace, seed), held


def rates(world, trace, *places):
    """Return the rates of all jobs that are placed, in the order of their numbers."""
    laws, held = physics(world, trace, *places)
    return [laws.rate(job, held) for job, gpus in enumerate(places) if gpus]


FACTORS = st.sampled_from([1.0, 1.0, 1.1, 1.7, 3.0])


@st.composite
def worlds(draw, elastic=False):
    """Scenarios with all of the physics, and the names of their models."""
    nodes, each = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    levels = st.lists(FACTORS, min_size=2, max_size=2).map(sorted)
    slow = st.sampled_from([1.0, 1.0, 1.25, 2.0])
    profile = {
        "gpus": [f"g{n}" for n in range(nodes * each)],
        "slowdown": {
            name: draw(st.lists(slow, min_size=nodes * each, max_size=nodes * each))
            for name in "AB"
        },
        "kind": "persistent",
    }
    models = {}
    for name in ("x", "y", "z"):
        model = {"utilisation": draw(st.sampled_from([0.1, 0.5, 0.9]))}
        model["application_class"] = draw(st.sampled_from("AB"))
        if draw(st.booleans()):
            model["locality"] = draw(levels)
        if elastic:
            fraction = draw(st.sampled_from([0.0, 0.5, 0.95]))
            curve = {"kind": "amdahl", "parallel_fraction": fraction, "max_gpus": 8}
            model["phases"] = [{"work_gpu_s": 10, "speedup": curve}]
        models[name] = model
    return scenario(
        nodes,
        each,
        locality=draw(levels),
        profile=profile,
        models=models,
        neighbours={"shared_server": draw(st.sampled_from([1.0, 0.77]))},
        sharing={"max_jobs_per_gpu": draw(st.integers(1, 3))},
        power={
            "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
            "node": {"base_w": 500, "sleep_w": 20},
            "idle_nodes": draw(st.sampled_from(["on", "sleep"])),
        },
    )


@st.composite
def occupied(draw, count=5, elastic=False):
    """Physics, an occupancy by jobs that keep the sharing limit, and the numbers of those placed.

    Some are left out; gangs are as they are placed.
    """
    world = draw(worlds(elastic=elastic))
    most, total = world.sharing.max_jobs_per_gpu, world.gpus
    load, places = [0] * total, []
    for _ in range(count):
        free = [gpu for gpu in range(total) if load[gpu] < most]
        size = draw(st.integers(0, min(4, len(free))))
        gpus = sorted(draw(st.permutations(free))[:size])
        for gpu in gpus:
            load[gpu] += 1
        places.append(gpus)
    names = draw(st.lists(st.sampled_from("xyzu"), min_size=count, max_size=count))
    trace = jobs([max(1, len(gpus)) for gpus in places], model=names)
    laws, held = physics(world, trace, *places)
    return laws, held, [job for job, gpus in enumerate(places) if gpus]
