"""Certificates of kind "sorted": what slowdowns and gangs prove once both are sorted."""

import random
from fractions import Fraction
from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.explanation.explain import explain
from optsched.instance import dumps
from optsched.pal import PalCertificate, PalInstance
from optsched.pal.exact.smallest_first import sorted_bound
from optsched.pal.plan import Leaf, Within
from optsched.pal.verify import sorted_bound as verifier
from optsched.pal.verify.certificate import prove
from optsched.pal.verify.costs import SCALE
from optsched.results.result_files import read_result
from tests.support.oracles import pal as oracles
from tests.support.strategies.common import law
from tests.support.strategies.pal import document, pal_instances, small_instance

LEAF = Leaf(gpu_prices=(0.0,) * 6)


def stating(bound, **fields):
    return PalCertificate(kind="sorted", bound=bound, **fields)


def small(**fields):
    """Gangs of 1, 2 and 3 on six GPUs: the 1st, 3rd and 6th in order, 0.5 + 1 + 2 at least."""
    slowdown = {"A": [2.0, 1.0, 0.5, 1.0, 1.25, 1.5]}
    parts = {"jobs": [3, 1, 2], "locality": {"m": [1, 1]}} | fields
    return small_instance({"a": 3, "b": 3}, slowdown, **parts)


def equal(seed, gpus_per_node):
    """19 jobs of equal cost and mixed sizes on 64 GPUs, each with a slowdown of its own."""
    rng = random.Random(seed)
    slowdown = {"A": [rng.lognormvariate(0, 0.08) for _ in range(64)]}
    nodes = {f"n{n}": gpus_per_node for n in range(64 // gpus_per_node)}
    jobs = [1, 2, 3, 4, 5, 4, 3, 2, 1, 8, 5, 4, 3, 2, 1, 2, 3, 4, 5]
    return document(nodes, slowdown, rng.sample(jobs, len(jobs)), locality={"m": [1.0, 1.0]})


# --- the verifier -------------------------------------------------------------------------------


def test_what_sorting_proves_by_hand():
    assert verifier.least(small()) == 3.5 * SCALE
    assert prove(small(), stating(3.5)) == []
    dear_triple = [{"gpus": 3, "weight": 4.0}, 1, 2]  # at best it has the fastest GPU, 4 x 0.5
    assert verifier.least(small(jobs=dear_triple)) == (4 * 0.5 + 1 + 2) * SCALE
    near = {"m": [1.5, 1.75]}
    assert verifier.least(small(locality=near)) == 1.5 * 3.5 * SCALE


def test_more_than_sorting_proves_is_refused():
    broken = prove(small(), stating(nextafter(3.5, inf)))
    assert [rule for rule, _ in broken] == ["bound"]
    assert "the sorted slowdowns prove only 3.5" in broken[0].message


@pytest.mark.parametrize(
    ("certificate", "rules"),
    [
        (stating(None), ["bound"]),
        (stating(inf), ["bound"]),
        (stating(3.0, left_out=1.0), ["left-out"]),
        (stating(3.0, nodes=(LEAF,)), ["sorted"]),
        (stating(3.0, exclusions=(LEAF,)), ["sorted"]),
        (stating(3.0, rules=(Within(types=("j0",), domain="a"),)), ["sorted"]),
        (stating(3.5).model_copy(update={"kind": "prices"}), ["certificate"]),
        (stating(3.5).model_copy(update={"kind": "infeasible"}), ["certificate"]),
        (stating(3.5).model_copy(update={"kind": "guessed"}), ["certificate"] * 2),
        (stating(3.5).model_copy(update={"bound": "3.5"}), ["certificate"]),
        (PalCertificate(bound=3.5, nodes=(LEAF,)), ["bound"]),  # no prices prove that
    ],
)
def test_a_certificate_of_another_form_is_refused(certificate, rules):
    assert [rule for rule, _ in prove(small(), certificate)] == rules


def test_sorting_proves_nothing_where_jobs_may_be_left_out():
    rewarded = [{"gpus": size, "reward": 0.1} for size in (3, 1, 2)]
    optional = small(jobs=rewarded, admission="optional")
    assert oracles.bitmask_optimum(optional) < 3.5
    assert [rule for rule, _ in prove(optional, stating(0.1))] == ["sorted"]
    assert sorted_bound(optional) == -inf


@law(200)
@given(pal_instances(optional=False, max_gpus=8, max_jobs=4, feasible=False))
def test_no_plan_costs_less_than_sorting_proves(instance):
    """Whatever classes, penalties, caps and running jobs there are."""
    proven, optimum = verifier.least(instance), oracles.bitmask_optimum(instance)
    if proven is None:
        assert optimum is None
        return
    assert optimum is None or Fraction(proven, SCALE) <= Fraction(optimum) * Fraction(1 + 1e-12)
    stated = sorted_bound(instance)
    assert stated == pytest.approx(float(Fraction(proven, SCALE)), rel=1e-12)
    assert prove(instance, stating(stated)) == []
    above = stating(float(Fraction(proven, SCALE)) * (1 + 1e-12))
    assert [rule for rule, _ in prove(instance, above)] == ["bound"]


# --- the method ---------------------------------------------------------------------------------


@law(60)
@given(
    st.lists(st.sampled_from([0.8, 0.9, 1.0, 1.1]) | st.floats(0.5, 2), min_size=8, max_size=8),
    st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) <= 8),
    st.sampled_from([{}, {"weight": 3.0}, {"remaining_s": 60.0}]),
    st.sampled_from([[1.0, 1.0], [1.5, 1.5]]),
)
def test_equal_jobs_are_solved_by_sorting(slowdown, sizes, shared, penalties):
    jobs = [{"gpus": size, **shared} for size in sizes]
    nodes, locality = {"a": 5, "b": 3}, {"m": penalties}
    instance = small_instance(nodes, {"A": slowdown}, jobs, locality=locality)
    result = optsched.solve(instance, gap=1e-9)
    assert (result.status, result.certificate.kind) == ("optimal", "sorted")
    assert result.objective == pytest.approx(oracles.bitmask_optimum(instance), rel=1e-12)


