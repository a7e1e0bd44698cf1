"""The exact method against brute force, the specification and every greedy; its certificates."""

import functools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.pal import PalCertificate
from optsched.pal.exact.arrays import arrays
from optsched.pal.exact.branch_and_bound import NodeRelaxation, PlacementTree
from optsched.pal.exact.cuts_and_branching import LpPoint
from optsched.pal.exact.feasibility import find_any
from optsched.pal.exact.lagrangian_bound import Lagrangian
from optsched.pal.exact.large_neighbourhood_search import Neighbourhoods
from optsched.pal.exact.relaxation import all_options
from optsched.pal.exact.rounding import rounded
from optsched.pal.exact.subinstance import joined, only, part
from optsched.pal.greedy.rules import BY_NAME
from optsched.pal.plan import Leaf
from optsched.pal.verify import feasibility
from optsched.pal.verify.certificate import leaf_values, prove
from optsched.pal.verify.costs import SCALE
from optsched.registry import problem
from optsched.results.result_files import read_result
from optsched.search import Infeasible, Search
from optsched.verification import Violation, relative_gap
from tests.support.oracles.pal import bitmask_optimum, plan_cost
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

ALL = {"running": True, "optional": True, "caps": True, "unavailable": True, "measured": True}
GREEDY = [method for method in problem("pal").methods if method.kind == "greedy"]
GAPS = {  # in which each bundled instance is solved in a moment
    "pal/tiny": 1e-6,
    "pal/frontera-32": 1e-6,
    "pal/sia-64": 1e-6,
    "pal/sia-64-persistent": 1e-6,
    "pal/racks-256": 1e-2,
    "pal/sticky": 1e-3,
    "pal/overfull": 1e-6,
}
CAPPED = {"gpus": 2, "highest_level": "node"}
INFEASIBLE = {
    "too many": (small_instance({"a": 2, "b": 1}, jobs=[2, 2]), "need 4 GPUs, but 3 are free"),
    "caps": (
        small_instance({"a": 1, "b": 1}, jobs=[CAPPED]),
        "the jobs need 2 of 2 free GPUs, but with the highest_level of 1 of them",
    ),
    "caps of many": (
        small_instance({"a": 3, "b": 3, "c": 3}, jobs=[CAPPED] * 4),
        "the jobs need 8 of 9 free GPUs, but with the highest_level of 4 of them",
    ),
}


def solved(instance, **options):
    """Solve, and have the verifier prove the outcome."""
    result = optsched.solve(instance, **options)
    optsched.verify(instance, result)
    return result


@functools.cache
def bundled(name):
    instance = optsched.read(name)
    return instance, solved(instance, gap=GAPS[name])


# --- brute force and the specification ----------------------------------------------------------


def test_a_branch_that_a_part_of_a_job_misses_cheaply_is_kept_in_the_end():
    """The tree split by one rule twice, to at least and to at most: no program had a solution."""
    running = {"remaining_s": 1.0, "current": ["n0/0", "n1/0"], "restart_s": 0.2}
    instance = small_instance(
        {"n0": 1, "n1": 1, "n2": 1, "n3": 1, "n4": 1, "n5": 4},
        {"B": [0.8, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 8.0]},
        [{"gpus": 7, "remaining_s": 1.0}, {"gpus": 2, **running}],
        locality={"m": [1.0, 1.0]},
    )
    assert solved(instance, gap=1e-9).objective == pytest.approx(8.9)
    assert solved(instance, gap=1e-9).status == "optimal"


@law(2000)
@given(pal_instances(**ALL, feasible=False))
def test_exact_equals_brute_force(instance):
    optimum = bitmask_optimum(instance)
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    if optimum is None:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum, rel=2e-6, abs=1e-9)
    assert plan_cost(instance, result.plan) == pytest.approx(result.objective, rel=1e-12)


