"""Forged results: a verifier refuses them, or all that is stated and printed of them is true."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import settings

import optsched
from tests.support.outside.commands import COMMANDS, EXITS, claims, false_in_print, printed
from tests.support.outside.forger import FIELDS, SENTINEL, Forger, text_of
from tests.support.outside.instances import DRAWN
from tests.support.outside.laws import (
    PROBLEMS,
    Truth,
    accepted,
    as_document,
    false_in_accepted,
    instance_of,
    methods,
)  # fmt: skip

MANY = settings().max_examples > 100
SEEDS = {"boa": (0, 2, 9), "pal": (1, 3, 7), "eaco": (0, 1, 12)}


@dataclass
class Case:
    """An instance, what is known of it, its result as a document, and a forger of that."""

    name: str
    truth: Truth
    instance: optsched.Instance
    stated: dict
    forger: Forger


def case(name, seed):
    truth = Truth(name, DRAWN[name](seed))
    instance = instance_of(name, truth.document)
    results = [optsched.solve(instance, m) for m in (None, *methods(name, "greedy")[:2])]
    stated, *others = map(as_document, results)
    return Case(name, truth, instance, stated, Forger(stated, truth.high, others, seed))


def examined(subject, forgeries):
    """How many of the forgeries are refused and accepted; false ones must not be."""
    counts = {"refused": 0, "accepted": 0}
    for what, document in forgeries:
        passed = accepted(subject.instance, text_of(document))
        counts["refused" if passed is None else "accepted"] += 1
        if passed is not None:
            assert not list(false_in_accepted(subject.truth, passed)), what
    return counts


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_field_changed_by_itself_is_refused_or_true(name):
    for seed in SEEDS[name] if MANY else SEEDS[name][:1]:
        subject = case(name, seed)
        counts = examined(subject, subject.forger.one_by_one(step=1 if MANY else 4))
        assert counts["refused"] > 40
        assert counts["accepted"] > 3  # of `message`, `seed`, `versions`: of these nothing is said


@pytest.mark.parametrize("name", PROBLEMS)
def test_fields_changed_in_pairs_and_so_that_they_fit_are_refused_or_true(name):
    for seed in SEEDS[name] if MANY else SEEDS[name][1:2]:
        subject, count = case(name, seed), settings().max_examples if MANY else 50
        examined(subject, subject.forger.pairs(count))
        examined(subject, subject.forger.coherent(2 * count))


def test_the_forger_knows_every_field_of_a_result():
    schema = optsched.Result.model_json_schema(by_alias=True)["properties"]
    assert not set(schema) - {*FIELDS, "verification_s"}


# --- what commands print --------------------------------------------------------------------------


def told(subject):
    """Forgeries that are to make a command say more than is so."""
    above = None if subject.truth.high is None else float(subject.truth.high)
    none = {"plan": None, "objective": None, "gap": None}
    yield "as it is", subject.stated
    yield "no plan", subject.forger.changed(none | {"status": "infeasible", "bound": None})
    yield "no plan, optimal", subject.forger.changed(none | {"status": "optimal"})
    yield "an objective without a plan", subject.forger.changed({"plan": None, "status": "error"})
    yield "the message", subject.forger.changed({"message": SENTINEL, "status": "feasible"})
    yield "the method", subject.forger.changed({"method": SENTINEL})
    yield "the unit", subject.forger.changed({"objective_unit": "h"})
    yield "version 1", subject.forger.changed({"schema": "optsched/result/1"}, "instance_sha256")
    yield "other data", subject.forger.changed({"instance_sha256": "0" * 64})
    if above is not None:
        for other in subject.forger.others[:2]:
            forged = subject.forger._with_bound(other, other["objective"])
            yield "a greedy plan called optimal", forged | {"gap": 0.0, "status": "optimal"}
        yield "a bound too high", subject.forger._with_bound(subject.stated, above * 1.001)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_command_claims_a_proof_for_what_the_verifier_refuses(name, command, tmp_path):
    subject = case(name, SEEDS[name][0])
    source, forged = tmp_path / "instance.json", tmp_path / "result.json"
    source.write_text(json.dumps(subject.truth.document))
    wanted = list(told(subject))
    if not MANY:
        wanted = wanted[len(name) % 3 :: 3 if command == "report" else 2]
    for what, document in wanted:
        text = text_of(document)
        forged.write_text(text)
        passed = accepted(subject.instance, text)
        code, output = printed(command, source, forged, tmp_path / "page.html")
        assert code in EXITS, (what, output)
        if passed is None:
            assert not claims(output), (what, code)
            assert command != "verify" or code == 1 or "schema" in output or code == 2, what
        elif command == "verify":
            assert code == 0, what
            assert claims(output), what
            assert SENTINEL not in output
            assert not list(false_in_print(subject.truth, output)), what
