"""Large clusters of unlike GPUs: `exact` is no worse than a rule that took a moment."""

import random

import pytest

import optsched
from optsched.pal.decomposition import partition
from optsched.pal.decomposition import solver as blocks
from optsched.pal.exact import bounding
from optsched.pal.node_classes import solver as node_classes
from optsched.pal.settings import SETTINGS
from optsched.registry import problem
from tests.support.strategies.pal import small_instance

GREEDY = [method.name for method in problem("pal").methods if method.kind == "greedy"]


def large(jobs, nodes=260, racks=13):
    """Unlike GPUs, more than the whole relaxation is made for, at three levels."""
    rng = random.Random(5)
    cluster = {f"r{r}": {f"n{n}": 8 for n in range(r, nodes, racks)} for r in range(racks)}
    slowdown = {"A": [rng.uniform(0.9, 1.3) for _ in range(8 * nodes)]}
    return small_instance(cluster, slowdown, jobs, locality={"m": [1, 1.15, 1.4]})


def solved(instance, **options):
    result = optsched.solve(instance, **options)
    optsched.check(instance, result.plan)
    optsched.verify(instance, result)
    return result


@pytest.mark.parametrize("gangs", [[3], [20], [40, 8, 8, 1]])
def test_few_gangs_on_many_gpus_are_placed_at_least_cost(gangs):
    instance = large(gangs)
    result = solved(instance)
    assert result.status == "optimal"
    cheap = [name for name in GREEDY if name not in ("pal-silhouette", "pm-first", "pal-greedy")]
    assert result.objective <= min(optsched.solve(instance, name).objective for name in cheap)


def test_jobs_that_it_is_expensive_to_move_stay_on_a_large_cluster():
    """Above 2,048 GPUs those on the border of two blocks had to move, whatever that costs."""
    names = [f"n{n}/{i}" for n in range(260) for i in range(8)]
    random.Random(3).shuffle(names)
    running = [
        {"gpus": 6, "current": names[6 * n : 6 * n + 6], "restart_s": 1e7, "remaining_s": 3600.0}
        for n in range(60)
    ]
    instance = large([*running, {"gpus": 8, "remaining_s": 600.0}])
    result = solved(instance, gap=1e-4)
    assert result.status == "optimal"
    kept = [
        set(p.gpus) == set(j.current) for p, j in zip(result.plan.jobs, instance.jobs, strict=True)
    ]
    assert kept == [True] * 60 + [False]


def straddling(restart_s=1e6, **fields):
    """Three blocks of one node each; the second job runs on two of them."""
    running = {"remaining_s": 60.0, "restart_s": restart_s}
    jobs = [
        {"gpus": 2, "current": ["a/0", "a/1"], **running},
        {"gpus": 3, "current": ["a/3", "b/0", "c/1"], **running, **fields},
        {"gpus": 4, "remaining_s": 60.0},
        {"gpus": 1, "remaining_s": 60.0},
    ]
    rng = random.Random(1)
    slowdown = {"A": [rng.uniform(0.9, 1.3) for _ in range(18)]}
    return small_instance({"a": 6, "b": 6, "c": 6}, slowdown, jobs)


@pytest.fixture
def blocks_alone(monkeypatch):
    """Plans of blocks of at most six GPUs, and no others before them."""
    for name, value in (("block_gpus", 6), ("block_gangs", 1), ("few_options", 0)):
        monkeypatch.setitem(vars(SETTINGS), name, value)
    monkeypatch.setattr(blocks, "offer_greedy", lambda *given: None)
    monkeypatch.setattr(blocks, "run_lns", lambda *given: None)


def test_a_job_that_runs_in_several_blocks_keeps_its_gpus(blocks_alone):
    instance = straddling()
    parts = partition.partitioned(instance, 6)
    assert [len(part.open) for part in parts] == [5, 5, 5]
    assert {job.id for part in parts for job in part.spanning} == {"j1"}
    result = solved(instance, method="decomposition", gap=0.5)
    gpus = {placement.id: set(placement.gpus) for placement in result.plan.jobs}
    assert gpus["j1"] == {"a/3", "b/0", "c/1"}
    assert gpus["j0"] == {"a/0", "a/1"}


def test_a_job_that_may_not_stay_in_several_blocks_is_dealt_out(blocks_alone):
    parts = partition.partitioned(straddling(highest_level="node"), 6)
    assert not parts[0].spanning
    assert sorted(job.id for part in parts for job in part.jobs) == ["j0", "j1", "j2", "j3"]


# --- what stopped it ----------------------------------------------------------------------------


def test_a_tree_at_its_limit_says_so(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "work", 0)
    monkeypatch.setitem(vars(SETTINGS), "least_nodes", 3)
    for name in ("_improve", "_improve_parts"):
        monkeypatch.setattr(bounding.PlacementSolver, name, lambda *given: None)
    result = solved(optsched.read("pal/overfull"), gap=1e-6)
    assert result.status == "feasible"
    assert "the branch-and-bound tree reached its limit of 3" in result.message


@pytest.mark.parametrize("method", ["decomposition", "node-classes"])
def test_prices_that_leave_a_gap_say_so(method, blocks_alone, monkeypatch):
    monkeypatch.setattr(node_classes, "run_lns", lambda *given: None)
    result = solved(straddling(restart_s=1.0), method=method, gap=1e-9)
    assert result.status == "feasible"
    assert "prove no more" in result.message
