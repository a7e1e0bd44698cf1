"""Nodes filled anew: jobs keep the rules and cost less; those that reach beyond pay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from benchmarks.generators import usual
from optsched.pal.dual_ascent.node_filling import NodeFilling
from optsched.pal.dual_ascent.node_part import NodePart
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.rounding import GangPacking
from optsched.pal.verify import feasibility
from tests.support.builders.pal_packings import one_running_one_waiting
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance


def filled(packing, lowest, shift=None):
    """Fill nodes of a packing anew; return whether that was cheaper."""
    part = NodePart(packing, lowest, shift)
    if not part.within:
        return False
    within = sum(map(packing.cost, part.within))
    missing = 3 * max(map(packing.cost, part.within))
    placed = NodeFilling(part, missing, 0, lambda: None).run(-np.inf, within * (1 - 1e-9))
    for job in placed or ():
        packing.take(job)
    for job, gpus in (placed or {}).items():
        packing.put(job, gpus)
    return placed is not None


def cost(packing):
    return sum(map(packing.cost, packing.placed))


def nodes_of(packing):
    return np.flatnonzero(~packing.problem.domains.has_children).tolist()


@given(pal_instances(), st.integers(0, 255), st.integers(-3, 3))
@law(100)
def test_jobs_keep_all_rules_and_cost_less(instance, which, by):
    packing = GangPacking(arrays(instance))
    packing.fill()
    placed, before = set(packing.placed), cost(packing)
    lowest = [d for n, d in enumerate(nodes_of(packing)) if which >> (n % 8) & 1]
    is_better = filled(packing, lowest, (lambda: by) if by else None)
    assert (cost(packing) < before) if is_better else cost(packing) == before
    assert set(packing.placed) == placed
    held = np.concatenate([np.zeros(0), *packing.placed.values()])
    assert len(np.unique(held)) == len(held) == (~packing.free).sum()
    if len(placed) == len(instance.jobs):
        assert feasibility.violations(instance, packing.plan(instance)) == []


def test_four_jobs_that_must_all_move_do_so_at_once():
    """No exchange of two makes it cheaper: each node holds one GPU of each pair."""
    slowdown = {"A": [1.0, 1.2, 1.0, 1.2], "B": [1.2, 1.0, 1.2, 1.0]}
    jobs = [{"gpus": 1, "application_class": name} for name in "ABAB"]
    instance = small_instance({"a": 2, "b": 2}, slowdown, jobs=jobs)
    packing = GangPacking(arrays(instance))
    for job, gpu in enumerate((1, 0, 3, 2)):
        packing.put(job, np.array([gpu]))
    assert filled(packing, nodes_of(packing))
    assert cost(packing) == pytest.approx(4.0)


def test_a_gang_that_reaches_beyond_the_nodes_keeps_what_it_costs():
    """Its GPUs elsewhere stay, and here it gets those that are no slower than its slowest."""
    slowdown = {"A": [1.0, 1.1, 1.3, 1.0, 1.0, 1.1]}
    jobs = [{"gpus": 2}, {"gpus": 1}, {"gpus": 1}]
    nodes = {"a": 3, "b": 3}
    instance = small_instance(nodes, slowdown, jobs=jobs, locality={"m": [1.0, 1.05]})
    packing = GangPacking(arrays(instance))
    for job, gpus in enumerate(([0, 5], [2], [3])):
        packing.put(job, np.array(gpus))
    assert filled(packing, nodes_of(packing)[:1])
    assert packing.placed[0].tolist() == [1, 5]
    assert packing.placed[1].tolist() == [0]
    assert packing.cost(0) == pytest.approx(1.1 * 1.05)


def test_running_jobs_that_keep_their_gpus_stay_when_nodes_are_filled():
    packing = one_running_one_waiting()
    assert filled(packing, nodes_of(packing))
    assert packing.placed[0].tolist() == [1]
    assert packing.placed[1].tolist() in ([0], [2])


def test_a_plan_that_annealing_alone_leaves_at_four_thousandths_is_proven_within_one():
    instance = usual(256, 6)
    result = optsched.solve(instance, gap=1e-3)
    assert result.status == "optimal"
    optsched.verify(instance, result)
