"""Policy "eaco" with patience: jobs that would start among new ones wait for better partners."""

from dataclasses import replace

import numpy as np

from optsched.rollout import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.trace import US, trace_of

WORK_S = 127827.0
LATER = [0.0, 1000.0, 3000.0]


def starts_s(submit_s, patience_s, deadline_s=-1.0):
    """When jobs begin of which only the last two bear company."""
    models = ("ResNet-50", "ResNet-18", "VGG-16")[-len(submit_s) :]
    told = {f"models.{name}.max_slowdown": 1.25 for name in models} | {"epoch_s": 300.0}
    told |= {"models.ResNet-50.max_slowdown": 1.0, "nodes": 4}
    told["sharing.interference.fallback"] = "none"
    columns = {"submit_s": submit_s, "run_s": [WORK_S] * len(models), "model": models}
    trace = trace_of("three", "", columns | {"gpus": [8] * len(models)})
    due_us = np.full(len(models), round(deadline_s * US))
    world, trace = read_scenario("eaco-28").changed(told), replace(trace, deadline_us=due_us)
    run = simulate(world, f"eaco:patience_s={patience_s}", trace=trace)
    return (run.record.jobs.first_start_us / US).tolist()


def test_patient_jobs_begin_together_as_soon_as_one_of_them_has_waited_enough():
    assert starts_s(LATER, 0) == LATER
    assert starts_s(LATER, 2000) == [0.0, 3000.0, 3000.0]
    assert starts_s(LATER, 2500) == [0.0, 3600.0, 3600.0]


def test_patience_ends_at_the_next_epoch():
    assert starts_s(LATER, 700) == [0.0, 1800.0, 3000.0]


def test_jobs_with_deadlines_have_no_patience():
    assert starts_s(LATER, 5000, deadline_s=9e5) == LATER


def test_patience_leaves_no_cluster_empty():
    assert starts_s([0.0, 3000.0], 1e9) == [0.0, 3000.0]


def test_patience_saves_energy_and_starves_nobody():
    world = read_scenario("eaco-28").changed({"trace.jobs": 14})
    patient = simulate(world, "eaco:patience_s=20000", seed=1).metrics
    assert patient["unfinished"] == 0
    assert patient["energy_kwh"] <= simulate(world, "eaco", seed=1).metrics["energy_kwh"]
