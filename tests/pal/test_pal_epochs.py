"""Epoch after epoch, whatever the one before was: the optimum is the same, and enclosed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.pal import PalInstance
from optsched.pal.settings import SETTINGS
from tests.pal.test_pal_node_classes import equal_nodes
from tests.support.oracles.pal import assert_encloses_optimum, plan_cost
from tests.support.strategies.common import among, as_document, law, left_by
from tests.support.strategies.pal import pal_instances

ANY = pal_instances(feasible=False)

# --- epochs -------------------------------------------------------------------------------------


@st.composite
def epochs(draw, instances=ANY):
    """Two instances: unlike, or the second with some jobs, GPUs, times and places changed."""
    first = draw(instances)
    if draw(st.integers(0, 3)) == 0:
        return first, draw(instances)
    return first, PalInstance.from_document(draw(changed(as_document(first), first.topology.gpus)))


@st.composite
def changed(draw, document, gpus):
    """The document with fewer jobs, or twins of some, other figures and fewer or more GPUs."""
    kept = draw(st.lists(st.sampled_from(document["jobs"]), min_size=1, max_size=5))
    names = [job["id"] for job in kept]
    jobs = [
        job if names.index(job["id"]) == n else without_place(job) | {"id": f"k{n}"}
        for n, job in enumerate(kept)
    ]
    factor = draw(among(1.0, 1.0, 0.9, 100.0))
    for job in jobs:
        if "remaining_s" in job:
            job["remaining_s"] *= factor
    spare = len(gpus) - max(job["gpus"] for job in jobs)
    taken = draw(st.lists(st.sampled_from(gpus), max_size=min(2, max(0, spare)), unique=True))
    if spare < 0:
        taken = document.get("unavailable", [])
    return document | {"jobs": jobs, "unavailable": taken}


def without_place(job):
    return {key: value for key, value in job.items() if key not in ("current", "restart_s")}


GAPS = among(1e-6, 1e-6, 0.02, 0.5)
METHODS = [*["exact", "node-classes", "decomposition"] * 3, "pal-multilevel", "milp"]


def solved(instance, method=None, **options):
    """Solve an instance, and have the verifier prove the outcome."""
    result = optsched.solve(instance, method, **options)
    optsched.verify(instance, result)
    return result


@pytest.fixture(scope="module")
def small_is_large():
    """Let clusters have many blocks and jobs; no greedy rule makes up for what a method lacks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(SETTINGS), "many_jobs", 3)
        patch.setitem(vars(SETTINGS), "block_gpus", 3)
        patch.setitem(vars(SETTINGS), "few_options", 0)
        patch.setitem(vars(SETTINGS), "block_gangs", 1)
        yield


# --- laws ---------------------------------------------------------------------------------------


@law(2000)
@given(epochs(), st.data())
def test_exact_finds_the_optimum_after_any_epoch(small_is_large, both, data):
    first, instance = both
    before = optsched.solve(first, data.draw(among(*METHODS)), gap=data.draw(GAPS))
    result = solved(instance, gap=data.draw(GAPS), start=data.draw(left_by(before)))
    assert_encloses_optimum(instance, result)
    assert result.status in ("optimal", "infeasible")


@law(2000)
@given(epochs(st.one_of(ANY, equal_nodes(max_gpus=8))), st.data())
def test_node_classes_enclose_the_optimum_epoch_after_epoch(small_is_large, both, data):
    hold(both, "node-classes", data)


@law(2000)
@given(epochs(), st.data())
def test_blocks_enclose_the_optimum_epoch_after_epoch(small_is_large, both, data):
    hold(both, "decomposition", data)


def hold(both, method, data):
    """Hold two epochs, the first of which begins afresh, to their optima."""
    start, gap = None, data.draw(GAPS)
    for instance in both:
        result = solved(instance, method, gap=gap, start=start)
        assert_encloses_optimum(instance, result)
        if result.plan is not None:
            cost = plan_cost(instance, result.plan)
            assert cost == pytest.approx(result.objective, rel=1e-12)
        start = data.draw(left_by(result))


@law(200)
@given(ANY, among("exact", "node-classes", "decomposition"))
def test_the_same_again_is_no_worse(small_is_large, instance, method):
    result = solved(instance, method)
    again, twice = (solved(instance, method, start=result) for _ in range(2))
    assert (again.plan is None) == (result.plan is None)
    clocks = {"seconds": 0.0, "verification_s": 0.0}
    assert again.model_copy(update=clocks) == twice.model_copy(update=clocks)
    if result.plan is not None:
        assert again.objective <= result.objective
