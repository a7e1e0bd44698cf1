"""Why jobs wait: what the rule of docs/rollouts.md says of any rollout, and the tables of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout import first_waits, why_jobs_wait
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from tests.support.builders import records
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import scenarios, traces

GANGS = ("fifo:relax_s=7,backfill=true", "philly", "fifo")


@pytest.mark.parametrize("name", GANGS)
@law(100)
@given(st.data())
def test_a_cluster_of_one_server_has_no_fragmentation(name, data):
    world = data.draw(scenarios(plain=True))
    world = world.changed({"nodes": 1, "gpus_per_node": 4, "locality": (), "spread": None,
                           "profile": None, "quotas": {"q": 3}, "downtime": ()}
                          | {"models": {"m": {}, "e": {}}})  # fmt: skip
    record = Engine(world, data.draw(traces(world)), make(name, world), 0).run()
    assert not record.jobs.fragmentation_us.any()


@law(100)
@given(st.data())
def test_what_accepts_any_place_never_waits_for_one(data):
    world = data.draw(scenarios(plain=True))
    record = Engine(world, data.draw(traces(world)), make("fifo", world), 0).run()
    assert not record.jobs.fragmentation_us.any()


def test_without_quotas_nobody_waits_for_fair_share():
    world = scenario(1, 2)
    record = Engine(world, trace((0, 2, 100), (1, 1, 5)), make("fifo", world), 0).run()
    assert record.jobs.capacity_us.tolist() == [0, 99_000_000]
    assert not record.jobs.fair_share_us.any()


def test_a_gang_waits_for_its_turn_behind_the_head_of_the_queue_and_not_for_a_place():
    """One node: jobs of 6, 4 and 1 GPUs; the last would fit all the time (was: fragmentation)."""
    world = scenario(1, 8)
    jobs = trace((0, 6, 1000), (1, 4, 1000), (1, 1, 1000))
    record = Engine(world, jobs, make("fifo", world), 0).run()
    assert record.jobs.order_us.tolist() == [0, 0, 999_000_000]
    assert record.jobs.capacity_us.tolist() == [0, 999_000_000, 0]


def test_a_gang_that_insists_on_one_node_waits_for_a_place_until_it_relaxes():
    world = scenario(2, 3)
    jobs = trace((0, 2, 1000), (0, 2, 1000), (10, 2, 5))
    record = Engine(world, jobs, make("fifo:relax_s=100", world), 0).run()
    assert record.jobs.first_start_us.tolist() == [0, 0, 110_000_000]
    assert record.jobs.fragmentation_us.tolist() == [0, 0, 100_000_000]
    assert record.jobs.fragmentation_delays.tolist() == [0, 0, 1]


def test_tables_by_hand():
    table = why_jobs_wait(records.record())
    row = table.loc["2 to 4 GPUs"]
    assert (row.jobs, row.delayed_starts, row.fair_share_delays) == (2, 1, 1)
    assert row.fragmentation_share == 0
    assert row.fragmentation_h == pytest.approx(25 / 3600)
    assert table.loc["1 GPU"].capacity_h == pytest.approx(50 / 3600)
    assert np.isnan(table.loc["1 GPU"].fragmentation_share)
    waits = first_waits(records.record())
    assert waits.loc[("y", "2 to 4 GPUs"), "p50"] == pytest.approx(100 / 60)
    assert first_waits(records.record(), by_queue=False).loc["2 to 4 GPUs", "jobs"] == 2
