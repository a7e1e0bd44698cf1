"""The verifier: every rule refuses the plan that breaks it, and no tampered proof is taken."""

import functools
import json
import random
import re

import pytest

import optsched
from optsched.boa import BoaPlan, ClassPlan, WidthSequence
from optsched.boa.verify.certificate import prove
from optsched.results.result import Result
from optsched.results.result_files import read_result
from optsched.verification import BrokenRule, Violation, relative_gap

# --- rules of a plan --------------------------------------------------------------------------


def sequence(*gpus, share=1.0):
    return WidthSequence(share=share, gpus=gpus)


def plan(**classes):
    """Make a plan from class ids and their sequences."""
    return BoaPlan(
        classes=tuple(
            ClassPlan(id=name, sequences=tuple(sequences)) for name, sequences in classes.items()
        )
    )


TWO = [sequence(2)]
HALVES = [sequence(2, share=0.5), sequence(1, share=0.5)]


def broken_rules(instance, wrong):
    with pytest.raises(Violation) as violation:
        optsched.check(instance, wrong)
    for rule in violation.value.broken:
        assert str(rule) in str(violation.value)
    return violation.value.broken


@pytest.mark.parametrize("good", [plan(A=TWO, B=TWO), plan(B=TWO, A=[sequence(1)])])
def test_plans_within_the_rules(good):
    optsched.check(optsched.read("boa/hand"), good)


@pytest.mark.parametrize(
    ("changes", "wrong", "rule", "message"),
    [
        ({}, plan(A=TWO, B=TWO, C=TWO), "known-class", "the instance has no class 'C'"),
        (
            {},
            BoaPlan(classes=(*plan(A=TWO, B=TWO).classes, *plan(A=TWO).classes)),
            "one-plan-per-class",
            "class 'A' is planned more than once",
        ),
        ({}, plan(B=TWO), "every-class", "class 'A' has no plan"),
        (
            {},
            plan(A=[sequence(2, 2)], B=TWO),
            "one-width-per-phase",
            "class 'A' has 1 phases, but 2",
        ),
        ({}, plan(A=[sequence()], B=TWO), "one-width-per-phase", "but 0 widths are given"),
        ({}, plan(A=HALVES, B=TWO), "one-width-per-phase", "widths 'integer' allow one"),
        (
            {},
            plan(A=[sequence(3)], B=TWO),
            "allowed-width",
            "3 GPUs, but only the widths (1, 2, 4)",
        ),
        ({}, plan(A=[sequence(1.5)], B=TWO), "allowed-width", "class 'A', phase 0: 1.5 GPUs, but"),
        ({}, plan(A=[sequence(0)], B=TWO), "allowed-width", "class 'A', phase 0: 0 GPUs, but"),
        (
            {"widths": "continuous"},
            plan(A=[sequence(4.5)], B=TWO),
            "allowed-width",
            "4.5 GPUs, but widths from 1 to 4 are possible",
        ),
        (
            {"widths": "mixed"},
            plan(A=[sequence(2, share=1.5), sequence(1, share=-0.5)], B=TWO),
            "share-not-negative",
            "class 'A': share -0.5",
        ),
        (
            {"widths": "mixed"},
            plan(A=[sequence(2, share=0.5), sequence(1, share=0.25)], B=TWO),
            "shares-sum-to-one",
            "class 'A': the shares sum to 0.75",
        ),
        (
            {},
            plan(A=[sequence(2, share=1.0000000000000002)], B=TWO),
            "shares-sum-to-one",
            "class 'A'",
        ),
        ({}, plan(A=[], B=TWO), "shares-sum-to-one", "class 'A': the shares sum to 0"),
        ({}, plan(A=TWO, B=[sequence(4)]), "budget", "rents 2.583333333333333"),
        (
            {"budget_gpus": None, "target_mean_jct_s": 1.1},
            plan(A=TWO, B=TWO),
            "target",
            "the mean JCT is 1.151315789473684",
        ),
    ],
)
def test_one_broken_rule_is_named(changes, wrong, rule, message):
    broken = broken_rules(optsched.read("boa/hand").changed(changes), wrong)
    assert [name for name, _ in broken] == [rule]
    assert message in broken[0].message


