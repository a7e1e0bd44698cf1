"""Cuts on a few jobs with weights, the index that counts them, and the verifier's fast groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco.cuts.cut_pool import CutPool
from optsched.eaco.cuts.cuts_and_branching import ColumnIndex, GroupCountRow, Rank1CutRow
from optsched.eaco.cuts.mod_k import mod_k_sets
from optsched.eaco.cuts.rank1 import PATTERNS, weighted_sets
from optsched.eaco.exact.rule_counts import RuleCounts, count_matrix
from optsched.eaco.groups.columns import Columns, columns
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify.group_enumeration import GroupOptions
from optsched.eaco.verify.measured_sets import is_filtered
from tests.support.strategies.common import law
from tests.support.strategies.eaco import small_instance

# --- cuts -------------------------------------------------------------------------------------


def value(held, x, classes, divisor):
    weight = np.bincount(classes, minlength=held.shape[1])
    return float(np.floor(held @ weight / divisor) @ x)


def test_the_triangle():
    held = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
    x = np.array([0.5, 0.5, 0.5, 1.0])
    held = np.vstack([held, [[0, 0, 0, 1]]])  # a job in two halves, so that four are touched
    x = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    assert weighted_sets(held, x, np.ones(4)) == {((0, 1, 2), 2): pytest.approx(0.5)}


def test_a_whole_point_violates_nothing():
    held = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=float)
    assert weighted_sets(held, np.ones(2), np.ones(6)) == {}


@st.composite
def points(draw):
    """Groups of up to four jobs, and parts of them."""
    jobs, groups = draw(st.integers(4, 9)), draw(st.integers(3, 25))
    held = np.zeros((groups, jobs))
    for row in held:
        row[draw(st.lists(st.integers(0, jobs - 1), min_size=1, max_size=4, unique=True))] = 1
    parts = draw(st.lists(st.integers(1, 6), min_size=groups, max_size=groups))
    copies = draw(st.lists(st.integers(1, 2), min_size=jobs, max_size=jobs))
    return held, np.array(parts) / 6, np.array(copies, dtype=float)


@law(300)
@given(points())
def test_what_is_found_is_violated_by_as_much(point):
    held, x, copies = point
    for (classes, divisor), excess in weighted_sets(held, x, copies).items():
        most = Rank1CutRow(classes, divisor).most(copies)
        assert excess > SETTINGS.rank1_violation
        assert value(held, x, classes, divisor) - most == pytest.approx(excess)


def test_halves_on_an_odd_cycle_of_double_edges_needed_a_tree():
    """Seven groups of four in a ring, neighbours share two jobs: cuts of five jobs miss it."""
    held = np.zeros((7, 14))
    for n in range(7):
        held[n, [2 * n, 2 * n + 1, (2 * n + 2) % 14, (2 * n + 3) % 14]] = 1
    x, copies = np.full(7, 0.5), np.ones(14)
    assert weighted_sets(held, x, copies) == {}
    found = mod_k_sets(held, x, copies)
    (classes, divisor), excess = max(found.items(), key=lambda entry: (entry[1], -len(entry[0][0])))
    assert divisor == 2
    assert len(classes) == 7  # one job of each two
    assert excess == pytest.approx(0.5)
    assert value(held, x, classes, 2) - Rank1CutRow(classes, 2).most(copies) == excess


@law(100)
@given(points())
def test_mod_k_cuts_are_violated_by_as_much(point):
    held, x, copies = point
    for (classes, divisor), excess in mod_k_sets(held, x, copies).items():
        assert excess > SETTINGS.mod_k_violation
        most = Rank1CutRow(classes, divisor).most(copies)
        assert value(held, x, classes, divisor) - most == pytest.approx(excess)


def test_a_whole_point_violates_no_mod_k_cut():
    held = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=float)
    assert mod_k_sets(held, np.ones(2), np.ones(6)) == {}


@law(300, is_costly=True)
@given(points(), st.data())
def test_no_partition_violates_a_cut(point, data):
    """Whole plans keep every pattern: groups that hold each job at most as often as it is there."""
    held, _, copies = point
    left, chosen = copies.copy(), np.zeros(len(held))
    for n in data.draw(st.permutations(range(len(held)))):
        if (held[n] <= left).all():
            chosen[n] += 1
            left -= held[n]
    for pattern in PATTERNS:
        size = len(pattern.weights)
        for jobs in itertools.islice(itertools.permutations(range(len(copies)), size), 200):
            classes = tuple(np.repeat(jobs, pattern.weights).tolist())
            rule = Rank1CutRow(classes, pattern.divisor)
            assert value(held, chosen, classes, pattern.divisor) <= rule.most(copies)


def as_columns(held):
    """Groups of the first jobs of the classes, without anything else."""
    members = np.full((len(held), int(held.sum(axis=1).max())), held.shape[1])
    for row, times in zip(members, held.astype(int), strict=True):
        row[: times.sum()] = np.repeat(np.arange(held.shape[1]), times)
    nothing = np.zeros(len(held), dtype=int)
    return Columns(members, nothing, nothing, nothing, nothing, 0.0 * nothing, 0.0 * nothing)


@law(100)
@given(points())
def test_a_pool_finds_known_cuts_again(point):
    held, x, copies = point
    rules = [Rank1CutRow(*cut) for cut in weighted_sets(held, x, copies)]
    pool, support = CutPool(copies), as_columns(held)
    assert pool.violated(support, x) == {}
    pool.add([*rules, Rank1CutRow((0, 1, 2), 2)])
    pool.add(rules)  # once more, which changes nothing
    found = pool.violated(support, x)
    assert set(rules) <= set(found) <= {*rules, Rank1CutRow((0, 1, 2), 2)}
    for rule, depth in found.items():
        excess = value(held, x, rule.classes, rule.divisor) - rule.most(copies)
        assert depth == pytest.approx(excess / len(rule.classes) ** 0.5)


@law(100)
@given(points(), st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_rules_count_many_columns_at_once_as_one_by_one(point, charges):
    held, _, copies = point
    pool = as_columns(held)
    rules = [Rank1CutRow((0, 1, 2), 2), GroupCountRow((0, 1)), Rank1CutRow((0, 1, 1, 2, 3), 3)]
    counts = np.array([rule.counts(pool) for rule in rules]).T
    assert (count_matrix(rules, pool, len(copies)) == counts).all()
    summed = RuleCounts(pool, len(copies)).summed(dict(zip(rules, charges, strict=True)))
    assert summed == pytest.approx(counts @ charges)


# --- the index --------------------------------------------------------------------------------


def test_counts_are_those_of_the_rule():
    jobs = [{"type": t} for t in "aabbcd"] + [{"type": "e", "work_s": 5.0}]
    instance = small_instance(jobs, types=dict.fromkeys("abcde", 0.2), max_jobs_per_gpu=4)
    classes = job_classes(instance)
    pool = columns(instance, classes)
    index = ColumnIndex(pool, len(classes))
    for rule in (
        Rank1CutRow((0, 1, 2), 2),
        Rank1CutRow((0, 0, 1, 2, 3), 3),
        Rank1CutRow((0,), 2),
        Rank1CutRow((1, 1, 2, 2, 3, 4), 4),
    ):
        counts = np.zeros(len(pool.cost))
        which, times = index.counts(rule)
        counts[which] = times
        assert counts.any()
        assert (counts == rule.counts(pool)).all()


# --- the verifier's groups --------------------------------------------------------------------


@st.composite
def by_formula(draw):
    """An instance whose rates come from utilisations alone."""
    jobs = [
        {
            "type": draw(st.sampled_from("abc")),
            "work_s": draw(st.sampled_from([1.0, 60.0, 3600.5, 86_400.0])),
            "max_slowdown": draw(st.sampled_from([1.0, 1.1, 1.25, 2.0])),
            "gpus": draw(st.sampled_from([1, 2])),
        }
        for _ in range(draw(st.integers(1, 6)))
    ]
    types = {name: draw(st.floats(0.0, 1.0).map(lambda u: round(u, 2))) for name in "abc"}
    return small_instance(jobs, types=types, max_jobs_per_gpu=draw(st.integers(1, 4)))


@law(300)
@given(by_formula())
def test_groups_at_one_rate_are_those_found_by_phases(instance):
    groups = GroupOptions(instance, is_free=False)
    assert all(is_filtered(instance, gpu) for gpu in instance.gpu_types)
    free, nothing = [0] * len(groups.equal), {nodes.id: 0 for nodes in instance.nodes}
    slow = {(o.members, o.nodes): o for o in groups.options()}
    fast = {(o.members, o.nodes): o for o in groups.below(free, nothing, 1 << 200)}
    assert fast.keys() == slow.keys()
    for key, option in fast.items():
        assert option.cost == pytest.approx(slow[key].cost, rel=1e-14)
        assert option.gpus == slow[key].gpus


def test_only_groups_below_the_threshold():
    groups = GroupOptions(optsched.read("eaco/pairs-60"), is_free=False)
    nothing = {nodes.id: 0 for nodes in groups.instance.nodes}
    every = list(groups.below([0] * len(groups.equal), nothing, 1 << 200))
    middle = sorted(option.cost for option in every)[len(every) // 2]
    below = list(groups.below([0] * len(groups.equal), nothing, middle))
    assert sorted(below) == sorted(option for option in every if option.cost < middle)
