"""Annealing of groups: what they cost, what they keep, and what it finds."""

import numpy as np
import pytest

import optsched
from benchmarks.generators import sharing, sharing_live
from optsched.eaco.exact import large_scale
from optsched.eaco.exact.column_generation import ColumnGeneration
from optsched.eaco.exact.master import frame
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.groups.pricing_scope import pricing_problems
from optsched.eaco.primal.annealing import GroupAnnealing, annealed
from optsched.eaco.primal.batch_greedy import filled
from optsched.eaco.primal.diving import held
from optsched.eaco.primal.large_neighbourhood_search import total


def untimed():
    return None


def drawn(pricing, groups, most, seed):
    """Groups of different jobs, of all sizes."""
    draw, many = np.random.default_rng(seed), len(pricing.work)
    at = np.array([draw.permutation(many)[:most] for _ in range(groups)])
    return np.where(np.arange(most) < draw.integers(1, most + 1, groups)[:, None], at, many)


@pytest.mark.parametrize("besides", ["formula", "pair", "running", "cap", "curve"])
def test_annealing_takes_groups_to_cost_what_pricing_says(besides):
    instance = sharing_live(24, 4, 0.25, besides, 3)
    classes = job_classes(instance)
    for pricing in pricing_problems(instance, classes):
        at = drawn(pricing, 300, 4, 1)
        groups = pricing.allowed(np.sort(at, axis=1))
        off = groups.place < 0
        rows = [tuple(row) for row in groups.at[off].tolist()]
        known = dict(zip(rows, groups.cost[off], strict=True))
        expected = [known.get(tuple(sorted(row)), np.inf) for row in at.tolist()]
        np.testing.assert_allclose(pricing.costs(at), expected, rtol=1e-9)
        assert (np.isfinite(expected).sum() > 20) or pricing.is_measured


@pytest.mark.parametrize("most", [2, 3, 4, 5])
def test_annealing_keeps_all_jobs_and_never_ends_worse(most):
    instance = sharing(16, most, 0.4, 1)
    (pricing,) = pricing_problems(instance, job_classes(instance))
    many = len(pricing.work)
    alone = np.full((many, most), many)
    alone[:, 0] = np.arange(many)
    annealing = GroupAnnealing(pricing, alone, np.random.default_rng(0))
    before = annealing.cost
    at = annealing.run(0.0, untimed)
    assert sorted(at[at < many].tolist()) == list(range(many))
    assert pricing.costs(at).sum() <= before
    best = optsched.solve(instance, gap=1e-6).objective
    assert pricing.costs(at).sum() == pytest.approx(best, rel=0.02)
    assert pricing.costs(at).sum() >= best * (1 - 1e-9)


def test_plans_of_150_jobs_seldom_wait_for_integer_programs(monkeypatch):
    """Of three draws one may: sums differ between processors, and with them the search."""
    programs = []
    real = large_scale.repaired

    def counted(*given):
        programs.append(given)
        return real(*given)

    monkeypatch.setattr(large_scale, "repaired", counted)
    for seed in (2, 6, 11):
        assert optsched.solve(sharing(150, 4, 0.25, seed), gap=0.01).status == "optimal"
    assert len(programs) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_running_groups_stood_still_while_others_were_annealed(seed):
    instance = sharing_live(40, 4, 0.25, "running", seed)
    classes = job_classes(instance)
    generation = ColumnGeneration(instance, classes, frame(instance, classes), 0)
    alone = filled(instance, classes, generation.pricing_problems, generation.bound.duals.jobs)
    generation.add(alone)
    at_home = generation.known_groups(_running(instance, classes))
    plan = filled(instance, classes, generation.pricing_problems, 0 * generation.lengths, at_home)
    generation.add(plan)
    before = generation.amounts_of(plan)
    assert (plan.place >= 0).any()
    after = annealed(generation, before, -np.inf, seed, untimed)
    members, places = generation.pool.members, generation.pool.place
    jobs = len(classes)
    assert (held(members, after, jobs) == held(members, as_long(before, after), jobs)).all()
    at = np.repeat(places, np.rint(after).astype(int))
    assert len(set(at[at >= 0].tolist())) == (at >= 0).sum()
    assert len(at) <= len(plan.cost)
    assert total(generation, after) < total(generation, before)
    running = generation.pool.take(np.flatnonzero(before)).place >= 0
    kept = after[np.flatnonzero(before)][running]
    assert (kept < 0.5).any()


def as_long(before, after):
    return np.append(before, np.zeros(len(after) - len(before)))


def _running(instance, classes):
    """The groups that run, by classes."""
    at = {name: n for n, c in enumerate(classes) for name in c.jobs}
    rows = np.full((len(instance.running), instance.max_jobs_per_gpu), len(classes))
    for n, place in enumerate(instance.running):
        inside = sorted(at[name] for name in place.jobs)
        rows[n, : len(inside)] = inside
    return rows
