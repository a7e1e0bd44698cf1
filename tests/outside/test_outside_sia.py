"""Rounds of choice whose figures are changed: refused by `verify_round`, or true."""

import pytest
from hypothesis import settings

from benchmarks.proving import rounds
from tests.support.outside.forger import Forger
from tests.support.outside.instances import DRAWN
from tests.support.outside.laws import Truth, as_document, refusals, round_of

MANY = settings().max_examples > 100


@pytest.mark.parametrize("seed", range(30 if MANY else 6))
def test_a_round_of_choice_with_changed_figures_is_refused_or_true(seed):
    truth = Truth("sia", DRAWN["sia"](seed))
    instance = round_of(truth.document)
    chosen = rounds.Choice().decide(instance)
    forger = Forger(as_document(chosen), truth.high, seed=seed)
    fields = ("status", "objective", "bound", "gap", "gap_limit")
    drawn = [(field, value) for field in fields for value in forger.values(field)]
    changes = [{field: value} for field, value in drawn if not isinstance(value, bool)]
    changes += [{"plan": None}, {"plan": None, "status": "infeasible"}]
    changes += [{"plan": None, "objective": None, "gap": None, "status": "infeasible"}]
    for change in changes:
        forged = chosen._replace(**change)
        if not refusals(lambda forged=forged: rounds.verify_round(instance, forged)):
            stated = as_document(chosen) | change
            false = truth.false_statements(stated)
            assert not [text for text in false if "not called optimal" not in text], change
