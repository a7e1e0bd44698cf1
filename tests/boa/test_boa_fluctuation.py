"""A short simulation agrees with the closed-form mean and variance of rented GPUs."""

import numpy as np
import pytest

import optsched


def simulated(instance, plan, hours, draw_sizes, rng):
    """Mean and variance over time of the GPUs held, and mean JCT, with Poisson arrivals.

    A job's size scales its work in every phase; rescaling takes a fixed time.
    """
    at, change, jct, weight = [], [], 0.0, 0
    for job_class, planned in zip(instance.classes, plan.classes, strict=True):
        (sequence,) = planned.sequences
        jobs = rng.poisson(job_class.arrival_rate_per_h * hours)
        started = rng.uniform(0, hours * 3600, jobs)
        time, before, size = started.copy(), 0, draw_sizes(rng, jobs)
        for phase, k in zip(job_class.phases, sequence.gpus, strict=True):
            speedup = dict(zip(phase.speedup.gpus, phase.speedup.speedup, strict=True))[k]
            rescaling = job_class.rescale_s if k != before else 0.0
            at.append(time)
            change.append(np.full(jobs, k - before))
            time, before = time + rescaling + size * phase.work_gpu_s / speedup, k
        at.append(time)
        change.append(np.full(jobs, -before))
        jct += (time - started).sum()
        weight += jobs
    times, changes = np.concatenate(at), np.concatenate(change)
    order = np.argsort(times)
    times, held = times[order], np.cumsum(changes[order])[:-1]
    span = np.diff(times)
    inside = (times[:-1] > hours * 360) & (times[:-1] < hours * 3600)  # after the warm-up
    mean = np.average(held[inside], weights=span[inside])
    variance = np.average((held[inside] - mean) ** 2, weights=span[inside])
    return mean, variance, jct / weight


@pytest.mark.parametrize(
    "draw_sizes",
    [
        lambda rng, n: np.ones(n),
        lambda rng, n: rng.exponential(1.0, n),
        lambda rng, n: rng.pareto(2.5, n) * 1.5,  # mean 1, heavy tail
    ],
    ids=["constant", "exponential", "pareto"],
)
def test_rented_gpus_fluctuate_as_in_closed_form(draw_sizes):
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 35})
    plan = optsched.solve(instance).plan
    expected = optsched.boa.performance(instance, plan)
    rng = np.random.default_rng(1)
    mean, variance, jct = simulated(instance, plan, 4000, draw_sizes, rng)
    assert mean == pytest.approx(expected.mean_gpus, rel=0.04)
    assert variance == pytest.approx(expected.variance_gpus, rel=0.1)
    assert jct == pytest.approx(expected.mean_jct_s, rel=0.04)
    assert variance > 5 * mean  # GPUs come in bunches: far from one Poisson count
