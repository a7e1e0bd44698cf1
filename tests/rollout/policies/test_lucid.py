"""Lucid's order by hand: learnt durations x GPUs, and sharing only where GPUs run out."""

import pytest

from optsched.rollout import simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.traces.trace import US, trace_of
from tests.rollout.policies.test_eaco_rollout import gang_trace, gangs
from tests.support.builders.rollout_parts import gone_on

POLICY = "lucid-ordered"


def jobs_of(rows):
    """Jobs of (submit_s, gpus, run_s, model)."""
    submit, gpus, run, model = zip(*rows, strict=True)
    columns = {"submit_s": submit, "gpus": gpus, "run_s": run, "model": model}
    return trace_of("t", "", columns)


def starts(rows, policy=POLICY, nodes=1, **fields):
    record = simulate(gangs(nodes=nodes, **fields), policy, trace=jobs_of(rows)).record
    return (record.jobs.first_start_us / US).tolist()


ALONE = {"sharing": {"max_jobs_per_gpu": 1, "memory_gb": 32}}


def test_the_order_was_that_of_the_queue_not_of_estimated_duration_times_gpus():
    """Ends teach 1,000 s for busy and 10 s for calm; before, calm is as all that have ended."""
    rows = [
        (0, 4, 1000, "busy"), (1, 4, 10, "calm"), (2, 4, 500, "busy"), (1005, 4, 7, "busy"),
        (1006, 4, 10, "calm"), (1007, 2, 7, "calm"),
    ]  # fmt: skip
    assert starts(rows, **ALONE) == [0, 1000, 1027, 1527, 1017, 1010]
    queue = starts(rows, "sharing-scores", **ALONE)
    assert queue == [0, 1000, 1010, 1510, 1517, 1527]


def test_jobs_share_only_if_there_are_no_gpus_left():
    rows = [(0, 4, 100, "calm"), (1, 4, 100, "calm")]
    placed = {}
    for nodes in (1, 2):
        record = simulate(gangs(nodes=nodes), POLICY, trace=jobs_of(rows)).record
        assert (record.jobs.first_start_us / US).tolist() == [0, 1]
        placed[nodes] = record.jobs.end_us[0] / US
    assert placed[2] == 100 <= placed[1]
    early = simulate(gangs(nodes=2), "sharing-scores", trace=jobs_of(rows)).record
    assert early.jobs.end_us[0] / US == placed[1]  # that rule shares at once


@pytest.mark.parametrize("seed", range(3))
def test_jobs_of_all_sizes_end_and_a_rollout_goes_on_from_plain_data(seed):
    world, trace = gangs(), gang_trace(24, seed, sizes=(1, 2, 3, 4, 6, 8))

    def begun():
        return Engine(world, trace, make(POLICY, world), seed=0)

    whole, engine, steps = begun().run(), begun(), 0
    assert (whole.jobs.outcome == 0).all()
    while engine.step():
        steps += 1
        if steps % 9 == 0:
            engine = gone_on(engine, begun())
    assert (engine.record().jobs.end_us == whole.jobs.end_us).all()
