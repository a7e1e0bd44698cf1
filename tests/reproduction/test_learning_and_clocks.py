"""Rows of learnt rates, active nodes over time, and times of decisions, which are no rows."""

import pytest

import optsched
from optsched.reproduction.claims import eaco_rollouts
from optsched.reproduction.registry import STUDIES
from optsched.reproduction.studies import Level, Task


def test_times_of_decisions_stand_outside_of_the_digest():
    one, other = (optsched.reproduce("pal", level="quick", only=["pal-overhead"]) for _ in "12")
    assert one.digest == other.digest
    assert one.draws() == other.draws() == "{}"
    row = one.frame().loc["pal-overhead"]
    assert row.ours is None
    assert "timings" in row.why
    (times,) = one.document()["timings_of_decisions"].values()
    assert set(times) == set(STUDIES["pal-overhead"].cells(Level.QUICK))
    assert all(ms > 0 for each in times.values() for ms in each.values())
    assert "CPU time of a decision" in one.page()


def test_exact_with_learnt_rates_stands_beside_told_ones():
    """Energy over the same jobs: the certified bound is below all of them."""
    found = optsched.reproduce("eaco", level="quick", only=["eaco-learning-*"])
    (draw,) = found.measured.of("eaco-learning")
    kwh = {cell: figures["energy_kwh"] for cell, figures in draw.items()}
    assert kwh.pop("bound") < min(kwh.values())
    rows = found.frame().ours
    names = {"exact-told": "eaco", "exact-learnt": "eaco:rates=learnt",
             "greedy-told": "eaco-greedy", "greedy-learnt": "eaco-trials"}  # fmt: skip
    for key, cell in names.items():
        ratio = kwh[cell] / kwh["fifo-exclusive"]
        assert rows[f"eaco-learning-{key}"] == pytest.approx(100 * (ratio - 1))
    assert kwh["eaco:rates=learnt"] < kwh["eaco-trials"]


def test_active_nodes_over_time_add_up_to_the_metric():
    """Of a rollout that ends within the windows: all GPU-hours, by its own metric."""
    study = STUDIES["eaco-28"]
    figures = study.measure(Task("eaco-28", "eaco-greedy", 0, Level.QUICK))
    nodes = [figures[eaco_rollouts.window_key(n)] for n in range(eaco_rollouts.WINDOWS)]
    assert nodes[-1] == 0
    assert max(nodes) <= 28
    hours = figures["utilization"] * 28 * figures["makespan_s"] / 3600
    assert sum(nodes) * eaco_rollouts.WINDOW_H == pytest.approx(hours)
