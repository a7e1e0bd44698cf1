"""Why there is no plan: irreducible conflicts; and what more room saves."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.boa import BoaInstance
from optsched.explanation.explain import explain, instance_of, irreducible, plan_exists
from optsched.explanation.explanation import Explanation, Price, Rule
from optsched.registry import PROBLEMS, problem
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances
from tests.support.strategies.eaco import small_instance as small_eaco
from tests.support.strategies.pal import pal_instances
from tests.support.strategies.pal import small_instance as small_pal

RACKS = {"r0": {"a": 2, "b": 2}, "r1": {"c": 2, "d": 2}}


def entry_of(instance):
    return __import__(problem(instance.problem).reasons, fromlist=["rules"])


def explained(instance, **options):
    return optsched.solve(instance, **options).explain()


def ids(explanation):
    return {rule.id for rule in explanation.conflict}


def assert_irreducible(instance, explanation):
    """No plan keeps the conflict; a plan keeps all of it but any one rule."""
    assert explanation.is_irreducible
    entry = entry_of(instance)
    names = {rule.id for rule in entry.rules(instance)}
    conflict = ids(explanation)
    core = entry.without(instance, names - conflict)
    assert optsched.solve(core).status == "infeasible"
    for name in conflict:
        freed = entry.without(instance, (names - conflict) | {name})
        assert freed is None or optsched.solve(freed).plan is not None


# --- irreducible sets -------------------------------------------------------------------------


@given(st.data())
def test_irreducible_sets_conflict_and_nothing_in_them_can_be_left_out(data):
    """Also where more rules conflict less, as with a mean."""
    count = data.draw(st.integers(1, 9))
    rules = [Rule(str(n), "") for n in range(count)]
    everything = frozenset(range(count))
    cores = data.draw(st.lists(st.frozensets(st.integers(0, count - 1), min_size=1), max_size=4))
    spared = data.draw(st.frozensets(st.frozensets(st.integers(0, count - 1)), max_size=4))

    def conflicts(kept):
        names = frozenset(int(rule.id) for rule in kept)
        if names == everything:
            return True
        return any(core <= names for core in cores) and names not in spared

    conflict = irreducible(rules, conflicts)
    assert conflicts(conflict)
    for n in range(len(conflict)):
        assert not conflicts(conflict[:n] + conflict[n + 1 :])


def test_few_questions_where_the_conflict_is_small():
    rules = [Rule(str(n), "") for n in range(256)]
    asked = []

    def conflicts(kept):
        asked.append(kept)
        return {"3", "200"} <= {rule.id for rule in kept}

    assert [rule.id for rule in irreducible(rules, conflicts)] == ["3", "200"]
    assert len(asked) < 60


# --- BOA --------------------------------------------------------------------------------------


def test_budget_and_the_classes_that_ask_for_more():
    instance = optsched.read("boa/cbd-85").changed({"budget_gpus": 10})
    explanation = explained(instance)
    assert ids(explanation) == {"class:deepspeech2", "class:cifar10", "limit"}
    assert_irreducible(instance, explanation)
    assert "without any one of them there is a plan" in str(explanation)
    assert "the budget of 10 GPUs on average" in str(explanation)


@pytest.mark.parametrize("widths", ["integer", "mixed", "continuous"])
def test_target_that_no_plan_reaches(widths):
    document = optsched.read("boa/cbd-85").model_dump(mode="json", by_alias=True, exclude_none=True)
    del document["budget_gpus"]
    document |= {"target_mean_jct_s": 500.0, "widths": widths}
    for job_class in document["classes"]:
        job_class["rescale_s"] = 0.0
    instance = BoaInstance.from_document(document)
    explanation = explained(instance)
    assert "limit" in ids(explanation)
    assert_irreducible(instance, explanation)


def test_classes_without_jobs_are_in_no_conflict():
    instance = optsched.read("boa/cbd-85")
    instance = instance.changed({"classes.bert.arrival_rate_per_h": 0, "budget_gpus": 3})
    explanation = explained(instance)
    assert "class:bert" not in ids(explanation)
    assert_irreducible(instance, explanation)


@pytest.mark.parametrize("budget", [24.0, 30.0, 47.0])
def test_price_of_a_gpu_is_the_finite_difference_for_mixed_widths(budget):
    changes = {"widths": "mixed", "classes.*.rescale_s": 0, "budget_gpus": budget}
    instance = optsched.read("boa/cbd-85").changed(changes)
    result = optsched.solve(instance, gap=0)
    price = next(p for p in result.explain().prices if p.source == "certificate")
    step = 1e-4 * budget
    there = optsched.solve(instance.changed({"budget_gpus": budget + step}), gap=0)
    difference = (result.objective - there.objective) / step
    assert price.change == "1 more GPU in the budget"
    assert price.saves == pytest.approx(difference, rel=1e-3)
    assert price.unit == "s"


@pytest.mark.parametrize("name", ["boa/hand", "boa/cbd-85", "boa/six-models"])
def test_no_plan_saves_more_than_the_price_of_a_gpu(name):
    result = optsched.solve(optsched.read(name))
    prices = {p.source: p for p in result.explain().prices if p.change.startswith("1 more GPU")}
    open_gap = result.objective - result.bound
    assert prices["solved again"].saves <= prices["certificate"].saves + open_gap + 1e-9
    assert prices["solved again"].saves > 0


def test_price_of_a_dollar_is_that_of_a_gpu_by_its_price():
    changes = {"budget_gpus": None, "budget_usd_per_h": 60, "price_usd_per_gpu_h": 2.5}
    prices = explained(optsched.read("boa/cbd-85").changed(changes)).prices
    of = {p.change: p.saves for p in prices if p.source == "certificate"}
    ratio = of["1 more GPU in the budget"] / of["1 more USD/h in the budget"]
    assert ratio == pytest.approx(2.5)
    assert {p.change for p in prices if p.source == "solved again"} >= set(of)


def test_price_of_the_target():
    changes = {"budget_gpus": None, "target_mean_jct_s": 1500, "widths": "mixed"}
    changes["classes.*.rescale_s"] = 0
    instance = optsched.read("boa/cbd-85").changed(changes)
    result = optsched.solve(instance, gap=0)
    price = next(p for p in result.explain().prices if p.source == "certificate")
    there = optsched.solve(instance.changed({"target_mean_jct_s": 1500.01}), gap=0)
    assert price.unit == "GPUs"
    assert price.saves == pytest.approx((result.objective - there.objective) / 0.01, rel=1e-3)


def test_budget_that_does_not_bind():
    explanation = explained(optsched.read("boa/cbd-85").changed({"budget_gpus": 10_000}))
    assert "does not bind" in explanation.binding[0]
    prices = {price.change: price for price in explanation.prices if price.source == "solved again"}
    assert prices["1 more GPU in the budget"].text == "nothing (to within the gap)"


# --- PAL --------------------------------------------------------------------------------------


def test_hard_caps_that_leave_no_room():
    capped = {"gpus": 3, "highest_level": "rack"}
    instance = small_pal(RACKS, None, [capped, capped, {**capped, "gpus": 2}])
    explanation = explained(instance)
    assert ids(explanation) == {"job:j0", "job:j1", "job:j2", "cap:j0", "cap:j1", "cap:j2"}
    assert_irreducible(instance, explanation)


def test_gpus_that_are_away_and_domains_that_are_drained():
    instance = small_pal(RACKS, None, [4, 2], drained=["d"], unavailable=["a/0"])
    explanation = explained(instance)
    assert ids(explanation) == {"job:j0", "job:j1", "unavailable", "drained:d"} - {"none"}
    assert_irreducible(instance, explanation)
    assert "node 'd' is drained" in str(explanation)
    assert "1 GPU unavailable: a/0" in str(explanation)


@given(pal_instances(feasible=False, optional=False))
@law(100, is_costly=True)
def test_conflicts_of_pal_are_irreducible(instance):
    result = optsched.solve(instance)
    assume(result.status == "infeasible")
    assert_irreducible(instance, explain(instance, result))


def test_prices_of_gpus_and_one_more_of_them():
    result = optsched.solve(optsched.read("pal/tiny"))
    explanation = result.explain()
    assert "4 of 4 free GPUs have a job" in explanation.binding[0]
    dear = [p for p in explanation.prices if p.source == "certificate"]
    assert [p.saves for p in dear] == sorted((p.saves for p in dear), reverse=True)
    twin = next(p for p in explanation.prices if p.change.startswith("1 more GPU like"))
    assert twin.saves == pytest.approx(0.15)


def test_what_a_hard_cap_costs():
    slowdown = {"A": [1.0, 3.0] * 4}
    instance = small_pal(RACKS, slowdown, [{"gpus": 2, "highest_level": "node"}] * 3)
    result = optsched.solve(instance)
    freed = instance.changed({"jobs.*.highest_level": None})
    price = next(p for p in result.explain().prices if "hard cap" in p.change)
    assert price.saves == pytest.approx(result.objective - optsched.solve(freed).objective)
    assert price.saves > 0


# --- EaCO -------------------------------------------------------------------------------------


def test_more_jobs_than_gpus_may_hold():
    instance = small_eaco(
        ["a"] * 3, nodes={"N": {"count": 1, "gpus": 1}}, measured={"a a": [0.6, 0.6]},
        max_jobs_per_gpu=2,
    )  # fmt: skip
    explanation = explained(instance)
    assert {"job:j0", "job:j1", "job:j2"} <= ids(explanation)
    assert_irreducible(instance, explanation)


def test_tolerance_that_does_not_allow_sharing():
    jobs = [{"type": "a", "max_slowdown": 1.1}, {"type": "a"}]
    one = {"N": {"count": 1, "gpus": 1}}
    instance = small_eaco(jobs, nodes=one, measured={"a a": [0.6, 0.6]})
    explanation = explained(instance)
    assert ids(explanation) == {"job:j0", "job:j1", "max_slowdown:j0"}
    assert_irreducible(instance, explanation)
    assert "bears a slowdown of 1.1" in str(explanation)


def test_power_cap_below_the_idle_floor():
    sleeping = {"x": {"gpus": 4, "power": {"base_w": 100.0, "sleep_w": 50.0}}}
    job = {"type": "a", "waiting_penalty_kwh": 1.0}
    instance = small_eaco([job], nodes=sleeping, power_cap_w=20.0)
    explanation = explained(instance)
    assert ids(explanation) == {"power_cap_w"}
    assert_irreducible(instance, explanation)


@given(eaco_instances(feasible=False, max_jobs=5, waiting=False))
@law(100, is_costly=True)
def test_conflicts_of_eaco_are_irreducible(instance):
    result = optsched.solve(instance)
    assume(result.status == "infeasible")
    assert_irreducible(instance, explain(instance, result))


def test_tolerance_and_nodes_by_solving_again():
    jobs = [{"type": "a", "max_slowdown": 1.66}, {"type": "a", "max_slowdown": 1.66}]
    instance = small_eaco(jobs, measured={"a a": [0.6, 0.6]}, fallback="none")
    explanation = explained(instance)
    prices = {price.change: price for price in explanation.prices}
    wider = instance.changed({"jobs.*.max_slowdown": 1.66 * 1.01})
    difference = optsched.solve(instance).objective - optsched.solve(wider).objective
    assert difference > 0
    assert prices["1 % more: tolerance of slowdowns"].saves == pytest.approx(difference)
    assert prices["1 more node of 'x' (4 GPUs)"].text == "nothing (to within the gap)"


def test_a_cap_that_is_nearly_used_up_is_not_said_to_bind():
    instance = optsched.read("eaco/paper-mixed").changed({"power_cap_w": 5980})
    explanation = explained(instance)
    assert "binds" not in str(explanation)
    assert "99.6 % of the power cap of 5,980.00 W" in str(explanation)
    assert next(p for p in explanation.prices if "power cap" in p.change).saves == 0


def test_groups_that_were_not_measured_are_named_and_so_are_those_of_a_saving():
    options = {"measured": {"a a": [0.99, 0.99]}, "max_jobs_per_gpu": 2}
    instance = small_eaco(["a"] * 3, nodes={"N": {"count": 2, "gpus": 1}}, **options)
    result = optsched.solve(instance)
    explanation = result.explain()
    rates = result.frame().set_index("job")["rates_from"]
    assert set(rates) == {"measured", "alone"}
    assert "whose rates are" not in "\n".join(explanation.binding)
    three = next(p for p in explanation.prices if p.change == "1 more job per GPU")
    assert three.saves > 0
    assert three.note == "1 group from measured pairs"
    more = explained(instance.changed({"max_jobs_per_gpu": 3}))
    assert "groups whose rates are from measured pairs: j0 + j1 + j2" in more.binding


# --- what would do ----------------------------------------------------------------------------


def test_the_least_power_cap_that_would_do():
    instance = optsched.read("eaco/paper-mixed").changed({"power_cap_w": 5000})
    (text,) = explained(instance).remedies
    assert text == "a power cap of 5,960 W (5,950 would not)"
    assert optsched.solve(instance.changed({"power_cap_w": 5960})).plan is not None
    assert optsched.solve(instance.changed({"power_cap_w": 5950})).status == "infeasible"


def test_the_nodes_that_would_do():
    instance = small_eaco(["a"] * 7, nodes={"N": {"count": 1, "gpus": 1}}, max_jobs_per_gpu=1)
    assert explained(instance).remedies == ("6 more nodes of 'N' (5 would not)",)


@pytest.mark.parametrize(
    ("instance", "remedy"),
    [
        (optsched.read("boa/hand").changed({"budget_gpus": 0.1}), "GPUs on average"),
        (small_pal({"a": 3}, {"A": [1.0] * 3}, [{"gpus": 3}] * 2), "3 more GPUs like 'a/0'"),
        (
            optsched.read("sia/hand").changed(
                {"jobs.*.must_run": True, "gpus.fast": 1, "gpus.slow": 1}
            ),
            "1 more GPU",
        ),
    ],
)
def test_every_problem_says_what_would_do(instance, remedy):
    explanation = explained(instance)
    assert explanation.status == "infeasible"
    assert remedy in "\n".join(explanation.remedies)
    assert "Each of these would do, by itself:" in str(explanation)


def test_limits_that_do_not_help_are_not_told():
    """Two jobs that cannot share, on one GPU, under a cap that is wide enough."""
    nodes = {"N": {"count": 1, "gpus": 1}}
    instance = small_eaco(["a"] * 2, nodes=nodes, power_cap_w=1e6, max_jobs_per_gpu=1)
    assert explained(instance).remedies == ("1 more node of 'N'",)


# --- in words ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boa/hand", "pal/tiny", "eaco/paper-four"])
def test_plans_of_every_room_are_explained(name):
    explanation = explained(optsched.read(name))
    assert isinstance(explanation, Explanation)
    assert explanation.binding
    assert any(price.source == "solved again" for price in explanation.prices)
    assert not explanation.conflict
    html = explanation._repr_html_()
    assert html.count("<tr>") == 1 + len(explanation.prices)


def test_a_plan_that_is_not_proven_is_compared_with_the_best():
    instance = optsched.read("boa/cbd-85")
    explanation = explained(instance, method="same-k")
    best = optsched.solve(instance)
    price = next(p for p in explanation.prices if p.change.startswith("the best plan"))
    worse = optsched.solve(instance, method="same-k").objective - best.objective
    assert price.saves == pytest.approx(worse)
    assert "is not ruled out" in explanation.because


def test_without_time_nothing_is_claimed():
    plan = optsched.solve(optsched.read("pal/tiny")).explain(time_limit_s=0)
    assert {p.text for p in plan.prices if p.source == "solved again"} == {
        "not known (no time was left)"
    }
    none = optsched.solve(optsched.read("boa/cbd-85").changed({"budget_gpus": 5}))
    explanation = none.explain(time_limit_s=0)
    assert not explanation.is_irreducible
    assert "time did not suffice" in str(explanation)
    assert len(explanation.conflict) == 4


def test_html_escapes_what_comes_from_files():
    rule = Rule("x", "job '<b>'")
    explanation = Explanation("<i>", optsched.Status.INFEASIBLE, "<u>", (rule,), True)
    assert not {"<b>", "<i>", "<u>"} & set(explanation._repr_html_().split("'"))
    assert "&lt;b&gt;" in explanation._repr_html_()


def test_prices_in_words():
    price = Price("more", 1.5, "s", "solved again", most=2.0)
    assert price.text == "1.500000 s, 2.000000 s at most"
    assert Price("more", None, "s", "solved again", note="error").text == "not known (error)"


def test_results_of_another_instance_are_refused():
    result = optsched.solve(optsched.read("boa/hand"))
    other = optsched.read("boa/hand").changed({"budget_gpus": 1})
    with pytest.raises(ValueError, match="not one of 'boa/hand' as it stands"):
        explain(other, result)
    assert instance_of(result) == optsched.read("boa/hand")
    assert instance_of(result.model_copy(update={"instance": "mine"})) is None
    none = optsched.solve(optsched.read("boa/cbd-85").changed({"budget_gpus": 5}))
    assert instance_of(none) == optsched.read("boa/cbd-85").changed({"budget_gpus": 5})
    assert instance_of(none.model_copy(update={"changes": {}})) is None


def test_plan_exists():
    instance = optsched.read("boa/cbd-85")
    assert plan_exists(instance)
    assert plan_exists(None)
    assert plan_exists(instance.changed({"budget_gpus": 5})) is False
    assert plan_exists(instance, deadline=0.0) is None


def test_every_room_explains():
    for name in PROBLEMS:
        entry = __import__(problem(name).reasons, fromlist=["rules"])
        for function in ("rules", "without", "binding", "prices", "levers"):
            assert callable(getattr(entry, function))
