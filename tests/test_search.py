"""What a solve may be given to begin with, where it stops, and what it leaves for the next one."""

import pytest

import optsched
from optsched import solving
from optsched.eaco.exact import solver as exact
from optsched.eaco.exact.warm_start import WarmStart as GroupsWarmStart
from optsched.eaco.exact.warm_start_duals import WarmStartDuals
from optsched.eaco.greedy.rules import RULES as GROUPING_RULES
from optsched.pal.exact.warm_start import WarmStart as PlacementWarmStart
from optsched.pal.greedy.rules import RULES as PLACEMENT_RULES
from optsched.pal.node_classes.warm_start import WarmPatterns
from optsched.registry import Method, problem
from optsched.rollout import registry
from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.policies.epoch_solver import EpochSolver
from optsched.search import Search, SolverDisagreement
from optsched.solving import Outcome, concluded, solve
from optsched.verification import verify

EXACT = [("pal/sia-64", "exact"), ("eaco/gangs", "exact"), ("eaco/gangs", "columns")]
STATES = [
    ("pal/overfull", "exact", PlacementWarmStart),
    ("pal/overfull", "node-classes", WarmPatterns),
    ("eaco/gangs", "exact", WarmStartDuals),
    ("eaco/gangs", "columns", GroupsWarmStart),
]


def text(result):
    """The result as it is written, without what the clock said."""
    return result.model_copy(update={"seconds": 0.0, "verification_s": 0.0}).to_json()


# --- a limit of linear programs -----------------------------------------------------------------


@pytest.mark.parametrize(("name", "method"), EXACT)
def test_a_limit_of_programs_gives_the_same_verified_result_twice(name, method):
    instance = optsched.read(name)
    first, second = (solve(instance, method, program_limit=1, gap=1e-3) for _ in range(2))
    assert text(first) == text(second)
    assert first.deterministic
    assert first.bound <= solve(instance, method, gap=0.05).objective
    verify(instance, first)


def test_programs_are_counted_until_they_are_used_up():
    search = Search(optsched.read("eaco/gangs"), program_limit=2)
    assert [search.seconds_for_program() for _ in range(2)] == [None, None]
    assert not search.out_of_time()
    assert search.seconds_for_program() == 0
    assert search.out_of_time()
    assert search.stopped == "limit of linear programs"


@pytest.mark.parametrize(("name", "method"), [("boa/cbd-85", None), ("pal/overfull", "milp"),
                                              ("pal/overfull", "pm-first")])  # fmt: skip
def test_methods_that_do_not_count_programs_say_so(name, method):
    with pytest.raises(ValueError, match="does not count linear programs"):
        solve(optsched.read(name), method, program_limit=3)


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1, not 0"):
        solve(optsched.read("pal/overfull"), program_limit=0)


# --- plans to begin with ------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "method"), EXACT)
def test_a_plan_that_was_given_is_where_it_begins(name, method):
    instance = optsched.read(name)
    best = solve(instance, method, gap=0.05)
    again = solve(instance, method, gap=0.05, plans=[best.plan])
    assert again.objective <= best.objective
    assert again.ending.is_greedy == (again.objective == best.objective)
    assert not best.ending.is_greedy or best.plan is not None


def test_plans_that_break_rules_are_left_aside():
    instance = optsched.read("pal/overfull")
    best = solve(instance, gap=0.05)
    job = best.plan.jobs[0]
    broken = best.plan.model_copy(update={"jobs": (job, *best.plan.jobs)})
    again = solve(instance, gap=0.05, plans=[broken, best.plan])
    assert again.status == "optimal"
    assert not again.ending.is_refused


def test_plans_are_made_only_if_the_previous_epoch_is_not_enough():
    instance = optsched.read("pal/overfull")

    def plans():
        made.append(1)
        yield first.plan

    made, first = [], solve(instance, gap=0.2)
    again = solve(instance, gap=0.2, start=first, plans=plans())
    assert again.ending.is_warm
    assert not made
    assert solve(instance, gap=0.2, plans=plans()).objective <= first.objective
    assert made


def test_a_greedy_method_takes_no_plans():
    with pytest.raises(ValueError, match="is greedy: it takes no start"):
        solve(optsched.read("pal/overfull"), "pm-first", plans=[])


