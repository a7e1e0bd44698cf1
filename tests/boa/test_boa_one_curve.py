"""Many classes or phases of one speedup curve: equal exchange rates, of which no price tells."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from benchmarks.proving.boa import (
    AMDAHL,
    MEASURED,
    POWER,
    beside,
    epochs,
    equal,
    instances,
    narrow,
    teams,
)
from optsched.boa import BoaInstance, JobClass, Phase, Table
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from optsched.boa.verify import label_setting as counterexample
from tests.support.oracles.boa import brute_force
from tests.support.strategies.common import law

TEAMS = [(teams, (30, [curve], seed)) for curve in (AMDAHL, MEASURED, POWER) for seed in (0, 1)]
OTHERS = [(narrow, (20, 0)), (epochs, (60, 1)), (epochs, (60, 0, 100)), (equal, (25,))]
SHAPES = [*TEAMS, *OTHERS, (beside, (60, 0, 0.9993)), (beside, (60, 0, 1.0007, 1))]


@pytest.mark.parametrize(("make", "arguments"), SHAPES)
def test_equal_exchange_rates_are_proven_and_the_verifier_confirms(make, arguments):
    instance = make(*arguments)
    result = optsched.solve(instance)
    assert result.status == "optimal"
    assert result.gap <= 1e-6
    optsched.verify(instance, result)


def test_a_golden_value_of_thirty_teams():
    """HiGHS on the plain model proves 399.97068 in some seconds; labels alone ended at 410.50."""
    result = optsched.solve(teams(30, [AMDAHL], 1))
    assert result.objective == pytest.approx(399.97068, abs=5e-4)


def test_a_proof_of_equal_exchange_rates_takes_few_labels(monkeypatch):
    """It took millions, and gigabytes; two lists that meet in the middle have some thousands."""
    instance = teams(30, [AMDAHL], 0)
    result = optsched.solve(instance, gap=1e-9)
    monkeypatch.setattr(counterexample, "MAX_LABELS", 200_000)
    monkeypatch.setattr(counterexample, "MAX_KEPT", 50_000)
    optsched.verify(instance, result)


def test_the_verifier_keeps_no_more_labels_than_it_says(monkeypatch):
    instance = teams(30, [AMDAHL], 4)
    result = optsched.solve(instance)
    kept, undominated = [], counterexample._undominated

    def counted(of_labels):
        kept.append(len(of_labels))
        return undominated(of_labels)

    monkeypatch.setattr(counterexample, "_undominated", counted)
    monkeypatch.setattr(counterexample, "MAX_KEPT", 500)
    with pytest.raises(optsched.Violation, match="more than 500 partial plans would have to be"):
        optsched.verify(instance, result)
    assert max(kept) <= 2 * 500 + 16


def test_no_more_labels_are_followed_than_the_certificate_says():
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 22})
    certificate = optsched.solve(instance).certificate
    assert proof.prove(instance, certificate) == []
    assert proof.terms(instance, certificate) < 200_000
    few = certificate.model_copy(update={"labels": 100})
    [broken] = proof.prove(instance, few)
    assert "more than 100 partial plans" in broken.message
    unsaid = certificate.model_copy(update={"labels": None})
    assert proof.prove(instance, unsaid) == []
    assert proof.terms(instance, unsaid) > counterexample.MAX_LABELS


def test_an_open_gap_has_a_reason(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "most_labels", 100)
    monkeypatch.setitem(vars(SETTINGS), "beam_labels", 3)
    result = optsched.solve(optsched.read("boa/cbd-85").changed({"budget_gpus": 22}), gap=1e-9)
    assert result.status == "feasible"
    assert "label limit" in result.message


def test_names_of_instances_to_prove_are_unique():
    names = [name for name, _ in instances()]
    assert len(set(names)) == len(names) >= 45


@law(150)
@given(
    st.lists(st.sampled_from([100.0, 200.0, 300.0, 123.4, 234.5]), min_size=2, max_size=6),
    st.sampled_from([[1.0, 1.9, 2.7], [1.0, 2.0, 2.9], [0.5, 1.4, 1.5]]),
    st.booleans(),
    st.floats(0, 1),
)
def test_one_curve_equals_brute_force(works, speedup, is_target, where):
    curve = Table(gpus=(1, 2, 3), speedup=speedup)
    classes = tuple(
        JobClass(id=f"c{n}", arrival_rate_per_h=2.0, phases=(Phase(work_gpu_s=w, speedup=curve),))
        for n, w in enumerate(works)
    )
    key = "target_mean_jct_s" if is_target else "budget_gpus"
    loose = BoaInstance(classes=classes, **{key: 1e9})
    least = float(proof.least_use(loose) / proof.limit_divisor(loose))
    instance = loose.model_copy(update={key: least * (1 + 0.7 * where) * (1 + 1e-9)})
    result = optsched.solve(instance, gap=0.0)
    optsched.verify(instance, result)
    assert result.objective == pytest.approx(float(brute_force(instance)), rel=1e-12)


@law(150)
@given(
    st.lists(st.sampled_from([1800.0, 2700.0, 900.0, 4321.0]), min_size=1, max_size=5),
    st.integers(4, 13),
    st.floats(0, 1),
)
def test_a_steep_price_is_proven_without_the_verifier_s_help(works, digits, where):
    """Speedups that are nearly linear: a GPU is worth 10**4 jobs and more of floats' rounding."""
    gpus = (1, 2, 3, 4)
    curve = Table(gpus=gpus, speedup=tuple(k * (1 - k * 10.0**-digits) for k in gpus))
    classes = tuple(
        JobClass(id=f"c{n}", arrival_rate_per_h=2.0, phases=(Phase(work_gpu_s=w, speedup=curve),))
        for n, w in enumerate(works)
    )
    least = float(proof.least_use(BoaInstance(classes=classes, budget_gpus=1e9)))
    instance = BoaInstance(classes=classes, budget_gpus=least * (1 + 3 * where * 10.0**-digits))
    assume(proof.least_use(instance) <= feasibility.limit(instance))
    result = optsched.solve(instance)
    optsched.verify(instance, result)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(float(brute_force(instance)), rel=1e-6)
