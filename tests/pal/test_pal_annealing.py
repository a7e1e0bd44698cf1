"""Annealing of gangs: it keeps the rules, never makes a packing dearer, and finds small optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from benchmarks.generators import usual
from optsched.pal.dual_ascent.annealing import GangAnnealing
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.rounding import GangPacking
from optsched.pal.verify import feasibility
from tests.support.builders.pal_packings import one_running_one_waiting
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance


def no_limit():
    """Return that there is no deadline."""


def packed(instance, result=None):
    """Return the packing of a result's plan, by default with each job where it is cheapest."""
    problem = arrays(instance)
    packing = GangPacking(problem)
    if result is None:
        packing.fill()
        return packing
    number = {gpu: n for n, gpu in enumerate(problem.gpus)}
    for job, placed in enumerate(result.plan.jobs):
        if placed.gpus:
            packing.put(job, np.sort([number[gpu] for gpu in placed.gpus]))
    return packing


def cost(packing):
    return sum(map(packing.cost, packing.placed))


@given(pal_instances(), st.integers(0, 5))
@law(200, is_costly=True)
def test_a_packing_keeps_all_rules_and_gets_no_dearer(instance, seed):
    packing = packed(instance)
    placed, before = set(packing.placed), cost(packing)
    assume(placed)
    is_better = GangAnnealing(packing, seed, no_limit).run(300, 0.05, -np.inf)
    after = cost(packing)
    assert set(packing.placed) == placed
    assert (after < before) if is_better else after == pytest.approx(before)
    held = np.concatenate([packing.placed[job] for job in placed])
    assert len(np.unique(held)) == len(held) == (~packing.free).sum()
    if len(placed) == len(instance.jobs):
        assert feasibility.violations(instance, packing.plan(instance)) == []


def test_gangs_that_hold_each_others_fast_gpus_part():
    """Each of two gangs has the GPU that the other one needs, in every node."""
    nodes = {f"n{k}": 2 for k in range(4)}
    slowdown = {"A": [1.0, 2.0] * 4, "B": [2.0, 1.0] * 4}
    jobs = [{"gpus": 4, "application_class": name} for name in "AB"]
    instance = small_instance(nodes, slowdown, jobs=jobs, locality={"m": [1.0, 1.0]})
    packing = GangPacking(arrays(instance))
    packing.put(0, np.arange(1, 8, 2))
    packing.put(1, np.arange(0, 8, 2))
    assert GangAnnealing(packing, 0, no_limit).run(2000, 1e-2, -np.inf)
    assert packing.placed[0].tolist() == [0, 2, 4, 6]
    assert cost(packing) == pytest.approx(2.0)


def test_a_gang_moves_into_the_node_of_single_gpus():
    slowdown = {"A": [1.0, 1.0, 1.0, 1.0]}
    jobs = [{"gpus": 2}, {"gpus": 1}, {"gpus": 1}]
    instance = small_instance({"a": 2, "b": 2}, slowdown, jobs=jobs, locality={"m": [1.0, 1.5]})
    packing = GangPacking(arrays(instance))
    for job, gpus in enumerate(([0, 2], [1], [3])):
        packing.put(job, np.array(gpus))
    assert GangAnnealing(packing, 0, no_limit).run(500, 1e-3, -np.inf)
    assert cost(packing) == pytest.approx(3.0)


def test_running_jobs_that_keep_their_gpus_stay():
    packing = one_running_one_waiting()
    GangAnnealing(packing, 0, no_limit).run(500, 1e-2, -np.inf)
    assert packing.placed[0].tolist() == [1]
    assert packing.placed[1].tolist() in ([0], [2])


def test_it_ends_at_the_goal_and_at_the_deadline():
    instance = usual(64, 0)
    packing = packed(instance)
    before = cost(packing)
    assert not GangAnnealing(packing, 0, lambda: 0.0).run(10_000, 2e-3, -np.inf)
    assert cost(packing) == before
    annealing = GangAnnealing(packing, 0, no_limit)
    assert annealing.run(100_000, 2e-3, 0.9999 * before)
    first = cost(packing)
    assert first <= 0.9999 * before
    assert annealing.run(3000, 2e-3, -np.inf)
    assert cost(packing) < first


def test_usual_placements_of_256_gpus_are_proven_within_a_thousandth():
    instance = usual(256, 1)
    result = optsched.solve(instance, gap=1e-3)
    assert result.status == "optimal"
    optsched.verify(instance, result)
