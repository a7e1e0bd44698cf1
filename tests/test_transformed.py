"""Beyond brute force: no bound is above any plan of an instance that must cost as much, or more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco import EacoInstance
from optsched.pal import PalInstance
from optsched.pal.settings import SETTINGS
from tests.eaco.test_eaco_columns import plain
from tests.pal.test_pal_properties import relabelled
from tests.support.strategies.common import among, as_document, law
from tests.support.strategies.eaco import eaco_instances
from tests.support.strategies.pal import pal_instances

TINY = 1e-9


def solved(instance, method, **options):
    result = optsched.solve(instance, method, **options)
    optsched.verify(instance, result)
    return result


def agree(results, factors):
    """Hold every bound below every plan, both over what their instance multiplies costs by."""
    placed = [(r, f) for r, f in zip(results, factors, strict=True) if r.plan is not None]
    assert len(placed) in (0, len(results))
    if placed:
        least = min(result.objective / factor for result, factor in placed)
        assert max(result.bound / factor for result, factor in placed) <= least * (1 + TINY)


# --- placements ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_small_parts():
    """Let pods be small, and no greedy rule make up for what `node-classes` lacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(SETTINGS), "many_jobs", 8)
        patch.setitem(vars(SETTINGS), "block_gpus", 12)
        patch.setitem(vars(SETTINGS), "few_options", 0)
        patch.setitem(vars(SETTINGS), "block_gangs", 1)
        yield


LARGER = pal_instances(max_gpus=36, max_jobs=16)
WAYS = st.permutations(["exact", "node-classes", "decomposition"])


def heavier(instance, factor):
    jobs = as_document(instance)["jobs"]
    heavy = [
        job
        | {"weight": factor * job.get("weight", 1.0)}
        | ({"reward": factor * job["reward"]} if "reward" in job else {})
        for job in jobs
    ]
    return PalInstance.from_document(as_document(instance) | {"jobs": heavy})


@law(100, is_costly=True)
@given(LARGER, st.data(), WAYS)
def test_placements_do_not_depend_on_names_and_units(in_small_parts, instance, data, ways):
    renamed = PalInstance.from_document(data.draw(relabelled(as_document(instance))))
    same = [instance, renamed, heavier(instance, 4.0)]
    results = [solved(each, method, gap=0.01) for each, method in zip(same, ways, strict=True)]
    again = solved(instance, ways[1], gap=0.01, start=data.draw(st.sampled_from(results)))
    agree([*results, again], [1.0, 1.0, 4.0, 1.0])


@law(100, is_costly=True)
@given(LARGER, st.data(), WAYS)
def test_more_gpus_cost_no_more(in_small_parts, instance, data, ways):
    """Of optima, so that bounds of the easier one are below plans of the harder one."""
    most = len(instance.free_gpus) - max(job.gpus for job in instance.jobs)
    some = st.lists(st.sampled_from(instance.free_gpus), max_size=min(3, most), unique=True)
    gone = data.draw(some)
    harder = instance.changed({"unavailable": [*instance.unavailable, *gone]})
    easy = solved(instance, ways[0], gap=0.01)
    hard = solved(harder, ways[1], gap=0.01, start=easy)
    back = solved(instance, ways[2], gap=0.01, start=hard)
    agree([easy, back], [1.0, 1.0])
    if hard.plan is not None:
        assert max(easy.bound, back.bound) <= hard.objective * (1 + TINY)


# --- groups -------------------------------------------------------------------------------------

SEARCHABLE = eaco_instances(
    max_jobs=10,
    objectives=("run-to-completion",),
    running=False,
    levels=False,
    caps=False,
    sleep=False,
    feasible=False,
).map(plain)


def with_jobs(instance, jobs):
    return EacoInstance.from_document(as_document(instance) | {"jobs": jobs})


def longer(job, factor):
    times = {key: factor * job[key] for key in ("work_s", "deadline_s") if key in job}
    if "waiting_penalty_kwh" in job:
        times["waiting_penalty_kwh"] = factor * job["waiting_penalty_kwh"]
    return job | times


@law(100, is_costly=True)
@given(SEARCHABLE, st.data(), st.permutations(["exact", "columns", "columns"]))
def test_groups_do_not_depend_on_names_and_units(instance, data, ways):
    jobs = as_document(instance)["jobs"]
    renamed = [job | {"id": f"k{n}"} for n, job in enumerate(data.draw(st.permutations(jobs)))]
    doubled = [longer(job, 2.0) for job in jobs]
    same = [instance, with_jobs(instance, renamed), with_jobs(instance, doubled)]
    results = [solved(each, method, gap=0.01) for each, method in zip(same, ways, strict=True)]
    again = solved(instance, "columns", gap=0.01, start=data.draw(st.sampled_from(results)))
    agree([*results, again], [1.0, 1.0, 2.0, 1.0])


@law(100, is_costly=True)
@given(SEARCHABLE, st.integers(0, 13), among("node", "room", "patience"))
def test_more_freedom_costs_no_more(instance, n, more):
    """More nodes, more jobs on a GPU, or a job that bears more."""
    changes = {
        "node": {f"nodes.{pool.id}.count": pool.count + 1 for pool in instance.nodes},
        "room": {"max_jobs_per_gpu": instance.max_jobs_per_gpu + 1},
        "patience": {
            f"jobs.{n % len(instance.jobs)}.max_slowdown": None,
            f"jobs.{n % len(instance.jobs)}.deadline_s": None,
        },
    }
    tight = solved(instance, "columns", gap=0.01)
    loose = solved(instance.changed(changes[more]), "columns", gap=0.01, start=tight)
    if tight.plan is not None:
        assert loose.bound <= tight.objective * (1 + TINY)
    else:
        assert tight.status == "infeasible"
