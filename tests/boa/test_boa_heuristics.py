"""BOA's greedy rules: known values, each rule against its own definition, and the exact optimum."""

import math
import subprocess
import sys
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given

import optsched
from optsched.boa import BoaInstance, performance
from optsched.boa.arrays import to_plan
from optsched.boa.greedy import parametric
from optsched.boa.settings import SETTINGS
from optsched.boa.speedup_curves import curve
from optsched.boa.verify import feasibility
from optsched.registry import problem
from optsched.search import Search
from tests.support.oracles.boa import brute_force, extreme_uses
from tests.support.strategies.common import boa_instances, law

GREEDY = [method.name for method in problem("boa").methods if method.kind == "greedy"]
BUDGETS = (22, 24, 26, 30, 35, 40, 48, 60, 80)
CBD_TABLE = {  # docs/math/boa.md, Golden values: mean JCT in s at those budgets
    "same-k": (6358.48, 1875.57, 1875.57, 1516.14, 1340.92, 768.75, 768.75, 753.00, 753.00),
    "class-width": (3892.26, 1875.57, 1674.84, 1313.94, 982.30, 768.75, 716.62, 710.27, 691.61),
}
# Another implementation's best of five seeds, so of the same order only.
CBD_PUBLISHED = (3535.84, 1913.20, 1527.83, 1239.69, 845.11, 749.06, 704.74, 740.67, 713.67)


def run(instance, name, **options):
    """Run a method alone; return the search with its best plan."""
    search = Search(instance, **options)
    problem("boa").method(name)(instance, search)
    return search


def widths_of(plan):
    """The one width of every (class, phase)."""
    return [list(class_plan.sequences[0].gpus) for class_plan in plan.classes]


def all_widths(plan):
    return [k for row in widths_of(plan) for k in row]


def phases_of(instance):
    return [phase for job_class in instance.classes for phase in job_class.phases]


@cache
def read(name):
    return optsched.read(name)


def within(name, budget):
    """A bundled instance with another budget, not validated again."""
    return read(name).model_copy(update={"budget_gpus": budget})


@cache
def bundled(name, question):
    """A bundled instance with its own budget, or with a target 10 % above the best JCT."""
    instance = read(name)
    if question == "budget":
        return instance
    target = 1.1 * performance(instance, optimum(name, "budget").plan).mean_jct_s
    return instance.changed(
        {"budget_gpus": None, "budget_usd_per_h": None, "target_mean_jct_s": target}
    )


@cache
def optimum(name, question):
    return optsched.solve(bundled(name, question))


# --- known values -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CBD_TABLE)
@pytest.mark.parametrize(("column", "budget"), list(enumerate(BUDGETS)))
def test_known_values(name, column, budget):
    instance = within("boa/cbd-85", budget)
    assert run(instance, name).objective == pytest.approx(CBD_TABLE[name][column], abs=0.01)


@pytest.mark.parametrize(("budget", "known"), list(zip(BUDGETS, CBD_PUBLISHED, strict=True)))
def test_the_published_procedure_is_of_the_known_order(budget, known):
    instance = within("boa/cbd-85", budget)
    assert run(instance, "boa-published").objective == pytest.approx(known, rel=0.03)


# --- every rule, every bundled instance -------------------------------------------------------


@pytest.mark.parametrize("question", ["budget", "target"])
@pytest.mark.parametrize("name", optsched.names("boa"))
@pytest.mark.parametrize("method", GREEDY)
def test_never_better_than_the_optimum(method, name, question):
    instance, best = bundled(name, question), optimum(name, question)
    search = run(instance, method)
    optsched.check(instance, search.plan)
    assert search.objective >= best.objective * (1 - 1e-6)
    if instance.widths == "integer":
        assert search.objective >= best.bound


@pytest.mark.parametrize("method", GREEDY)
@law(300)
@given(instance=boa_instances(widths=("integer", "mixed")))
def test_never_better_than_brute_force(method, instance):
    best = brute_force(instance)
    search = run(instance, method)
    if best is None:
        assert search.plan is None
    elif search.plan is not None:
        optsched.check(instance, search.plan)
        assert search.objective >= float(best) * (1 - 1e-12)


