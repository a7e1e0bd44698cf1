"""`python -m benchmarks.brackets --starts`: plans and programs against hand calculation."""

import pytest

from benchmarks.brackets import __main__ as command
from benchmarks.brackets import starts
from optsched.rollout.scenario_files import read_scenario
from tests.support.builders.rollout_parts import scenario


def cloud(**parts):
    """Rented nodes of a GPU each; a model of a phase of each of two speeds on two GPUs."""
    phases = [
        {"work_gpu_s": 1.0, "speedup": {"kind": "table", "gpus": [1, 2], "speedup": [1.0, s]}}
        for s in (1.0, 2.0)
    ]
    models = {"e": {"phases": phases, "rescale_s": 10.0}}
    return scenario(4, 1, models=models, rented={"provision_s": 60.0}, **parts)


def test_plans_are_the_widths_of_least_time_and_priced_gpu_time():
    speeds = starts._speeds(cloud().models["e"])
    cheap = starts._stretches(speeds, 200.0, 0.001)
    assert cheap == ((110.0, 2), (50.0, 2))  # 10 s of overhead, then 100 s of work at a speed of 1
    dear = starts._stretches(speeds, 200.0, 10.0)
    assert dear == ((110.0, 1), (100.0, 1))  # 60 s on two cost 1,260, 100 s on one 1,100
    assert starts._stretches(speeds, 2000.0, 0.1) == ((1010.0, 1), (510.0, 2))


def test_what_a_plan_holds_is_averaged_over_minutes():
    assert starts._held([(60.0, 1), (60.0, 2)], 90.0) == pytest.approx({1: 0.5, 2: 1.5, 3: 1.0})


def test_nodes_are_paid_for_from_a_start_up_before_they_are_used():
    """Two minutes on one GPU; with a minute before them three minutes are billed."""
    plans = [starts._Plan(0, 120.0, {3: 1.0, 4: 1.0})]
    assert starts._least_s(plans, 1, 2 / 60 + 1e-9, 0) == pytest.approx(120)
    assert starts._least_s(plans, 1, 3 / 60 + 1e-9, 1) == pytest.approx(120)
    assert starts._least_s(plans, 1, 3 / 60 - 1e-6, 1) != pytest.approx(120)  # nan: too little


def test_a_mixture_of_plans_spends_the_bill():
    plans = [starts._Plan(0, 120.0, {0: 1.0, 1: 1.0}), starts._Plan(0, 60.0, {0: 4.0})]
    assert starts._least_s(plans, 1, 3 / 60, 0) == pytest.approx(90)


def test_a_small_cloud_has_a_row_for_each_seed(monkeypatch, capsys):
    few = read_scenario("boa-cloud").changed({"trace.jobs": 3})
    monkeypatch.setattr(starts, "read_scenario", lambda name: few)
    assert command.main(["--starts", "--seeds", "1"]) == 0
    cells = capsys.readouterr().out.splitlines()[-1].split(" | ")
    billed, held, idle, unready = (float(cell) for cell in cells[1:5])
    assert billed == pytest.approx(held + idle + unready, abs=0.2)
    still, bound, without, mixed = (float(c.strip(" |").replace(",", "")) for c in cells[7:])
    assert still <= bound <= mixed + 1
    assert still <= without + 1 <= mixed + 2


def test_two_jobs_that_follow_each_other_share_a_start():
    one = starts._Plan(0, 60.0, {2: 1.0})
    other = starts._Plan(1, 60.0, {3: 1.0})
    assert starts._least_s([one, other], 2, 3 / 60 + 1e-9, 1) == pytest.approx(60)