@law(200)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False))
def test_exact_equals_the_formulation(instance):
    exact, milp = (solved(instance, method=name) for name in ("exact", "milp"))
    assert exact.status == milp.status
    if exact.plan is not None:
        assert milp.objective == pytest.approx(exact.objective, rel=2e-6)
        assert max(exact.bound, milp.bound) <= min(exact.objective, milp.objective)


@law(50)
@given(pal_instances(max_gpus=8), st.sampled_from(GREEDY))
def test_greedy_plans_lie_above_the_optimum_and_its_bound(instance, greedy):
    exact = solved(instance)
    search = Search(instance)
    greedy(instance, search)
    assert search.objective is None or search.objective >= exact.objective * (1 - 1e-6)
    assert exact.objective >= exact.bound >= exact.objective * (1 - 1e-6)


@pytest.mark.parametrize("name", optsched.names("pal"))
def test_no_greedy_plan_of_a_bundled_instance_is_better(name):
    instance, exact = bundled(name)
    assert exact.status == "optimal"
    objectives = []
    for method in GREEDY:
        search = Search(instance)
        method(instance, search)
        if search.objective is not None:
            objectives.append(search.objective)
    assert objectives
    assert exact.bound <= exact.objective <= min(objectives)


@law(40)
@given(pal_instances())
def test_measured_penalties_are_those_of_their_envelope(instance):
    given = instance.changed({"locality": instance.penalties, "locality_kind": "given"})
    assert solved(given).objective == solved(instance).objective


# --- no plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", INFEASIBLE)
def test_that_no_plan_exists_is_proven_and_explained(case):
    instance, message = INFEASIBLE[case]
    result = solved(instance)
    assert result.status == "infeasible"
    assert message in result.message
    assert (result.plan, result.objective, result.bound) == (None, None, None)
    assert result.certificate.kind == "infeasible"
    assert 0 < result.certificate.left_out <= 4
    optional = instance.changed({"admission": "optional", "jobs.*.reward": 5.0})
    assert solved(optional).status == "optimal"


@law(60)
@given(pal_instances(optional=False, feasible=False))
def test_some_plan_is_found_wherever_there_is_one(instance):
    search = Search(instance)
    if bitmask_optimum(instance) is not None:
        find_any(instance, search, arrays(instance))
        assert math.isfinite(plan_cost(instance, search.plan))
        return
    with pytest.raises(Infeasible) as proof:
        find_any(instance, search, arrays(instance))
    assert prove(instance, proof.value.certificate) == []


# --- limits -------------------------------------------------------------------------------------


def honest(instance, result, exact):
    """Whether a result states nothing that is not so, given one with a proof."""
    assert result.status in ("feasible", "optimal")
    assert feasibility.violations(instance, result.plan) == []
    assert result.objective == feasibility.objective(instance, result.plan) >= exact.bound
    assert result.gap == relative_gap(result.objective, result.bound)
    if result.certificate is None:
        assert result.status == "feasible"
        assert result.bound is None
        return
    optsched.verify(instance, result)
    assert result.bound <= exact.objective


@pytest.mark.parametrize(
    ("name", "limit_s"),
    [("pal/tiny", 0.0), ("pal/overfull", 0.0), ("pal/sticky", 0.02), ("pal/racks-256", 0.05)],
)
def test_without_time_what_is_stated_is_true(name, limit_s):
    instance, exact = bundled(name)
    result = optsched.solve(instance, time_limit_s=limit_s, gap=0.0)
    honest(instance, result, exact)
    assert "time limit" in result.message or result.status == "optimal"
    assert result.deterministic == (result.message == "")


def test_without_time_an_infeasible_instance_is_an_error():
    instance, _ = INFEASIBLE["caps of many"]
    result = optsched.solve(instance, time_limit_s=0.0)
    assert result.status == "error"
    assert (result.plan, result.bound) == (None, None)


