"""PAL's laws P1 to P15 (pal.md 4.11), of optima by the exact method."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import optsched
from optsched.cluster import binning
from optsched.mip import highs
from optsched.models import pal as formulation
from optsched.pal import PalInstance
from optsched.pal.verify import feasibility
from optsched.registry import problem
from optsched.search import Search
from tests.support.oracles.pal import envelope, job_cost, open_gpus, plan_cost
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances

EXACT = 1e-8  # how well optima are known that are asked for with a gap of 1e-9, generously
FACTORS = st.one_of(st.sampled_from([0.25, 2.0, 1024.0]), st.floats(0.1, 10))


def solved(instance, **options):
    """Solve nearly to the last digit, and have the verifier prove the outcome."""
    result = optsched.solve(instance, gap=1e-9, **options)
    optsched.verify(instance, result)
    if result.plan is not None:
        assert result.gap <= EXACT
    return result


def least(instance):
    """The optimum; infinite if there is no plan."""
    result = solved(instance)
    return np.inf if result.plan is None else result.objective


def as_document(part):
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


def equal(value):
    return pytest.approx(value, rel=EXACT)


def with_jobs(instance, change):
    """The instance with every job changed by a function from its document."""
    document = as_document(instance)
    document["jobs"] = [change(job) for job in document["jobs"]]
    return PalInstance.from_document(document)


def without(*keys):
    return lambda job: {key: value for key, value in job.items() if key not in keys}


# --- P1 to P3: plans --------------------------------------------------------------------------


@law(50)
@given(pal_instances())
def test_gangs_are_whole_and_no_gpu_is_given_twice(instance):
    result = solved(instance)
    used = [gpu for placement in result.plan.jobs for gpu in placement.gpus]
    assert len(set(used)) == len(used)
    assert set(used) <= set(open_gpus(instance))
    for job, placement in zip(instance.jobs, result.plan.jobs, strict=True):
        assert job.id == placement.id
        assert len(placement.gpus) == job.gpus or (
            not placement.gpus and instance.admission == "optional"
        )
    assert plan_cost(instance, result.plan) == pytest.approx(result.objective, rel=1e-12)


# --- P4 to P6: more or less of something --------------------------------------------------------


@law(50)
@given(pal_instances(), st.data())
def test_a_slower_gpu_never_helps(instance, data):
    name = data.draw(st.sampled_from(sorted(instance.profile.slowdown)))
    values = list(instance.profile.slowdown[name])
    values[data.draw(st.integers(0, len(values) - 1))] *= data.draw(st.floats(1, 4))
    slower = instance.changed({f"profile.slowdown.{name}": values})
    assert least(instance) <= least(slower) * (1 + EXACT)


@law(50)
@given(pal_instances(), st.data())
def test_a_greater_penalty_never_helps(instance, data):
    model = data.draw(st.sampled_from(sorted(instance.locality)))
    values = list(instance.penalties[model])
    level = data.draw(st.integers(0, len(values) - 1))
    values[level] *= data.draw(st.floats(1, 4))
    farther = instance.changed({f"locality.{model}": envelope(values)})
    assert least(instance) <= least(farther) * (1 + EXACT)


@law(50)
@given(pal_instances(feasible=False), st.data())
def test_one_more_gpu_never_hurts(instance, data):
    assume(len(instance.free_gpus) > max(job.gpus for job in instance.jobs))
    gpu = data.draw(st.sampled_from(instance.free_gpus))
    fewer = instance.changed({"unavailable": [*instance.unavailable, gpu]})
    assert least(instance) <= least(fewer) * (1 + EXACT)


@law(50)
@given(pal_instances(optional=False), st.data())
def test_one_job_less_never_hurts_the_others(instance, data):
    assume(len(instance.jobs) > 1)
    result = solved(instance)
    n = data.draw(st.integers(0, len(instance.jobs) - 1))
    rest = instance.changed({"jobs": [as_document(job) for job in _but(instance.jobs, n)]})
    cost = job_cost(instance, instance.jobs[n], result.plan.jobs[n].gpus)
    assert least(rest) <= (result.objective - cost) * (1 + EXACT) + EXACT * result.objective


def _but(jobs, n):
    return [*jobs[:n], *jobs[n + 1 :]]


# --- P7 and P8: names and units -----------------------------------------------------------------


@st.composite
def relabelled(draw, document):
    """GPUs change places in their node, nodes in their parent, and jobs; each gets a new name."""
    domains = document["topology"]["domains"]
    gpus = [gpu for domain in domains for gpu in domain.get("gpus", ())]
    names = draw(st.permutations([f"g{n}" for n in range(len(gpus))]))
    renamed = dict(zip(gpus, names, strict=True))
    for domain in domains:
        inside = [renamed[gpu] for gpu in domain.get("gpus", ())]
        if inside:
            domain["gpus"] = draw(st.permutations(inside))
    document["topology"]["domains"] = draw(st.permutations(domains))
    document["profile"]["gpus"] = [renamed[gpu] for gpu in document["profile"]["gpus"]]
    document["unavailable"] = [renamed[gpu] for gpu in document.get("unavailable", ())]
    for job in document["jobs"]:
        if job.get("current"):
            job["current"] = [renamed[gpu] for gpu in job["current"]]
    jobs = draw(st.permutations(document["jobs"]))
    return document | {"jobs": [job | {"id": f"k{n}"} for n, job in enumerate(jobs)]}


@law(50)
@given(pal_instances(), st.data())
def test_names_and_order_do_not_matter(instance, data):
    renamed = data.draw(relabelled(as_document(instance)))
    assert least(PalInstance.from_document(renamed)) == equal(least(instance))


@law(50)
@given(pal_instances(), FACTORS)
def test_slowdowns_have_no_unit(instance, factor):
    """All slowdowns times a factor, with restarts and rewards: so is the optimum."""
    slower = with_jobs(instance, lambda job: _times(job, factor, "restart_s", "reward"))
    slowdown = {
        name: [value * factor for value in values]
        for name, values in instance.profile.slowdown.items()
    }
    slower = slower.changed({"profile.slowdown": slowdown})
    assert least(slower) == equal(factor * least(instance))


@law(50)
@given(pal_instances(), FACTORS)
def test_weights_have_no_unit(instance, factor):
    heavier = with_jobs(
        instance, lambda job: _times({"weight": 1} | job, factor, "weight", "reward")
    )
    assert least(heavier) == equal(factor * least(instance))


def _times(job, factor, *keys):
    return job | {key: job[key] * factor for key in keys if job.get(key) is not None}


# --- P9 to P11: bounds --------------------------------------------------------------------------


@law(30)
@given(pal_instances(max_gpus=7, max_jobs=4))
def test_greedy_plans_and_relaxations_enclose_the_optimum(instance):
    optimum = least(instance)
    for method in problem("pal").methods:
        if method.kind == "greedy":
            search = Search(instance)
            method(instance, search)
            assert search.objective is None or search.objective >= optimum * (1 - EXACT)
    program = highs.compile_model(formulation.build(instance)).program
    relaxed = replace(program, integer=np.zeros_like(program.integer))
    assert highs.solve(relaxed).objective <= optimum * (1 + EXACT)


@law(50)
@given(pal_instances())
def test_no_job_does_better_than_alone(instance):
    """The optimum is at least the sum of what each job costs in a cluster of its own."""
    alone = [_alone(instance, job) for job in instance.jobs]
    optimum = least(instance)
    assert optimum >= sum(alone) * (1 - EXACT)
    if len(alone) == 1:
        assert optimum == equal(alone[0])


def _alone(instance, job):
    """The least cost of a job, over all sets of free GPUs."""
    sets = combinations(open_gpus(instance), job.gpus)
    return min([job_cost(instance, job, ()), *(job_cost(instance, job, gpus) for gpus in sets)])


@law(50)
@given(pal_instances(), st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_geometric_bins_cost_at_most_their_factor(instance, epsilon):
    slowdown = {
        name: binning.geometric(values, epsilon).scores.tolist()
        for name, values in instance.profile.slowdown.items()
    }
    optimum, binned = least(instance), least(instance.changed({"profile.slowdown": slowdown}))
    assert optimum <= binned * (1 + EXACT)
    assert binned <= (1 + epsilon) * optimum * (1 + EXACT)


# --- P12: moves ---------------------------------------------------------------------------------


@law(50)
@given(pal_instances())
def test_restarts_that_cost_nothing_are_none(instance):
    free = with_jobs(instance, lambda job: job | {"restart_s": 0.0} if job.get("current") else job)
    waiting = with_jobs(instance, without("current", "restart_s"))
    assert least(free) == equal(least(waiting))


@law(50)
@given(
    pal_instances(),
    st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    st.sampled_from([0.01, 0.3, 3.0, 100.0]),
)
def test_dearer_restarts_are_fewer(instance, first, step):
    """Of plans that are optimal at two costs of a restart, the costlier has no more moves.

    The costs of both plans at both prices say so, without any optimum being the only one: A + mu M
    is least at mu, so (mu' - mu) (M' - M) is at most what is not proven of the two.
    """
    assume(any(job.current for job in instance.jobs))
    scale = max(job.remaining_s for job in instance.jobs)
    moves, unproven, optima = [], 0.0, []
    for restart_s in (first * scale, (first + step) * scale):
        expensive = with_jobs(
            instance,
            lambda job, mu=restart_s: (
                job | {"weight": 1.0} | ({"restart_s": mu} if job.get("current") else {})
            ),
        )
        result = solved(expensive)
        moves.append(_moves(expensive, result.plan))
        optima.append(result.objective)
        unproven += result.objective - result.bound
    more = step * scale
    assert moves[1] <= moves[0] + unproven / more
    slack = EXACT * optima[1]  # the optimum is concave in mu, and its slopes are the moves
    assert moves[1] * more - slack <= optima[1] - optima[0] <= moves[0] * more + slack


def _moves(instance, plan):
    return sum(
        bool(placement.gpus) and feasibility.performance(instance, job, placement.gpus).moved
        for job, placement in zip(instance.jobs, plan.jobs, strict=True)
    )


@law(100)
@given(pal_instances(optional=False))
def test_nothing_that_can_stay_moves_if_that_is_too_expensive(instance):
    """With restarts above any plan's cost all stay that can, if the others fit beside them."""
    stays = {job.id for job in instance.jobs if job.current and _can_stay(instance, job)}
    assume(stays)
    kept = {
        job.id: job_cost(instance, job, job.current) for job in instance.jobs if job.id in stays
    }
    others = [job for job in instance.jobs if job.id not in stays]
    total = sum(kept.values())
    if others:
        held = {gpu for job in instance.jobs if job.id in stays for gpu in job.current}
        assume(max(job.gpus for job in others) <= len(instance.free_gpus) - len(held))
        taken = sorted(held | set(instance.unavailable))
        jobs = [as_document(job) for job in others]
        total += least(instance.changed({"jobs": jobs, "unavailable": taken}))
    assume(total < np.inf)
    mu = 2 * total / min(job.weight for job in instance.jobs)
    expensive = with_jobs(
        instance, lambda job: job | {"restart_s": mu} if job["id"] in stays else job
    )
    result = solved(expensive)
    assert result.objective == equal(total)
    for job, placement in zip(instance.jobs, result.plan.jobs, strict=True):
        if job.id in stays:
            assert set(placement.gpus) == set(job.current)