def test_every_broken_rule_is_named():
    instance = optsched.read("boa/hand").changed({"widths": "mixed"})
    wrong = plan(C=TWO, A=[sequence(3, share=0.5)])
    rules = {rule for rule, _ in broken_rules(instance, wrong)}
    assert rules == {"known-class", "every-class", "allowed-width", "shares-sum-to-one"}


def test_limits_are_exact():
    """A budget equal to the cost is kept, one float below it is not."""
    instance = optsched.read("boa/hand")
    ones = plan(A=[sequence(1)], B=[sequence(1)])  # costs 2 GPUs
    optsched.check(instance.changed({"budget_gpus": 2}), ones)
    below = instance.changed({"budget_gpus": 1.9999999999999998})
    assert [rule for rule, _ in broken_rules(below, ones)] == ["budget"]


def test_the_text_of_a_violation_counts_and_lists():
    violation = Violation("rules", [BrokenRule("a", "first"), BrokenRule("b", "second")])
    assert str(violation) == "rules: 2 broken\n  [a] first\n  [b] second"


# --- figures of a result ----------------------------------------------------------------------

CASES = {
    "hand": ("boa/hand", {}),
    "hand mixed": ("boa/hand", {"widths": "mixed"}),
    "hand target": ("boa/hand", {"budget_gpus": None, "target_mean_jct_s": 1.2}),
    "hand loose": ("boa/hand", {"budget_gpus": 100}),
    "hand infeasible": ("boa/hand", {"budget_gpus": 1.5}),
    "figure 1": ("boa/epew-figure1", {}),
    "figure 1 infeasible": ("boa/epew-figure1", {"budget_gpus": 0.5}),
    "stress": ("boa/stress", {}),
    "stress mixed": ("boa/stress", {"widths": "mixed"}),
    "cbd-85": ("boa/cbd-85", {}),
}


@functools.cache
def solved(case):
    """Return the instance of a case and the text of its result."""
    name, changes = CASES[case]
    instance = optsched.read(name).changed(changes)
    return instance, optsched.solve(instance).to_json()


