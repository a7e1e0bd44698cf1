"""What a budget allows, what is billed beyond it, and the least budget that a schedule can keep."""

import pytest

from optsched.cli.printing.rollout_figures import rollout as printed
from optsched.rollout.results.billing.budgets import Allowance, allowance, unkept
from optsched.rollout.results.plot import cost_over_time
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import trace_of


def rented(*jobs, budget=4.0, **fields):
    """Jobs (submit_s, run_s) that scale to 2 GPUs without loss, on nodes of 4 GPUs."""
    table = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 2.0, 2.5]}
    document = {
        "name": "rented",
        "nodes": 4,
        "gpus_per_node": 4,
        "models": {"m": {"phases": [{"work_gpu_s": 1.0, "speedup": table}], "rescale_s": 36.0}},
        "trace": {"generator": "none", "jobs": 1},
        "epoch_s": 10.0,
        "rented": {"provision_s": 360.0},
        "budget_gpus": budget,
        **fields,
    }
    submit, run = zip(*jobs, strict=True)
    columns = {
        "submit_s": submit,
        "gpus": [1] * len(jobs),
        "run_s": run,
        "model": ["m"] * len(jobs),
    }
    return Scenario.from_document(document, "rented"), trace_of("t", "", columns)


def test_the_bill_by_hand():
    world, trace = rented((0.0, 3600.0), (3600.0, 7200.0))
    # Least use is 1 GPU: the second job takes its 2 h after the last arrival.
    assert allowance(world, trace) == Allowance(arrivals_h=1.0, drain_gpu_h=2.0)
    told = simulate(world, "fixed-width:k=2", trace=trace).metrics
    # Each job: 0.1 h of starting a node, 0.01 h of starting, 0.5 and 1 h of work on 2 GPUs.
    assert told["rented_gpu_hours"] == pytest.approx(4 * (0.61 + 1.11))
    assert told["unready_gpu_h"] == pytest.approx(4 * 0.2)
    assert told["idle_gpu_h"] == pytest.approx(2 * (0.51 + 1.01))
    assert told["overhead_gpu_h"] == pytest.approx(2 * 0.02)
    assert told["over_budget_gpu_h"] == pytest.approx(4 * 1.72 - (4 * 1.0 + 2.0))
    parts = ("gpu_hours", "idle_gpu_h", "unready_gpu_h")
    assert sum(told[part] for part in parts) == pytest.approx(told["rented_gpu_hours"])


def test_the_budget_is_the_policys_own_or_that_of_the_scenario():
    world, trace = rented((0.0, 3600.0), (3600.0, 7200.0))
    of = {text: simulate(world, text, trace=trace).metrics for text in ("boa", "boa:budget=3")}
    over = [told["over_budget_gpu_h"] - told["rented_gpu_hours"] for told in of.values()]
    assert over == pytest.approx([-6.0, -5.0])
    owned, _ = rented((0.0, 1.0), rented=None)
    told = simulate(owned, "fixed-width:k=2", trace=trace).metrics
    assert told["over_budget_gpu_h"] is None
    assert told["least_budget_gpus"] is None
    assert told["unready_gpu_h"] == 0


def test_it_is_said_that_no_schedule_keeps_a_budget():
    """1 and 2 GPU-hours of work and starts of 0.01 h at least, of which 2 may be drained."""
    world, trace = rented((0.0, 3600.0), (3600.0, 7200.0))
    run = simulate(world, "boa-budgeted:budget=0.5", trace=trace)
    least = run.metrics["least_budget_gpus"]
    assert 0.999 <= least <= 1.02  # the bound may leave out starts
    assert run.metrics["over_budget_gpu_h"] >= least - 0.5
    said = unkept(run.record, least)
    assert said.startswith(
        "No schedule of these jobs keeps a budget of 0.5 GPUs: each is billed 0.5"
    )
    assert said in printed([run])
    kept = simulate(world, "boa-budgeted:budget=1.1", trace=trace)
    assert unkept(kept.record, kept.metrics["least_budget_gpus"]) == ""


def test_jobs_at_once_have_no_time_to_spend_a_budget():
    world, trace = rented((0.0, 3600.0), (0.0, 3600.0))
    assert allowance(world, trace) == Allowance(0.0, 2.0)
    assert Allowance(0.0, 2.0).least_budget(2.1) == float("inf")
    assert Allowance(0.0, 2.0).least_budget(2.0) == 0


def test_the_picture_of_the_bill_shows_what_is_allowed():
    world, trace = rented((0.0, 3600.0), (3600.0, 7200.0), price_usd_per_gpu_h=2.0)
    record = simulate(world, "fixed-width:k=2", trace=trace).record
    axes = cost_over_time({"fixed": record})
    spent, allowed = axes.get_lines()
    assert spent.get_ydata()[-1] == pytest.approx(2 * 4 * 1.72)
    assert allowed.get_ydata().tolist() == pytest.approx([0.0, 8.0, 12.0])
    assert allowed.get_linestyle() == "--"
