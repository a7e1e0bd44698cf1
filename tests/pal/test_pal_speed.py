"""What makes large clusters quick gives what the slow way gives: rankings, prices, short limits."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.cluster.kmeans import LARGE, silhouette
from optsched.pal.greedy import fast_fallback, gpu_ranking, pal_rules
from optsched.pal.greedy.free_gpus import ClusterState, FreeGpus
from optsched.pal.greedy.list_scheduling import class_order, place, plan
from optsched.pal.settings import SETTINGS
from optsched.pal.verify import feasibility, gpu_price_bound
from optsched.pal.verify.certificate import prove
from optsched.pal.verify.costs import InfeasibilityCosts, ObjectiveCosts, scaled
from optsched.pal.verify.placement_pricing import JobOptions
from tests.support.oracles.pal import bitmask_optimum
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

# --- rankings: as they were before anything was kept --------------------------------------------


class SlowRanking:
    """Looks at all GPUs for every question."""

    def __init__(self, state, scores):
        self.state, self.scores = state, scores
        self._orders = [np.lexsort((scores, column.owner)) for column in state.columns]

    def worst_of_best(self, level, size):
        counts = np.bincount(
            self.state.columns[level].owner[self.state.free],
            minlength=len(self.state.columns[level].starts),
        )
        worst = np.full(len(counts), np.inf)
        fits = counts >= size
        firsts = np.cumsum(counts) - counts
        worst[fits] = self.scores[self._free(level)[firsts[fits] + size - 1]]
        return worst

    def best(self, level, domain, size):
        free = self._free(level)
        return free[self.state.columns[level].owner[free] == domain][:size]

    def _free(self, level):
        order = self._orders[level]
        return order[self.state.free[order]]


class SlowState(ClusterState):
    """Counts all GPUs for every question."""

    def counts(self, level):
        return self.count_marked(level, self.free)


def cluster(seed):
    """Three levels with uneven nodes, many equal slowdowns, some GPUs in use, and a full house."""
    rng = np.random.default_rng(seed)
    nodes = {
        f"row{a}": {
            f"rack{a}{b}": {f"n{a}{b}{c}": int(rng.integers(1, 9)) for c in range(5)}
            for b in range(3)
        }
        for a in range(3)
    } | {"lone": 30}
    names = small_instance(nodes).topology.gpus
    values = [1.0, 1.01, 1.1, 1.5]
    slowdown = {name: rng.choice(values, len(names)).tolist() for name in "AB"}
    jobs, left = [], 0.95 * len(names)
    while left > 0:
        size = int(rng.choice([1, 1, 2, 3, 4, 8, 16, 40]))
        cap = {"highest_level": str(rng.choice(["node", "rack"]))} if size < 4 else {}
        jobs.append({"gpus": size, "application_class": "AB"[int(rng.integers(2))], **cap})
        left -= size
    taken = rng.choice(names, 5, replace=False).tolist()
    fields = {"unavailable": taken, "admission": "optional"}
    jobs = [job | {"reward": 9} for job in jobs]
    return small_instance(nodes, slowdown, jobs, **fields)


RULES = {
    "pm_first": lambda state, i: pal_rules.pm_first_rule(state, pal_rules.raw_scores(i)),
    "pal": lambda state, i: pal_rules.pal_rule(state, pal_rules.raw_scores(i), i.penalties),
    "multilevel": lambda state, i: pal_rules.multilevel_rule(
        state, pal_rules.raw_scores(i), i.penalties
    ),
}


def placed_by(rule, instance, state):
    chosen = place(instance.jobs, state, RULES[rule](state, instance), order=class_order(instance))
    return plan(instance, state, chosen)


def both_ways(rule, instance, monkeypatch):
    quick = placed_by(rule, instance, ClusterState(instance))
    with monkeypatch.context() as patch:
        patch.setattr(pal_rules, "Ranking", SlowRanking)
        slow = placed_by(rule, instance, SlowState(instance))
    return quick, slow


@pytest.mark.parametrize("rule", RULES)
@law(300)
@given(instance=pal_instances(max_jobs=8))
def test_rules_place_as_they_did(rule, instance):
    with pytest.MonkeyPatch.context() as patch:
        quick, slow = both_ways(rule, instance, patch)
    assert quick == slow


@pytest.mark.parametrize("swept", [0, 5, SETTINGS.swept])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_rules_place_as_they_did_on_three_levels(rule, seed, swept, monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "swept", swept)
    quick, slow = both_ways(rule, cluster(seed), monkeypatch)
    assert quick == slow
    assert sum(bool(placement.gpus) for placement in quick.jobs) > 10


@law(300)
@given(instance=pal_instances(), data=st.data())
def test_a_ranking_knows_what_was_taken_and_released(instance, data):
    state = ClusterState(instance)
    name = instance.jobs[0].application_class
    scores = pal_rules.raw_scores(instance)[name]
    quick, slow = gpu_ranking.Ranking(state, scores), SlowRanking(state, scores)
    for _ in range(data.draw(st.integers(1, 6))):
        size = data.draw(st.integers(1, 4))
        for level, column in enumerate(state.columns):
            assert quick.worst_of_best(level, size).tolist() == (
                slow.worst_of_best(level, size).tolist()
            )
            counts = state.count_marked(level, state.free)
            assert state.counts(level).tolist() == counts.tolist()
            domain = data.draw(st.integers(0, len(column.starts) - 1))
            assert quick.best(level, domain, size).tolist() == (
                slow.best(level, domain, size).tolist()
            )
        is_taken = data.draw(st.booleans())
        pool = np.flatnonzero(state.free == is_taken).tolist()
        some = data.draw(st.lists(st.sampled_from(pool), unique=True)) if pool else []
        change = FreeGpus.take if is_taken else FreeGpus.release
        change(state, np.array(some, dtype=np.intp))


# --- prices -------------------------------------------------------------------------------------

PRICES = st.one_of(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]), st.floats(0, 1e3))


@pytest.mark.parametrize("costs", [ObjectiveCosts, lambda instance: InfeasibilityCosts()])
@law(500)
@given(instance=pal_instances(feasible=False), data=st.data())
def test_prices_alone_prove_what_they_prove_option_by_option(costs, instance, data):
    prices = [scaled(data.draw(PRICES)) for _ in instance.free_gpus]
    expected = JobOptions(instance, costs(instance)).least(prices, [])
    assert gpu_price_bound.least(instance, costs(instance), prices) == expected


@pytest.mark.parametrize("seed", range(4))
def test_equal_domains_are_priced_once_and_for_all(seed):
    instance = cluster(seed)
    rng = np.random.default_rng(seed)
    prices = [scaled(float(price)) for price in rng.choice([0, 0.25, 0.5], len(instance.free_gpus))]
    costs = ObjectiveCosts(instance)
    assert gpu_price_bound.least(instance, costs, prices) == JobOptions(instance, costs).least(
        prices, []
    )


# --- short time limits --------------------------------------------------------------------------


@law(500)
@given(instance=pal_instances())
def test_a_plan_type_by_type_breaks_no_rule(instance):
    made = fast_fallback.type_by_type(instance)
    if made is not None:
        assert feasibility.violations(instance, made) == []


def test_the_fastest_blocks_go_to_the_largest_gangs_and_the_lowest_level():
    slowdown = {"A": [1.2, 1.0, 1.1, 1.0, 1.0, 1.3]}
    instance = small_instance({"a": 3, "b": 3}, slowdown, jobs=[1, 2, 2])
    made = fast_fallback.type_by_type(instance)
    assert [placement.gpus for placement in made.jobs] == [("a/0",), ("b/0", "b/1"), ("a/1", "a/2")]


def test_what_fits_in_no_domain_goes_up_a_level():
    instance = small_instance({"a": 3, "b": 3}, jobs=[2, 2, 2])
    made = fast_fallback.type_by_type(instance)
    assert [placement.gpus for placement in made.jobs] == [
        ("a/0", "a/1"),
        ("b/0", "b/1"),
        ("a/2", "b/2"),
    ]


def test_running_jobs_stay_unless_others_find_no_place():
    job = {"gpus": 2, "current": ["a/0", "b/0"], "restart_s": 1, "remaining_s": 9}
    other = {"gpus": 1, "remaining_s": 9, "highest_level": "node"}
    instance = small_instance({"a": 2, "b": 2}, jobs=[job, other])
    assert fast_fallback.type_by_type(instance).jobs[0].gpus == ("a/0", "b/0")
    instance = small_instance({"a": 2, "b": 2}, jobs=[job, other | {"gpus": 2}])
    assert fast_fallback.type_by_type(instance).jobs[0].gpus == ("b/0", "b/1")


@law(1000)
@given(instance=pal_instances())
def test_the_bound_without_prices_is_true_proven_and_tight_for_one_job(instance):
    certificate = fast_fallback.at_zero_prices(instance)
    assert prove(instance, certificate) == []
    optimum = bitmask_optimum(instance)
    assert certificate.bound <= optimum
    zeros = [0] * len(instance.free_gpus)
    exact = gpu_price_bound.least(instance, ObjectiveCosts(instance), zeros)
    assert certificate.bound == pytest.approx(float(Fraction(exact, 1 << 192)), rel=1e-12)


@pytest.fixture
def small_is_large(monkeypatch):
    """Treat clusters of more than three GPUs as large ones."""
    monkeypatch.setitem(vars(SETTINGS), "large_gpus", 3)
    monkeypatch.setitem(vars(SETTINGS), "blocks_short_s", 1e9)


def test_a_short_limit_gives_a_greedy_plan_and_a_true_bound(small_is_large):
    instance = optsched.read("pal/tiny")
    result = optsched.solve(instance, time_limit_s=1)
    assert (result.status, result.message) == ("feasible", "stopped early: time limit")
    assert 0 < result.bound < result.objective
    assert not result.deterministic
    optsched.verify(instance, result)
    best = optsched.solve(instance)
    assert result.bound <= best.objective <= result.objective


def test_no_limit_is_never_short(small_is_large):
    instance = optsched.read("pal/tiny")
    for left, is_short in [(None, False), (1.0, True), (3.0, False)]:
        search = SimpleNamespace(seconds_left=lambda left=left: left)
        assert fast_fallback.is_short(instance, search, 1e9) == is_short
        assert not fast_fallback.is_short(instance, search, 1e-2)


def test_greedy_plans_of_large_clusters_are_certified_without_prices(small_is_large):
    instance = optsched.read("pal/tiny")
    result = optsched.solve(instance, "pal-multilevel")
    assert not any(any(node.gpu_prices) for node in result.certificate.nodes)
    assert not result.message
    optsched.verify(instance, result)


def test_a_large_cluster_without_enough_gpus_is_proven_to_have_no_plan(small_is_large):
    instance = small_instance({"a": 3, "b": 3}, jobs=[4, 4])
    for limit, method in [(1, None), (None, "pal-multilevel")]:
        result = optsched.solve(instance, method, time_limit_s=limit)
        assert result.status == "infeasible"
        optsched.verify(instance, result)


# --- silhouettes --------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [2, 3, 7])
def test_silhouettes_on_a_line_are_those_of_all_pairs(clusters):
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(clusters)
    points = rng.choice(rng.normal(1, 0.2, 60), LARGE + 1)[:, np.newaxis]
    labels = rng.integers(0, clusters, len(points))
    labels[0] = clusters  # alone
    expected = silhouette_score(points, labels)
    assert math.isclose(silhouette(points, labels), expected, rel_tol=1e-9)
