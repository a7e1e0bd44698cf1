"""PAL's artifact again: mean JCT by policy relative to Packed-Sticky, beside published figures.

    python benchmarks/pal_rollout.py FILE              # sia_philly_pal_traces.csv, 8 workloads
    python benchmarks/pal_rollout.py FILE --policies packed-sticky,pm-first,pal-greedy,pal
    python benchmarks/pal_rollout.py FILE --shifted          # clocks begin at the first submission

Scenarios pal-64 (slowdowns of single runs, as the released simulator draws them) and
pal-64-persistent (medians of GPUs). Published: README of hal-uw/blox-pal, branch artifact: 40 %
(PM-First) and 43 % (PAL) less in the geometric mean. The rounds of 360 s begin on the clock of the
workload. That matters: whether a long job of class A meets the one slow GPU is luck, and
the luck of workloads 3 and 5 turns when all jobs come a little earlier (--shifted).
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import time

from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.importers.registry import import_trace
from optsched.traces.trace import US

POLICIES = (
    "packed-sticky,packed-non-sticky,random-sticky,random-non-sticky,pm-first,pal-greedy,"
    "pal-multilevel,pal"
)
PUBLISHED = {"pm-first": 0.60, "pal-greedy": 0.57}
WORKLOADS = range(1, 9)


def workload(path, number, shifted=False):
    """Return a workload on its own clock, or shifted to begin with its first job."""
    trace = import_trace(path, "pal", number)
    early = int(trace.submit_us[0]) if shifted else 0
    return dataclasses.replace(trace, submit_us=trace.submit_us - early)


def mean_jct_s(scenario, trace, policy):
    """Return the mean JCT of a rollout and its migrations, seconds of CPU and solves."""
    started = time.process_time()
    record = Engine(scenario, trace, make(policy, scenario), seed=0).run()
    seconds = time.process_time() - started
    solves = sum(len(epoch.solves) for epoch in record.epochs)
    jct = (record.jobs.end_us - trace.submit_us).mean() / US
    return jct, int(record.jobs.migrations.sum()), seconds, solves


def table(scenario, traces, policies):
    """Print ratios by workload and return their geometric means."""
    print(f"\n{scenario.name}: mean JCT / that of {policies[0]}")
    print(f"{'':<18}" + "".join(f"{n:>7}" for n in traces), "geomean publ. moves solves  CPU s")
    base, means = {}, {}
    for policy in policies:
        runs = [mean_jct_s(scenario, trace, policy) for trace in traces.values()]
        jcts = dict(zip(traces, (run[0] for run in runs), strict=True))
        base = base or jcts
        ratios = [jcts[n] / base[n] for n in traces]
        means[policy] = math.exp(sum(map(math.log, ratios)) / len(ratios))
        moves, seconds, solves = (sum(column) for column in list(zip(*runs, strict=True))[1:])
        known = PUBLISHED.get(policy) if "persistent" not in scenario.name else None
        print(
            f"{policy:<18}" + "".join(f"{ratio:7.3f}" for ratio in ratios),
            f"{means[policy]:7.3f} {known or '':>5} {moves:5} {solves:6} {seconds:6.1f}",
        )
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--policies", default=POLICIES)
    parser.add_argument("--shifted", action="store_true")
    options = parser.parse_args()
    traces = {n: workload(options.file, n, options.shifted) for n in WORKLOADS}
    for name in ("pal-64", "pal-64-persistent"):
        table(read_scenario(name), traces, options.policies.split(","))


if __name__ == "__main__":
    main()
