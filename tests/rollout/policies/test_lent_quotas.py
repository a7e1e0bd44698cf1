"""Philly's scheduler: tries every three minutes; quotas that are lent, and taken back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.policies.free_nodes import FreeNodes
from optsched.rollout.policy_options import OptionError
from optsched.rollout.registry import make
from optsched.traces.trace import US
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

QUEUES = {"a": 4, "b": 4}


def rolled(name, world, jobs):
    return Engine(world, jobs, make(name, world), 0, keep_intervals=True).run()


def lending(**parts):
    return scenario(2, 4, quotas=QUEUES, lends_quotas=True, epoch_s=1.0, **parts)


def test_a_gang_is_tried_at_its_arrival_and_again_every_three_minutes():
    world = scenario(1, 2, epoch_s=1.0)
    jobs = trace((0, 2, 100), (10, 2, 5), (500, 2, 5))
    record = rolled("philly", world, jobs)
    assert (record.jobs.first_start_us / US).tolist() == [0, 190, 500]
    assert (record.jobs.capacity_us / US).tolist() == [0, 90, 0]
    assert (record.jobs.order_us / US).tolist() == [0, 90, 0]
    often = rolled("philly:retry_s=0", world, jobs)
    assert (often.jobs.first_start_us / US).tolist() == [0, 100, 500]


def test_locality_relaxes_with_the_number_of_tries():
    world = scenario(2, 3, epoch_s=1.0)
    jobs = trace((0, 2, 1000), (0, 2, 1000), (10, 2, 5))
    for options, start in (("", 190), (":relax_after=2", 370), (":relax_after=0", 10)):
        record = rolled(f"philly{options}", world, jobs)
        assert record.jobs.first_start_us[2] == start * US, options
        assert record.jobs.fragmentation_us[2] == (start - 10) * US


def test_only_tries_for_want_of_a_place_count_where_it_is_asked():
    """Three servers of 3; until 403 s too few GPUs are free, from then on two on two servers."""
    world = scenario(3, 3, epoch_s=1.0)
    jobs = trace((0, 3, 5000), (1, 2, 5000), (2, 2, 5000), (3, 1, 400), (10, 2, 5))
    for option, start in (("time", 550), ("place", 730)):
        record = rolled(f"philly:relax_for={option}", world, jobs)
        assert record.jobs.first_start_us[4] == start * US, option
    assert record.jobs.capacity_us[4] == 393 * US
    assert record.jobs.fragmentation_us[4] == (550 - 403) * US
    assert record.jobs.order_us[4] == 180 * US  # it accepts both servers, and is tried again later


def test_a_gang_that_needs_more_servers_relaxes_more_slowly():
    """On each of three servers one GPU is in use."""
    in_use = [(0, 7, 5)] * 3 + [(0, 1, 9000)] * 3
    for size, tries in ((8, 1), (16, 2)):
        jobs = trace(*in_use, (10, size, 5))
        record = rolled("philly:relax_by=one", scenario(3, 8, epoch_s=1.0), jobs)
        assert record.jobs.first_start_us[6] == (10 + 180 * tries) * US


def test_at_each_step_a_gang_accepts_one_server_more_and_other_domains_last():
    groups = [{"count": 20, "gpus": 8, "domain": name} for name in "ab"]
    nodes = FreeNodes(Cluster(scenario(groups, None)), doubles=False)
    assert [nodes.worst_place(8, n) for n in (0, 1, 2, 9, 10)] == [
        *((1, 0), (2, 1), (3, 1), (8, 1), (8, 2))
    ]
    assert [nodes.worst_place(32, n) for n in (0, 1, 10, 20)] == [(4, 1), (5, 1), (14, 2), (32, 2)]


def test_idle_quota_is_lent_and_taken_back_by_preempting_who_started_last():
    jobs = trace((0, 4, 1000), (1, 4, 1000), (50, 4, 10), queue=["a", "a", "b"])
    world = lending(costs={"stop_loses_work": True})
    record = rolled("philly:reclaim_after=0", world, jobs)
    assert (record.jobs.first_start_us / US).tolist() == [0, 1, 50]
    assert record.jobs.preemptions.tolist() == [0, 1, 0]
    assert record.jobs.redone_gpu_us.tolist() == [0, 4 * 49 * US, 0]
    # It is back in the queue at 50 s, and tried again three minutes later.
    assert [row[1] // US for row in record.intervals if row[0] == 1] == [1, 230]


def test_an_owner_takes_nothing_back_before_so_many_tries_in_vain():
    jobs = trace((0, 4, 1000), (1, 4, 1000), (50, 4, 10), queue=["a", "a", "b"])
    for tries, start in ((1, 230), (2, 410), (100, 1000 + 130)):
        record = rolled(f"philly:reclaim_after={tries}", lending(), jobs)
        assert record.jobs.first_start_us[2] == start * US
        assert record.jobs.preemptions.sum() == (tries < 100)


def test_nothing_is_taken_back_for_the_sake_of_a_better_place():
    """Two GPUs are free, on two servers: the owner of quota waits for one server with both."""
    jobs = trace((0, 3, 1000), (0, 3, 1000), (50, 2, 10), queue=["a", "a", "b"])
    record = rolled("philly:relax_after=1000,reclaim_at=0.1,reclaim_after=0", lending(), jobs)
    assert not record.jobs.preemptions.any()
    assert record.jobs.first_start_us[2] > 1000 * US


def test_who_holds_no_more_than_what_lacks_is_preempted_first():
    jobs = trace((0, 2, 1000), (1, 4, 1000), (2, 2, 1000), (3, 2, 9), queue=["a", "a", "a", "b"])
    record = rolled("philly:reclaim_after=0", lending(), jobs)
    assert record.jobs.preemptions.tolist() == [0, 0, 1, 0]
    jobs = trace((0, 2, 1000), (1, 2, 1000), (2, 4, 1000), (3, 2, 9), queue=["a", "a", "a", "b"])
    record = rolled("philly:reclaim_after=0", lending(), jobs)
    assert record.jobs.preemptions.tolist() == [0, 1, 0, 0]


def test_owners_are_tried_before_borrowers():
    """Eight GPUs are free again at 100 s: the earlier borrower of 'a' stands behind 'b'."""
    jobs = trace((0, 8, 100), (10, 8, 50), (20, 4, 50), queue=["a", "a", "b"])
    record = rolled("philly:retry_s=0", lending(), jobs)
    assert (record.jobs.first_start_us / US).tolist() == [0, 150, 100]


def test_without_lending_quotas_are_hard():
    jobs = trace((0, 4, 1000), (1, 4, 1000), (50, 4, 10), queue=["a", "a", "b"])
    record = rolled("philly", scenario(2, 4, quotas=QUEUES), jobs)
    assert not record.jobs.preemptions.any()
    assert record.jobs.first_start_us[2] == 50 * US
    assert record.jobs.fair_share_us[1] > 900 * US


def test_nothing_is_taken_back_while_the_cluster_is_not_nearly_full():
    jobs = trace((0, 3, 1000), (0, 3, 1000), (50, 3, 10), queue=["a", "a", "b"])
    calm = rolled("philly:reclaim_after=0", lending(), jobs)  # 6 of 8 GPUs are in use
    assert not calm.jobs.preemptions.any()
    keen = rolled("philly:reclaim_at=0.7,reclaim_after=0", lending(), jobs)
    assert keen.jobs.preemptions.tolist() == [0, 1, 0]
    assert keen.jobs.first_start_us[2] == 50 * US


@law(200)
@given(st.data())
def test_only_queues_above_their_quotas_are_preempted_and_owners_start_where_all_is_lent(data):
    """Gangs of one size on servers of that size: place plays no part."""
    times = st.integers(0, 60)
    rows = data.draw(st.lists(st.tuples(times, st.just(4), st.integers(1, 400)), max_size=12))
    queues = [data.draw(st.sampled_from("ab")) for _ in rows]
    world = lending()
    record = rolled("philly", world, trace(*rows, queue=queues))
    queue = record.trace.queue
    moments = sorted({start for _, start, _, _ in record.intervals})
    for now in moments:
        held = [job for job, start, end, _ in record.intervals if start <= now < end]
        assert len(held) <= 2
    for job in np.flatnonzero(record.jobs.preemptions):
        ends = [end for j, _, end, _ in record.intervals if j == job]
        for end in ends[:-1]:
            before = [j for j, s, e, _ in record.intervals if s < end <= e]
            assert sum(queue[j] == queue[job] for j in before) == 2
            assert any(queue[j] != queue[job] and s == end for j, s, _, _ in record.intervals)
    assert (record.jobs.outcome >= 0).all()


def test_the_old_option_is_refused_by_its_name():
    with pytest.raises(OptionError, match="there is no option 'relax_s'"):
        make("philly:relax_s=600", scenario(1, 2))