@pytest.mark.parametrize("method", GREEDY)
@law(100)
@given(instance=boa_instances(widths=("continuous",), rescaling=False))
def test_whole_widths_are_valid_for_continuous_instances(method, instance):
    plan = run(instance, method).plan
    if plan is not None:
        optsched.check(instance, plan)
        assert all(isinstance(k, int) for k in all_widths(plan))


@pytest.mark.parametrize("method", GREEDY)
def test_solve_reports_the_greedy_plan_and_not_that_of_the_price(method):
    instance = read("boa/stress")
    result = optsched.solve(instance, method)
    optsched.verify(instance, result)
    assert result.status == "feasible"
    assert result.plan == run(instance, method).plan


# --- each rule against its definition ---------------------------------------------------------


def largest(widths, theta):
    return max((k for k in widths if k <= theta), default=widths[0])


def same_k_members(instance):
    phases = phases_of(instance)
    for k in sorted({k for phase in phases for k in phase.speedup.widths}):
        yield [largest(phase.speedup.widths, k) for phase in phases]


def class_width_members(instance):
    per_class = []
    for job_class in instance.classes:
        rows = [phase.speedup.widths for phase in job_class.phases]
        per_class.append([[largest(row, k) for row in rows] for k in set().union(*rows)])
    for combination in product(*per_class):
        yield [k for row in combination for k in row]


def equal_share_members(instance):
    curves = [curve(phase.speedup) for phase in phases_of(instance)]
    for theta in sorted({k for gpus, _ in curves for k in gpus}):
        yield [largest(gpus, min(theta, gpus[np.argmax(speedup)])) for gpus, speedup in curves]


def efficiency_members(instance):
    rows = []
    for phase in phases_of(instance):
        gpus, speedup = curve(phase.speedup)
        share = speedup / gpus
        rows.append((gpus, np.round(share / share.max(), 9)))
    for theta in sorted({value for _, shares in rows for value in shares}):
        yield [gpus[shares >= theta].max() for gpus, shares in rows]


def marginal_members(instance):
    """Step by step, looking at every job each time."""
    curves = []
    for phase in phases_of(instance):
        gpus, speedup = curve(phase.speedup)
        curves.append((gpus, phase.work_gpu_s / speedup))
    at = [0] * len(curves)
    while True:
        yield [gpus[n] for (gpus, _), n in zip(curves, at, strict=True)]
        steps = []
        for j, (gpus, seconds) in enumerate(curves):
            faster = np.flatnonzero(seconds < seconds[at[j]])
            faster = faster[faster > at[j]]
            if len(faster):
                n = int(faster[0])
                drop = (seconds[at[j]] - seconds[n]) / (gpus[n] - gpus[at[j]])
                steps.append((-drop, j, n))
        if not steps:
            return
        _, j, n = min(steps)
        at[j] = n


MEMBERS = {
    "same-k": same_k_members,
    "class-width": class_width_members,
    "equal-share": equal_share_members,
    "efficiency": efficiency_members,
    "marginal": marginal_members,
}


def plan_of(instance, row):
    widths, rest = [], list(row)
    for job_class in instance.classes:
        count = len(job_class.phases)
        widths.append([float(k) for k in rest[:count]])
        rest = rest[count:]
    return to_plan(instance, [(1.0, widths)])


def best_member(instance, members):
    search = Search(instance)
    for row in members:
        search.offer(plan_of(instance, row))
    return search.objective


@pytest.mark.parametrize("rule", MEMBERS)
@law(300)
@given(instance=boa_instances())
def test_the_best_member_of_the_family_is_found(rule, instance):
    expected = best_member(instance, MEMBERS[rule](instance))
    value = run(instance, rule).objective
    if expected is None:
        assert value is None
    else:
        assert value == pytest.approx(expected, rel=2e-6 if rule == "class-width" else 1e-9)


@pytest.mark.parametrize("budget", [2, 2.1, 2.2, 2.4, 2.7, 3, 3.5])
@pytest.mark.parametrize("rule", MEMBERS)
def test_families_on_the_hand_instance(rule, budget):
    instance = within("boa/hand", budget)
    expected = best_member(instance, MEMBERS[rule](instance))
    assert run(instance, rule).objective == pytest.approx(expected, rel=1e-9)


def test_same_k_gives_all_jobs_one_width():
    plan = run(read("boa/cbd-85"), "same-k").plan
    assert {k for row in widths_of(plan) for k in row} == {4}


