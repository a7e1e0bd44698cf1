"""Queues with priorities: who comes first under EaCO's rule, and who refuses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.documents.faults import InstanceError
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import ENTRIES, make
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

KNOWING = ["eaco-greedy", "eaco-trials"]
SHARING = {"sharing": {"max_jobs_per_gpu": 2}}


def starts(name, priorities, rows, queues, models=None):
    """When each job starts on one node of two GPUs, in seconds."""
    world = scenario(1, 2, models=models or {"m": {}}, priorities=priorities, **SHARING)
    jobs = trace(*rows, queue=queues, model=["m"] * len(rows))
    record = Engine(world, jobs, make(name, world), 0).run()
    return (record.jobs.first_start_us / 1e6).tolist()


@pytest.mark.parametrize("name", KNOWING)
def test_a_later_job_of_a_higher_queue_comes_first(name):
    """Gangs of two that bear no other: one at a time. Unnamed queues have 0."""
    rows, queues = [(0, 2, 100), (10, 2, 100), (20, 2, 100), (30, 2, 100)], ["", "low", "", "high"]
    alone = {"m": {"max_slowdown": 1.0}}
    assert starts(name, {}, rows, queues, alone) == [0, 100, 200, 300]
    assert starts(name, {"high": 2, "low": -1}, rows, queues, alone) == [0, 300, 200, 100]
    assert starts(name, {"high": 2.5, "low": 2.5}, rows, queues, alone) == [0, 100, 300, 200]


@pytest.mark.parametrize("name", KNOWING)
@law(30)
@given(st.data())
def test_queues_of_one_priority_are_as_without(name, data):
    count = data.draw(st.integers(1, 6))
    rows = sorted(
        (data.draw(st.integers(0, 50)), data.draw(st.integers(1, 2)), data.draw(st.integers(1, 60)))
        for _ in range(count)
    )
    queues = data.draw(st.lists(st.sampled_from("ab"), min_size=count, max_size=count))
    level = data.draw(st.sampled_from([-1.0, 0.0, 3.0]))
    same = dict.fromkeys("ab", level)
    assert starts(name, same, rows, queues) == starts(name, {}, rows, queues)


def test_policies_that_know_no_priorities_are_refused():
    world = scenario(1, 2, priorities={"high": 1}, **SHARING)
    for entry in ENTRIES:
        if entry.knows_priorities:
            make(entry.name, world)
        else:
            with pytest.raises(ValueError, match=f"policy '{entry.name}': it knows no priorities"):
                make(entry.name, world)
    assert [entry.name for entry in ENTRIES if entry.knows_priorities] == KNOWING[::-1]


@pytest.mark.parametrize("value", ["first", float("nan"), None])
def test_priorities_are_numbers(value):
    with pytest.raises(InstanceError, match="priorities"):
        scenario(1, 2, priorities={"high": value})