def stop_at(monkeypatch, owner, name, call, *, again):
    """Have a method interrupted at a call; at later ones too if it comes `again`."""
    original, calls = getattr(owner, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) == call or (again and len(calls) > call):
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("name", ["pal/frontera-32", "pal/sia-64", "pal/sticky", "pal/overfull"])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_interrupted_in_the_tree(name, call, monkeypatch):
    instance, exact = bundled(name)
    stop_at(monkeypatch, NodeRelaxation, "relax", call, again=False)
    result = optsched.solve(instance, gap=GAPS[name])
    assert result.message == "stopped early: interrupted"
    assert not result.deterministic
    assert result.bound is not None
    honest(instance, result, exact)


@pytest.mark.parametrize("name", ["pal/tiny", "pal/sticky"])
def test_interrupted_again_while_the_bound_is_proven(name, monkeypatch):
    instance, exact = bundled(name)
    stop_at(monkeypatch, NodeRelaxation, "relax", 2, again=True)
    result = optsched.solve(instance, gap=GAPS[name])
    assert result.status == "feasible"
    assert result.certificate is None
    honest(instance, result, exact)


def test_interrupted_before_there_is_a_plan(monkeypatch):
    stop_at(monkeypatch, NodeRelaxation, "relax", 1, again=True)
    result = optsched.solve(INFEASIBLE["caps of many"][0])
    assert result.status == "error"
    assert result.message == "stopped early: interrupted"


def test_a_gap_ends_the_search_early():
    instance, exact = bundled("pal/frontera-32")
    result = solved(instance, gap=0.05)
    assert result.status == "optimal"
    assert result.deterministic
    assert result.gap <= 0.05 == result.gap_limit
    assert result.bound <= exact.objective
    assert len(result.certificate.nodes) < len(exact.certificate.nodes)


@pytest.mark.parametrize("name", ["pal/tiny", "pal/sia-64", "pal/frontera-32", "pal/racks-256"])
def test_the_same_seed_gives_the_same_bytes(name):
    instance, exact = bundled(name)
    texts = {
        result.model_copy(update={"seconds": 0.0, "verification_s": 0.0}).to_json()
        for result in (exact, optsched.solve(instance, gap=GAPS[name]))
    }
    assert len(texts) == 1


# --- tampering ----------------------------------------------------------------------------------