def test_class_width_gives_a_class_one_width():
    instance = within("boa/cbd-85", 30)
    rows = widths_of(run(instance, "class-width").plan)
    assert [len(set(row)) for row in rows] == [1, 1, 1]
    assert len({row[0] for row in rows}) > 1


def test_equal_share_keeps_to_the_cap():
    instance = within("boa/stress", 1000)
    rows = widths_of(run(instance, "equal-share").plan)
    assert rows == [[1], [8, 8], [16, 8, 16], [4, 8], [4, 4], [16, 16], [4], [64]]


def test_marginal_takes_its_documented_sequence():
    # Seconds gained per GPU: B 1 -> 2 0.947, A 1 -> 2 0.75, B 2 -> 4 0.193, A 2 -> 4 0.125.
    sequence = [[1, 1], [1, 2], [2, 2], [2, 4], [4, 4]]
    assert [list(map(int, row)) for row in marginal_members(read("boa/hand"))] == sequence
    for budget, expected in zip((2, 2.06, 2.4, 2.7, 3.4), sequence, strict=True):
        instance = within("boa/hand", budget)
        assert all_widths(run(instance, "marginal").plan) == expected


def test_marginal_does_not_weigh_arrivals():
    changes = {"classes.A.arrival_rate_per_h": 36_000, "budget_gpus": 26.01}
    instance = read("boa/hand").changed(changes)
    assert widths_of(run(instance, "marginal").plan) == [[1], [2]]
    assert widths_of(optsched.solve(instance).plan) == [[2], [1]]


def test_marginal_looks_beyond_widths_that_gain_nothing():
    table = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1, 1, 4]}
    other = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1, 1.2, 1.2]}
    changes = {"classes.A.phases.0.speedup": table, "classes.B.phases.0.speedup": other}
    instance = read("boa/hand").changed(changes | {"budget_gpus": 2})
    assert widths_of(run(instance, "marginal").plan) == [[4], [1]]


def test_a_large_gain_waits_for_the_small_one_below_it():
    columns = [np.arange(3), np.arange(2)]
    first, second = parametric.one_by_one(columns, [np.array([1.0, 3.0]), np.array([2.0])])
    assert first.starts.tolist() == [-math.inf, 2, 3]
    assert second.starts.tolist() == [-math.inf, 1]


POWERS = {
    "pollux-like": lambda speedup: speedup[0] / speedup,
    "sia-like": lambda speedup: np.sqrt(speedup.min() / speedup),
}


@pytest.mark.parametrize("rule", POWERS)
@pytest.mark.parametrize(
    ("name", "budgets"),
    [("boa/hand", (2.1, 2.4, 3)), ("boa/stress", (22, 24, 40)), ("boa/cbd-85", (22, 26, 35, 48))],
)
def test_some_price_explains_the_widths(rule, name, budgets):
    for budget in budgets:
        instance = within(name, budget)
        plan = run(instance, rule).plan
        low, high = 0.0, math.inf  # the prices at which every width has the least 1 / v + nu k
        for phase, k in zip(phases_of(instance), all_widths(plan), strict=True):
            gpus, speedup = curve(phase.speedup)
            slowness = POWERS[rule](speedup)
            others = gpus != k
            price = (slowness[gpus == k] - slowness[others]) / (gpus[others] - k)
            low = price[gpus[others] > k].max(initial=low)
            high = price[gpus[others] < k].min(initial=high)
        assert low <= high * (1 + 1e-9)


def test_the_two_power_means_differ():
    instance = within("boa/cbd-85", 35)
    pollux, sia = run(instance, "pollux-like"), run(instance, "sia-like")
    assert pollux.plan != sia.plan


# --- the published procedure ------------------------------------------------------------------


def published_hull(gpus, speedup):
    """Vertices from the first width on, always along the largest slope, while it is positive."""
    hull = [0]
    while hull[-1] + 1 < len(gpus):
        rest = np.arange(hull[-1] + 1, len(gpus))
        slopes = (speedup[rest] - speedup[hull[-1]]) / (gpus[rest] - gpus[hull[-1]])
        if slopes.max() <= 0:
            break
        hull.append(int(rest[np.argmax(slopes)]))
    return hull


