"""Small rollouts for tests of what is around the engine.

Policies stand in a module, so that they can be pickled.
"""

import time
from pathlib import Path

import numpy as np

import optsched
from optsched.rollout import registry
from optsched.rollout.engine.decision import Decision, SolveRecord
from optsched.rollout.policy_options import NonNegative, Options, takes
from optsched.traces.trace import Failure, trace_of
from tests.support.builders import records

POWER = {
    "gpu": {"bare_w": 50, "context_w": 60, "peak_w": 250},
    "node": {"base_w": 400},
    "pue": 1.5,
    "price_usd_per_kwh": 0.2,
}
FILES = ["epochs.csv", "jobs.csv", "summary.json", "timing.json"]
POLICIES = (
    registry.Entry(
        "first", "starts the oldest", "tests", "tests.support.builders.small_rollouts:make_first"
    ),
    registry.Entry(
        "other", "the same", "tests", "tests.support.builders.small_rollouts:make_other"
    ),
)


class FirstFit:
    """Start the oldest jobs on the lowest free GPUs, as long as they fit; draw, if asked to."""

    name = "first-fit"

    def __init__(self, seed=0, pause_s=0.0):
        self.random = np.random.default_rng(seed)
        self.pause_s = pause_s

    def state(self):
        return {"random": self.random}

    def restore(self, state):
        self.random = state["random"]

    def decide(self, view):
        started = time.perf_counter()
        free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
        place = {}
        for job in view.pending.tolist():
            width = view.demand(job)
            if width > len(free):
                break
            taken = sorted(self.random.permutation(free)[:width].tolist())
            free = [gpu for gpu in free if gpu not in taken]
            place[job] = tuple(taken)
        time.sleep(self.pause_s)
        seconds = time.perf_counter() - started
        solves = (SolveRecord("optimal", 1.0, 1.0, seconds),) if place else ()
        return Decision(place=place, solves=solves)


class Greedy:
    """Overcommits."""

    name = "greedy"

    def decide(self, view):
        return Decision(place=dict.fromkeys(view.pending.tolist(), (0,)))


class FirstOptions(Options):
    pause_s: NonNegative = 0.0


@takes(FirstOptions, draws=True)
def make_first(scenario, seed, options):
    return FirstFit(seed, options.pause_s)


@takes(Options, draws=True)
def make_other(scenario, seed, options):
    return FirstFit(seed + 1000)


def trace(jobs=60, seed=1):
    random = np.random.default_rng(seed)
    status = random.choice(["passed", "killed", "failed"], jobs, p=[0.7, 0.15, 0.15])
    return trace_of(
        f"drawn-{seed}",
        "tests",
        {
            "submit_s": np.cumsum(random.exponential(40, jobs)),
            "gpus": random.choice([1, 2, 4], jobs),
            "run_s": random.lognormal(5, 1, jobs),
            "queue": random.choice(["x", "y"], jobs),
            "status": status,
            "utilization": np.where(random.random(jobs) < 0.5, np.nan, random.random(jobs)),
            "failures": [(Failure("oom", 7_000_000),) if word == "failed" else ()
                         for word in status],
        },
    )  # fmt: skip


def scenario(**changes):
    costs = {"start_s": 3, "restore_s": 5, "checkpoint_every_s": 60}
    return records.scenario(nodes=3, gpus_per_node=4, power=POWER, costs=costs, **changes)


def roll(policy=None, **options):
    options = {"trace": trace()} | options
    return optsched.simulate(scenario(), policy or FirstFit(), **options)


def contents(folder):
    """Return what must be equal: all files but timing.json."""
    return {
        path.name: path.read_bytes()
        for path in Path(folder).iterdir()
        if path.name != "timing.json"
    }
