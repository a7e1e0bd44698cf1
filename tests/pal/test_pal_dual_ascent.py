"""Prices by ascent on the smoothed dual, and plans by relax and fix: laws, and whole solves."""

from __future__ import annotations

import random

import numpy as np
import pytest

import optsched
from benchmarks.generators import usual
from optsched.pal.dual_ascent.ascent import DualAscent, ascended
from optsched.pal.dual_ascent.relax_and_fix import RelaxAndFix
from optsched.pal.dual_ascent.smoothed_dual import SmoothedDual
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.lagrangian_bound import Lagrangian, without_cuts
from optsched.pal.exact.relaxation import all_options


def no_limit():
    """Return that there is no deadline."""


def cluster(seed=0, gpus=96):
    """Return an instance of the benchmark."""
    return usual(gpus, seed)


def with_running_jobs(instance, seed):
    """Return the instance with half of its jobs running where a greedy plan has them."""
    rng, plan = random.Random(seed), optsched.solve(instance, "pal-multilevel").plan
    held = {placed.id: placed.gpus for placed in plan.jobs}
    jobs = [
        job.model_copy(update={"current": held[job.id], "restart_s": rng.choice([0.0, 0.01, 0.3])})
        if rng.random() < 0.5
        else job
        for job in instance.jobs
    ]
    return instance.model_copy(update={"jobs": tuple(jobs)})


def lagrangian_of(problem):
    """Return the options of a problem, and what prices prove for it."""
    options = all_options(problem)
    reward = np.array([jobs.reward for jobs in problem.types])
    return options, Lagrangian(problem, options, reward)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("running", [False, True])
def test_the_smooth_value_is_near_the_lagrangian_value_and_below(seed, running):
    instance = cluster(seed)
    instance = with_running_jobs(instance, seed) if running else instance
    problem = arrays(instance)
    options, lagrangian = lagrangian_of(problem)
    prices = np.random.default_rng(seed).uniform(0, 0.03, len(problem.gpus))
    exact = without_cuts(prices).priced(problem, options, lagrangian).value
    for smoothing in (1e-2, 1e-3, 1e-5):
        value, _ = SmoothedDual(problem, 1.0).value(prices, smoothing)
        slack = smoothing * len(instance.jobs) * np.log(len(options.type) + 2)
        # rack and cluster may have fewer thresholds than options: a little is then not seen
        assert exact - slack - 1e-9 <= value <= exact + 2e-3 * abs(exact)


@pytest.mark.parametrize("seed", range(2))
def test_the_gradient_is_what_the_value_changes_by(seed):
    problem = arrays(with_running_jobs(cluster(seed), seed))
    dual, rng = SmoothedDual(problem, 0.7), np.random.default_rng(seed)
    prices = rng.uniform(0.001, 0.03, len(problem.gpus))
    _, gradient = dual.value(prices, 1e-2)
    for _ in range(5):
        direction, step = rng.normal(size=len(prices)), 1e-7
        up, down = (dual.value(prices + sign * step * direction, 1e-2)[0] for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_gpus_that_are_taken_are_as_if_nobody_could_pay_them(seed):
    problem, rng = arrays(cluster(seed)), np.random.default_rng(seed)
    dual = SmoothedDual(problem, 1.0)
    free = rng.random(len(problem.gpus)) < 0.6
    counts = dual.counts * (rng.random(len(dual.counts)) < 0.7)
    part = dual.only(free, counts)
    prices = np.where(free, rng.uniform(0, 0.03, len(free)), dual.far)
    for gang in part.shares(prices, 1e-3):
        assert free[gang.gpus].all()
        assert len(set(gang.gpus.tolist())) == problem.types[gang.type].gpus
    value, gradient = part.value(prices, 1e-3)
    before = dual.only(np.ones_like(free), counts).value(prices, 1e-3)[0]
    assert value == pytest.approx(before, rel=1e-3)
    assert np.allclose(gradient[~free], -1)


def test_ascent_proves_more_with_every_stage_and_more_than_no_prices():
    problem = arrays(cluster(1))
    options, lagrangian = lagrangian_of(problem)
    ascent = DualAscent(problem, options, lagrangian, no_limit)
    values = [ascent.bound.value]
    ascent.run(lambda value: bool(values.append(value)))
    assert values == sorted(values)
    assert values[-1] > values[0] * 1.001


def test_ascent_that_ended_too_early_goes_on_where_it_was():
    problem = arrays(cluster(1))
    ascent = DualAscent(problem, *lagrangian_of(problem), no_limit)
    early = ascent.run(lambda value: True).value
    late = ascent.go_on(lambda value: False)
    assert late.value > early * 1.0005
    assert late.value == ascent.bound.value


def test_ascent_stops_when_time_is_up_with_what_it_has():
    problem = arrays(cluster(1))
    ascent = DualAscent(problem, *lagrangian_of(problem), lambda: 0.0)
    assert ascent.run(lambda value: False).value == ascent.bound.value > 0


@pytest.mark.parametrize("seed", range(2))
def test_relax_and_fix_places_all_jobs_once(seed):
    instance = with_running_jobs(cluster(seed), seed)
    problem = arrays(instance)
    dual = SmoothedDual(problem, 1.0)
    start = np.full(len(problem.gpus), 0.01)
    prices = ascended(dual, start, 1e-3, 20, no_limit)
    plan = RelaxAndFix(dual, seed, no_limit).packed(prices).plan(instance)
    assert not optsched.check(instance, plan)


@pytest.mark.parametrize("changed", ["nothing", "running", "optional", "uneven", "capped", "dear"])
def test_usual_placements_are_proven_within_a_hundredth(changed):
    instance = cluster(2, 128)
    rng = random.Random(0)
    if changed == "running":
        instance = with_running_jobs(instance, 2)
    elif changed == "optional":
        jobs = [job.model_copy(update={"reward": rng.choice([0.5, 2.0])}) for job in instance.jobs]
        instance = instance.model_copy(update={"jobs": tuple(jobs), "admission": "optional"})
    elif changed == "uneven":
        idle = rng.sample(instance.topology.gpus, 5)
        fewer = {"unavailable": tuple(idle), "jobs": instance.jobs[:-10]}
        instance = instance.model_copy(update=fewer)
    elif changed == "capped":
        jobs = [job.model_copy(update={"highest_level": "rack"}) for job in instance.jobs]
        instance = instance.model_copy(update={"jobs": tuple(jobs)})
    elif changed == "dear":
        jobs = [job.model_copy(update={"weight": 1e6 * job.weight}) for job in instance.jobs]
        instance = instance.model_copy(update={"jobs": tuple(jobs)})
    result = optsched.solve(instance, gap=1e-2)
    assert result.status == "optimal"
    assert result.gap <= 1e-2


def test_equal_jobs_begin_with_the_smallest_gangs_on_the_fastest_gpus():
    instance, rng = usual(64, 1), random.Random(1)
    sizes = sorted(rng.choice([1, 2, 3, 4, 5]) for _ in range(19))
    jobs = [
        {"id": f"e{n}", "gpus": k, "application_class": "A", "model": "m"}
        for n, k in enumerate(sizes)
    ]
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    flat = type(instance).from_document(document | {"jobs": jobs, "locality": {"m": [1, 1, 1]}})
    ascending = sorted(flat.profile.slowdown["A"])
    optimum = sum(ascending[last - 1] for last in np.cumsum(sizes).tolist())
    result = optsched.solve(flat, gap=2e-2)
    assert result.objective == pytest.approx(optimum, rel=1e-12)
    assert result.status == "optimal"