def fractional_widths(groups, limit, budget_given):
    """Solve (3) on the hulls without rescaling; None if the limit is too low."""
    chosen, steps = [], []
    for j, (gpus, time) in enumerate(groups):
        cost = gpus * time
        start = int(np.argmin(cost))
        chosen.append(gpus[start])
        for v in range(start, len(gpus) - 1):
            steps.append(((time[v] - time[v + 1]) / (cost[v + 1] - cost[v]), j, v))
    use = [(gpus * time if budget_given else time) for gpus, time in groups]
    spent = sum(row[list(groups[j][0]).index(chosen[j])] for j, row in enumerate(use))
    if budget_given and spent > limit:
        return None
    for _, j, v in sorted(steps, reverse=True):
        if not budget_given and spent <= limit:
            break
        change = use[j][v + 1] - use[j][v]
        share = (limit - spent) / change
        gpus, time = groups[j]
        if share < 1:
            speed = 1 / (time[v] + share * (time[v + 1] - time[v]))
            slope = (gpus[v + 1] - gpus[v]) / (1 / time[v + 1] - 1 / time[v])
            chosen[j] = gpus[v] + slope * (speed - 1 / time[v])
            return chosen
        chosen[j], spent = gpus[v + 1], spent + change
    return chosen if budget_given or spent <= limit else None


def published(instance):
    """The procedure without glue, literally."""
    search, groups = Search(instance), []
    for job_class in instance.classes:
        for phase in job_class.phases:
            gpus, speedup = curve(phase.speedup)
            hull = published_hull(gpus, speedup)
            rate = job_class.arrival_rate_per_h / 3600
            groups.append((gpus[hull], rate * phase.work_gpu_s / speedup[hull]))
    budget_given = instance.budget is not None
    trial = float(feasibility.limit(instance))
    while (widths := fractional_widths(groups, trial, budget_given)) is not None:
        pairs = zip(groups, widths, strict=True)
        rounded = [gpus[np.argmin(np.abs(gpus - k))] for (gpus, _), k in pairs]
        if search.offer(plan_of(instance, rounded)):
            break
        trial *= 0.99
    return search.objective


def random_instance(seed):
    rng = np.random.default_rng(seed)
    classes = []
    for i in range(3):
        phases = []
        for _ in range(rng.integers(1, 5)):
            gpus = sorted(rng.choice([1, 2, 3, 4, 6, 8, 12], 5, replace=False).tolist())
            speedup = (np.array(gpus) ** rng.uniform(0.3, 1.1) * rng.uniform(0.8, 1.2, 5)).tolist()
            table = {"kind": "table", "gpus": gpus, "speedup": speedup}
            phases.append({"work_gpu_s": rng.uniform(50, 500), "speedup": table})
        rate = rng.uniform(1, 20)
        rescale = float(rng.choice([0, 5, 50]))
        entry = {"id": f"c{i}", "arrival_rate_per_h": rate, "rescale_s": rescale}
        classes.append(entry | {"phases": phases})
    document = {"schema": "optsched/boa/1", "budget_gpus": 1.0, "classes": classes}
    return BoaInstance.from_document(document)


@pytest.mark.parametrize("key", ["budget_gpus", "target_mean_jct_s"])
@pytest.mark.parametrize("seed", range(6))
def test_the_published_procedure_literally(seed, key):
    instance = random_instance(seed).changed({"budget_gpus": None, key: 1.0})
    least, greatest = extreme_uses(instance)
    for part in np.linspace(0.01, 0.6, 12).tolist():
        tried = instance.changed({key: least + part * (greatest - least)})
        assert run(tried, "boa-published").objective == approx_or_none(published(tried))


def approx_or_none(value):
    return None if value is None else pytest.approx(value, rel=1e-9)


def test_rounding_goes_to_the_nearest_width():
    # B between 2 and 4 GPUs is fractional from 2.30 to 2.58 GPUs of budget, half-way at 2.4744.
    for budget, expected in ((2.48, [2, 2]), (2.584, [2, 4]), (2.96, [2, 4]), (3.34, [4, 4])):
        instance = within("boa/hand", budget)
        assert all_widths(run(instance, "boa-published").plan) == expected


def test_glue_saves_rescalings(monkeypatch):
    instance = within("boa/cbd-85", 22)
    glued = run(instance, "boa-published").objective
    monkeypatch.setitem(vars(SETTINGS), "drawn_groupings", 0)
    assert glued < 0.9 * run(instance, "boa-published").objective


