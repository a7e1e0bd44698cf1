"""Parts that are placed anew by dives in an integer program: what it says is what plans cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import optsched
from optsched.mip import highs
from optsched.pal.dual_ascent import part_program
from optsched.pal.dual_ascent.ascent import DualAscent
from optsched.pal.dual_ascent.part_dive import PartDive
from optsched.pal.dual_ascent.part_program import PartProgram, PricedJobs
from optsched.pal.dual_ascent.relax_and_fix import RelaxAndFix, Repairs
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.worst_removal import DualCosts
from tests.pal.test_pal_dual_ascent import cluster, lagrangian_of, no_limit, with_running_jobs


def started(instance, seed=0):
    """Return an ascent that ended early, a packing by relax and fix, and what fixed it."""
    problem = arrays(instance)
    ascent = DualAscent(problem, *lagrangian_of(problem), no_limit)
    bound = ascent.run(lambda value: value > 0)
    fixing = RelaxAndFix(ascent.dual, seed, no_limit)
    packing = fixing.packed(bound.solution.duals.gpus / ascent.dual.unit)
    assert len(packing.placed) == len(instance.jobs)
    return ascent, packing, fixing


def priced(ascent):
    """Return what GPUs cost, and jobs at least."""
    return PricedJobs(ascent.bound.solution.duals.gpus, ascent.bound.priced.least)


def reduced(part, packing, placed, prices):
    """Return what some places cost above what the prices prove, idle GPUs included."""
    idle = np.setdiff1d(part.gpus, np.concatenate(list(placed.values())))
    cost = sum(packing.cost_at(job, gpus) for job, gpus in placed.items())
    least = sum(prices.least[t] * len(jobs) for t, jobs in part.jobs_of.items())
    held = sum(prices.prices[gpus].sum() for gpus in placed.values())
    return cost + held - least + prices.prices[idle].sum()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("flat", [False, True])
def test_the_best_point_of_a_part_is_a_plan_of_its_cost_and_no_dearer_than_now(
    seed, flat, monkeypatch
):
    if flat:  # nodes too large for all of their gangs are chains, too
        small = replace(part_program.SETTINGS, most_node_gpus=4)
        monkeypatch.setattr(part_program, "SETTINGS", small)
    ascent, packing, _ = started(cluster(seed, 48))
    prices, draw = priced(ascent), np.random.default_rng(seed)
    jobs = draw.permutation(sorted(packing.placed))[:4].tolist()
    part = PartProgram(packing, jobs, prices)
    now = {job: packing.placed[job] for job in jobs}
    assert reduced(part, packing, now, prices) == pytest.approx(part.limit)
    outcome = highs.solve(part.program(), most_nodes=50)
    if outcome.x is None:  # nothing is as cheap as now, but for what there is now
        return
    placed = part.placed(outcome.x)
    assert placed is not None
    assert sorted(placed) == sorted(jobs)
    taken = np.concatenate(list(placed.values()))
    assert len(set(taken.tolist())) == len(taken)
    assert set(taken.tolist()) <= set(part.gpus.tolist())
    assert reduced(part, packing, placed, prices) <= outcome.objective + 1e-6
    if outcome.status == "optimal":
        assert outcome.objective <= part.limit + 1e-6


@pytest.mark.parametrize("running", [False, True])
def test_dives_leave_a_plan_that_is_better_or_the_same(running):
    instance = cluster(4, 96)
    instance = with_running_jobs(instance, 4) if running else instance
    ascent, packing, fixing = started(instance)
    costs, unit = DualCosts(packing.problem, ascent.options, ascent.bound), ascent.dual.unit
    duals = ascent.bound.solution.duals.gpus
    repairs = Repairs(packing, fixing, duals / unit, priced(ascent), 0)
    kept = {keep.job: packing.placed[keep.job] for keep in packing.problem.keeps}
    improved = 0
    for _ in range(8):
        before = sum(map(packing.cost, packing.placed))
        is_better = repairs.dived(costs.excess(packing) / unit)
        after = sum(map(packing.cost, packing.placed))
        assert (after < before) if is_better else (after == pytest.approx(before, rel=1e-12))
        improved += is_better
    assert improved or running
    assert not optsched.check(instance, packing.plan(instance))
    assert all(np.array_equal(packing.placed[job], gpus) for job, gpus in kept.items())


def test_a_dive_ends_when_time_is_up():
    ascent, packing, _ = started(cluster(1, 64))
    part = PartProgram(packing, sorted(packing.placed)[:5], priced(ascent))
    assert PartDive(part, lambda: 0.0).run() is None
