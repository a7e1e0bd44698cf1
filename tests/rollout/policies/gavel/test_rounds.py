"""Gavel's rounds: jobs receive the shares of time that they are to have, and nobody starves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.gavel import time_shares
from optsched.rollout.policies.gavel.rounds import Gavel
from optsched.rollout.registry import make
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import US, trace_of
from tests.rollout.policies.rounds.test_kept_rounds import check_against, still_scenarios
from tests.support.builders.rollout_parts import gone_on
from tests.support.strategies.common import law


def world(nodes, **fields):
    document = {"name": "w", "nodes": nodes, "epoch_s": 10.0, "decide_on": [],
                "trace": {"generator": "none", "jobs": 1}, **fields}  # fmt: skip
    return Scenario.from_document(document, "w")


def jobs(runs, gpus, model=""):
    columns = {"submit_s": [0.0] * len(runs), "gpus": gpus, "run_s": runs,
               "model": [model] * len(runs)}  # fmt: skip
    return trace_of("jobs", "", columns)


def gpu_seconds(record, until_s):
    """GPU time that each job held up to a moment."""
    held = np.zeros(len(record.trace.submit_us))
    for job, start, end, gpus in record.intervals:
        held[job] += max(0, min(end, until_s * US) - start) / US * len(gpus)
    return held


def test_on_one_type_gpu_time_is_shared_equally():
    """Three gangs of 2 on 4 GPUs, two of which fit: two thirds of the time each."""
    cluster, trace = world(2, gpus_per_node=2), jobs([1000.0] * 3, [2, 2, 2])
    record = simulate(cluster, "gavel", trace=trace, keep_intervals=True).record
    held = gpu_seconds(record, 600)
    assert held.sum() == pytest.approx(2400, abs=50)
    assert held == pytest.approx(np.full(3, 800.0), abs=45)
    assert (record.jobs.outcome == 0).all()


def test_the_makespan_is_that_of_the_program():
    """Work of 300, 100 and 200 s on two GPUs: 300 s, and first in, first out takes 400."""
    cluster, trace = world(2, gpus_per_node=1), jobs([100.0, 200.0, 300.0], [1, 1, 1])
    ends = {
        policy: simulate(cluster, policy, trace=trace).record.jobs.end_us.max() / US
        for policy in ("gavel:objective=makespan", "fifo")
    }
    assert ends["gavel:objective=makespan"] <= 330
    assert ends["fifo"] == 400


def test_types_go_to_those_who_gain_most():
    nodes = [
        {"count": 1, "gpus": 1, "gpu_type": "fast"},
        {"count": 1, "gpus": 1, "gpu_type": "slow"},
    ]
    models = {"picky": {"gpu_speeds": {"fast": 8.0, "slow": 1.0}},
              "calm": {"gpu_speeds": {"fast": 1.0, "slow": 1.0}}}  # fmt: skip
    cluster = world(nodes, models=models)
    columns = {"submit_s": [0.0, 0.0], "gpus": [1, 1], "run_s": [100.0, 100.0],
               "model": ["calm", "picky"]}  # fmt: skip
    record = simulate(
        cluster, "gavel", trace=trace_of("t", "", columns), keep_intervals=True
    ).record
    where = {(job, gpus) for job, _, _, gpus in record.intervals}
    assert where == {(0, (1,)), (1, (0,))}


@pytest.mark.parametrize("policy", ["gavel", "gavel:objective=makespan"])
def test_all_jobs_end_on_three_types_and_a_rollout_goes_on_from_plain_data(policy):
    cluster = read_scenario("three-types").changed({"trace.jobs": 20})
    trace = jobs_of(cluster)

    def begun():
        return Engine(cluster, trace, make(policy, cluster), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    assert (whole.jobs.outcome == 0).all()
    while engine.step():
        steps += 1
        if steps % 25 == 0:
            engine = gone_on(engine, begun())
    assert (engine.record().jobs.end_us == whole.jobs.end_us).all()


@law(200)
@given(st.data(), st.sampled_from(["gavel", "gavel:objective=makespan,placement=best-fit"]))
def test_rounds_in_which_all_jobs_run_are_those_that_programs_and_priorities_give(data, policy):
    never = property(lambda gavel: False, lambda gavel, is_so: None)
    solved = time_shares, "_greatest_least", time_shares.by_programs
    check_against(
        data, data.draw(still_scenarios()), policy, (Gavel, "_all_run", never, False), solved
    )
