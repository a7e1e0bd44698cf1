"""What is stated of rounds: nothing that is not so is accepted, and rounds are closed."""

import copy
import math

import numpy as np
import pytest

from benchmarks.proving.rounds import Choice, Round, verify_round
from benchmarks.proving.sia import even, instances, plain_program, unlike, widths
from optsched.mip import highs
from optsched.sia import ChoiceCertificate
from optsched.sia.verify import enumeration
from optsched.sia.verify.certificate import Enumeration, Prices, prove
from optsched.verification import Violation
from tests.support.forgers.sia import try_forgeries

PAIR = Round.of({"a": [(0.0, [2.0]), (5.0, [0.0])], "b": [(0.0, [2.0]), (7.0, [0.0])]}, [3.0])


def test_no_forgery_is_accepted():
    counts = try_forgeries(600)
    assert set(counts) == {"tried", "refused", "true"}
    assert counts["refused"] > 300


def test_infeasible_is_not_believed_of_a_round_that_has_a_plan():
    chosen = Choice().decide(PAIR)
    none = {"plan": None, "objective": None, "gap": None, "status": "infeasible"}
    with pytest.raises(Violation, match="status"):
        verify_round(PAIR, chosen._replace(**none))
    for nodes in (chosen.certificate.nodes, (Enumeration(rows=()),)):
        certificate = ChoiceCertificate(bound=None, nodes=nodes)
        with pytest.raises(Violation, match="that there is no plan"):
            verify_round(PAIR, chosen._replace(**none, bound=None, certificate=certificate))


def test_optimal_is_not_believed_of_the_worst_plan():
    chosen = Choice().decide(PAIR)
    worst = chosen._replace(plan=np.array([1, 1]), objective=12.0, gap=(12 - chosen.bound) / 12)
    with pytest.raises(Violation, match=r'stated "optimal", but it is "feasible"'):
        verify_round(PAIR, worst)
    verify_round(PAIR, worst._replace(status="feasible"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"gap_limit": 1.0}, r"gap_limit\] 1.0 is not in"),
        ({"gap_limit": math.nan}, "NaN is not in"),
        ({"gap": math.inf}, "Infinity is stated"),
        ({"objective": 10**400}, "cannot be verified|no finite number"),
        ({"programs": -1}, "-1 is no count"),
        ({"plan": [0.0, 1.0]}, "0.0 is no number of an option"),
        ({"plan": [False, True]}, "false is no number of an option"),
        ({"plan": 7}, "cannot be verified"),
        ({"certificate": None}, "cannot be verified"),
        ({"certificate": ChoiceCertificate.model_construct(bound=0.0, nodes=[
            Prices.model_construct(prices=(-1.0,))])}, "cannot be verified"),
    ],
)  # fmt: skip
def test_fields_that_are_no_figures_end_in_a_verdict(changed, words):
    with pytest.raises(Violation, match=words):
        verify_round(PAIR, Choice().decide(PAIR)._replace(**changed))


def test_rounds_without_validation_are_refused():
    chosen = Choice().decide(PAIR)
    for name, value in (("cost", np.full(4, np.nan)), ("use", -PAIR.use), ("counts", None)):
        instance = copy.copy(PAIR)
        object.__setattr__(instance, name, value)
        with pytest.raises(Violation, match="round"):
            verify_round(instance, chosen)


def test_what_a_copied_round_has_cached_counts_for_nothing():
    instance, chosen = copy.deepcopy(PAIR), Choice().decide(PAIR)
    assert instance.of_capacity
    object.__setattr__(instance, "use", PAIR.use * 2)
    with pytest.raises(Violation, match="is taken of capacity"):
        verify_round(instance, chosen)


def test_sums_beyond_all_floats_end_in_a_verdict():
    instance = Round.of({job: [(1.7e308, [1.7e308])] for job in "abc"}, [1.7e308])
    with pytest.raises(Violation, match="more than every float is taken"):
        verify_round(instance, Choice().decide(PAIR)._replace(plan=np.zeros(3, dtype=int)))
    with pytest.raises(ValueError, match="not in"):
        Choice().decide(instance)


@pytest.mark.parametrize("figure", [2**53 + 1, 10**400, "1", None, 1j])
def test_a_figure_that_no_float_equals_is_refused_not_rounded(figure):
    with pytest.raises(ValueError, match="no floating-point number"):
        Round.of({"a": [(figure, [1.0])]}, [1.0])
    with pytest.raises(ValueError, match="no whole number"):
        Round(["a"], [1.5], [1.0], [[1.0]], [1.0])
    assert Round.of({"a": [(2**53 + 2, [1])]}, [1]).cost[0] == 2**53 + 2
    with pytest.raises(ValueError, match="read-only"):
        PAIR.cost[0] = 1.0