def verdict(instance, document, tmp_path):
    """Write a result, read it again, and return the rules that it breaks."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    try:
        optsched.verify(instance, read_result(path))
    except Violation as violation:
        return {rule for rule, _ in violation.broken}
    return set()


@pytest.mark.parametrize("name", GAPS)
def test_figures_that_do_not_fit_are_refused(name, tmp_path):
    instance, result = bundled(name)
    text = json.loads(result.to_json())
    objective, bound = text["objective"], text["bound"]
    assert verdict(instance, text, tmp_path) == set()
    for changes, rules in [
        ({"objective": math.nextafter(objective, math.inf)}, {"objective"}),
        ({"objective": None}, {"objective"}),
        ({"bound": math.nextafter(bound, 0)}, {"bound"}),
        ({"bound": None}, {"bound", "gap"}),
        ({"gap": text["gap"] + 1e-9}, {"gap"}),
        ({"gap": None}, {"gap", "status"}),
        ({"status": "infeasible"}, {"status"}),
        ({"status": "error"}, {"status"}),
        ({"status": "feasible"}, set()),
        ({"certificate": None}, {"certificate"}),
        ({"plan": None}, {"status"}),
    ]:
        broken = verdict(instance, text | changes, tmp_path)
        assert rules <= broken if rules else not broken, changes


@pytest.mark.parametrize("name", GAPS)
def test_plans_with_one_change_are_refused(name, tmp_path):
    instance, result = bundled(name)
    text = json.loads(result.to_json())
    jobs = [n for n, job in enumerate(text["plan"]["jobs"]) if job.get("gpus")]
    first, second = jobs[0], jobs[1]

    def changed(n, gpus):
        plan = json.loads(json.dumps(text["plan"]))
        plan["jobs"][n]["gpus"] = gpus
        return verdict(instance, text | {"plan": plan}, tmp_path)

    held = text["plan"]["jobs"][first]["gpus"]
    others = text["plan"]["jobs"][second]["gpus"]
    assert "one-job-per-gpu" in changed(first, [others[0], *held[1:]])
    assert "gang" in changed(first, [*held, held[0]])
    assert "gang" in changed(first, [*held, others[0]])
    assert changed(first, held[1:]) & {"gang", "all-placed", "objective"}
    assert "known-gpu" in changed(first, ["nowhere", *held[1:]])
    plan = {"jobs": [job for n, job in enumerate(text["plan"]["jobs"]) if n != first]}
    assert "every-job" in verdict(instance, text | {"plan": plan}, tmp_path)


def replaced(document, path, value):
    """A copy of a document with the value at a path replaced."""
    if not path:
        return value
    first, *rest = path
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[first] = replaced(document[first], rest, value)
    return copy


def leaves(text):
    return [(n, node) for n, node in enumerate(text["nodes"]) if "gpu_prices" in node]


def expensive_gpus(text):
    for n, leaf in leaves(text):
        for g, price in enumerate(leaf["gpu_prices"]):
            yield replaced(text, ["nodes", n, "gpu_prices", g], price + 100 * text["bound"])


def no_gpu_prices(text):
    for n, leaf in leaves(text):
        if any(leaf["gpu_prices"]):
            yield replaced(text, ["nodes", n, "gpu_prices"], [0.0] * len(leaf["gpu_prices"]))


def no_split_prices(text):
    for n, leaf in leaves(text):
        if any(leaf.get("split_prices", [])):
            yield replaced(text, ["nodes", n, "split_prices"], [0.0] * len(leaf["split_prices"]))


def wrong_trees(text):
    for n, node in enumerate(text["nodes"]):
        if "cases" in node:
            low, high = node["cases"]
            for cases in ([low, low], [n, high], [low, len(text["nodes"])]):
                yield replaced(text, ["nodes", n, "cases"], cases)


def lost_nodes(text):
    for n, _ in leaves(text)[1:]:
        yield text | {"nodes": [*text["nodes"][:n], *text["nodes"][n + 1 :]]}


def wrong_lengths(text):
    for n, leaf in leaves(text):
        yield replaced(text, ["nodes", n, "gpu_prices"], leaf["gpu_prices"][1:])
        splits = [*leaf.get("split_prices", []), 0.0]
        yield replaced(text, ["nodes", n, "split_prices"], splits)


def refusals(name, tamper):
    """Whether the verifier refuses each of half a dozen tampered certificates."""
    instance, result = bundled(name)
    forged = list(tamper(json.loads(result.certificate.to_json())))
    return [
        bool(prove(instance, PalCertificate.model_validate_json(json.dumps(text))))
        for text in forged[:: max(1, len(forged) // 6)]
    ]


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("tamper", [wrong_trees, lost_nodes, wrong_lengths])
def test_what_is_no_tree_of_cases_is_refused(name, tamper):
    answers = refusals(name, tamper)
    assert all(answers)
    assert answers or len(bundled(name)[1].certificate.nodes) == 1


@pytest.mark.parametrize("name", GAPS)
def test_wrong_prices_are_refused(name):
    """Most of them: a price can also be changed so that its case proves as much or more."""
    answers = [refused for t in (expensive_gpus, no_gpu_prices) for refused in refusals(name, t)]
    assert sum(answers) >= len(answers) / 2


@pytest.mark.parametrize("name", ["pal/frontera-32", "pal/sia-64", "pal/overfull"])
def test_prices_of_splits_are_needed(name):
    assert any(refusals(name, no_split_prices))


@pytest.mark.parametrize("name", GAPS)
def test_a_bound_that_is_raised_is_refused(name):
    """By itself, with no plan beside it; where the tree ends with a wider gap, if it is false."""
    instance, result = bundled(name)
    limits = [result.objective * (1 + 1e-9)]
    if result.gap < 1e-6:
        limits.append(result.bound * (1 + 1e-6))
    for bound in limits:
        certificate = result.certificate.model_copy(update={"bound": bound})
        assert [rule for rule, _ in prove(instance, certificate)] == ["bound"]


@pytest.mark.parametrize(
    "name",
    ["pal/frontera-32", "pal/overfull", "pal/sia-64", "pal/sia-64-persistent", "pal/sticky"],
)
def test_exclusions_are_needed_and_proven(name):
    instance, result = bundled(name)
    text = json.loads(result.certificate.to_json())
    (exclusion,) = text["exclusions"]
    price = exclusion["gpu_prices"][0] + 100 * text["bound"]
    for wrong in ([], [replaced(exclusion, ["gpu_prices", 0], price)]):
        certificate = PalCertificate.model_validate_json(json.dumps(text | {"exclusions": wrong}))
        assert [rule for rule, _ in prove(instance, certificate)] == ["bound"]


def numbers(part, path=()):
    """Yield the path of every number of a document."""
    if isinstance(part, float | int):
        yield path
    elif isinstance(part, dict | list):
        pairs = part.items() if isinstance(part, dict) else enumerate(part)
        for key, inner in pairs:
            yield from numbers(inner, (*path, key))


@law(150)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False), st.data())
def test_a_changed_number_is_refused_unless_what_is_stated_is_true(instance, data):
    """Prices, counts, children, rules and figures; the verifier never takes a falsehood."""
    optimum = bitmask_optimum(instance)
    text = json.loads(solved(instance).certificate.to_json())
    path = data.draw(st.sampled_from(sorted(numbers(text), key=str)))
    value = functools.reduce(lambda place, step: place[step], path, text)
    if isinstance(value, int):
        changed = data.draw(st.integers(0, 4))
    else:
        changed = value * data.draw(st.sampled_from([0.0, 0.5, 1 + 1e-6, 2.0, 1000.0]))
    wrong = PalCertificate.model_validate_json(json.dumps(replaced(text, path, changed)))
    if prove(instance, wrong):
        return
    if wrong.kind == "infeasible":
        assert optimum is None
    else:
        assert optimum is None or wrong.bound <= optimum * (1 + 1e-12)


# --- what the floats say, and what the verifier finds -------------------------------------------


def rewards(problem_arrays):
    return np.array([jobs.reward for jobs in problem_arrays.types])


@law(60)
@given(pal_instances(feasible=False), st.integers(0, 30))
def test_bounds_of_nodes_are_those_of_the_verifier_but_for_rounding(instance, most_nodes):
    assume(instance.admission == "optional" or bitmask_optimum(instance) is not None)
    problem_arrays = arrays(instance)
    penalty = 4 * sum(job.weight * (job.remaining_s or 1) * 100 for job in instance.jobs)
    tree = PlacementTree(
        NodeRelaxation(
            problem_arrays, all_options(problem_arrays), rewards(problem_arrays), penalty, 0
        ),
        lambda: None,
    )
    assert tree.solve_root()
    tree.explore(lambda: np.inf, lambda node: None, most_nodes)
    certificate = tree.certificate(instance, "prices", [], np.inf)
    values = leaf_values(instance, certificate)
    assert list(values) == [n for n, node in enumerate(tree.nodes) if node.disjunction is None]
    for n, value in values.items():
        assert value is not None
        exact, size = value / SCALE, priced(certificate.nodes[n]) + penalty
        assert exact - 1e-9 * size <= tree.nodes[n].bound
        assert tree.nodes[n].bound * SCALE <= value


def priced(leaf):
    """The size of the terms that a value is the sum of."""
    cuts = sum(cut.price for cut in leaf.cuts)
    return sum(leaf.gpu_prices) + 10 * (sum(leaf.split_prices) + cuts)


@law(150)
@given(
    pal_instances(), st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0, 1e3]), min_size=9, max_size=9)
)
def test_values_of_prices_of_gpus_are_those_of_the_verifier_but_for_rounding(instance, prices):
    problem_arrays = arrays(instance)
    options = all_options(problem_arrays)
    prices = np.array(prices[: len(problem_arrays.gpus)])
    floats = Lagrangian(problem_arrays, options, rewards(problem_arrays))
    value = floats.priced(prices, np.zeros(len(options.type)), 0.0).value
    leaf = Leaf(gpu_prices=tuple(prices.tolist()))
    (exact,) = leaf_values(instance, PalCertificate(nodes=(leaf,))).values()
    assert value * SCALE <= exact
    most = exact / SCALE + 2 * float(prices.sum())
    assert exact / SCALE - value <= 1e-9 * most


# --- plans from points, and from parts of plans -------------------------------------------------


def any_plan(instance, seed):
    """A plan on GPUs that are drawn; None if the draw ends in a dead end."""
    return BY_NAME["random-non-sticky"].plan(instance, seed)


def column(problem_arrays, options, n, gpus):
    """The option that a job has on its GPUs."""
    gpus = np.sort(gpus)
    kept = {keep.job: keep.gpus for keep in problem_arrays.keeps}
    if n in kept and np.array_equal(kept[n], gpus):
        return int(np.flatnonzero(options.job == n)[0])
    t = next(t for t, jobs in enumerate(problem_arrays.types) if n in jobs.jobs)
    around = (problem_arrays.domains.start <= gpus[0]) & (problem_arrays.domains.stop > gpus[-1])
    mine = (options.type == t) & (options.domain == np.flatnonzero(around)[0]) & (options.job < 0)
    mine &= options.slowdown == problem_arrays.slowdown[problem_arrays.types[t].row, gpus].max()
    (option,) = np.flatnonzero(mine)
    return int(option)


@law(150)
@given(pal_instances(), st.integers(0, 9))
def test_whole_points_become_plans_that_cost_no_more(instance, seed):
    plan = any_plan(instance, seed)
    assume(plan is not None)
    problem_arrays = arrays(instance)
    options = all_options(problem_arrays)
    number = {gpu: n for n, gpu in enumerate(problem_arrays.gpus)}
    columns = [
        column(problem_arrays, options, n, [number[gpu] for gpu in placement.gpus])
        for n, placement in enumerate(plan.jobs)
        if placement.gpus
    ]
    used, counts = np.unique(np.array(columns, dtype=np.intp), return_counts=True)
    packed = rounded(problem_arrays, options, LpPoint(used, counts.astype(float)))
    cost = feasibility.objective(instance, plan)
    assert plan_cost(instance, packed.plan(instance)) <= cost * (1 + 1e-9)
    packed.reinsert()
    assert plan_cost(instance, packed.plan(instance)) <= cost * (1 + 1e-9)


@law(60)
@given(pal_instances(), st.integers(0, 9), st.data())
def test_a_part_of_a_plan_is_reoptimised(instance, seed, data):
    plan = any_plan(instance, seed)
    assume(plan is not None)
    chosen = data.draw(st.lists(st.sampled_from(instance.jobs), min_size=1, unique_by=id))
    smaller, mine = part(instance, plan, chosen), only(plan, chosen)
    assert feasibility.violations(smaller, mine) == []
    assert joined(plan, mine) == plan
    result = optsched.solve(smaller)
    whole = joined(plan, result.plan)
    before, after = (feasibility.objective(instance, each) for each in (plan, whole))
    assert feasibility.violations(instance, whole) == []
    saved = feasibility.objective(smaller, mine) - result.objective
    assert after == pytest.approx(before - saved, rel=1e-9)
    assert saved >= 0


def test_neighbourhoods_are_drawn_by_the_seed():
    instance, result = bundled("pal/racks-256")
    drawn = [Neighbourhoods(instance, seed) for seed in (1, 1, 2)]
    first, again, other = ([n.draw(result.plan) for _ in range(8)] for n in drawn)
    assert first == again != other
    for jobs in first:
        names = [job.id for job in jobs]
        assert len(set(names)) == len(names) <= 45
        assert (
            feasibility.violations(part(instance, result.plan, jobs), only(result.plan, jobs)) == []
        )
