"""The fluid bound: below every plan and every schedule that regroups, and a bill that adds up."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco import Group, fluid
from optsched.eaco.verify.feasibility import total_j
from optsched.eaco.verify.group_energy import ExactFigures
from tests.support.strategies.common import among, law
from tests.support.strategies.eaco import eaco_instances, small_instance


@law(150, is_costly=True)
@given(eaco_instances(max_jobs=5, waiting=False, objectives=("run-to-completion",)))
def test_not_above_the_energy_of_any_optimum_by_a_single_bit(instance):
    bound = fluid(instance)
    result = optsched.solve(instance)
    least_j = Fraction(bound.bound_kwh) * 3_600_000
    assert least_j <= total_j(ExactFigures(instance), result.plan.groups)
    assert sum(bound.energy_kwh.values()) == pytest.approx(bound.bound_kwh)
    assert set(bound.energy_kwh) == {job.id for job in instance.jobs}


def test_a_job_alone_pays_what_it_draws():
    bound = fluid(small_instance(["a"], types={"a": 0.5}))
    assert bound.bound_kwh == pytest.approx((20 + 0.5 * 100 + 100 / 4) / 1000)


def test_sharing_shares_the_bill():
    instance = small_instance(["a", "a"], measured={"a a": [1.0, 1.0]}, types={"a": 0.25})
    bound = fluid(instance)
    assert bound.bound_kwh == pytest.approx((20 + 0.5 * 100 + 100 / 4) / 1000)
    assert bound.energy_kwh["j0"] == pytest.approx(bound.energy_kwh["j1"])


# --- schedules that regroup -------------------------------------------------------------------


def may_run(figures, group):
    """Tell whether a group may run for a while: all rules but when it ends."""
    instance, nodes = figures.instance, figures.nodes[group.nodes]
    jobs = [figures.jobs[name] for name in group.jobs]
    memory_limit = Fraction(figures.gpus[nodes.gpu].memory_gb)
    if len(jobs) > 1:
        memory_limit *= 1 - Fraction(instance.memory_headroom)
    rates, limit = figures.rates(group.jobs, nodes), instance.utilisation_limit
    if sum(Fraction(figures.types[job.type].memory_gb) for job in jobs) > memory_limit:
        return False
    if len({job.gpus for job in jobs}) > 1 or nodes not in figures.hosts(jobs[0]):
        return False
    if not rates.is_known or not rates.fits or len(jobs) > instance.max_jobs_per_gpu:
        return False
    if len(jobs) > 1 and limit is not None and figures.utilisation(group.jobs, nodes) > limit:
        return False
    caps = ((job, job.max_slowdown) for job in jobs)
    return all(cap is None or figures.slowdown(job, group) <= Fraction(cap) for job, cap in caps)


def schedule(instance, rng):
    """Return the ends of jobs in a schedule that regroups them as it goes, and its joules."""
    figures = ExactFigures(instance)
    left = {job.id: Fraction(job.work_s) for job in instance.jobs}
    now, joules, ends = Fraction(0), Fraction(0), {}
    while left:
        groups = list(_parted(figures, sorted(left, key=lambda name: rng.random()), rng))
        paces = {name: _pace(figures, name, group) for group in groups for name in group.jobs}
        seconds = min(left[name] / pace for name, pace in paces.items())
        seconds *= rng.choice([Fraction(1, 2), Fraction(1), Fraction(1)])
        for group in groups:
            share = figures.node_share_w(figures.nodes[group.nodes])
            joules += seconds * figures.gang(group) * (figures.gpu_w(group.jobs, group) + share)
        now += seconds
        left = {name: work - seconds * paces[name] for name, work in left.items()}
        ends |= {name: now for name, work in left.items() if work <= 0}
        left = {name: work for name, work in left.items() if work > 0}
    return ends, joules


def _parted(figures, names, rng):
    """Yield groups that may run now; jobs that may not run together run alone."""
    while names:
        size = rng.randint(1, figures.instance.max_jobs_per_gpu)
        pool = rng.choice(figures.instance.nodes)
        level = rng.choice([None, *(level.id for level in figures.gpus[pool.gpu].levels)])
        group = Group(jobs=tuple(names[:size]), nodes=pool.id, level=level)
        if not may_run(figures, group):
            job = figures.jobs[names[0]]
            group = Group(jobs=(job.id,), nodes=figures.hosts(job)[0].id)
        names = names[len(group.jobs) :]
        yield group


def _pace(figures, name, group):
    job, nodes = figures.jobs[name], figures.nodes[group.nodes]
    return figures.speed(job, nodes) / figures.slowdown(job, group)


STILL = {"running": False, "waiting": False, "caps": False, "sleep": False}


@law(150)
@given(st.data())
def test_not_above_schedules_that_regroup_and_keep_deadlines(data):
    """Once groups that miss a deadline if they run to their end were not to be had at all."""
    features = STILL | {"objectives": ("run-to-completion",), "max_jobs": 4}
    instance = data.draw(eaco_instances(**features))
    free, seed = instance.changed({"jobs.*.deadline_s": None}), data.draw(st.integers(0, 2**32))
    ends, joules = schedule(free, random.Random(seed))
    slack = data.draw(among(1 + 1e-12, 1.1))
    held = {
        f"jobs.{name}.deadline_s": slack * float(end)
        for name, end in ends.items()
        if data.draw(st.booleans())
    }
    instance = free.changed(held)
    assert Fraction(fluid(instance).bound_kwh) * 3_600_000 <= joules


def test_a_group_that_would_end_too_late_may_run_for_a_while():
    """Together for 1,000 s, then apart: j0 ends in 3,700 s; together to the end, in 4,000 s."""
    jobs = [{"work_s": 3600.0, "deadline_s": 3700.0}, {"work_s": 3600.0}]
    instance = small_instance(jobs, measured={"a a": [0.9, 0.9]}, types={"a": 0.25})
    figures = ExactFigures(instance)
    both, alone = Group(jobs=("j0", "j1"), nodes="x"), Group(jobs=("j0",), nodes="x")
    share = figures.node_share_w(figures.nodes["x"])
    schedule = 1000 * (figures.gpu_w(both.jobs, both) + share)
    schedule += 2 * 2700 * (figures.gpu_w(alone.jobs, alone) + share)
    apart = 2 * 3600 * (figures.gpu_w(alone.jobs, alone) + share)
    bound = Fraction(fluid(instance).bound_kwh) * 3_600_000
    assert bound <= schedule < apart
    assert bound == pytest.approx(float(schedule))
    free = fluid(instance.changed({"jobs.*.deadline_s": None})).bound_kwh
    assert free * 3_600_000 < bound


def test_what_is_left_of_a_group_may_be_busier_than_the_limit():
    """Three jobs within the limit; as one of them ends, the two others are above it."""
    jobs = [{"type": "a"}, {"type": "a"}, {"type": "b", "work_s": 60.0}]
    instance = small_instance(
        jobs,
        types={"a": 0.5, "b": 0.1},
        measured={
            "a a": {"rates": [1.0, 1.0], "utilisation": 0.9},
            "a a b": {"rates": [0.9, 0.9, 0.9], "utilisation": 0.8},
            "a b": {"rates": [0.95, 0.95], "utilisation": 0.9},
        },
        utilisation_limit=0.85,
    )
    result = optsched.solve(instance)
    assert [len(group.jobs) for group in result.plan.groups] == [3]
    assert fluid(instance).bound_kwh <= result.objective


def test_what_is_left_of_a_group_may_be_of_unknown_rates():
    """Rates and watts then stay; the seconds without j2 are none of its own."""
    jobs = [{"work_s": 7200.0}, {"work_s": 7200.0}, {"work_s": 60.0, "deadline_s": 67.0}]
    instance = small_instance(
        jobs, measured={"a a a": [0.9, 0.9, 0.9]}, fallback="none", types={"a": 0.25}
    )
    result = optsched.solve(instance)
    assert [len(group.jobs) for group in result.plan.groups] == [3]
    assert fluid(instance).bound_kwh <= result.objective
