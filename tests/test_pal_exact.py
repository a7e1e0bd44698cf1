"""The exact method against brute force, the specification and every greedy; and its certificates."""

import functools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.check import Violation, relative_gap
from optsched.pal import PalCertificate, check, packing
from optsched.pal.arrays import arrays
from optsched.pal.cases import Cases
from optsched.pal.lagrange import Lagrangian
from optsched.pal.misfit import find_any
from optsched.pal.neighbourhoods import Neighbourhoods, joined, only, part
from optsched.pal.plan import Leaf
from optsched.pal.pricing import SCALE
from optsched.pal.proof import leaf_values, prove
from optsched.pal.relaxation import labels
from optsched.pal.rounding import rounded
from optsched.pal.rules import Point
from optsched.pal.tree import Tree
from optsched.problems import problem
from optsched.result import read_result
from optsched.solve import Infeasible, Search
from pal_oracles import bitmask_optimum, plan_cost
from pal_strategies import pal_instances, small_instance
from strategies import law

ALL = {"running": True, "optional": True, "caps": True, "unavailable": True, "measured": True}
GREEDY = [method for method in problem("pal").methods if method.kind == "greedy"]
GAPS = {  # in which each bundled instance is solved in a moment
    "pal/tiny": 1e-6,
    "pal/frontera-32": 1e-6,
    "pal/sia-64": 1e-6,
    "pal/sia-64-persistent": 1e-6,
    "pal/racks-256": 1e-2,
    "pal/sticky": 1e-3,
    "pal/overfull": 1e-3,
}
CAPPED = {"gpus": 2, "highest_level": "node"}
MISFITS = {
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
    """Solve, and have the judge prove the outcome."""
    result = optsched.solve(instance, **options)
    optsched.verify(instance, result)
    return result


@functools.cache
def bundled(name):
    instance = optsched.read(name)
    return instance, solved(instance, gap=GAPS[name])


# --- brute force and the specification ----------------------------------------------------------


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


@law(150)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False))
def test_exact_equals_the_formulation(instance):
    exact, milp = (solved(instance, method=name) for name in ("exact", "milp"))
    assert exact.status == milp.status
    if exact.plan is not None:
        assert milp.objective == pytest.approx(exact.objective, rel=2e-6)
        assert max(exact.bound, milp.bound) <= min(exact.objective, milp.objective)


@law(100)
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
    found = []
    for method in GREEDY:
        search = Search(instance)
        method(instance, search)
        if search.objective is not None:
            found.append(search.objective)
    assert found
    assert exact.bound <= exact.objective <= min(found)


@law(60)
@given(pal_instances())
def test_measured_penalties_are_those_of_their_envelope(instance):
    given = instance.changed({"locality": instance.penalties, "locality_kind": "given"})
    assert solved(given).objective == solved(instance).objective


# --- no plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MISFITS)
def test_that_no_plan_exists_is_proven_and_explained(case):
    instance, message = MISFITS[case]
    result = solved(instance)
    assert result.status == "infeasible"
    assert message in result.message
    assert (result.plan, result.objective, result.bound) == (None, None, None)
    assert result.certificate.kind == "misfit"
    assert 0 < result.certificate.left_out <= 4
    optional = instance.changed({"admission": "optional", "jobs.*.reward": 5.0})
    assert solved(optional).status == "optimal"


@law(60)
@given(pal_instances(optional=False, feasible=False))
def test_some_plan_is_found_wherever_there_is_one(instance):
    search = Search(instance)
    try:
        find_any(instance, search, arrays(instance))
    except Infeasible as proof:
        assert bitmask_optimum(instance) is None
        assert prove(instance, proof.certificate) == []
        return
    assert math.isfinite(plan_cost(instance, search.plan))


# --- limits -------------------------------------------------------------------------------------


def honest(instance, result, best):
    """Whether a result states nothing that is not so, given the best known objective."""
    assert result.status in ("feasible", "optimal")
    assert check.violations(instance, result.plan) == []
    assert result.objective == check.objective(instance, result.plan) >= best * (1 - 1e-6)
    assert result.gap == relative_gap(result.objective, result.bound)
    if result.certificate is None:
        assert result.status == "feasible"
        assert result.bound is None
        return
    optsched.verify(instance, result)
    assert result.bound <= best


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("limit_s", [0.0, 0.02])
def test_without_time_what_is_stated_is_true(name, limit_s):
    instance, exact = bundled(name)
    result = optsched.solve(instance, time_limit_s=limit_s, gap=0.0)
    honest(instance, result, exact.objective)
    assert "time limit" in result.message or result.status == "optimal"
    assert result.deterministic == (result.message == "")


