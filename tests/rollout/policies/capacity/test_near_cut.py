"""Jobs near the cut: bounds on what each has left hold, whenever it starts and is looked at."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.capacity.near_cut import NearCut
from optsched.rollout.policies.capacity.steepest_steps import steepest
from optsched.rollout.policies.capacity.unit_steps import unit_steps
from optsched.rollout.policies.width_curves import Curves
from tests.support.builders.rollout_parts import scenario
from tests.support.strategies.common import law

GPUS = 24


class Job:
    """Gets on at the speed of its width, or slower, once it has started on GPUs that it got."""

    def __init__(self, steps, seconds, slowdown):
        self.steps, self.left, self.slowdown = steps, seconds, slowdown
        self.since = self.ready = 0
        self.count = -1
        self.speed = 0.0

    def left_at(self, now):
        span = max(0, now - max(self.since, self.ready))
        return max(0.0, self.left - self.speed * span / 1e6)

    def hold(self, now, count, starts_us):
        self.left, self.since, self.ready = self.left_at(now), now, now + starts_us
        self.count, self.speed = count, self.steps.curve.speed[count] / self.slowdown


def amdahl(fraction):
    speedup = {"kind": "amdahl", "parallel_fraction": fraction, "max_gpus": 16}
    return {"phases": [{"work_gpu_s": 50, "speedup": speedup}]}


CURVES = Curves(scenario(3, 8, models={"a": amdahl(0.95), "b": amdahl(0.6)}))


def some_jobs(draw):
    """Up to a dozen; each on GPUs of its own slowdown."""
    return [
        Job(unit_steps(CURVES, draw.choice("ab"), 1), draw.uniform(1.0, 900.0), slowdown)
        for slowdown in (draw.choice((1.0, 1.0, 1.7)) for _ in range(draw.randint(1, 12)))
    ]


@law(300)
@given(st.integers(0, 1 << 30))
def test_what_jobs_have_left_is_within_bounds_and_steps_are_as_if_all_were_asked(seed):
    draw, now, near = Random(seed), 0, NearCut()
    jobs = dict(enumerate(some_jobs(draw)))
    for number, job in jobs.items():
        near.add(number, job.steps)
    starts_us = draw.choice((0, 30_000_000, 200_000_000))
    for _ in range(draw.randint(2, 40)):
        now += draw.choice((1, 700_000, draw.randint(1, 50_000_000)))
        for number in [number for number, job in jobs.items() if not job.left_at(now)]:
            near.remove(number)
            del jobs[number]
        left = {number: job.left_at(now) for number, job in jobs.items()}
        for number, low, high in zip(near.jobs, *near.bounds(now), strict=True):
            if number not in near.due:
                assert low <= max(left[number], 1e-9)
                assert left[number] <= high
        held = decided(near, now, jobs, left)
        for number, count in held.items():
            if count != jobs[number].count:
                jobs[number].hold(now, count, starts_us)
        own = [job.steps.curve for job in jobs.values()]
        assert [job.count for job in jobs.values()] == steepest(own, [*left.values()], spare(jobs))


def decided(near, now, jobs, left):
    """By job whose width may change how many steps it takes now."""
    widths = near.changes(now, GPUS, lambda asked: np.array([left[n] for n in asked]))
    if widths is not None:
        return {n: width - jobs[n].steps.curve.least for n, width in widths.items()}
    counts = steepest([job.steps.curve for job in jobs.values()], [*left.values()], spare(jobs))
    near.settle([*left.values()], counts)
    return dict(zip(jobs, counts, strict=True))


def spare(jobs):
    """GPUs besides the least widths."""
    return GPUS - sum(job.steps.curve.least for job in jobs.values())
