"""Small scenarios, traces and policies for the tests of the rollout engine."""

from __future__ import annotations

from collections import deque

from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of


def scenario(nodes=1, gpus_per_node=1, **parts):
    parts = {"trace": {"generator": "none", "jobs": 1}, "epoch_s": 10.0, **parts}
    return Scenario(nodes=nodes, gpus_per_node=gpus_per_node, **parts)


def trace(*jobs, **columns):
    """Jobs as (submit_s, gpus, run_s)."""
    submit, gpus, run = zip(*jobs, strict=True) if jobs else ((), (), ())
    return trace_of("t", "", {"submit_s": submit, "gpus": gpus, "run_s": run, **columns})


class Fifo:
    """First come, first served, on the lowest free GPUs; a job that does not fit holds up all."""

    name = "fifo"

    def __init__(self):
        self.queue = deque()

    def decide(self, view):
        self.queue.extend(view.arrived)
        self.queue = deque(sorted(self.queue))
        free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
        place = {}
        while self.queue and view.demand(self.queue[0]) <= len(free):
            job = self.queue.popleft()
            place[job], free = free[: view.demand(job)], free[view.demand(job) :]
        return Decision(place=place) if place else NOTHING


class BestFit:
    """First come, first served, on the fullest node that holds the gang, else on whole nodes."""

    name = "fifo-best-fit"

    def __init__(self, scenario):
        self.queue = deque()
        self.node_size = scenario.gpus_per_node
        self.free = [self.node_size] * scenario.nodes
        self.with_free = [set() for _ in range(self.node_size + 1)]
        self.with_free[-1].update(range(scenario.nodes))
        self.shares = {}
        self.total = sum(self.free)

    def decide(self, view):
        for job in view.ended:
            for node, count in self.shares.pop(job, ()):
                self._add(node, count)
        self.queue.extend(view.arrived)
        place = {}
        while self.queue:
            demand = view.demand(self.queue[0])
            if demand > self.total:
                break
            job = self.queue.popleft()
            self.shares[job] = shares = self._take(demand)
            place[job] = [
                gpu for node, count in shares for gpu in self._gpus(view, node, count, place)
            ]
        return Decision(place=place) if place else NOTHING

    def _gpus(self, view, node, count, place):
        free = view.free_gpus(node)
        if place:
            taken = {gpu for gpus in place.values() for gpu in gpus}
            free = [gpu for gpu in free if gpu not in taken]
        return free[:count]

    def _take(self, demand):
        shares = []
        while demand:
            size = next((k for k in range(demand, self.node_size + 1) if self.with_free[k]), None)
            if size is None:
                size = max(k for k in range(self.node_size + 1) if self.with_free[k])
            node = min(self.with_free[size])
            count = min(demand, size)
            self._add(node, -count)
            shares.append((node, count))
            demand -= count
        return shares

    def _add(self, node, count):
        self.with_free[self.free[node]].discard(node)
        self.free[node] += count
        self.total += count
        self.with_free[self.free[node]].add(node)


class Script:
    """Decides what is written for a moment (in seconds), and nothing otherwise; notes its calls."""

    name = "script"

    def __init__(self, decisions, every_epoch=False):
        self.decisions = {round(time * US): list_of(d) for time, d in decisions.items()}
        self.every_epoch = every_epoch
        self.calls = []

    def decide(self, view):
        news = (list(view.arrived), list(view.ended))
        self.calls.append((view.now_us / US, view.is_epoch, *news))
        todo = self.decisions.get(view.now_us)
        return todo.pop(0) if todo else NOTHING


def list_of(decisions):
    return list(decisions) if isinstance(decisions, list | tuple) else [decisions]


def gone_on(engine, new):
    """Let a new engine go on from where another one is, by way of JSON."""
    new.go_on_from(of_json(to_json(engine.saved())))
    return new
