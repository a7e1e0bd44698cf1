"""The greedy methods beside a result: no bound anew, and no longer than the solve."""

import pytest

import optsched
from optsched import comparison
from optsched.cluster import kmeans
from optsched.comparison import Options, compared
from optsched.pal import problem as pal
from optsched.registry import problem
from optsched.search import Search, SolverDisagreement

GREEDY = [method.name for method in problem("pal").methods if method.kind == "greedy"]


@pytest.fixture
def solved():
    instance = optsched.read("pal/tiny")
    return instance, optsched.solve(instance)


def slow(monkeypatch, seconds):
    """Let the problem say that a rule of effort 1 takes so many seconds, and each take them."""
    clock = iter(range(1000))
    monkeypatch.setitem(vars(pal.PROBLEM), "greedy_s", lambda instance: seconds)
    monkeypatch.setattr(comparison.time, "process_time", lambda: seconds * next(clock))


def test_the_comparison_proves_no_bound_anew(solved, monkeypatch):
    """It took ten times the solve: eleven rules, and a root of branch and bound for each."""
    instance, result = solved
    monkeypatch.setitem(vars(pal.PROBLEM), "certify", None)
    made = compared(instance, result, Options(), 0.0)
    assert [each.method for each in made.tried] == GREEDY
    for each in made.tried:
        search = Search(instance)
        problem("pal").method(each.method)(instance, search)
        assert each.objective == search.objective
        assert (each.status == "optimal") == (
            each.objective - result.bound <= 1e-6 * each.objective
        )


def test_rules_that_would_take_longer_than_the_solve_are_left_out_by_name(solved, monkeypatch):
    instance, result = solved
    slow(monkeypatch, 1.0)
    made = compared(instance, result, Options(), 3.0)
    assert len(made.tried) == 3
    assert {*made.left_out} == {*GREEDY} - {each.method for each in made.tried}
    assert "pal-silhouette" in made.left_out


def test_bins_are_made_once_for_all_rules_that_ask_for_them(solved):
    instance, result = solved
    kmeans._fitted.cache_clear()
    compared(instance, result, Options(), 100.0)
    made = kmeans._fitted.cache_info()
    assert made.hits >= made.currsize > 0


def test_a_rule_below_the_bound_is_told_and_not_believed(solved):
    instance, result = solved
    false = result.model_copy(update={"bound": 1e9})
    with pytest.raises(SolverDisagreement, match="lies above"):
        compared(instance, false, Options(), 0.0)


# --- in Python ----------------------------------------------------------------------------------


def test_the_comparison_that_the_shell_prints_is_there_in_python_too():
    made = optsched.compare_methods("pal/tiny")
    frame = made.frame()
    assert list(frame.columns) == ["method", "objective", "above", "status", "seconds"]
    assert frame["method"].tolist()[0] == "exact"
    assert {*frame["method"][1:]} | {*made.left_out} == {*GREEDY}
    assert frame["objective"][0] == made.result.objective
    assert (frame["above"].dropna() >= -1e-9).all()
    optsched.verify("pal/tiny", made.result)


def test_the_comparison_is_drawn_with_a_bar_for_each_plan_and_the_bound():
    made = optsched.compare_methods("boa/hand")
    ax = made.plot()
    assert len(ax.patches) == made.frame()["objective"].notna().sum()
    assert [line.get_xdata()[0] for line in ax.lines] == [made.result.bound]