# --- gaps and proofs --------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [1e4, 1e9])
def test_an_expensive_option_makes_no_plan_optimal(wait):
    """The gap is of the objective, whatever going without would cost."""
    for seed in range(3):
        instance = widths(seed, jobs=30, wait=wait, share=1.0)
        least = highs.solve(plain_program(widths(seed, jobs=30, wait=99.0, share=1.0))).objective
        chosen = Choice(gap=1e-6).decide(instance)
        verify_round(instance, chosen)
        assert chosen.status == "optimal"
        assert chosen.objective == pytest.approx(least, rel=2e-6)
        assert chosen.bound >= least * (1 - 2e-6)


def test_costs_that_cancel_are_relative_to_a_millionth_of_them():
    instance = Round.of({"a": [(2.0, [])], "b": [(-3.0, []), (9.0, [])]}, [])
    assert instance.gap_scale([0, 0]) == 2e-6
    assert instance.gap_scale([0, 1]) == 0
    chosen = Choice(gap=0.0).decide(instance)
    assert (chosen.status, chosen.objective) == ("optimal", -1.0)


@pytest.mark.parametrize(("seed", "jobs"), [(0, 20), (1, 30), (2, 100)])
def test_tight_rounds_of_unlike_jobs_are_closed(seed, jobs):
    instance = unlike(seed, jobs=jobs)
    chosen = Choice(gap=1e-6).decide(instance)
    verify_round(instance, chosen)
    assert chosen.status == "optimal"
    if jobs == 20:
        assert chosen.objective == pytest.approx(highs.solve(plain_program(instance)).objective)


@pytest.mark.parametrize("capacities", [1, 2])
def test_a_round_that_only_fractions_have_a_plan_of_is_proven_infeasible(capacities):
    instance = even(0, capacities)
    chosen = Choice().decide(instance)
    verify_round(instance, chosen)
    assert (chosen.status, chosen.bound) == ("infeasible", None)


def test_an_enumeration_proves_up_to_the_best_plan_and_no_further():
    instance = unlike(0, jobs=6)
    chosen = Choice(gap=0.0, most_nodes=10_000).decide(instance)
    nodes = (Enumeration(rows=(Prices(prices=(0.1, 0.1, 0.1)),)),)
    for bound, refused in ((chosen.objective * (1 - 1e-9), 0), (chosen.objective * (1 + 1e-9), 1)):
        assert len(prove(instance, ChoiceCertificate(bound=bound, nodes=nodes))) == refused


def _round_of_whole_hundredths(seed, jobs=60, gpus=1499):
    """Jobs of three curves with costs as Sia's: partial plans of equal costs abound."""
    draw, sizes = np.random.default_rng(seed), (1, 2, 4, *range(8, 65, 8))
    options = {}
    for job in range(jobs):
        serial = 1 - draw.choice([0.999, 0.98, 0.9])
        speeds = [1 / (serial + (1 - serial) / size) for size in sizes]
        held, factor = draw.choice(sizes), draw.uniform(0.8, 1)
        ratios = [v if size == held else factor * v for v, size in zip(speeds, sizes, strict=True)]
        costs = [
            (round(100 * ratio**-0.5) / 100, [size])
            for ratio, size in zip(ratios, sizes, strict=True)
        ]
        options[job] = [*costs, (1.1, [0])]
    return Round.of(options, [gpus])


@pytest.mark.parametrize("seed", [3, 26])
def test_partial_plans_that_rounding_keeps_apart_are_not_looked_at_one_by_one(seed, monkeypatch):
    monkeypatch.setattr(enumeration, "MOST_SUMS", 1_000_000)  # they were more than 10 ** 9
    instance = _round_of_whole_hundredths(seed)
    chosen = Choice(gap=0.0).decide(instance)
    assert isinstance(chosen.certificate.nodes[0], Enumeration)
    assert prove(instance, chosen.certificate) == []
    above = chosen.certificate.model_copy(update={"bound": chosen.objective + 1e-6})
    assert [fault.rule for fault in prove(instance, above)] == ["bound"]


def test_rounds_to_prove_are_many_and_named():
    names = [name for name, _ in instances()]
    assert len(set(names)) == len(names) >= 40
