"""What users type, in forty lines; `mypy --strict` has nothing to say of it."""

import optsched
from optsched import Progress, boa
from optsched.boa import Amdahl, BoaInstance, JobClass, Phase, Table
from optsched.cluster import Domain, Profile, Topology
from optsched.pal import Job, PalInstance
from optsched.rollout import Decision, View

instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 30})
result = optsched.solve(instance)
print(result.status.value, f"{result.objective:.2f} {result.objective_unit}")
print(result.frame().groupby("class")["gpus"].agg(["min", "max"]))
optsched.check(instance, result.plan)
optsched.check(instance, result)
optsched.check("boa/cbd-85", result)
optsched.verify(instance, result)
print(result.certificate.price / float(instance.arrival_rate_per_s))
print(boa.frontier(instance).mean_jct_s([24, 30, 48]).round(2))
for place in result.plan.classes:
    print(place)
if result.gap is not None and result.objective is not None:
    print(result.gap < 1e-6, result.objective / 2)
print(optsched.frontier(instance, budgets=[24, 30.5, 48]).plot())
print(optsched.explain(instance, result), result.explain())
optsched.write(instance, "own.json")
optsched.write(result, "result.json")
again = optsched.read_result("result.json").of(instance)


def told(progress: Progress) -> None:
    print(progress.elapsed_s, progress.phase, progress.objective, progress.bound, progress.gap)


optsched.solve("boa/hand", "milp", time_limit_s=2, gap=0.01, progress=told)
curve = Table(gpus=[1, 2, 4], speedup=[1, 1.8, 3.1])
phases = [
    Phase(work_gpu_s=3600, speedup=curve),
    Phase(work_gpu_s=60, speedup=Amdahl(parallel_fraction=0.9, max_gpus=8)),
]
own = BoaInstance(
    budget_gpus=12, classes=[JobClass(id="bert", arrival_rate_per_h=2, phases=phases)]
)
print(own.classes[0].phases, len(own.classes), own.budget)
topology = Topology(levels=["node"], domains=[Domain(id="n0", level="node", gpus=["a", "b"])])
slowdown = [1.3 if gpu == "a" else 1.0 for gpu in topology.gpus]
placed = PalInstance(
    topology=topology,
    profile=Profile(gpus=topology.gpus, slowdown={"A": slowdown}, kind="persistent"),
    locality={"resnet": [1.0]},
    jobs=[
        Job(id=f"j{n}", gpus=k, application_class="A", model="resnet") for n, k in enumerate([1])
    ],
)
print(optsched.solve(placed, gap=1e-2, start=None).frame()[["job", "gpus"]])
print(optsched.compare("philly-small", ["fifo", "las"], seeds=3).frame())


class OneNodeEach:
    """A policy of one's own."""

    name = "one-node-each"

    def decide(self, view: View) -> Decision:
        nodes = [n for n in range(view.cluster.nodes) if view.free[n] == view.cluster.size[n]]
        jobs = [job for job in view.pending.tolist() if view.demand(job) <= view.cluster.largest]
        pairs = zip(jobs, nodes, strict=False)
        return Decision(place={job: view.free_gpus(n)[: view.demand(job)] for job, n in pairs})


scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 60})
outcome = optsched.simulate(scenario, OneNodeEach())
print(outcome.metrics["jct_mean_s"], optsched.__version__)