def _can_stay(instance, job):
    free = set(job.current) <= set(open_gpus(instance))
    return free and job_cost(instance, job, job.current) < np.inf


# --- P13: depth ---------------------------------------------------------------------------------


@law(50)
@given(pal_instances(levels=(2, 3)), st.data())
def test_a_level_that_costs_what_the_next_one_does_changes_nothing(instance, data):
    """Domains of one level are parted, into domains of a new level with the same penalties."""
    document = as_document(instance)
    topology = document["topology"]
    n = data.draw(st.integers(0, len(topology["levels"]) - 1))
    level = topology["levels"][n]
    topology["levels"] = [*topology["levels"][:n], "part", *topology["levels"][n:]]
    parts = []
    for domain in [domain for domain in topology["domains"] if domain["level"] == level]:
        part = {"id": f"{domain['id']}-p0", "level": "part", "parent": domain["id"]}
        if n == 0:
            gpus = domain.pop("gpus", [])
            first = data.draw(st.integers(0, len(gpus)))
            other = part | {"id": f"{domain['id']}-p1"}
            parts += [part | {"gpus": gpus[:first]}, other | {"gpus": gpus[first:]}]
            continue
        parts.append(part)
        for child in topology["domains"]:
            if child.get("parent") == domain["id"] and data.draw(st.booleans()):
                child["parent"] = part["id"]
    topology["domains"] = [*topology["domains"], *parts]
    document["locality"] = {
        model: [*values[:n], values[n], *values[n:]]
        for model, values in document["locality"].items()
    }
    if n == 0:  # a single GPU stands in a part, and a cap is still one of nodes
        assert document["topology"]["levels"][:2] == ["part", level]
    assert least(PalInstance.from_document(document)) == equal(least(instance))