@pytest.mark.parametrize("gpus_per_node", [4, 8])
def test_equal_jobs_on_64_gpus_are_proven_at_once(gpus_per_node, monkeypatch):
    """The linear program was 2e-3 below, and no tree ended in minutes; none is solved now."""

    def linear_program(*arguments, **options):
        raise AssertionError("a linear program was built")

    monkeypatch.setattr("optsched.pal.exact.branch_and_bound.LinearProgram", linear_program)
    instance = PalInstance.from_document(equal(1, gpus_per_node))
    result = optsched.solve(instance, gap=1e-6)
    optsched.verify(instance, result)
    assert result.status == "optimal"
    assert result.gap <= 1e-6
    assert result.objective == pytest.approx(oracles.smallest_first(instance), rel=1e-12)


def test_a_sort_counts_where_the_root_proves_less():
    """The penalty across is 1.001, so that a sort is not optimal; it is near, and proves most."""
    spread = equal(1, 8) | {"locality": {"m": [1.0, 1.001]}}
    result = optsched.solve(PalInstance.from_document(spread), method="packed-sticky", gap=1e-6)
    assert (result.status, result.certificate.kind) == ("feasible", "sorted")
    solved = optsched.solve(PalInstance.from_document(spread), gap=2e-3)
    assert (solved.status, solved.certificate.kind) == ("optimal", "sorted")


def test_the_next_epoch_begins_from_a_certificate_without_prices():
    before = PalInstance.from_document(equal(1, 8))
    first = optsched.solve(before, gap=1e-6)
    held = {placement.id: list(placement.gpus) for placement in first.plan.jobs}
    running = equal(1, 8)
    for job in running["jobs"]:
        job.update(current=held[job["id"]], remaining_s=60.0, restart_s=5.0)
    after = PalInstance.from_document(running)
    for method in ("exact", "node-classes"):
        result = optsched.solve(after, method=method, gap=1e-2, start=first)
        optsched.verify(after, result)
        assert result.objective == pytest.approx(60 * first.objective, rel=1e-2)


def test_every_command_takes_a_certificate_without_prices(tmp_path):
    files = {name: str(tmp_path / name) for name in ("equal.json", "result.json", "page.html")}
    (tmp_path / "equal.json").write_text(dumps(equal(1, 8)))
    instance, result, page = files.values()

    def run(*arguments):
        done = CliRunner(env={"COLUMNS": "80"}).invoke(app, list(arguments))
        assert done.exit_code == 0, done.output
        return done.output

    run("solve", instance, "--gap", "1e-6", "--no-compare", "--output", result)
    assert "proven: no plan has a sum of slowdowns below" in run("verify", instance, result)
    run("report", result, "--instance", instance, "--output", page)
    told = explain(optsched.read(instance), read_result(result))
    assert not [price for price in told.prices if price.source == "certificate"]
