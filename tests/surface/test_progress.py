"""What a caller is told while a solve runs, by `progress=` and by the log "optsched"."""

import logging
from itertools import count

import pytest

import optsched
from optsched import progress
from optsched.progress import Progress, Reporter

HAND = optsched.read("boa/hand")
MOVING = "pal/sia-64"  # several plans and bounds in a second


def without_seconds(result):
    return result.model_copy(update={"seconds": 0.0, "verification_s": 0.0}).to_json()


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets: one entry, in seconds."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize("name", [MOVING, "eaco/paper-mixed", "boa/cbd-85", "sia/hand"])
def test_plans_get_better_bounds_rise_and_the_last_call_has_both(name):
    told = []
    result = optsched.solve(optsched.read(name), progress=told.append)
    objectives = [each.objective for each in told if each.objective is not None]
    bounds = [each.bound for each in told if each.bound is not None]
    assert objectives == sorted(objectives, reverse=True)
    assert bounds == sorted(bounds)
    assert all(a <= b for a, b in zip(bounds[-1:], objectives[-1:], strict=True))
    assert [each.elapsed_s for each in told] == sorted(each.elapsed_s for each in told)
    last = told[-1]
    assert last == Progress(
        last.elapsed_s, "verification", result.objective, result.bound, result.gap
    )


def test_progress_changes_nothing_of_the_result():
    instance = optsched.read(MOVING)
    assert without_seconds(optsched.solve(instance, progress=lambda told: None)) == (
        without_seconds(optsched.solve(instance))
    )


def test_a_progress_call_that_raises_is_told_and_loses_no_plan(caplog):
    calls = count()

    def broken(told):
        next(calls)
        raise ZeroDivisionError("mine")

    result = optsched.solve(HAND, progress=broken)
    assert result.status == "optimal"
    assert "ZeroDivisionError: mine" in result.message
    assert next(calls) == 1
    assert "ZeroDivisionError" in caplog.text
    optsched.verify(HAND, result)


@pytest.mark.parametrize("number", range(5))
def test_ctrl_c_within_a_progress_call_gives_the_best_plan_so_far(number, monkeypatch):
    """At whichever call it comes, the first one included."""
    monkeypatch.setattr(progress, "LEAST_S", 0.0)
    instance, calls, best = optsched.read(MOVING), count(), []

    def stopping(told):
        best.append(told.objective)
        if next(calls) == number:
            raise KeyboardInterrupt

    result = optsched.solve(instance, progress=stopping)
    assert len(best) == number + 1
    assert result.ending.is_interrupted
    assert best[-1] is None or result.objective <= best[-1]
    if result.plan is not None:
        optsched.check(instance, result.plan)
    optsched.verify(instance, result)


def test_better_figures_are_told_ten_times_a_second_at_most_and_none_is_lost(clock):
    told = []
    reporter = Reporter(HAND, told.append)
    for step in range(1000):
        clock[0] = step / 100
        reporter.improved(objective=2000.0 - step)
    assert 90 <= len(told) <= 101
    reporter.improved(bound=5.0)
    reporter.flush()
    assert told[-1].bound is None
    clock[0] += 1
    reporter.flush()
    reporter.flush()
    assert told[-1] == Progress(clock[0], "beginning", 1001.0, 5.0, pytest.approx(996 / 1001))
    assert len(told) <= 102


def test_a_bound_above_the_best_plan_is_told_as_the_plan(clock):
    """An empty tree proves whatever it was asked to."""
    told = []
    reporter = Reporter(HAND, told.append)
    reporter.improved(objective=2.0)
    reporter.improved(bound=float("inf"))
    reporter.enter("next")
    assert (told[-1].objective, told[-1].bound, told[-1].gap) == (2.0, 2.0, 0.0)


def test_the_log_tells_phases_at_info_and_every_improvement_at_debug(caplog):
    with caplog.at_level(logging.INFO, logger="optsched"):
        optsched.solve(HAND)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert f"{HAND.name}: verification" in caplog.text
    assert "plan 1.151316, bound 1.1513" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="optsched"):
        optsched.solve(HAND)
    assert "DEBUG" in {record.levelname for record in caplog.records}


def test_nothing_is_printed_by_default(capfd):
    optsched.solve(HAND)
    assert capfd.readouterr() == ("", "")