# --- P14 and P15 --------------------------------------------------------------------------------


def assigned(instance):
    """The optimum if every job has one GPU: an assignment problem."""
    costs = [
        [job_cost(instance, job, [gpu]) for gpu in open_gpus(instance)] for job in instance.jobs
    ]
    rows, columns = linear_sum_assignment(costs)
    return float(np.array(costs)[rows, columns].sum())


@law(100)
@given(pal_instances(optional=False, running=False, caps=False))
def test_jobs_on_one_gpu_are_assigned(instance):
    singles = instance.changed({"jobs.*.gpus": 1})
    assert least(singles) == equal(assigned(singles))


@pytest.mark.parametrize("name", ["pal/frontera-32", "pal/sia-64-persistent"])
def test_bundled_jobs_on_one_gpu_are_assigned(name):
    instance = optsched.read(name).changed({"jobs.*.gpus": 1})
    weighted = instance.changed({f"jobs.{n}.weight": 1 + n / 7 for n in range(7)})
    for each in (instance, weighted):
        assert least(each) == equal(assigned(each))


@law(30)
@given(pal_instances(), st.integers(1, 2**31 - 1))
def test_a_seed_gives_one_plan_and_all_seeds_one_value(instance, seed):
    first, second = (solved(instance, seed=seed) for _ in range(2))
    clocks = {"seconds": 0.0, "verification_s": 0.0}
    assert first.model_copy(update=clocks) == second.model_copy(update=clocks)
    assert solved(instance).objective == equal(first.objective)