def long_class(*widths):
    """Eleven phases that take turns among the given widths, so that glue may join two."""
    phases = [
        {"work_gpu_s": 60, "speedup": {"kind": "table", "gpus": row, "speedup": row}}
        for row in (widths[e % len(widths)] for e in range(11))
    ]
    entry = {"id": "long", "arrival_rate_per_h": 60, "rescale_s": 10, "phases": phases}
    return {"schema": "optsched/boa/1", "budget_gpus": 100, "classes": [entry]}


def test_glue_takes_common_widths_only():
    instance = BoaInstance.from_document(long_class([1, 2, 3], [2, 3, 4]))
    for seed in range(5):
        row = widths_of(run(instance, "boa-published", seed=seed).plan)[0]
        assert row == [3] * 10 + [3]  # 3, 4, 3, 4 ... without glue


def test_phases_without_a_common_width_are_not_glued():
    instance = BoaInstance.from_document(long_class([1], [2]))
    assert widths_of(run(instance, "boa-published").plan) == [[1, 2] * 5 + [1]]


def test_draws_depend_on_the_seed_only():
    instance = within("boa/cbd-85", 60)
    plans = [run(instance, "boa-published", seed=seed).plan for seed in (0, 0, 1, 2)]
    assert plans[0] == plans[1]
    assert plans[2] != plans[0] or plans[3] != plans[0]


# --- edges ------------------------------------------------------------------------------------


@law(300)
@given(instance=boa_instances())
def test_members_are_evaluated_as_the_verifier_does(instance):
    [rows] = parametric.fleets(instance)
    family = parametric.family(instance, rows, [parametric.every_width(block) for block in rows])
    totals = family.working + family.rescaling
    jobs, gpus = totals if instance.budget is not None else totals[::-1]
    for member in range(len(family.starts)):
        figures = performance(instance, family.plan(instance, member))
        assert jobs[member] == pytest.approx(figures.mean_jobs, rel=1e-10)
        assert gpus[member] == pytest.approx(figures.mean_gpus, rel=1e-10)


@pytest.mark.parametrize("method", GREEDY)
def test_a_class_without_arrivals_costs_nothing(method):
    instance = read("boa/stress")
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["classes"] = [c for c in document["classes"] if c["arrival_rate_per_h"]]
    without = BoaInstance.from_document(document)
    search = run(instance, method)
    assert len(search.plan.classes) == len(without.classes) + 1
    assert search.objective == run(without, method).objective


@pytest.mark.parametrize("method", GREEDY)
def test_the_least_budget_is_enough_where_one_width_is_cheapest(method):
    instance = within("boa/hand", 2)
    assert widths_of(run(instance, method).plan) == [[1], [1]]


def test_a_member_a_rounding_beyond_the_limit_gives_way_to_the_next():
    hand = read("boa/hand")
    over = hand.changed({"budget_gpus": math.nextafter(10 / 3, 0)})  # 4 GPUs each cost 10/3
    assert widths_of(run(over, "same-k").plan) == [[2], [2]]
    enough = hand.changed({"budget_gpus": 10 / 3})
    assert widths_of(run(enough, "same-k").plan) == [[4], [4]]
    assert widths_of(run(over, "class-width").plan) == [[2], [4]]


@pytest.mark.parametrize("method", GREEDY)
def test_a_budget_too_tight_for_the_rule_is_an_error(method):
    instance = within("boa/stress", 21.33)
    assert optsched.solve(instance).status == "optimal"
    result = optsched.solve(instance, method)
    assert (result.status, result.plan) == ("error", None)
    assert result.message == f"method '{method}' found no plan within the limit"


@pytest.mark.parametrize("method", GREEDY)
@pytest.mark.parametrize(
    "change", [{"budget_gpus": 1}, {"budget_gpus": None, "target_mean_jct_s": 1}]
)
def test_an_impossible_limit_is_proven_so(method, change):
    result = optsched.solve(read("boa/stress").changed(change), method)
    assert result.status == "infeasible"


@pytest.mark.parametrize("method", GREEDY)
def test_out_of_time_is_respected(method):
    result = optsched.solve(read("boa/cbd-85"), method, time_limit_s=0)
    assert result.plan is None or result.status == "feasible"


def test_the_rules_import_no_solver():
    unwanted = "{'highspy', 'pyomo', 'scipy', 'optsched.boa.exact.solver'}"
    code = f"import sys, optsched.boa.greedy.methods; print({unwanted} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
