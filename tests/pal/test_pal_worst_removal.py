"""Worst removal: jobs that pay too much at the duals of the previous epoch are reoptimised."""

import numpy as np
import pytest

import optsched
from benchmarks.generators import next_epoch
from optsched.pal.decomposition import solver as blocks
from optsched.pal.exact import solver as exact
from optsched.pal.exact import worst_removal
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.lagrangian_bound import Lagrangian, PricedDuals, without_cuts
from optsched.pal.exact.relaxation import all_options
from optsched.pal.exact.worst_removal import DualCosts, packed, remove_worst
from optsched.pal.greedy import pal_rules
from optsched.pal.instance import PalInstance
from optsched.pal.plan import PalPlan
from optsched.pal.settings import SETTINGS
from optsched.search import Search

NODES = {name: [f"{name}/{n}" for n in range(4)] for name in "abcd"}
GPUS = [gpu for inside in NODES.values() for gpu in inside]


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "many_jobs", 1)


def fragmented():
    """A gang of four, and a job of one on each of four nodes of four equal GPUs."""
    domains = [{"id": "all", "level": "cluster"}]
    domains += [{"id": n, "level": "node", "parent": "all", "gpus": g} for n, g in NODES.items()]
    jobs = [{"id": n, "gpus": 1, "application_class": "A", "model": "m"} for n in "pqrs"]
    instance = PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "topology": {"levels": ["node", "cluster"], "domains": domains},
            "profile": {"gpus": GPUS, "slowdown": {"A": [1.0] * 16}, "kind": "persistent"},
            "locality": {"m": [1, 1.5]},
            "jobs": [{**jobs[0], "id": "gang", "gpus": 4}, *jobs],
        }
    )
    placed = {job["id"]: [inside[0]] for job, inside in zip(jobs, NODES.values(), strict=True)}
    placed["gang"] = [inside[1] for inside in NODES.values()]
    return instance, plan_of(instance, placed)


def plan_of(instance, placed):
    jobs = [{"id": job.id, "gpus": placed[job.id]} for job in instance.jobs]
    return PalPlan.model_validate({"jobs": jobs})


def costs_at(instance, prices):
    problem = arrays(instance)
    options, reward = all_options(problem), np.array([jobs.reward for jobs in problem.types])
    solution = without_cuts(np.asarray(prices, dtype=float))
    priced = solution.priced(problem, options, Lagrangian(problem, options, reward))
    return DualCosts(problem, options, PricedDuals(solution, priced))


def offered(instance, plan):
    search = Search(instance, gap=1e-3)
    assert search.offer(plan)
    return search


def test_what_jobs_pay_too_much_and_idle_gpus_are_all_of_the_gap():
    instance = optsched.read("pal/racks-256")
    plan = pal_rules.quick_start(instance)
    prices = np.random.default_rng(0).uniform(0, 0.2, len(instance.free_gpus))
    costs = costs_at(instance, prices)
    packing = packed(instance, costs.problem, plan)
    excess = costs.excess(packing)
    assert excess.min() >= -1e-9
    gap = offered(instance, plan).objective - costs.bound.priced.value
    assert excess.sum() + prices[packing.free].sum() == pytest.approx(gap)


def test_a_gang_gets_a_node_of_its_own(few_are_many):
    instance, plan = fragmented()
    search, costs = offered(instance, plan), costs_at(instance, np.zeros(16))
    assert costs.excess(packed(instance, costs.problem, plan)).tolist() == [0.5, 0, 0, 0, 0]
    remove_worst(instance, search, costs, lambda: False)
    assert search.objective == 5.0


def test_the_emptiest_node_is_cleared(few_are_many, monkeypatch):
    """Node c has a job less than the others, once the gang is gone."""
    instance, plan = fragmented()
    placed = {job.id: list(job.gpus) for job in plan.jobs} | {"r": ["a/2"]}
    asked = []

    def note(instance, search, jobs):
        asked.append([job.id for job in jobs])

    monkeypatch.setattr(worst_removal, "reoptimised", note)
    search = offered(instance, plan_of(instance, placed))
    remove_worst(instance, search, costs_at(instance, np.zeros(16)), lambda: False)
    assert asked == [["gang"]]  # nobody else is there, and each job has one turn


def test_nothing_is_done_for_few_jobs_or_when_it_is_done(monkeypatch):
    instance, plan = fragmented()
    search, costs = offered(instance, plan), costs_at(instance, np.zeros(16))
    monkeypatch.setattr(worst_removal, "reoptimised", lambda *_: pytest.fail("reoptimised"))
    remove_worst(instance, search, costs, lambda: False)
    monkeypatch.setitem(vars(SETTINGS), "many_jobs", 1)
    remove_worst(instance, search, costs, lambda: True)
    late = Search(instance, 0.0)
    late.offer(plan)
    remove_worst(instance, late, costs, lambda: False)


@pytest.mark.parametrize("method", ["exact", "decomposition"])
def test_an_epoch_later_a_part_is_enough(method, few_are_many, monkeypatch):
    """Neither the relaxation of the whole, nor those of blocks, nor parts anywhere are solved."""
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 8)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    monkeypatch.setitem(vars(SETTINGS), "block_gangs", 1)
    instance, plan = fragmented()
    start = optsched.solve(instance).model_copy(update={"plan": plan})
    for module, name in (
        (exact, "_certified"),
        (blocks, "_gpu_duals"),
        (blocks, "run_lns"),
    ):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("more than a part"))
    result = optsched.solve(instance, method, gap=1e-3, start=start)
    optsched.verify(instance, result)
    assert (result.status, result.objective) == ("optimal", 5.0)


def test_ten_epochs_in_a_row_need_hardly_more_than_parts(monkeypatch):
    whole, parts = exact._certified, worst_removal.reoptimised
    asked = []
    monkeypatch.setattr(exact, "_certified", lambda *a: asked.append("whole") or whole(*a))
    monkeypatch.setattr(worst_removal, "reoptimised", lambda *a: asked.append("part") or parts(*a))
    instance = optsched.read("pal/racks-256")
    result = optsched.solve(instance, gap=5e-3)
    asked.clear()
    for seed in range(10):
        instance = next_epoch(instance, 0.1, seed)
        result = optsched.solve(instance, gap=5e-3, start=result)
        optsched.verify(instance, result)
        assert result.status == "optimal"
    assert asked.count("part") >= 2
    assert asked.count("whole") <= 2
