"""Epoch after epoch, whatever the one before was: the optimum is the same, and proven."""

from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco import EacoInstance
from tests.eaco.test_eaco_columns import searchable
from tests.support.strategies.common import among, as_document, law, left_by
from tests.support.strategies.eaco import eaco_instances, small_instance

ANY = eaco_instances(max_jobs=5, feasible=False)

# --- epochs -------------------------------------------------------------------------------------


@st.composite
def epochs(draw, instances):
    """Two instances: unlike, or the second with some jobs, their work, nodes and limits changed."""
    first = draw(instances)
    if draw(st.integers(0, 3)) == 0:
        return first, draw(instances)
    return first, EacoInstance.from_document(draw(changed(as_document(first))))


@st.composite
def changed(draw, document):
    """The document with fewer jobs, or twins of some, less or more work and other nodes."""
    kept = draw(st.lists(st.sampled_from(document["jobs"]), min_size=1, max_size=6))
    names = [job["id"] for job in kept]
    jobs = [
        dict(job) if names.index(job["id"]) == n else without_place(job) | {"id": f"k{n}"}
        for n, job in enumerate(kept)
    ]
    factor = draw(among(1.0, 0.9, 0.9, 100.0))
    for job in jobs:
        job["work_s"] *= factor
    nodes = document["nodes"]
    if not document.get("running"):
        nodes = [draw(fewer_or_more(pool, document["jobs"])) for pool in nodes]
    return document | {
        "jobs": jobs,
        "nodes": nodes,
        "running": still_running(document, names),
        "max_jobs_per_gpu": draw(among(document["max_jobs_per_gpu"], 1, 2, 4)),
    }


@st.composite
def fewer_or_more(draw, pool, jobs):
    """A pool with other numbers of nodes, as many at least as the largest gang needs."""
    least = pool["count"] if max(job["gpus"] for job in jobs) > pool["gpus"] else 1
    count = draw(st.integers(least, pool["count"] + 1))
    return pool | {"count": count} | ({"on": min(pool["on"], count)} if "on" in pool else {})


def without_place(job):
    return {key: value for key, value in job.items() if key != "migration_s"}


def still_running(document, names):
    """Places of the jobs that are still there."""
    places = [
        place | {"jobs": [name for name in place["jobs"] if name in names]}
        for place in document.get("running", ())
    ]
    return [place for place in places if place["jobs"]]


# --- laws ---------------------------------------------------------------------------------------


GAPS = among(0.0, 0.0, 0.01, 0.2)


def hold(instance, method, gap, start):
    """Solve an instance after an epoch, hold it to the optimum, and the bound to its proof."""
    result = optsched.solve(instance, method, gap=gap, start=start)
    optsched.verify(instance, result)
    expected = optsched.solve(instance, "exact", gap=0.0)
    assert result.status == expected.status
    if expected.objective is not None:
        assert result.gap <= max(gap, 1e-9)
        tolerance = 2e-9 * abs(expected.objective) + 1e-12
        assert result.bound <= expected.objective + tolerance
        assert result.objective >= expected.objective - tolerance
    return result


@law(2000)
@given(epochs(ANY), GAPS, st.data())
def test_exact_finds_the_optimum_after_any_epoch(both, gap, data):
    first, instance = both
    method = data.draw(among("exact", "exact", "columns", "local-search"))
    hold(instance, "exact", gap, data.draw(left_by(optsched.solve(first, method))))


@law(1000)  # two instances each
@given(epochs(searchable(6, feasible=False)), GAPS, st.data())
def test_columns_find_the_optimum_epoch_after_epoch(both, gap, data):
    start = None
    for instance in both:
        start = data.draw(left_by(hold(instance, "columns", gap, start)))


def test_prices_that_prove_less_now_are_not_taken_over():
    """Once a bound was stated with prices of a cluster that was full, which did not prove it."""
    jobs = [
        {"type": t, "work_s": 3600.0 * n, "waiting_penalty_kwh": 10.0}
        for n, t in enumerate("aabb", 1)
    ]
    full = small_instance(jobs, nodes={"x": {"gpus": 1, "count": 1}}, max_jobs_per_gpu=2)
    start = optsched.solve(full, "columns", gap=0.2)
    assert start.state.duals.pools[0] > 10
    assert hold(full.changed({"nodes.x.count": 4}), "columns", 0.2, start).status == "optimal"
