"""The verifier of BOA against forged certificates, and against figures that are no figures."""

import math

import pytest

import optsched
from optsched.boa import BoaInstance
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from tests.support.forgers.boa import run

NOT_FINITE = [math.nan, math.inf, -math.inf]
EXTREME = [0.0, -0.0, 5e-324, 1e-300, 1e300, 1.7976931348623157e308, -1.0, -1e300]


def test_no_forged_bound_is_accepted_whatever_the_figures():
    made, accepted, confirmed, instances = run(1500, seed=1)
    assert made >= 1500
    assert accepted == []
    assert confirmed >= instances / 10  # the verifier does not simply refuse


@pytest.fixture(scope="module", params=["boa/hand", "boa/stress", "boa/epew-figure1", "mixed"])
def solved(request):
    name = request.param
    instance = optsched.read("boa/stress" if name == "mixed" else name)
    if name == "mixed":
        instance = instance.changed({"widths": "mixed"})
    return instance, optsched.solve(instance).certificate


@pytest.mark.parametrize("stated", NOT_FINITE)
@pytest.mark.parametrize("field", ["bound", "price", "least"])
def test_a_figure_that_is_not_finite_is_a_broken_rule(solved, field, stated):
    instance, certificate = solved
    forged = certificate.model_copy(update={field: stated})
    assert field in {broken.rule for broken in proof.prove(instance, forged)}
    assert proof.terms(instance, forged) > 0


@pytest.mark.parametrize("stated", EXTREME)
@pytest.mark.parametrize("field", ["bound", "price", "least"])
def test_extreme_figures_of_certificates_get_a_verdict(solved, field, stated):
    instance, certificate = solved
    for kind in ("price", "least"):
        forged = certificate.model_copy(update={field: stated, "kind": kind})
        verdict = proof.prove(instance, forged)
        assert verdict or kind == "price"
        assert verdict or stated < 1e300


def test_totals_of_thousands_of_digits_get_a_verdict(solved):
    instance, certificate = solved
    for total in ("9" * 6000, "0" * 6000, "-1", "", "x"):
        assert proof.prove(instance, certificate.model_copy(update={"priced_total": total}))


def changed(instance, **figures):
    """An instance that was never validated, one figure of its first class being another."""
    first, *others = instance.classes
    phase, *phases = first.phases
    of_phase = {k: v for k, v in figures.items() if k in ("work_gpu_s", "speedup")}
    phase = phase.model_copy(update=of_phase)
    of_class = {k: v for k, v in figures.items() if k in ("arrival_rate_per_h", "rescale_s", "id")}
    first = first.model_copy(update={**of_class, "phases": (phase, *phases)})
    limits = {k: v for k, v in figures.items() if k.startswith(("budget", "target"))}
    return instance.model_copy(update={**limits, "classes": (first, *others)})


@pytest.mark.parametrize("figure", [*NOT_FINITE, *EXTREME])
@pytest.mark.parametrize("field", ["arrival_rate_per_h", "rescale_s", "work_gpu_s", "budget_gpus"])
def test_instances_that_were_never_validated_get_a_verdict(solved, field, figure):
    instance, certificate = solved
    odd = changed(instance, **{field: figure})
    verdict = proof.prove(odd, certificate)
    if not 0 <= figure < math.inf:
        assert {broken.rule for broken in verdict} & {"figures", "limit"}
    plan = optsched.solve(instance).plan
    faults = {broken.rule for broken in feasibility.violations(odd, plan)}
    assert faults or 0 <= figure < math.inf


@pytest.mark.parametrize(
    "speedup",
    [
        {"gpus": (1, 2), "speedup": (1.0,)},
        {"gpus": (), "speedup": ()},
        {"gpus": (2, 1), "speedup": (1.0, 2.0)},
        {"gpus": (0, 1), "speedup": (1.0, 2.0)},
        {"gpus": (1, 2), "speedup": (1.0, -2.0)},
        {"gpus": (1, 2), "speedup": (0.0, 2.0)},
        {"gpus": (1, 2), "speedup": (1.0, math.nan)},
    ],
)
def test_tables_that_are_no_curves_are_refused(speedup):
    instance = optsched.read("boa/hand")
    result = optsched.solve(instance)
    table = instance.classes[0].phases[0].speedup.model_copy(update=speedup)
    odd = changed(instance, speedup=table)
    assert {b.rule for b in proof.prove(odd, result.certificate)} == {"figures"}
    assert {b.rule for b in feasibility.violations(odd, result.plan)} >= {"figures"}


def test_one_class_twice_is_refused():
    instance = optsched.read("boa/hand")
    odd = changed(instance, id=instance.classes[1].id)
    [broken] = proof.prove(odd, optsched.solve(instance).certificate)
    assert broken.rule == "classes"


def test_shares_beyond_all_floats_are_a_broken_rule():
    instance = optsched.read("boa/hand").changed({"widths": "mixed"})
    plan = optsched.solve(instance).plan
    first, *others = plan.classes
    huge = first.sequences[0].model_copy(update={"share": 1.7e308})
    forged = plan.model_copy(
        update={"classes": (first.model_copy(update={"sequences": (huge, huge)}), *others)}
    )
    [broken] = feasibility.violations(instance, forged)
    assert broken.rule == "shares-sum-to-one"


def test_a_wide_curve_is_refused_before_it_is_listed():
    """A foreign file of a few lines must not take gigabytes: 6 phases of 100,000 widths each."""
    curve = {"kind": "amdahl", "parallel_fraction": 0.999999, "max_gpus": 100_000}
    phases = [{"work_gpu_s": 100.0 + n, "speedup": curve} for n in range(6)]
    classes = [{"id": "a", "arrival_rate_per_h": 3.6, "rescale_s": 1.0, "phases": phases}]
    instance = BoaInstance.from_document(
        {"schema": "optsched/boa/1", "budget_gpus": 50.0, "classes": classes}
    )
    certificate = optsched.solve(optsched.read("boa/hand")).certificate
    forged = certificate.model_copy(update={"bound": 1e6, "labels": None})
    assert proof.terms(instance, forged) > 1_200_000
    broken = proof.prove(instance, forged)
    assert "partial plans would have to be kept" in broken[-1].message
