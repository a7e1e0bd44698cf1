"""Planned drains and outages of nodes: by hand; the second engine has them in random rollouts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.engine.decision import Decision, InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.results.metrics import metrics
from optsched.rollout.scenario import Scenario
from optsched.traces.generators.registry import generate
from optsched.traces.trace import US, Failure
from tests.support.builders.rollout_parts import Fifo, Script, scenario, trace
from tests.support.strategies.common import law


def closed(kind, from_s, to_s=None, nodes=(0,)):
    return {"nodes": nodes, "from_s": from_s, "to_s": to_s, "kind": kind}


def run(downtime, rows, nodes=2, policy=None, **parts):
    world = scenario(nodes, 2, downtime=downtime, **parts)
    return Engine(world, trace(*rows), policy or Fifo(), 0, keep_intervals=True).run()


def seconds(values):
    return (np.asarray(values) / US).tolist()


def test_an_outage_takes_jobs_off_and_their_work_since_the_last_checkpoint():
    """Eight of eleven seconds are saved; 5 s after the outage the job is back, elsewhere."""
    costs = {"checkpoint_every_s": 4.0, "restore_s": 1.0}
    record = run([closed("outage", 11.0)], [(0, 2, 20)], costs=costs, retries={"delay_s": 5.0})
    assert record.intervals == ((0, 0, 11 * US, (0, 1)), (0, 16 * US, 29 * US, (2, 3)))
    assert seconds(record.jobs.redone_gpu_us) == [6]
    assert seconds(record.jobs.waiting_us) == [5]
    jobs = record.jobs
    assert (jobs.outages[0], jobs.failures[0], jobs.preemptions[0]) == (1, 0, 0)
    assert metrics(record)["outages"] == 1


def test_the_time_to_the_next_failure_goes_on_after_an_outage():
    failing = trace((0, 1, 20), failures=[[Failure("CPU out of memory", 15 * US)]])
    world = scenario(2, 1, downtime=[closed("outage", 5.0)], end_s=16.0)
    record = Engine(world, failing, Fifo(), 0).run()
    assert (record.jobs.outages[0], record.jobs.failures[0]) == (1, 1)


def test_a_node_that_is_drained_keeps_its_jobs_and_gets_no_new_ones():
    record = run([closed("drain", 5.0, 50.0)], [(0, 1, 20), (6, 2, 10), (7, 1, 10)])
    assert record.intervals == (
        (1, 6 * US, 16 * US, (2, 3)),
        (0, 0, 20 * US, (0,)),
        (2, 16 * US, 26 * US, (2,)),
    )
    # Its free GPU is not there from 5 s on, and that of the job not after its end at 20 s.
    assert record.available_gpu_us == (4 * 5 + 3 * 15 + 2 * 6) * US
    assert record.spent_gpu_us == 4 * 26 * US


def test_a_gang_waits_until_a_node_is_back():
    record = run([closed("outage", 0.0, 30.0, nodes=(0, 1))], [(0, 2, 5)])
    assert seconds(record.jobs.first_start_us) == [30]
    assert record.available_gpu_us == 4 * 5 * US


def test_jobs_that_would_need_a_node_that_never_comes_back_wait_for_ever():
    record = run([closed("outage", 1.0)], [(0, 2, 5), (3, 4, 5)])
    assert record.is_starved
    assert record.end_us == 6 * US  # the first is struck at 1 s, and begins again


def test_a_node_that_is_down_draws_nothing_and_an_outage_counts_for_more_than_a_drain():
    power = {"gpu": {"bare_w": 10, "context_w": 20, "peak_w": 100}, "node": {"base_w": 80}}
    both = [closed("drain", 0.0, 20.0), closed("outage", 10.0, 20.0)]
    record = run(both, [(0, 1, 30)], power=power)
    idle = 80 + 2 * 10
    assert record.energy_j == idle * (10 + 10) + (80 + 10 + 100) * 30


def test_no_job_is_placed_on_a_node_that_is_closed_but_one_there_may_get_narrower():
    curve = {"kind": "table", "gpus": [1, 2], "speedup": [1.0, 2.0]}
    models = {"m": {"phases": [{"work_gpu_s": 1, "speedup": curve}]}}
    world = scenario(2, 2, downtime=[closed("drain", 1.0)], models=models)
    jobs = trace((0, 2, 20), (2, 1, 5), model=["m", ""])
    narrower = Script({0: Decision(place={0: (0, 1)}), 2: Decision(place={0: (1,), 1: (2,)})})
    assert Engine(world, jobs, narrower, 0).run().jobs.rescales.tolist() == [1, 0]
    wrong = Script({0: Decision(place={0: (0, 1)}), 2: Decision(place={0: (1,), 1: (0,)})})
    with pytest.raises(InvalidDecision, match=r"node-not-ready: job 1 .* node 0 is not"):
        Engine(world, jobs, wrong, 0).run()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"to_s": 3}, "downtime[0].to_s: 3 after 5: must ascend"),
        ({"nodes": [0, 2]}, "downtime[0].nodes[1]: there is no node 2: the last of 2 is 1"),
    ],
)
def test_faults_of_downtime_name_their_path(changes, expected):
    document = {"schema": "optsched/scenario/1", "nodes": 2, "gpus_per_node": 4,
                "downtime": [closed("drain", 5) | changes],
                "trace": {"generator": "poisson", "jobs": 1}}  # fmt: skip
    with pytest.raises(optsched.InstanceError) as error:
        Scenario.from_document(document)
    assert error.value.faults == [expected]
    with pytest.raises(optsched.InstanceError, match="cannot stand beside rented"):
        scenario(2, 2, downtime=[closed("drain", 5.0)], rented={})


KNOWN = ("fifo", "philly", "srtf", "packed-sticky", "pal-greedy", "equi", "pollux", "srpt-k", "sia",
         "hesrpt", "smartfill", "wham", "gavel", "boa", "fixed-width", "fifo-exclusive",
         "random-pairs", "eaco-greedy")  # fmt: skip


@law(60)
@given(st.sampled_from(KNOWN), st.integers(0, 9), st.booleans())
def test_policies_leave_closed_nodes_alone(name, seed, is_elastic):
    """Whatever they are: a decision that does not would be refused."""
    curve = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 8}
    models = {"m": {"phases": [{"work_gpu_s": 1, "speedup": curve}]}}
    jobs = generate("poisson", 12, seed)
    span = float(jobs.submit_us[-1]) / US
    downtime = [
        closed("outage", 0.2 * span, 0.5 * span, nodes=(0, 1)),
        closed("drain", 0.1 * span, 0.8 * span, nodes=(2,)),
    ]
    world = scenario(4, 8, downtime=downtime, epoch_s=60.0, models=models)
    jobs = replace(jobs, model=("m",) * len(jobs)) if is_elastic else jobs
    record = Engine(world, jobs, make(name, world, 0), 0).run()
    assert np.all(record.jobs.outcome >= 0)


@pytest.mark.parametrize("name", ["pollux", "sia"])
def test_gpus_that_a_job_gives_up_on_a_node_that_is_closed_were_counted_as_free(name):
    """Others were to get them, and were placed on no GPU: seed 1 of the law above."""
    test_policies_leave_closed_nodes_alone.hypothesis.inner_test(name, 1, True)


def test_a_job_that_ended_on_a_node_that_is_closed_was_kept_in_the_last_plan_and_placed_again():
    """The round is the same as with it: one job waits, and there are no GPUs for it."""
    models = {"m": {"phases": [{"work_gpu_s": 1, "speedup": {"kind": "table", "gpus": [1, 2],
                                                             "speedup": [1.0, 1.9]}}]}}  # fmt: skip
    world = scenario(2, 1, downtime=[closed("drain", 20.0, 500.0, nodes=(0, 1))], models=models)
    jobs = trace((0.0, 1, 100.0), (30.0, 1, 50.0), model=["m", "m"])
    record = Engine(world, jobs, make("sia", world), 0).run()
    start_us, end_us = record.jobs.first_start_us.tolist(), record.jobs.end_us.tolist()
    assert start_us[0] == 0
    assert end_us[0] < 500 * US <= start_us[1] < end_us[1]


@pytest.mark.parametrize("placement", ["lowest", "best-fit", "pal"])
def test_a_job_with_a_narrower_phase_keeps_its_gpus_on_a_node_that_is_closed(placement):
    """Two of four GPUs would be given up for nobody; the job behind it cannot have them."""
    phases = [{"work_gpu_s": 10, "speedup": {"kind": "table", "gpus": [1, width],
                                             "speedup": [1.0, width]}}
              for width in (4, 2)]  # fmt: skip
    world = scenario(2, 4, downtime=[closed("drain", 1.0)], models={"m": {"phases": phases}})
    rows = [(0, 4, 100), (0, 2, 500), (2, 4, 100)]
    policy = make(f"fixed-width:k=4,partial=false,placement={placement}", world, 0)
    record = Engine(world, trace(*rows, model=["m", "", "m"]), policy, 0, keep_intervals=True).run()
    assert (record.jobs.outcome >= 0).all()
    assert record.intervals[0][0] == 0
    assert len([row for row in record.intervals if row[0] == 0]) == 1
    assert seconds(record.jobs.first_start_us) == [0, 0, 500]


@pytest.mark.parametrize("name", ["fifo-exclusive", "eaco-greedy", "eaco:programs=5"])
def test_policies_that_share_refused_scenarios_with_downtime(name):
    """A drained node keeps its job; the others see one node until the drain is over."""
    world = scenario(2, 2, downtime=[closed("drain", 1.0, 50.0)])
    record = run([closed("drain", 1.0, 50.0)], [(0, 2, 20), (2, 2, 30), (3, 2, 30)],
                 policy=make(name, world, 0))  # fmt: skip
    assert record.intervals == (
        (0, 0, 20 * US, (0, 1)),
        (1, 2 * US, 32 * US, (2, 3)),
        (2, 32 * US, 62 * US, (2, 3)),
    )
    record = run([closed("outage", 1.0, 50.0)], [(0, 2, 20), (2, 2, 70), (3, 2, 30)],
                 policy=make(name, world, 0))  # fmt: skip
    assert seconds(record.jobs.first_start_us) == [0, 21, 50]  # the first begins again at 1 s
    assert seconds(record.jobs.end_us) == [21, 91, 80]
