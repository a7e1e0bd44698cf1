"""CPU seconds of the rollout engine on a Philly trace, and SimPy in the same run as the yardstick.

    python benchmarks/rollout_engine.py FILE            # philly_jobs_pollux.csv[.gz], 82,247 jobs
    python benchmarks/rollout_engine.py FILE --profile  # where the time goes

The engine: 311 nodes of 8 GPUs, FIFO, best fit; every GPU of every job is placed, and the policy is
called at every arrival and finish. BOA: nodes are rented, two minutes ahead, for the widths that it
chooses every hour by the jobs it has seen. SimPy (pip install simpy): the same jobs through one
Container with as many GPUs: no places, no policy, no accounts.
"""

from __future__ import annotations

import argparse
import cProfile
import resource
import time
from importlib.util import find_spec

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of

GPUS_PER_NODE = 8
MODELS = {"steep": 0.999, "middling": 0.98, "flat": 0.9}  # parallel fraction of Amdahl's law
BUDGET = 1.5  # GPUs on average, relative to what the jobs use as they ask


def philly(path):
    import pandas as pd

    table = pd.read_csv(path)
    when = pd.to_datetime(table["timestamp"])
    submit = (when - when.min()).dt.total_seconds().to_numpy()
    columns = {"submit_s": submit, "gpus": table["num_gpus"], "run_s": table["duration"]}
    columns["model"] = [list(MODELS)[n % len(MODELS)] for n in range(len(table))]
    return trace_of("philly", str(path), columns)


def our_engine(trace, nodes, policy):
    scenario = Scenario(
        nodes=nodes, gpus_per_node=GPUS_PER_NODE, epoch_s=300, trace={"file": "philly"}
    )
    return run(scenario, trace, policy)


def boa(trace, nodes):
    used = (trace.gpus * trace.run_us).sum() / trace.submit_us[-1]
    scenario = Scenario(
        nodes=2 * nodes,
        gpus_per_node=GPUS_PER_NODE,
        epoch_s=300,
        rented={"provision_s": 120},
        costs={"rescale_s": 30},
        budget_gpus=float(BUDGET * used),
        models={name: model(fraction) for name, fraction in MODELS.items()},
        trace={"file": "philly"},
    )
    return run(scenario, trace, "boa:rates=history,every_s=3600")


def model(fraction):
    speedup = {"kind": "amdahl", "parallel_fraction": fraction, "max_gpus": 64}
    return {"phases": [{"work_gpu_s": 3600, "speedup": speedup}]}


def run(scenario, trace, policy):
    record = Engine(scenario, trace, make(policy, scenario), seed=0).run()
    delays = record.jobs.first_start_us - trace.submit_us
    return record.events, len(record.epochs), delays.mean() / US


def simpy_engine(trace, nodes):
    import simpy

    delays = []

    def job(environment, pool, gpus, run):
        asked = environment.now
        yield pool.get(gpus)
        delays.append(environment.now - asked)
        yield environment.timeout(run)
        yield pool.put(gpus)

    def source(environment, pool):
        rows = zip(trace.submit_us, trace.gpus, trace.run_us, strict=True)
        for submit, gpus, run in [tuple(map(int, row)) for row in rows]:
            yield environment.timeout(submit - environment.now)
            environment.process(job(environment, pool, gpus, run))

    environment = simpy.Environment()
    total = nodes * GPUS_PER_NODE
    pool = simpy.Container(environment, capacity=total, init=total)
    environment.process(source(environment, pool))
    environment.run()
    return 2 * len(trace), 0, sum(delays) / len(delays) / US


def report(name, function, *arguments):
    started = time.process_time()
    events, calls, delay = function(*arguments)
    seconds = time.process_time() - started
    print(
        f"{name:<10} {seconds:8.2f} CPU s {events / seconds:12,.0f} events/s "
        f"{calls:9,} decisions   mean delay {delay:10.3f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--nodes", type=int, default=311, help="64: overloaded, a long queue")
    parser.add_argument("--policy", default="fifo")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    trace = philly(options.file)
    print(f"{len(trace):,} jobs, {options.nodes} nodes of {GPUS_PER_NODE} GPUs")
    if options.profile:
        cProfile.runctx(
            "our_engine(trace, nodes, policy)",
            globals() | {"trace": trace, "nodes": options.nodes, "policy": options.policy},
            {},
            sort="tottime",
        )
        return
    report("optsched", our_engine, trace, options.nodes, options.policy)
    report("BOA", boa, trace, options.nodes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory so far, reading the file included: {peak:.0f} MB")
    if find_spec("simpy") is None:
        print("SimPy is not installed: pip install simpy")
        return
    report("SimPy", simpy_engine, trace, options.nodes)


if __name__ == "__main__":
    main()
