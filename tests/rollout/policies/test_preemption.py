"""Sticky rounds against a small simulator of their own, written from the words of the docs.

The longest prefix of the order whose gangs fit together is placed, and nothing is placed behind it;
running jobs behind it go on as long as nobody before them needs their GPUs. The simulator is epochs
and lists, and shares nothing with the engine, its policies or PAL's rules of placement.
"""

import random

import pytest

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.placement_rules import preempted
from optsched.rollout.registry import make
from optsched.traces.trace import US
from tests.support.builders.rollout_parts import scenario, trace

EPOCH, NODES, WIDTH = 360, 4, 4
PENALTY = 1.5  # across nodes: 240 s of work in an epoch
ORDERS = {
    "las": lambda job: job["served"],
    "srtf": lambda job: job["left"],
    "tiresias": lambda job: (job["served"] >= 3250, job["first"]),
    "tiresias:lease_s=1000": lambda job: (
        not job["on"] or job["now"] - job["since"] >= 1000,
        job["served"] >= 3250,
        job["first"],
    ),
    "tiresias:thresholds_gpu_s=2000/9000,lease_s=0": lambda job: (
        (job["served"] >= 2000) + (job["served"] >= 9000),
        job["first"],
    ),
    "packed-sticky": lambda job: 0,
    "packed-sticky:order=las,one_dimensional=true": lambda job: job["ran"],
    "packed-sticky:order=srtf,times_gpus=true": lambda job: job["left"] * job["gpus"],
}


def workload(seed, jobs=60):
    """Jobs as (submit_s, gpus, run_s): a cluster that is full most of the time."""
    drawn, now, rows = random.Random(seed), 0, []
    for _ in range(jobs):
        now += drawn.randrange(0, 500)
        rows.append((now, drawn.choice([1, 1, 2, 3, 4, 5, 8, 12]), drawn.randrange(100, 4000)))
    start = rows[0][0]
    return [(submit - start, gpus, run) for submit, gpus, run in rows]


class Simulator:
    """Epoch after epoch: ends, arrivals, an order, and a round."""

    def __init__(self, rows, key, backfill):
        self.key, self.backfill = key, backfill
        self.jobs = [
            {"n": n, "at": submit, "gpus": gpus, "left": float(run), "on": [], "end": None,
             "served": 0, "ran": 0, "stops": 0, "first": float("inf"), "since": 0, "now": 0}
            for n, (submit, gpus, run) in enumerate(rows)
        ]  # fmt: skip

    def run(self):
        now = 0
        while any(job["end"] is None for job in self.jobs):
            for job in self.jobs:
                job["now"] = now
            there = [job for job in self.jobs if job["end"] is None and job["at"] <= now]
            self.round(sorted(there, key=lambda job: (self.key(job), job["n"])))
            now += EPOCH
            for job in there:
                self.advance(job, now)
        return self.jobs

    def advance(self, job, now):
        if not job["on"]:
            return
        apart = len({gpu // WIDTH for gpu in job["on"]}) > 1
        job["left"] -= EPOCH / PENALTY if apart else EPOCH
        job["ran"] += EPOCH
        job["served"] += EPOCH * job["gpus"]
        if job["left"] <= 1e-9:
            job["end"], job["on"] = now, []

    def round(self, order):
        first = self.prefix(order)
        for job in first:
            if job["on"]:
                continue
            behind = [other for other in order if other["on"] and other not in first]
            self.make_room(job, behind)
            job["on"] = self.consolidated(job["gpus"])
            job["first"], job["since"] = min(job["first"], job["now"]), job["now"]

    def prefix(self, order):
        free, chosen = NODES * WIDTH, []
        for job in order:
            if job["gpus"] <= free:
                chosen.append(job)
                free -= job["gpus"]
            elif not self.backfill:
                break
        return chosen

    def make_room(self, job, behind):
        asked = []
        while len(self.free()) + sum(other["gpus"] for other in asked) < job["gpus"]:
            asked.append(behind.pop())
        for other in reversed(asked.copy()):
            others = sum(o["gpus"] for o in asked if o is not other)
            if len(self.free()) + others >= job["gpus"]:
                asked.remove(other)
        for other in asked:
            other["on"] = []
            other["stops"] += 1

    def free(self):
        used = {gpu for job in self.jobs for gpu in job["on"]}
        return [gpu for gpu in range(NODES * WIDTH) if gpu not in used]

    def consolidated(self, size):
        nodes = [[gpu for gpu in self.free() if gpu // WIDTH == n] for n in range(NODES)]
        large = [inside for inside in nodes if len(inside) >= size]
        if large:
            return min(large, key=len)[:size]
        chosen = []
        while len(chosen) < size:
            most = max(nodes, key=len)
            chosen += most[: size - len(chosen)]
            nodes.remove(most)
        return chosen


@pytest.mark.parametrize("policy", ORDERS)
def test_rounds_are_job_by_job_those_of_a_simulator_of_the_docs(policy):
    world = scenario(
        NODES, WIDTH, epoch_s=EPOCH, decide_on=(), finish_at_epochs=True, locality=(1.0, PENALTY),
        reference_place="one-node",
    )  # fmt: skip
    stops = 0
    for seed in range(12):
        rows = workload(seed)
        record = Engine(world, trace(*rows), make(policy, world), seed=0).run()
        jobs = Simulator(rows, ORDERS[policy], backfill="tiresias" in policy).run()
        assert record.jobs.end_us.tolist() == [job["end"] * US for job in jobs]
        assert record.jobs.preemptions.tolist() == [job["stops"] for job in jobs]
        assert not record.jobs.migrations.any()
        stops += record.jobs.preemptions.sum()
    assert (stops > 0) == (policy != "packed-sticky")


def test_running_jobs_that_need_not_make_room_are_not_touched():
    assert preempted(4, {7: 4, 8: 1}) == [7]  # 8 came first from the end, and alone is too little
    assert preempted(4, {7: 2, 8: 3, 9: 1}) == [9, 8]
    assert preempted(3, {6: 2, 7: 1, 8: 2, 9: 1}) == [9, 8]
    assert preempted(0, {7: 4}) == []
