"""A HiGHS that lies: whatever it says, nothing false is called proven."""

import pytest
from hypothesis import settings

from tests.support.outside.instances import DRAWN
from tests.support.outside.laws import PROBLEMS, Truth, may_run, methods, solved
from tests.support.outside.lying_highs import LIES, lying

MANY = settings().max_examples > 100
SEEDS = {"boa": (1, 2, 4, 7), "pal": (1, 2, 4, 7), "eaco": (1, 3, 4, 8), "sia": (1, 3, 5, 6)}
SHARES = (1.0, 0.5, 0.1)


@pytest.fixture(scope="module")
def truths():
    return {
        (name, seed): Truth(name, DRAWN[name](seed))
        for name in (*PROBLEMS, "sia")
        for seed in SEEDS[name][: 4 if MANY else 2]
    }


def test_there_are_enough_lies_to_tell():
    assert len(LIES) >= 20


@pytest.mark.parametrize("lie", LIES)
def test_no_lie_of_highs_becomes_a_false_statement(lie, truths):
    told = 0
    for number, ((name, seed), truth) in enumerate(truths.items()):
        exact = ["decide"] if name == "sia" else methods(name, "exact")
        chosen = exact if MANY else {"milp" if "milp" in exact else "decide"}
        if not MANY and number % 2 != len(lie) % 2:
            continue
        for method in chosen:
            if not may_run(truth, method):
                continue
            false, share = [], SHARES[(number + len(lie)) % 3] if MANY else 1.0
            with lying(lie, share, seed) as runs:
                options = {} if name == "sia" else {"time_limit_s": 20}
                _, false = solved(truth, method, **options)  # no lie ends in an exception
            told += any(runs)
            assert not false, (name, seed, method)
    assert told


def test_highs_itself_is_believed_again_after_a_lie(truths):
    truth = truths["pal", 1]
    with lying("infeasible", 1.0):
        pass
    result, false = solved(truth, "milp")
    assert not false
    assert result.status.value == "optimal"