# --- warm starts --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "method", "kind"), STATES)
def test_every_solver_leaves_a_warm_start_that_only_its_like_takes(name, method, kind):
    instance = optsched.read(name)
    result = solve(instance, method, gap=0.05)
    assert type(result.state) is kind
    assert callable(kind.of)
    search = Search(instance, start=result)
    assert search.previous(kind) is result.state
    assert all(search.previous(other) is None for *_, other in STATES if other is not kind)
    assert Search(instance).previous(kind) is None
    assert solve(instance, method, gap=0.05, start=result).gap <= 0.05


@pytest.mark.parametrize(("name", "method"), [(name, method) for name, method, _ in STATES])
def test_epochs_go_on_from_plain_data_as_if_there_had_been_none(name, method):
    options = {"gap": 0.05, "method": method}
    if method == "exact":
        options["program_limit"] = 50
    instance, solver, other = optsched.read(name), EpochSolver(**options), EpochSolver(**options)
    assert not solver.solve(instance).ending.is_warm
    other.restore(of_json(to_json(solver.snapshot())))
    assert type(other._last[2]) is type(solver._last[2])
    here, there = solver.solve(instance), other.solve(instance)
    assert here.ending.is_warm or method != "exact"
    assert text(here) == text(there)
    assert there.ending == here.ending


@pytest.mark.parametrize(("proof_s", "left_s"), [(0.0, 4.0), (1.5, 2.5), (9.0, 2.0)])
def test_the_limit_of_a_call_leaves_time_for_a_proof_like_the_last(proof_s, left_s, monkeypatch):
    """Calls took their limit and the proof on top: 0.37 s in the median where 0.2 were asked."""
    instance, solver = optsched.read("pal/tiny"), EpochSolver(time_limit_s=4.0)
    granted, whole = [], solving.solve

    def noted(*given, **named):
        granted.append(named["time_limit_s"])
        return whole(*given, **named).model_copy(update={"verification_s": proof_s})

    monkeypatch.setattr(solving, "solve", noted)
    solver.solve(instance)
    solver.solve(instance)
    assert granted == [4.0, left_s]


@pytest.mark.parametrize("name", ["pal/overfull", "eaco/gangs"])
def test_ctrl_c_in_an_epoch_ends_the_rollout(name, monkeypatch):
    def interrupted(self, instance, search):
        raise KeyboardInterrupt

    monkeypatch.setattr(Method, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        EpochSolver().solve(optsched.read(name))


def test_a_proof_that_there_is_no_plan_beside_a_plan_is_a_contradiction():
    instance = optsched.read("pal/overfull")
    best = solve(instance, gap=0.05)
    search = Search(instance)
    search.offer(best.plan)
    with pytest.raises(SolverDisagreement, match="states that there is none") as caught:
        concluded(problem("pal").method("exact"), search, Outcome(None, is_infeasible=True))
    assert caught.value.result.plan == best.plan
    assert caught.value.result.bound is None
    assert caught.value.result.ending.is_refused


# --- one table for methods and policies ---------------------------------------------------------


def test_a_row_of_a_table_is_a_method_and_the_policy_of_its_name():
    methods = {m.name: m for name in ("pal", "eaco") for m in problem(name).methods}
    policies = {entry.name: entry for entry in registry.ENTRIES}
    for rule in (*PLACEMENT_RULES, *GROUPING_RULES):
        assert methods[rule.name] is rule
        if getattr(rule, "is_policy", True):
            assert rule.summary in policies[rule.name].summary
            assert policies[rule.name].source == rule.source
            assert policies[rule.name].maker().draws == rule.draws
    greedy = {name for name, method in methods.items() if method.kind == "greedy"}
    tables = {rule.name for rule in (*PLACEMENT_RULES, *GROUPING_RULES)}
    assert set(policies) & greedy == {
        rule.name for rule in (*PLACEMENT_RULES, *GROUPING_RULES) if getattr(rule, "is_policy", 1)
    }
    assert greedy - tables == {"local-search"}


def test_what_certifies_a_greedy_plan_has_the_seconds_that_the_method_left(monkeypatch):
    """A search of its own had no deadline: a limit of 0.5 s took 5 s on a mutated file."""
    seen, certify = [], exact.certify
    monkeypatch.setattr(exact, "certify", lambda i, s: seen.append(s) or certify(i, s))
    optsched.solve("eaco/paper-four", method="eaco-greedy", time_limit_s=30)
    optsched.solve("eaco/paper-four", method="eaco-greedy")
    assert 0 < seen[0].seconds_left() <= 30
    assert seen[1].deadline is None