def test_without_time_a_misfit_is_an_error():
    instance, _ = MISFITS["caps of many"]
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


@pytest.mark.parametrize("name", ["pal/tiny", "pal/frontera-32", "pal/sticky", "pal/overfull"])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_interrupted_in_the_tree(name, call, monkeypatch):
    instance, exact = bundled(name)
    stop_at(monkeypatch, Cases, "relax", call, again=False)
    result = optsched.solve(instance, gap=GAPS[name])
    assert result.message == "stopped early: interrupted"
    assert not result.deterministic
    assert result.bound is not None
    honest(instance, result, exact.objective)


@pytest.mark.parametrize("name", ["pal/tiny", "pal/sticky"])
def test_interrupted_again_while_the_bound_is_proven(name, monkeypatch):
    instance, exact = bundled(name)
    stop_at(monkeypatch, Cases, "relax", 2, again=True)
    result = optsched.solve(instance, gap=GAPS[name])
    assert result.status == "feasible"
    assert result.certificate is None
    honest(instance, result, exact.objective)


def test_interrupted_before_there_is_a_plan(monkeypatch):
    stop_at(monkeypatch, Cases, "relax", 1, again=True)
    result = optsched.solve(MISFITS["caps of many"][0])
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
        result.model_copy(update={"seconds": 0.0}).to_json()
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
        found = verdict(instance, text | changes, tmp_path)
        assert rules <= found if rules else not found, changes


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
    assert "gpu-once" in changed(first, [others[0], *held[1:]]) | {"gpu-once"}
    assert changed(first, [others[0], *held[1:]])
    assert "gang" in changed(first, [*held, held[0]])
    assert "gang" in changed(first, [held[0], *held]) 
    assert "gang" in changed(first, held[:0] + [*held, others[0]])
    assert "known-gpu" in changed(first, ["nowhere", *held[1:]])
    plan = {"jobs": [job for n, job in enumerate(text["plan"]["jobs"]) if n != first]}
    assert "every-job" in verdict(instance, text | {"plan": plan}, tmp_path)


def tampered(certificate, kind):
    """Yield copies of a certificate's document, with one change of a kind at one place each."""
    text = json.loads(certificate.to_json())
    nodes = text["nodes"]
    leaves = [n for n, node in enumerate(nodes) if "gpu_prices" in node]
    splits = [n for n, node in enumerate(nodes) if "cases" in node]

    def copy(path, value):
        document = json.loads(json.dumps(text))
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        return document

    top = 100 * text["bound"]
    if kind == "bound":
        yield copy(["bound"], text["bound"] * (1 + 1e-6))
    elif kind == "dear GPU":
        for n in leaves:
            for g, price in enumerate(nodes[n]["gpu_prices"]):
                yield copy(["nodes", n, "gpu_prices", g], price + top)
    elif kind == "no prices":
        for n in leaves:
            if any(nodes[n]["gpu_prices"]):
                yield copy(["nodes", n, "gpu_prices"], [0.0] * len(nodes[n]["gpu_prices"]))
    elif kind == "split price":
        for n in leaves:
            for s, price in enumerate(nodes[n].get("split_prices", [])):
                yield copy(["nodes", n, "split_prices", s], price + top)
    elif kind == "tree":
        for n in splits:
            low, high = nodes[n]["cases"]
            yield copy(["nodes", n, "cases"], [low, low])
            yield copy(["nodes", n, "cases"], [n, high])
            yield copy(["nodes", n, "cases"], [low, len(nodes)])
    elif kind == "dropped node":
        for n in leaves[1:]:
            yield text | {"nodes": nodes[:n] + nodes[n + 1 :]}
    elif kind == "length":
        for n in leaves:
            yield copy(["nodes", n, "gpu_prices"], nodes[n]["gpu_prices"][1:])
            yield copy(["nodes", n, "split_prices"], [*nodes[n].get("split_prices", []), 0.0])
