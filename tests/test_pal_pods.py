"""The method "pods": plans of parts, and bounds for the whole."""

import numpy as np
import pytest
from hypothesis import given

import optsched
from optsched.pal import division, pods
from optsched.pal.instance import PalInstance
from pal_oracles import bitmask_optimum
from pal_strategies import pal_instances
from strategies import law


@pytest.fixture
def small_pods(monkeypatch):
    monkeypatch.setattr(pods, "POD_GPUS", 64)
    monkeypatch.setattr(pods, "GANGS", 1)


def solved(instance, method="pods", **options):
    result = optsched.solve(instance, method, **options)
    if result.plan is not None:
        optsched.check(instance, result.plan)
    optsched.verify(instance, result)
    return result


def cluster(nodes, kinds, jobs, **fields):
    """Nodes of 4 GPUs of some kinds below one domain, and one-class jobs."""
    names = [[f"n{n}/{g}" for g in range(4)] for n in range(nodes)]
    values = [1 + 0.1 * ((n % kinds) * 4 + g) for n in range(nodes) for g in range(4)]
    domains = [{"id": "all", "level": "cluster"}]
    domains += [
        {"id": f"n{n}", "level": "node", "parent": "all", "gpus": inside}
        for n, inside in enumerate(names)
    ]
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "topology": {"levels": ["node", "cluster"], "domains": domains},
            "profile": {
                "gpus": [gpu for inside in names for gpu in inside],
                "slowdown": {"A": values},
                "kind": "persistent",
            },
            "locality": {"m": [1, 1.5]},
            "jobs": [
                {"id": f"j{n}", "gpus": k, "application_class": "A", "model": "m"}
                for n, k in enumerate(jobs)
            ],
            **fields,
        }
    )


@pytest.mark.parametrize("name", ["pal/racks-256", "pal/overfull"])
def test_bounds_of_parts_are_near(name, small_pods):
    instance = optsched.read(name)
    result = solved(instance, gap=0.02)
    known = optsched.known_values()[name]
    best = known.get("optimal", known.get("best"))
    assert result.bound <= best * (1 + 1e-9)
    assert result.gap < 0.05


def test_running_jobs_keep_their_pod(small_pods):
    result = solved(optsched.read("pal/sticky"), gap=0.02)
    assert result.bound <= optsched.known_values()["pal/sticky"]["optimal"] * (1 + 1e-9)


def test_alike_pods_are_solved_once(monkeypatch):
    monkeypatch.setattr(pods, "POD_GPUS", 32)
    instance = cluster(32, 4, [4, 2, 2, 1, 1, 1, 1] * 8)
    parts = division.divided(instance, 32)
    assert [len(pod.gpus) for pod in parts] == [32] * 4
    assert len({pod.kind for pod in parts}) == 1
    assert len({pod.demand for pod in parts}) == 1
    tried = []
    placed = pods._placed
    monkeypatch.setattr(pods, "_placed", lambda *args: tried.append(1) or placed(*args))
    result = solved(instance, gap=0.02)
    assert len(tried) == 1
    assert result.gap <= 0.02


def test_every_gpu_and_job_is_in_one_pod():
    instance = cluster(13, 3, [3, 2, 8, 1, 1, 4, 4, 2])
    parts = division.divided(instance, 16)
    assert sorted(np.concatenate([pod.gpus for pod in parts]).tolist()) == list(range(52))
    names = [job.id for pod in parts for job in pod.jobs]
    assert sorted(names) == sorted(job.id for job in instance.jobs)
    assert sum(pod.share for pod in parts) == pytest.approx(1)


def test_large_clusters_are_divided_by_exact(monkeypatch):
    monkeypatch.setattr(pods, "LARGE", 100)
    monkeypatch.setattr(pods, "POD_GPUS", 32)
    asked = []
    divided = pods.divided
    monkeypatch.setattr(pods, "divided", lambda *args: asked.append(1) or divided(*args))
    solved(cluster(32, 4, [4, 2, 1] * 8), "exact", gap=0.05)
    assert asked
    solved(cluster(8, 4, [4, 2, 1]), "exact", gap=0.05)
    assert len(asked) == 1


def test_no_time_is_a_plan_with_a_true_bound(small_pods):
    instance = cluster(32, 4, [4, 2, 1, 1] * 8)
    result = solved(instance, time_limit_s=0)
    assert result.status == "feasible"
    assert 0 <= result.bound <= solved(instance, gap=0.01).objective


def test_too_many_gpus_asked_for_is_infeasible(small_pods):
    result = solved(cluster(32, 4, [8] * 17))
    assert result.status == "infeasible"


@law(500)
@given(pal_instances())
def test_pods_are_between_bound_and_optimum(instance):
    """Whatever the parts, the plan keeps every rule and the bound is below the optimum."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pods, "POD_GPUS", 3)
        patch.setattr(pods, "GANGS", 1)
        result = solved(instance)
    optimum = bitmask_optimum(instance)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert result.bound <= float(optimum) * (1 + 1e-9)
    assert result.objective >= float(optimum) * (1 - 1e-9)
