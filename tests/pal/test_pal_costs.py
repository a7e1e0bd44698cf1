"""What placements cost and which jobs are equal: the methods' form of it, and the verifier's."""

from dataclasses import fields
from inspect import getdoc

from hypothesis import given
from hypothesis import strategies as st

from optsched.pal.exact.heuristics import HEURISTICS, TABLE
from optsched.pal.job_types import JobDemand, job_types
from optsched.pal.settings import PalSettings
from optsched.pal.verify.costs import ObjectiveCosts, PlacementTerms, scaled
from optsched.pal.verify.feasibility import performance
from optsched.pal.verify.placement_pricing import jobs_by_type
from optsched.registry import loaded
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances


def types_of(instance):
    classes = {job.application_class for job in instance.jobs}
    return job_types(instance, {name: n for n, name in enumerate(sorted(classes))})


@st.composite
def placements(draw):
    """An instance, a job of it, and GPUs that are as many as its gang has."""
    instance = draw(pal_instances(feasible=False))
    jobs = [job for job in instance.jobs if job.gpus <= len(instance.free_gpus)]
    if not jobs:
        return None
    job = draw(st.sampled_from(jobs))
    if job.current and set(job.current) <= set(instance.free_gpus) and draw(st.booleans()):
        return instance, job, job.current
    return instance, job, tuple(draw(st.permutations(instance.free_gpus))[: job.gpus])


@law(300, is_costly=True)
@given(placements())
def test_a_placement_costs_a_type_of_jobs_what_the_verifier_says(placement):
    if placement is None:
        return
    instance, job, gpus = placement
    number = instance.jobs.index(job)
    jobs = next(each for each in types_of(instance) if number in each.jobs)
    slowest = max(instance.slowdowns[job.application_class][gpu] for gpu in gpus)
    exact = performance(instance, job, gpus)
    is_kept = not exact.moved
    cost = jobs.cost(exact.level, slowest, is_kept=is_kept)
    levels = instance.topology.levels
    if job.highest_level is not None and exact.level > levels.index(job.highest_level):
        assert cost == float("inf")
    else:
        assert abs(cost - float(exact.cost)) <= 1e-12 * float(exact.cost)


@law(300)
@given(placements())
def test_an_option_of_the_verifier_costs_what_its_placements_cost_rounded_down(placement):
    if placement is None:
        return
    instance, job, gpus = placement
    slowest = max(instance.slowdowns[job.application_class][gpu] for gpu in gpus)
    level = instance.topology.lowest_common_level(gpus)
    costs, is_running = ObjectiveCosts(instance), bool(job.current)
    kept = PlacementTerms.of(instance, job, level, slowest, is_moved=False)
    moved = PlacementTerms.of(instance, job, level, slowest, is_moved=is_running)
    (placed,) = costs.placed(job, level, [slowest])
    assert placed == scaled(kept.cost())
    assert 0 <= scaled(moved.cost()) - placed - costs.restart(job) <= 1


@law(200)
@given(pal_instances(feasible=False))
def test_jobs_that_are_equal_for_the_verifier_are_equal_for_the_methods(instance):
    type_of = {n: t for t, jobs in enumerate(types_of(instance)) for n in jobs.jobs}
    number = {job.id: n for n, job in enumerate(instance.jobs)}
    for equal in jobs_by_type(instance):
        assert len({type_of[number[job.id]] for job in equal}) == 1
        assert len({JobDemand.of(job) for job in equal}) == 1


def test_every_setting_is_documented_once():
    names = [field.name for field in fields(PalSettings)]
    heads = [line for line in getdoc(PalSettings).splitlines() if not line.startswith(" ")]
    listed = [name for head in heads for name in head.replace(",", " ").split()]
    assert sorted(n for n in listed if n in names) == sorted(names)


def test_every_heuristic_has_a_name_of_its_own_and_a_function():
    assert len(HEURISTICS) == len(TABLE)
    for heuristic in TABLE:
        assert callable(loaded(heuristic.entry)), heuristic.name
