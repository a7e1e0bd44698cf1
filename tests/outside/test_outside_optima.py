"""Every method against oracles from outside that share nothing with the project."""

import pytest
from hypothesis import settings

import optsched
from tests.support.outside.instances import DRAWN
from tests.support.outside.laws import (
    PROBLEMS,
    Truth,
    as_document,
    instance_of,
    is_doubted,
    may_run,
    methods,
    solved,
    through_file,
)  # fmt: skip

COUNT = min(max(settings().max_examples // 2, 12), 400)


def drawn(name, seeds):
    for seed in seeds:
        document = DRAWN[name](seed)
        if name != "sia":
            instance_of(name, document)  # what is drawn is allowed
        yield Truth(name, document)


@pytest.mark.parametrize("name", [*PROBLEMS, "sia"])
def test_no_method_states_what_an_oracle_from_outside_knows_to_be_false(name):
    exact = ["decide"] if name == "sia" else methods(name, "exact")
    counts = {True: 0, False: 0, None: 0}
    for seed, truth in enumerate(drawn(name, range(COUNT))):
        counts[truth.has_plan] += 1
        for method in {exact[0], exact[seed % len(exact)]}:
            if may_run(truth, method):
                _, false = solved(truth, method)
                assert not false, (name, seed, method)
    assert counts[True] > COUNT / 3
    assert counts[False] > COUNT / 10


@pytest.mark.parametrize("name", PROBLEMS)
def test_greedy_plans_cost_what_they_state_and_never_less_than_the_optimum(name):
    greedy = methods(name, "greedy")
    for seed, truth in enumerate(drawn(name, range(1000, 1000 + COUNT))):
        _, false = solved(truth, greedy[seed % len(greedy)])
        assert not false, (name, seed)


@pytest.mark.parametrize("name", PROBLEMS)
def test_usual_figures_are_proven_by_exact_and_no_proof_of_it_is_refused(name):
    seeds = [seed for seed in range(2000, 2000 + 3 * COUNT) if is_usual(name, seed)][: COUNT // 2]
    for truth in drawn(name, seeds):
        result, false = solved(truth, "exact")
        assert not false
        assert not is_doubted(result)
        expected = {True: "optimal", False: "infeasible"}.get(truth.has_plan)
        assert result.status.value == expected or expected is None


def is_usual(name, seed):
    """Whether no figure is beyond what a cluster may have."""
    figures = []

    def collect(part):
        if isinstance(part, dict | list):
            for value in part.values() if isinstance(part, dict) else part:
                collect(value)
        elif isinstance(part, float):
            figures.append(abs(part))

    collect(DRAWN[name](seed))
    return all(value == 0 or 1e-3 <= value <= 1e6 or value == 1e12 for value in figures)


# --- the laws themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_laws_from_outside_see_each_false_statement(name):
    seed = next(n for n in range(100) if is_usual(name, n) and Truth(name, DRAWN[name](n)).low)
    truth = Truth(name, DRAWN[name](seed))
    stated = as_document(optsched.solve(instance_of(name, truth.document)))
    assert not list(truth.false_statements(stated))
    above = float(truth.high) * 1.001
    for change in (
        {"objective": above},
        {"objective": stated["objective"] * 0.999},
        {"bound": above},
        {"gap": 0.25},
        {"status": "infeasible", "plan": None, "objective": None, "bound": None, "gap": None},
        {"status": "feasible"},
        {"objective_unit": "h"},
        {"plan": {"classes": [], "jobs": [], "groups": []}},
        {"bound": float("nan")},
    ):
        assert list(truth.false_statements(stated | change)), change


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_oracles_agree_with_the_published_values_of_small_bundled_instances(name):
    bundled = {"boa": "boa/hand", "pal": "pal/tiny", "eaco": "eaco/paper-four"}[name]
    instance = optsched.read(bundled)
    truth = Truth(name, instance.model_dump(mode="json", by_alias=True, exclude_none=True))
    known = optsched.known_values()[bundled]
    values = [v for v in known.values() if isinstance(v, int | float)]
    assert any(abs(v - float(truth.low)) <= 1e-6 * abs(v) for v in values), (known, truth.low)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_result_is_the_same_after_a_file(name):
    for truth in drawn(name, range(5)):
        result, _ = solved(truth, None)
        assert as_document(through_file(result)) == as_document(result)