def verdict(case, document, tmp_path):
    """Write a result, read it again, and return the rules that it breaks."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    try:
        optsched.verify(solved(case)[0], read_result(path))
    except Violation as violation:
        return {rule for rule, _ in violation.broken}
    return set()


@pytest.mark.parametrize("case", CASES)
def test_untouched_results_are_proven(case, tmp_path):
    assert verdict(case, json.loads(solved(case)[1]), tmp_path) == set()


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"objective": 1.1513157894736841}, {"objective"}),
        ({"objective": None}, {"objective"}),
        ({"bound": 1.151}, {"bound", "gap"}),
        ({"bound": 1.152}, {"bound", "gap"}),
        ({"bound": None}, {"bound", "gap"}),
        ({"gap": 0.0}, {"gap"}),
        ({"gap": None}, {"gap", "status"}),
        ({"gap_limit": 1e-8}, {"status"}),
        ({"status": "infeasible"}, {"status"}),
        ({"status": "error"}, {"status"}),
        ({"status": "feasible"}, set()),
        ({"certificate": None}, {"certificate"}),
    ],
)
def test_figures_that_do_not_fit_the_plan(changes, rules, tmp_path):
    document = json.loads(solved("hand")[1]) | changes
    assert verdict("hand", document, tmp_path) == rules


def test_another_instance_or_problem_is_refused():
    result = optsched.solve(optsched.read("boa/hand"))
    with pytest.raises(Violation, match="known-class"):
        optsched.verify(optsched.read("boa/cbd-85"), result)
    with pytest.raises(Violation, match="priced-total"):
        optsched.verify(
            optsched.read("boa/hand").changed({"classes.A.arrival_rate_per_h": 1799}), result
        )
    with pytest.raises(Violation, match=r"\[problem\] the result is of problem 'other'"):
        optsched.verify(optsched.read("boa/hand"), result.model_copy(update={"problem": "other"}))


def test_gap_of_an_objective_of_zero():
    assert relative_gap(0.0, 0.0) == 0
    assert relative_gap(None, 1.0) is None
    assert relative_gap(1.0, None) is None
    assert relative_gap(4.0, 3.0) == 0.25


# --- tampering --------------------------------------------------------------------------------

FIELDS = ["price", "priced_total", "bound", "least"]


def tampered(case, field, digits):
    """Yield the result with one digit of a field of its certificate changed, for each position.

    Left out are texts that stand for the same number as before, and what an infeasible result does
    not rest on: its price, and a `least` that is lower than need be, which is true as well.
    """
    document = json.loads(solved(case)[1])
    original = document["certificate"].get(field)
    infeasible = document["certificate"]["kind"] == "least"
    if original is None or (infeasible and field == "price"):
        return
    text = original if isinstance(original, str) else repr(original)
    for match in re.finditer(r"\d", text):
        for step in digits:
            digit = (int(match[0]) + step) % 10
            changed = f"{text[: match.start()]}{digit}{text[match.end() :]}"
            value = changed if isinstance(original, str) else float(changed)
            if value != original and not (field == "least" and value < original):
                certificate = document["certificate"] | {field: value}
                yield document | {"certificate": certificate}


@pytest.mark.parametrize("case", [c for c in CASES if not c.startswith(("stress", "cbd"))])
@pytest.mark.parametrize("field", FIELDS)
def test_every_digit_of_small_certificates_counts(case, field, tmp_path):
    for document in tampered(case, field, [1, 9] if field == "priced_total" else range(1, 10)):
        assert verdict(case, document, tmp_path), document["certificate"]


@pytest.mark.parametrize("case", ["stress", "stress mixed"])
@pytest.mark.parametrize("field", FIELDS)
def test_every_digit_of_the_stress_certificate_counts(case, field, tmp_path):
    for document in tampered(case, field, [1]):
        assert verdict(case, document, tmp_path), document["certificate"]


@pytest.mark.parametrize("field", FIELDS[:3])
def test_some_digits_of_the_large_certificate_count(field, tmp_path):
    documents = list(tampered("cbd-85", field, [1, 9]))
    for document in random.Random(field).sample(documents, 8):
        assert verdict("cbd-85", document, tmp_path), document["certificate"]


@pytest.mark.parametrize(
    ("case", "field", "positions"),
    [
        ("hand", "price", 5),
        ("hand", "priced_total", 50),
        ("hand", "bound", 10),
        ("stress", "price", 15),
        ("hand infeasible", "least", 1),
        ("hand infeasible", "priced_total", 50),
    ],
)
def test_the_tampering_reaches_the_digits(case, field, positions):
    assert len(list(tampered(case, field, [1]))) >= positions


@pytest.mark.parametrize("case", ["hand", "stress", "cbd-85"])
@pytest.mark.parametrize(("factor", "true"), [(1 - 2e-6, True), (1 + 1e-9, False), (1.01, False)])
def test_a_bound_is_proven_if_and_only_if_it_is_true(case, factor, true):
    """The bound is stated consistently and without a plan: only the proof can refuse it."""
    instance, text = solved(case)
    document = json.loads(text)
    bound = document["objective"] * factor
    certificate = document["certificate"] | {"bound": bound}
    proof = type(optsched.solve(instance).certificate).model_validate(certificate)
    assert [rule for rule, _ in prove(instance, proof)] == ([] if true else ["bound"])


def test_a_plan_and_a_proof_that_there_is_none_exclude_each_other(tmp_path):
    instance, text = solved("hand infeasible")
    document = json.loads(text)
    document["plan"] = json.loads(solved("hand")[1])["plan"]
    assert "budget" in verdict("hand infeasible", document, tmp_path)
    feasible = instance.changed({"budget_gpus": 2})
    with pytest.raises(Violation, match=r"\[infeasible\] a plan within the limit may exist"):
        optsched.verify(feasible, Result.model_validate(optsched.solve(instance)))
