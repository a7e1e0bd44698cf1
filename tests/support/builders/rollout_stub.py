"""A hand-driven view for tests of policies: it applies decisions, and refuses broken ones."""

from __future__ import annotations

import numpy as np

from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US


def scenario(nodes=2, width=4, **fields):
    """Return a scenario of equal nodes; its trace is never made."""
    return Scenario(
        nodes=nodes, gpus_per_node=width, trace={"generator": "none", "jobs": 1}, **fields
    )


class StubView:
    """The cluster under a policy, moved by `submit`, `finish`, `wait` and `step`."""

    def __init__(self, world):
        self.scenario, self.cluster = world, Cluster(world)
        self.now_us, self.is_epoch, self.rented, self.spent_gpu_us = 0, True, 0, 0
        self.ready = [True] * self.cluster.nodes
        self.arrived, self.ended, self.failed = [], [], []
        self.jobs, self.held, self.trials = {}, {}, {}

    # What a test does.
    def submit(self, gpus, model="", queue="", remaining_s=100.0, user=""):
        job = len(self.jobs)
        told = {"gpus": gpus, "model": model, "queue": queue, "submit": self.now_us, "user": user}
        self.jobs[job] = {**told, "since": self.now_us, "left": remaining_s * US}
        self.jobs[job] |= {"ran": 0, "served": 0, "failures": []}
        self.held[job] = ()
        self.arrived.append(job)
        return job

    def finish(self, *jobs):
        for job in jobs:
            del self.held[job]
            self.trials.pop(job, None)
            self.ended.append(job)

    def fail(self, job, reason="", back=True):
        self.held[job] = ()
        self.trials.pop(job, None)
        self.jobs[job]["since"] = self.now_us
        self.jobs[job]["failures"].append(reason)
        self.failed.append(job)
        if back:
            self.arrived.append(job)

    def wait(self, seconds):
        self.now_us += int(seconds * US)
        for job, gpus in self.held.items():
            if gpus:
                self.jobs[job]["ran"] += int(seconds * US)
                self.jobs[job]["served"] += int(seconds * US) * len(gpus)
                self.jobs[job]["left"] -= seconds * US

    def step(self, policy):
        """Call the policy and apply what it decides; return that."""
        decision = policy.decide(self)
        for job in decision.stop:
            assert self.held[job], f"job {job} does not run"
            self.held[job] = ()
            self.jobs[job]["since"] = self.now_us
        for job, gpus in {**decision.place, **decision.pre_run}.items():
            wanted = 1 if job in decision.pre_run else self.jobs[job]["gpus"]
            assert len(set(gpus)) == len(gpus) == wanted, "gang"
            assert list(gpus) == sorted(gpus)
            assert all(self.ready[self.cluster.node_of[gpu]] for gpu in gpus)
            self.held[job] = tuple(int(gpu) for gpu in gpus)
        for job in decision.pre_run:
            self.trials[job] = self.now_us + decision.pre_run_us
        used = [gpu for gpus in self.held.values() for gpu in gpus]
        assert len(used) == len(set(used)), "overcommit"
        self._within_quotas()
        self.arrived, self.ended, self.failed = [], [], []
        return decision

    def _within_quotas(self):
        for queue, quota in self.scenario.quotas.items():
            jobs = [job for job in self.held if self.jobs[job]["queue"] == queue]
            assert sum(len(self.held[job]) for job in jobs) <= quota, "quota"

    # What a policy asks.
    @property
    def pending(self):
        return np.array([job for job, gpus in self.held.items() if not gpus], dtype=np.int64)

    @property
    def running(self):
        return np.array([job for job, gpus in self.held.items() if gpus], dtype=np.int64)

    @property
    def free(self):
        return np.array([len(self.free_gpus(node)) for node in range(self.cluster.nodes)])

    def gpus_of(self, job):
        return self.held.get(job, ())  # as the engine says: none if it waits, or has ended

    def jobs_on(self, gpu):
        return [job for job, gpus in self.held.items() if gpu in gpus]

    def free_gpus(self, node):
        first = self.cluster.first[node]
        inside = range(first, first + self.cluster.size[node])
        used = {gpu for gpus in self.held.values() for gpu in gpus}
        return [gpu for gpu in inside if gpu not in used] if self.ready[node] else []

    def demand(self, job):
        return self.jobs[job]["gpus"]

    def model(self, job):
        return self.jobs[job]["model"]

    def queue(self, job):
        return self.jobs[job]["queue"]

    def user(self, job):
        return self.jobs[job]["user"]

    def submit_us(self, job):
        return self.jobs[job]["submit"]

    def deadline_us(self, job):
        return -1

    def attained_gpu_us(self, jobs):
        return np.array([self.jobs[job]["served"] for job in jobs], dtype=np.int64)

    def attained_us(self, jobs):
        return np.array([self.jobs[job]["ran"] for job in jobs], dtype=np.int64)

    def done_us(self, jobs):
        return self.attained_us(jobs)

    def waited_us(self, job):
        return 0 if self.held[job] else self.now_us - self.jobs[job]["since"]

    def failures(self, job):
        return self.jobs[job]["failures"]

    def phase(self, job):
        return 0

    def remaining_us(self, jobs):
        return np.array([self.jobs[job]["left"] for job in jobs], dtype=float)

    def slowdown(self, application_class):
        profile = self.scenario.profile
        if profile is None:
            return [1.0] * self.cluster.gpus
        return profile.slowdown[application_class]


class ElasticView(StubView):
    """Jobs of one phase, whose widths are the policy's to choose."""

    advanced = ()

    def step(self, policy):
        decision = policy.decide(self)
        self.held |= dict.fromkeys(decision.stop, ()) | dict(decision.place)
        taken = [gpu for gpus in self.held.values() for gpu in gpus]
        assert len(set(taken)) == len(taken)
        self.arrived, self.ended, self.failed = [], [], []
        return decision


def widths(view):
    """Return how many GPUs each job holds, in the order of arrival."""
    return [len(gpus) for gpus in view.held.values()]
