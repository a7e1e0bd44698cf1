"""Matchings of greatest weight, and the odd sets that hold up the relaxation of pairs."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.eaco.cuts import odd_set
from optsched.eaco.cuts.matching import FREE, Matching
from optsched.eaco.cuts.odd_set import odd_sets
from optsched.eaco.exact import branch_and_bound
from optsched.eaco.greedy import published_rules
from optsched.eaco.settings import SETTINGS
from tests.support.oracles.eaco import brute_force
from tests.support.strategies.common import law
from tests.support.strategies.eaco import small_instance


@st.composite
def graphs(draw):
    """Jobs, pairs of them, and even whole weights of these."""
    jobs = draw(st.integers(2, 12))
    pairs = [(a, b) for a in range(jobs) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    most = draw(st.sampled_from([3, 30, 10**6]))
    count = len(chosen)
    weights = draw(st.lists(st.integers(0, most), min_size=count, max_size=count))
    more = draw(st.lists(st.integers(0, 5), min_size=jobs, max_size=jobs))
    return np.array(chosen).T, 2 * np.array(weights), 2 * np.array(more)


def greatest(ends, weights):
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (*pair, w) for pair, w in zip(ends.T.tolist(), weights.tolist(), strict=True)
    )
    return sum(graph[a][b]["weight"] for a, b in nx.max_weight_matching(graph))


@law(1000)
@given(graphs(), st.booleans())
def test_matchings_are_proven_by_their_prices(graph, starts_warm):
    ends, weights, more = graph
    alone = weights.max() + more
    matching = Matching(ends, alone[ends].sum(axis=0) - weights, alone.copy())
    if starts_warm:
        matching.start(np.ones(len(weights)))
    matching.solve()
    paired = {(a, b) for a, b in enumerate(matching.mate) if b != FREE}
    assert paired == {(b, a) for a, b in paired}
    total = sum(
        w
        for pair, w in zip(ends.T.tolist(), weights.tolist(), strict=True)
        if tuple(pair) in paired
    )
    paid = matching.alone[ends].sum(axis=0)
    proven = matching.alone.sum()
    for blossom in matching.priced:
        assert len(blossom.jobs) % 2 == 1
        paid += blossom.dual * np.isin(ends, blossom.jobs).all(axis=0)
        proven += blossom.dual * (len(blossom.jobs) // 2)
    assert (matching.alone >= 0).all()
    assert (paid >= weights).all()
    assert total == proven == greatest(ends, weights)


def test_the_set_of_a_triangle():
    ends = np.array([[0, 1, 2, 0], [1, 2, 0, 3]])
    reduced = np.array([0.0, 0.0, 0.0, 1.0])
    alone = np.array([1.0, 1.0, 1.0, 1.0])
    assert odd_sets(ends, reduced, alone, np.array([0.5, 0.5, 0.5, 0])) == [[0, 1, 2]]


def test_whole_points_need_no_set():
    ends = np.array([[0, 2, 0], [1, 3, 2]])
    sets = odd_sets(ends, np.array([0.0, 0.0, 1.0]), np.ones(4), np.array([1.0, 1.0, 0.0]))
    assert sets == []
    assert odd_sets(ends[:, :0], np.zeros(0), np.ones(4), np.zeros(0)) == []


def test_pairs_that_are_far_at_first_are_found(monkeypatch):
    draw = np.random.default_rng(3)
    ends = np.array([(a, b) for a in range(21) for b in range(a)]).T
    reduced, alone = draw.random(ends.shape[1]), draw.random(21) + 2
    x = np.zeros(ends.shape[1])
    expected = odd_sets(ends, reduced, alone, x)
    monkeypatch.setitem(vars(SETTINGS), "near_pairs", 1)
    monkeypatch.setitem(vars(SETTINGS), "more_pairs", 1)
    assert expected
    assert sorted(odd_sets(ends, reduced, alone, x)) == sorted(expected)


def instance_of(jobs, seed):
    draw = np.random.default_rng(seed)
    types = [f"t{n}" for n in range(jobs)]
    return optsched.eaco.EacoInstance.from_document(
        {
            "schema": "optsched/eaco/1",
            "name": "pairs",
            "max_jobs_per_gpu": 2,
            "gpu_types": [
                {
                    "id": "g",
                    "memory_gb": 24,
                    "power": {"bare_w": 50, "context_w": 100, "peak_w": 350},
                }
            ],
            "nodes": [
                {"id": "a", "gpu": "g", "gpus": 8, "count": -(-jobs // 8), "power": {"base_w": 400}}
            ],
            "types": [
                {
                    "id": name,
                    "utilisation": round(float(draw.uniform(0.05, 0.6)), 3),
                    "memory_gb": round(float(draw.uniform(1, 10)), 1),
                }
                for name in types
            ],
            "jobs": [
                {
                    "id": f"j{n}",
                    "type": name,
                    "work_s": round(math.exp(draw.uniform(7.5, 12))),
                    "max_slowdown": 1.25,
                }
                for n, name in enumerate(types)
            ],
        }
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_root_needs_no_other_cuts(seed, monkeypatch):
    """All sets come from the matching: the relaxation with them is whole, or nearly so."""
    instance = instance_of(30, seed)
    with monkeypatch.context() as patch:
        patch.setitem(vars(SETTINGS), "odd_set_rounds", 0)
        expected = optsched.solve(instance)
    monkeypatch.setattr(branch_and_bound, "violated_cuts", lambda *_: [])
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == expected.status == "optimal"
    assert len(result.certificate.nodes) == 1
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)


def test_jobs_of_one_class_are_left_to_other_cuts():
    instance = small_instance(["a", "a", "a", "b", "c"])
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.objective == pytest.approx(brute_force(instance), rel=1e-9)


def test_what_is_enough_needs_no_cuts(monkeypatch):
    """A start within the gap of the relaxation without cuts ends the search there."""
    instance = instance_of(30, 0)
    monkeypatch.setattr(odd_set, "needed", lambda *_: pytest.fail("a cut is not needed"))
    result = optsched.solve(instance, gap=0.2)
    optsched.verify(instance, result)
    assert result.status == "optimal"


def test_no_greedy_floor_once_it_is_proven(monkeypatch):
    for name in ("fifo", "fifo_packed", "lucid", "eaco", "gandiva", "gandiva_gavel"):
        monkeypatch.setattr(published_rules, name, lambda *_: pytest.fail("a floor is not needed"))
    assert optsched.solve(instance_of(12, 5), "exact").status == "optimal"
