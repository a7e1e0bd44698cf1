"""The method "node-classes": equal nodes aggregated, patterns, and the aggregated bound."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from benchmarks.suite.node_kinds import two_kinds, usual_kinds
from optsched.mip.incremental_lp import LinearProgram
from optsched.pal import PalInstance
from optsched.pal.exact import solver as exact_solver
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.relaxation import all_options, relaxation
from optsched.pal.node_classes import solver as node_classes
from optsched.pal.node_classes.aggregated_relaxation import AggregatedRelaxation, _AggregatedBuilder
from optsched.pal.node_classes.aggregation import aggregated
from optsched.pal.node_classes.disaggregation import Places
from optsched.pal.node_classes.pattern_master import PatternMaster
from optsched.pal.node_classes.pattern_pricing import PatternPricing, gang_cost
from optsched.pal.node_classes.warm_start import WarmPatterns, keeping
from optsched.pal.plan import Leaf, PalCertificate
from optsched.pal.settings import SETTINGS
from optsched.pal.verify.certificate import leaf_values
from optsched.pal.verify.costs import SCALE
from optsched.results.result_files import read_result
from optsched.search import Search
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance


@st.composite
def equal_nodes(draw, **features):
    """Instances whose nodes are alike as far as they have equally many GPUs, in some order."""
    instance = draw(pal_instances(**features))
    text = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    profile, number = text["profile"], {gpu: n for n, gpu in enumerate(text["profile"]["gpus"])}
    first = {}
    for domain in text["topology"]["domains"]:
        mine = [number[gpu] for gpu in domain.get("gpus", ())]
        others = first.setdefault(len(mine), mine)
        order = draw(st.permutations(others)) if draw(st.booleans()) else others
        for values in profile["slowdown"].values():
            for n, other in zip(mine, [values[other] for other in order], strict=True):
                values[n] = other
    return PalInstance.from_document(text)


def cluster(nodes, classes, jobs, **fields):
    """Nodes of 4 GPUs of some classes below one domain, and one-class jobs."""
    values = [1 + 0.1 * ((n % classes) * 4 + g) for n in range(nodes) for g in range(4)]
    return small_instance({f"n{n}": 4 for n in range(nodes)}, {"A": values}, jobs, **fields)


def solved(instance, method="node-classes", **options):
    result = optsched.solve(instance, method, **options)
    if result.plan is not None:
        optsched.check(instance, result.plan)
    optsched.verify(instance, result)
    return result


def bound_of(instance, penalty=1e4):
    relaxed = AggregatedRelaxation(aggregated(instance), penalty, 0)
    solution = relaxed.solve(None)
    return relaxed, solution.objective, relaxed.bound_of(solution)


# --- laws ---------------------------------------------------------------------------------------


@law(500)
@given(equal_nodes())
def test_merging_nodes_loses_nothing(instance):
    """The relaxation is the same with each node for itself, and at least F7 of the whole."""
    nodes = aggregated(instance)
    _, objective, bound = bound_of(instance)
    apart = [
        dataclasses.replace(
            node_class, gpus=node_class.gpus[n : n + 1], jobs=node_class.jobs[n : n + 1]
        )
        for node_class in nodes.classes
        for n in range(node_class.count)
    ]
    alone = AggregatedRelaxation(dataclasses.replace(nodes, classes=tuple(apart)), 1e4, 0)
    assert objective == pytest.approx(alone.solve(None).objective, rel=1e-9)
    problem = arrays(instance)
    options = all_options(problem)
    reward = np.minimum([jobs.reward for jobs in problem.types], 1e4)
    whole = LinearProgram(relaxation(problem, options, reward)).solve()
    assert objective >= whole.objective * (1 - 1e-9)
    assert bound.value >= objective * (1 - 1e-7)


@law(500)
@given(equal_nodes())
def test_prices_prove_the_bound_exactly(instance):
    relaxed, _, bound = bound_of(instance)
    leaf = Leaf(gpu_prices=tuple(relaxed.gpu_prices(bound).tolist()))
    (exact,) = leaf_values(instance, PalCertificate(bound=0.0, nodes=(leaf,))).values()
    assert bound.value * SCALE <= exact
    rounding = 1e-9 + 1e-12 * sum(leaf.gpu_prices)
    assert bound.value == pytest.approx(exact / SCALE, rel=1e-9, abs=rounding)
    again = relaxed.bound_of_gpus(relaxed.gpu_prices(bound)).value
    assert bound.value == pytest.approx(again, rel=1e-9, abs=rounding)


@law(500)
@given(pal_instances(max_gpus=6), st.data())
def test_fillings_of_nodes_are_the_best(instance, data):
    nodes = aggregated(instance)
    saved = st.floats(0, 3 * float(nodes.slowdown.max()) * 100)
    prices = np.array([data.draw(saved) for _ in nodes.types])
    filled = PatternPricing(nodes).fill(prices, np.full(len(nodes.classes), np.inf))
    for pattern, value in zip(sorted(filled.patterns), filled.values.tolist(), strict=True):
        node_class = nodes.classes[pattern.node_class]
        least = best_filling(nodes, node_class, prices, frozenset(range(len(node_class.gpus[0]))))
        assert value == pytest.approx(least, rel=1e-9, abs=1e-9)
        paid = sum(prices[gang.type] for gang in pattern.gangs)
        assert pattern.cost - paid == pytest.approx(value, rel=1e-9, abs=1e-9)
        taken = [position for gang in pattern.gangs for position in gang.positions]
        assert len(taken) == len(set(taken))
        is_kept = [(g.type, g.positions) for g in pattern.gangs if g.is_kept]
        assert set(is_kept) <= set(node_class.keeps)


def best_filling(nodes, node_class, prices, free):
    """Try every gang on every set of free GPUs, and then what is left."""
    best = 0.0
    for t, jobs in enumerate(nodes.types):
        for chosen in combinations(sorted(free), jobs.gpus):
            is_kept = (t, chosen) in node_class.keeps
            slowest = max(node_class.slowdown[jobs.row, g] for g in chosen)
            cost = jobs.factor[0] * slowest + (0.0 if is_kept else jobs.moving)
            rest = frozenset(g for g in free if g > min(chosen)) - set(chosen)
            best = min(best, cost - prices[t] + best_filling(nodes, node_class, prices, rest))
    return best


# --- merging ------------------------------------------------------------------------------------


def counts(instance):
    return sorted(node_class.count for node_class in aggregated(instance).classes)


def test_nodes_with_the_same_gpus_in_any_order_are_of_one_class():
    values = {"A": [1.0, 1.2, 1.2, 1.0, 1.0, 1.0], "B": [1.0, 1.1, 1.1, 1.0, 1.1, 1.0]}
    nodes = {"a": 2, "b": 2, "c": 2}
    jobs = [{"gpus": 1}, {"gpus": 1, "application_class": "B"}]
    assert counts(small_instance(nodes, values, jobs)) == [1, 2]
    assert counts(small_instance(nodes, values, jobs[:1])) == [1, 2]
    assert counts(small_instance(nodes, values, jobs[1:])) == [3]  # class A is of no interest


def test_racks_matter_only_to_gangs_that_may_leave_a_node():
    nodes = {"r0": {"a": 2, "b": 2}, "r1": {"c": 2, "d": 2}}
    assert counts(small_instance(nodes, jobs=[4])) == [2, 2]
    capped = {"gpus": 2, "highest_level": "node"}
    assert counts(small_instance(nodes, jobs=[capped, 1])) == [4]
    in_racks = {"gpus": 3, "highest_level": "rack"}
    assert counts(small_instance(nodes, jobs=[in_racks])) == [2, 2]


def test_nodes_are_of_one_class_if_they_run_the_same():
    def running(*holdings, restart_s=1.0):
        jobs = [
            {"gpus": len(gpus), "current": gpus, "remaining_s": 5.0, "restart_s": restart_s}
            for gpus in holdings
        ]
        return counts(small_instance({"a": 2, "b": 2, "c": 2}, jobs=jobs))

    assert running(["a/0"], ["b/1"]) == [1, 1, 1]  # equal GPUs, but not in one position
    assert running(["a/0"], ["b/0"]) == [1, 2]
    assert running(["a/0", "a/1"], ["b/0", "b/1"], ["c/0", "c/1"]) == [3]
    assert running(["a/0", "b/0"], ["c/0", "c/1"]) == [1, 1, 1]
    assert running(["a/0"], restart_s=0.0) == [3]  # staying is worth nothing


# --- plans --------------------------------------------------------------------------------------

JOBS = [4, 2, 2, 1, 1, 1, 1] * 8


def test_many_nodes_of_few_classes_are_near_the_optimum():
    instance = cluster(32, 4, JOBS)
    result = solved(instance, gap=1e-3)
    assert result.gap <= 1e-3
    assert result.bound <= solved(instance, "exact", gap=0.02).objective
    (leaf,) = result.certificate.nodes
    prices = np.array(leaf.gpu_prices).reshape(8, 4, 4)
    assert (prices == prices[0]).all()


def test_gangs_larger_than_a_node_and_jobs_that_fit_nowhere_else_are_placed():
    instance = cluster(8, 2, [7, 5, 3, 3, 3, 3, 4, 2, 1])
    result = solved(instance, gap=0.2)
    assert result.gap <= 0.2
    assert [len(placement.gpus) for placement in result.plan.jobs] == [7, 5, 3, 3, 3, 3, 4, 2, 1]


def test_jobs_that_are_not_worth_it_are_left_out():
    jobs = [{"gpus": 4, "reward": 0.5}] * 3 + [{"gpus": 1, "reward": 9.0}] * 3
    result = solved(cluster(4, 2, jobs, admission="optional"))
    assert [len(placement.gpus) for placement in result.plan.jobs] == [0, 0, 0, 1, 1, 1]
    assert result.gap <= 1e-6


def test_running_jobs_move_only_if_it_pays():
    """The fastest GPUs are free, and worth the restart of one job but not of the other."""
    jobs = [
        {"gpus": 4, "current": [f"n{n}/{g}" for g in range(4)], "remaining_s": 10.0}
        | {"restart_s": restart}
        for n, restart in ((1, 1.0), (3, 9.0))
    ]
    result = solved(cluster(4, 2, jobs))
    homes = [placement.gpus[0].split("/")[0] for placement in result.plan.jobs]
    assert homes[0] in ("n0", "n2")
    assert homes[1] == "n3"
    assert result.gap <= 1e-6


def test_jobs_that_run_alike_stay_beside_new_ones():
    running = [
        {"gpus": 2, "current": [f"n{n}/0", f"n{n}/1"], "remaining_s": 1.0, "restart_s": 99.0}
        for n in range(6)
    ]
    instance = cluster(6, 1, [*running, *[{"gpus": 2, "remaining_s": 1.0}] * 6])
    assert counts(instance) == [6]
    search = Search(instance)  # without the greedy methods that `solve` may run after this one
    node_classes.by_node_class(instance, search)
    assert search.objective == pytest.approx(6 * 1.1 + 6 * 1.3)
    assert bound_of(instance)[2].value == pytest.approx(search.objective)
    (pattern,) = (
        PatternPricing(aggregated(instance)).fill(np.array([2.0, 50.0]), np.zeros(1)).patterns
    )
    assert [gang.is_kept for gang in pattern.gangs] == [False, True]


def test_patterns_keep_jobs_where_they_run():
    held = {"gpus": 2, "remaining_s": 1.0, "restart_s": 9.0}
    jobs = [held | {"current": [f"n{n}/0", f"n{n}/1"]} for n in (2, 0, 1)]
    nodes = aggregated(cluster(3, 1, jobs))
    places = Places(nodes, nodes.besides(0), list(keeping(nodes)), np.array([3]))
    assert places.gpus == {0: [8, 9], 1: [0, 1], 2: [4, 5]}
    assert places.missing == []


def test_the_first_gpus_of_nodes_may_stay_idle():
    values = {"A": [1.0, 2.0] * 3, "B": [2.0, 1.0] * 3}
    jobs = [{"gpus": 1, "application_class": name, "weight": 9.0} for name in "BBBA"]
    instance = small_instance({"a": 2, "b": 2, "c": 2}, values, jobs)
    assert PatternPricing(aggregated(instance)).fill(np.array([0.0, 10.0]), np.zeros(1)).values == [
        -1.0
    ]
    assert solved(instance).objective == 36.0


def test_what_cannot_be_placed_is_infeasible():
    assert solved(cluster(8, 2, [8] * 5)).status == "infeasible"
    capped = {"gpus": 3, "highest_level": "node"}
    assert solved(cluster(3, 1, [capped] * 4)).status == "infeasible"


def test_no_time_is_a_plan_with_a_true_bound():
    instance = cluster(32, 4, JOBS)
    result = solved(instance, time_limit_s=0)
    assert result.status == "feasible"
    assert not result.deterministic
    assert 0 <= result.bound <= solved(instance, gap=0.01).objective


def test_nodes_with_many_gpus_are_left_to_exact(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "most_node_gpus", 3)
    monkeypatch.setattr(node_classes, "aggregated", None)
    assert solved(cluster(4, 2, [4, 2, 1]), gap=1e-6).gap <= 1e-6


def test_large_clusters_of_few_node_classes_are_solved_by_them(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "large_gpus", 100)
    of_few = solved(cluster(32, 4, JOBS), "exact", gap=0.01)
    assert isinstance(of_few.state, WarmPatterns)
    of_many = solved(cluster(32, 32, JOBS), "exact", gap=0.05)
    assert not isinstance(of_many.state, WarmPatterns)
    with_wide = solved(cluster(32, 4, [16, 16, 16, *JOBS[:20]]), "exact", gap=0.05)
    assert not isinstance(with_wide.state, WarmPatterns)


def test_nodes_of_few_kinds_are_no_cliff_on_clusters_that_are_not_large():
    """Up to 2,048 GPUs the tree alone left 3 to 5 % open here, after ten times the time."""
    for instance in (two_kinds(128), usual_kinds(128, 8)):
        asked = {"gap": 0.01, "time_limit_s": 100}
        by_classes, result = solved(instance, **asked), solved(instance, "exact", **asked)
        assert result.status == "optimal"
        assert result.objective <= by_classes.objective
        assert result.bound >= by_classes.bound


def test_racks_do_not_make_many_kinds_of_few(monkeypatch):
    instance = usual_kinds(192, 16)
    nodes = node_classes.few_node_classes(instance, Search(instance))
    assert len(nodes.classes) == 9
    monkeypatch.setitem(vars(SETTINGS), "large_gpus", 100)
    monkeypatch.setitem(vars(SETTINGS), "most_wide_share", 0.0)
    assert node_classes.few_node_classes(instance, Search(instance)) is None


def test_the_tree_goes_on_from_plan_and_bound_of_node_classes(monkeypatch):
    """Whichever proves more is stated, by the prices that prove it."""
    monkeypatch.setattr(node_classes, "run_lns", lambda *given: None)
    monkeypatch.setitem(vars(SETTINGS), "work", 0)
    monkeypatch.setitem(vars(SETTINGS), "least_nodes", 3)
    for name in ("_improve", "_improve_parts"):
        monkeypatch.setattr(exact_solver.PlacementSolver, name, lambda *given: None)
    instance = usual_kinds(64, 16)
    by_classes = solved(instance, gap=1e-9, plans=())
    assert by_classes.status == "feasible"
    result = solved(instance, "exact", gap=1e-9, plans=())
    assert result.objective <= by_classes.objective
    assert result.bound >= by_classes.bound


def test_an_epoch_goes_on_from_node_classes_only_if_the_last_prices_are_not_enough(monkeypatch):
    jobs = [{"gpus": size, "highest_level": "node"} for size in (*JOBS, *JOBS)]
    first, later = cluster(64, 4, jobs), cluster(64, 4, jobs[1:])
    result = solved(first, "exact", gap=0.01)
    again = solved(later, "exact", gap=0.01, start=result)
    monkeypatch.setattr(exact_solver.PlacementSolver, "resume", lambda self: None)
    assert solved(later, "exact", gap=0.01, start=result).status == again.status == "optimal"


# --- the next epoch -----------------------------------------------------------------------------


def epochs(monkeypatch):
    """An instance, its result, the instance an epoch later; and the rounds of pricing so far."""
    rounds = []
    fill = PatternPricing.fill
    monkeypatch.setattr(PatternPricing, "fill", lambda *args: rounds.append(1) or fill(*args))
    jobs = [{"gpus": size, "highest_level": "node"} for size in (*JOBS, *JOBS, 1, 1, 2, 4)]
    first, later = cluster(64, 4, jobs[:-4]), cluster(64, 4, jobs[5:])
    return first, solved(first, gap=1e-3), later, rounds


def test_the_next_epoch_goes_on_with_patterns_and_relaxation(monkeypatch):
    _, result, later, rounds = epochs(monkeypatch)
    cold = solved(later, gap=1e-3)
    before = len(rounds)
    monkeypatch.setattr(_AggregatedBuilder, "program", None)
    warm, again = (solved(later, gap=1e-3, start=result) for _ in range(2))
    assert len(rounds) - before <= 6  # in both; against a dozen in one
    assert warm.gap <= 1e-3
    assert warm.bound == pytest.approx(cold.bound, rel=1e-6)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-3)
    for one, other in ((warm.plan, again.plan), (warm.certificate, again.certificate)):
        assert one.to_json() == other.to_json()


def test_nodes_may_come_and_go_between_epochs(monkeypatch):
    first, result, _, _ = epochs(monkeypatch)
    gone = [f"n{n}/{g}" for n in range(0, 56, 4) for g in range(4)]
    fewer = first.changed({"unavailable": gone})
    cold, warm = solved(fewer, gap=1e-3), solved(fewer, gap=1e-3, start=result)
    assert warm.bound == pytest.approx(cold.bound, rel=1e-9)
    assert warm.bound > result.bound * (1 + 1e-6)


def test_an_epoch_may_begin_with_a_result_from_a_file(monkeypatch, tmp_path):
    """Without anything in memory its prices still do."""
    first, result, later, _ = epochs(monkeypatch)
    optsched.write(result, tmp_path / "result.json")
    start = read_result(tmp_path / "result.json").of(first)
    monkeypatch.setattr(AggregatedRelaxation, "solve", None)
    warm = solved(later, gap=0.02, start=start)
    assert warm.gap <= 0.02


def test_other_classes_and_types_are_begun_afresh(monkeypatch):
    first, result, _, _ = epochs(monkeypatch)
    for other in (cluster(64, 3, JOBS), cluster(60, 4, [3, 3, 1]), cluster(9, 9, [5, 1])):
        assert solved(other, gap=0.2, start=result).gap <= 0.2
    assert solved(first, gap=1e-3, start=solved(first, "exact", gap=0.1)).gap <= 1e-3


def test_the_same_seed_gives_the_same_bytes():
    instance = cluster(32, 4, JOBS)
    first, second = (solved(instance, gap=1e-3, seed=3) for _ in range(2))
    assert first.plan.to_json() == second.plan.to_json()
    assert first.certificate.to_json() == second.certificate.to_json()


# --- the master ---------------------------------------------------------------------------------


def test_the_master_is_near_the_best_whole_numbers():
    nodes = aggregated(cluster(8, 2, [1] * 9 + [2] * 4 + [4] * 2))
    jobs = np.array([len(jobs.jobs) for jobs in nodes.types])
    have = np.array([node_class.count for node_class in nodes.classes])
    master = PatternMaster(nodes, jobs, have, np.full(len(jobs), 100.0), 0)
    uses = master.solve(lambda: None)
    whole = master.whole(uses, None)
    placed = np.zeros(len(jobs))
    for pattern, times in zip(master.patterns, whole.tolist(), strict=True):
        have[pattern.node_class] -= times
        for gang in pattern.gangs:
            placed[gang.type] += times
        costs = [
            gang_cost(nodes.types, nodes.classes[pattern.node_class], g) for g in pattern.gangs
        ]
        assert pattern.cost == pytest.approx(sum(costs))
    assert (have >= 0).all()
    assert (placed >= jobs).all()
